//! Two sleeps of one name.

use workflow::{sleep, workflow};

#[workflow]
async fn checkout() {
    sleep!(wait, "1s").await;
    sleep!(wait, "2s").await;
}

fn main() {}
