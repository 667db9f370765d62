//! Awaits wherever an expression may stand.

use workflow::{Failure, step, workflow};

#[step]
async fn count(order: u32) -> u32 {
    order
}

#[step]
async fn maybe(order: u32) -> Option<u32> {
    Some(order)
}

struct Pair {
    left: u32,
    right: u32,
}

#[workflow]
async fn checkout(order: u32) -> Result<u32, Failure> {
    let Some(a) = (#[step(name = "first")] maybe(order).await)? else {
        return Ok(0);
    };
    let b = if count(a).await? > 3 {
        #[step(name = "big")]
        let n = count(a).await?;
        n
    } else {
        1
    };
    let c = match maybe(b).await {
        Ok(Some(n)) if n > 2 => n,
        Ok(_) => 0,
        Err(failure) => return Err(failure),
    };
    let mut pair = Pair { left: (#[step(name = "left")] count(c).await)?, right: 2 };
    #[step(name = "plus")]
    let plus = count(c).await?;
    pair.right += plus;
    let list = [pair.left, pair.right];
    Ok(list.iter().sum::<u32>().max(a))
}

fn main() {}
