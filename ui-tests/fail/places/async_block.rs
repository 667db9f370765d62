//! An `async` block is polled by others.

use workflow::{sleep, workflow};

#[workflow]
async fn checkout() {
    let _later = async {
        sleep!(nap, "1s").await;
    };
}

fn main() {}
