//! A sleep has a length.

use workflow::{sleep, workflow};

#[workflow]
async fn checkout() {
    sleep!(nap).await;
    sleep!(other, "1s", "2s").await;
}

fn main() {}
