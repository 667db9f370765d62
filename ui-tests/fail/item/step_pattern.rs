//! A step's parameter is a plain name.

use workflow::step;

#[step]
async fn reserve((item, count): (u32, u32)) -> u32 {
    item + count
}

fn main() {}
