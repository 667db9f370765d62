//! The versions that code knows do not depend on anything.

use workflow::{version, workflow};

#[workflow]
async fn checkout(latest: u32) -> u32 {
    version!(prices, latest).await
}

fn main() {}
