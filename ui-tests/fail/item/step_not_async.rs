//! A step is `async`, unless it is `blocking`.

use workflow::step;

#[step]
fn reserve(order: u32) -> u32 {
    order
}

fn main() {}
