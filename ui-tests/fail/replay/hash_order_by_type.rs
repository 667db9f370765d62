//! A map that is made by the type it is given, however that is written. (UA-11, its first half)

use std::collections::{HashMap, HashSet};

use workflow::{Failure, workflow};

#[workflow]
async fn checkout(orders: Vec<(u32, u32)>) -> Result<usize, Failure> {
    let by_id: HashMap<u32, u32> = orders.iter().copied().collect();
    let same = orders.iter().copied().collect::<HashMap<_, _>>();
    let ids: std::collections::HashSet<u32> = orders.iter().map(|order| order.0).collect();
    let empty: HashMap<u32, u32> = Default::default();
    let other = <HashSet<u32> as Default>::default();
    let both: (Vec<u32>, HashSet<u32>) = orders.iter().copied().unzip();
    let once: HashMap<u32, u32> = HashMap::new();
    println!("{:?}", orders.iter().copied().collect::<HashMap<_, _>>());
    Ok(by_id.len() + same.len() + ids.len() + empty.len() + other.len() + both.1.len() + once.len())
}

fn main() {}
