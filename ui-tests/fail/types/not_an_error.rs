//! A step's error is an error.

use workflow::step;

struct Odd;

#[step]
async fn reserve(order: u32) -> Result<u32, Odd> {
    if order > 3 { Err(Odd) } else { Ok(order) }
}

fn main() {}
