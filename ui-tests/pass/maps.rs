//! Maps whose order no replay can see otherwise: borrowed ones, those inside a step, and those with a hasher of their own.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, DefaultHasher};

use workflow::{Failure, step, workflow};

type Steady = BuildHasherDefault<DefaultHasher>;

#[step]
async fn prices() -> Vec<(String, u32)> {
    vec![("tea".to_owned(), 3)]
}

#[workflow]
async fn checkout(order: String, #[state] known: HashMap<String, u32>) -> Result<u32, Failure> {
    let prices: HashMap<String, u32, Steady> = prices().await?.into_iter().collect();
    let names = prices.keys().cloned().collect::<HashSet<_, Steady>>();
    let borrowed: &HashMap<String, u32, Steady> = &prices;
    let count = |map: &HashMap<String, u32, Steady>| map.len();
    #[step(name = "total")]
    let total = {
        let counted: HashMap<&str, u32> = known.iter().map(|(name, n)| (&**name, *n)).collect();
        counted.get(&*order).copied().unwrap_or_default()
    }?;
    #[nondeterministic(reason = "only its length is read")]
    let seen: HashSet<u32> = [total].into_iter().collect();
    Ok(total + (names.len() + borrowed.len() + count(&prices) + seen.len()) as u32)
}

fn main() {}
