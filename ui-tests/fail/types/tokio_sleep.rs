//! A timer that is not recorded.

use std::time::Duration;

use workflow::workflow;

#[workflow]
async fn checkout() {
    tokio::time::sleep(Duration::from_secs(1)).await;
}

fn main() {}
