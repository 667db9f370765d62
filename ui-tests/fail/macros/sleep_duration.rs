//! A length that cannot be read.

use workflow::{sleep, workflow};

#[workflow]
async fn checkout() {
    sleep!(nap, "quarter of an hour").await;
}

fn main() {}
