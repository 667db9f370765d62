//! The user's tokens are underlined.

use workflow::{step, workflow};

#[step]
async fn reserve(order: u32) -> String {
    order
}

#[workflow]
async fn checkout(order: u32) -> String {
    order
}

fn main() {}
