//! The engine finds a state by its type.

use workflow::workflow;

#[workflow]
async fn checkout(order: u32, #[state(name = "stock")] stock: String) -> u32 {
    order
}

fn main() {}
