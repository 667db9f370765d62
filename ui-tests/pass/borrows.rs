//! Steps and branches that borrow locals. (UA-80)

use workflow::{Failure, join, join_all, race, step, workflow};

#[step]
async fn longer<'a>(one: &'a str, other: &'a [String]) -> usize {
    one.len() + other.len()
}

#[workflow]
async fn checkout(order: String, items: Vec<String>) -> Result<usize, Failure> {
    let title = order.as_str();
    let n = longer(title, &items).await?;
    let (a, b) = join!(both, a = longer(title, &items).await?, b = longer(&order, &items).await?).await?;
    let won = race!(first, a = longer(title, &items).await?, b = longer(&order, &items).await?).await?;
    let all = join_all!(every, limit = 2, key = item, for item in &items {
        longer(item, &items).await?
    })
    .await?;
    Ok(n + a + b + won.value + all.len())
}

fn main() {}
