//! `#[key]` stands on a durable `for`.

use workflow::{Failure, sleep, workflow};

#[workflow]
async fn checkout(orders: Vec<u32>) -> Result<(), Failure> {
    let mut total = 0;
    #[key(order)]
    for order in &orders {
        total += order;
    }
    #[key(total)]
    'down: while total > 0 {
        sleep!(nap, "1s").await;
        total -= 1;
    }
    #[key]
    'orders: for _ in &orders {
        sleep!(nap, "1s").await;
    }
    Ok(())
}

fn main() {}
