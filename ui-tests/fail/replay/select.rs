//! Whichever is ready first is another one on replay. (UA-20)

use workflow::{Failure, step, workflow};

#[step]
async fn reserve(order: u32) -> u32 {
    order
}

#[workflow]
async fn checkout() -> Result<(), Failure> {
    tokio::select! {
        _ = reserve(1) => {}
        _ = reserve(2) => {}
    }
    let _ = tokio::join!(reserve(1), reserve(2));
    Ok(())
}

fn main() {}
