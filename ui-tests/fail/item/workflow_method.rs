//! A workflow is no method.

use workflow::workflow;

struct Shop;

impl Shop {
    #[workflow]
    async fn checkout(&self, order: u32) -> u32 {
        order
    }
}

fn main() {}
