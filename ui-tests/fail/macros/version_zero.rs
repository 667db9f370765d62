//! A version from a constant is a number from 1, too.

use workflow::{version, workflow};

const NONE: u32 = 0;

#[workflow]
async fn checkout() -> u32 {
    version!(a, NONE).await
}

fn main() {
    drop(workflow::Engine::builder().workflow(checkout));
}
