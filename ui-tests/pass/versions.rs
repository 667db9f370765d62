//! Every form of `version!` and `removed!`.

#![deny(warnings, clippy::all, clippy::pedantic)]

use workflow::{Failure, attempt, fragment, join, removed, step, version, workflow};

const NEWEST: u32 = 3;

#[step]
async fn reserve(order: u32) -> u32 {
    order
}

#[fragment]
async fn priced(order: u32) -> Result<u32, Failure> {
    removed!(quote, kind = "step");
    if version!(rounding, 2).await == 1 {
        return Ok(order);
    }
    Ok(order + 1)
}

#[workflow]
async fn checkout(order: u32) -> Result<u32, Failure> {
    let mut total = match version!(prices, NEWEST).await {
        1 => reserve(order).await?,
        2 => {
            #[step(name = "second")]
            let n = reserve(order).await?;
            n
        }
        _ => priced(order).await?,
    };
    if workflow::version!(more, 2).await >= 2 {
        total += 1;
    }
    'rounds: for n in 0..3 {
        removed!(old_round, kind = "join_all");
        #[step(name = "round")]
        let n = reserve(n).await?;
        total += n;
    }
    let (a, b) = join!(both, a = version!(inside, NEWEST + 1).await, b = {
        workflow::removed!(old_branch, kind = "sleep");
        1
    })
    .await?;
    attempt!(last, {
        removed!(old_wait, kind = "recv");
        removed!(old_child, kind = "child");
        removed!("old-step", kind = "step");
        removed!(old_rollback, kind = "rollback");
        total + a + b
    })
    .await
}

fn main() {}
