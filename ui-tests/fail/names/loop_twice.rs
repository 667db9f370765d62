//! Two durable loops of one label, one after the other.

use workflow::{Failure, sleep, workflow};

#[workflow]
async fn checkout(items: Vec<u32>) -> Result<(), Failure> {
    'items: for _ in &items {
        sleep!(wait, "1s").await;
    }
    'items: for _ in &items {
        sleep!(wait, "1s").await;
    }
    Ok(())
}

fn main() {}
