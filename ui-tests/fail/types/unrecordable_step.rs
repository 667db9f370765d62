//! What a step gives is written down.

use workflow::step;

struct Hold(u32);

#[step]
async fn reserve(order: u32) -> Hold {
    Hold(order)
}

fn main() {}
