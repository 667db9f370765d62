//! Channels and the like, where nothing durable can be done.

use workflow::{Channel, Failure, attempt, recv, removed, send, step, version, workflow};

static PAYMENT: Channel<u32> = Channel::new("payment");

#[workflow]
async fn checkout(order: String) -> Result<(), Failure> {
    let later = async { recv!(paid, PAYMENT).await };
    let never = || removed!(old, kind = "step");
    println!("{}", version!(prices, 2).await);
    #[step(name = "mail")]
    {
        send!(tell, &order, PAYMENT, 1).await?;
        Ok(())
    }?;
    let all: Vec<_> = [1].iter().map(|_| attempt!(book, { 1 })).collect();
    drop((later, never, all));
    Ok(())
}

fn outside() {
    removed!(old, kind = "step");
}

fn main() {}
