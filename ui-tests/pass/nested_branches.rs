//! Joins in races in joins.

use workflow::{Failure, join, join_all, race, sleep, step, workflow};

#[step]
async fn count(order: u32) -> u32 {
    order
}

#[workflow]
async fn checkout(orders: Vec<u32>) -> Result<u32, Failure> {
    let (a, b) = join!(
        outer,
        a = {
            let won = race!(
                inner,
                late = {
                    sleep!(nap, "1s").await;
                    0
                },
                soon = {
                    let (x, y) = join!(core, x = count(1).await?, y = count(2).await?).await?;
                    x + y
                },
            )
            .await?;
            won.value
        },
        b = join_all!(every, limit = 3, for order in orders.clone() {
            'n: for n in 0..order {
                count(n).await?;
            }
            count(order).await?
        })
        .await?,
    )
    .await?;
    Ok(a + b.len() as u32)
}

fn main() {}
