//! A change that only the compiler sees: it says which variable, at the user's tokens. (UA-80)

use workflow::{Failure, join, join_all, race, step, workflow};

#[step]
async fn reserve(order: u32) -> u32 {
    order
}

#[workflow]
async fn in_step(order: u32) -> Result<usize, Failure> {
    let mut held = Vec::new();
    #[step(name = "add")]
    held.push(order)?;
    Ok(held.len())
}

#[workflow]
async fn in_branch(order: u32) -> Result<usize, Failure> {
    let mut held = Vec::new();
    join!(
        both,
        a = held.push(reserve(order).await?),
        b = { reserve(order).await? }
    )
    .await?;
    Ok(held.len())
}

#[workflow]
async fn in_race(order: String) -> Result<String, Failure> {
    let won = race!(
        first,
        a = {
            reserve(1).await?;
            order
        },
        b = String::new()
    )
    .await?;
    Ok(won.value)
}

#[workflow]
async fn in_item(orders: Vec<u32>) -> Result<usize, Failure> {
    let mut held = Vec::new();
    join_all!(
        every,
        for order in orders {
            held.push(reserve(order).await?);
        }
    )
    .await?;
    Ok(held.len())
}

fn main() {}
