//! A length of another type is the compiler's to say.

use workflow::{sleep, workflow};

#[workflow]
async fn checkout(minutes: u64) {
    sleep!(nap, minutes).await;
}

fn main() {}
