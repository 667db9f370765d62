//! Outside of a workflow there is no history.

use std::time::Duration;

async fn plain() {
    workflow::sleep!(nap, Duration::from_secs(1)).await;
    let _ = workflow::join!(both, a = 1, b = 2).await;
    let _ = workflow::uuid!(key);
}

fn main() {}
