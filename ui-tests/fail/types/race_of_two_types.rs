//! The branches of a race give the same type.

use workflow::{Failure, race, sleep, workflow};

#[workflow]
async fn checkout(order: u32) -> Result<u32, Failure> {
    let won = race!(first, number = { order }, late = { sleep!(nap, "1s").await; "late".to_owned() }).await?;
    Ok(won.value)
}

fn main() {}
