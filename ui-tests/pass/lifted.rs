//! With a reason, what is refused is allowed.

use std::collections::HashMap;

use workflow::{Failure, step, workflow};

#[step]
async fn reserve(order: u32) -> u32 {
    order
}

#[workflow]
async fn checkout(order: u32) -> Result<u32, Failure> {
    #[nondeterministic(reason = "only looked up in, never iterated over")]
    let known = HashMap::from([(1, 2)]);
    #[nondeterministic(reason = "a log line, which decides nothing")]
    println!("{:?}", std::time::Instant::now());
    Ok(reserve(order + known.len() as u32).await?)
}

fn main() {}
