//! Without `.await` it would do nothing, and what is only said is not awaited.

use workflow::{Channel, attempt, recv, removed, send, version, workflow};

static PAYMENT: Channel<u32> = Channel::new("payment");

#[workflow]
async fn checkout(order: String) {
    recv!(paid, PAYMENT);
    send!(tell, &order, PAYMENT, 1);
    let booked = attempt!(book, { 1 });
    let version = version!(prices, 2);
    removed!(old, kind = "step").await;
}

fn main() {}
