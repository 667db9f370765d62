//! A branch's own value is not written down, but one that holds a thread's is refused.

use std::rc::Rc;

use workflow::{Failure, join, step, workflow};

#[step]
async fn reserve(order: u32) -> u32 {
    order
}

#[workflow]
async fn checkout(order: u32) -> Result<u32, Failure> {
    let (a, b) = join!(both, a = { let n = Rc::new(1); reserve(order).await? + *n }, b = 2).await?;
    Ok(a + b)
}

fn main() {}
