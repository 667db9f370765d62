//! `now!` takes a name only.

use workflow::{now, workflow};

#[workflow]
async fn checkout(order: u32) {
    let _started = now!(started, order).await;
}

fn main() {}
