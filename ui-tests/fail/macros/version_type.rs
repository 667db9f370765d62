//! The versions that code knows are numbers.

use workflow::{version, workflow};

const LATEST: u32 = 3;

#[workflow]
async fn checkout() -> u32 {
    let a = version!(a, LATEST).await;
    let b = version!(b, "2").await;
    a + b
}

fn main() {}
