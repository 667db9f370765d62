//! The versions that code knows do not depend on anything.

use workflow::{version, workflow};

const LATEST: u32 = 3;

#[workflow]
async fn checkout(latest: u32) -> u32 {
    let a = version!(a, LATEST).await;
    let b = version!(b, latest).await;
    let c = version!(c, "2").await;
    a + b + c
}

fn main() {}
