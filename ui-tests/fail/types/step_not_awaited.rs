//! A step that is never awaited is never run. (RVT-STEP-18, RVT-FIX-64)

#![deny(unused_must_use)]

use workflow::{Failure, step, workflow};

#[step]
async fn reserve(order: u32) -> u32 {
    order
}

#[workflow]
async fn checkout(order: u32) -> Result<(), Failure> {
    reserve(order);
    Ok(())
}

fn main() {}
