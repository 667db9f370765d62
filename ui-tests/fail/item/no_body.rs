//! Only a step may be declared without a body.

use workflow::fragment;

trait Shop {
    #[fragment]
    async fn settle(&self, order: u32) -> u32;
}

fn main() {}
