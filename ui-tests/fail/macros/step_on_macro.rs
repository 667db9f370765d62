//! A macro of ours is recorded by itself.

use workflow::{sleep, step, workflow};

#[workflow]
async fn checkout() {
    #[step]
    sleep!(nap, "1s").await;
}

fn main() {}
