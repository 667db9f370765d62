//! A macro's first word is its name.

use workflow::{now, sleep, workflow};

#[workflow]
async fn checkout() {
    sleep!("15m").await;
    let _started = now!().await;
}

fn main() {}
