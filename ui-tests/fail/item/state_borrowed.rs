//! A state is given by value, as every argument is.

use workflow::workflow;

#[workflow]
async fn checkout(order: u32, #[state] stock: &String) -> usize {
    stock.len() + order as usize
}

fn main() {}
