//! A step is not a workflow. (UA-77)

use workflow::{Engine, step};

#[step]
async fn charge(order: u32) -> u32 {
    order
}

fn main() {
    let _ = Engine::builder().workflow(charge);
}
