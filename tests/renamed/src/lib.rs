//! The library under another name, in the edition before, with every lint on.

#![forbid(unsafe_code)]
#![deny(warnings, missing_docs, missing_debug_implementations)]
#![deny(unreachable_pub, unused_qualifications, single_use_lifetimes)]
#![deny(rust_2018_idioms, unused, let_underscore_drop, unused_lifetimes)]
#![deny(clippy::all, clippy::pedantic, clippy::nursery)]

use std::fmt::Error;

use wf::{fragment, join, join_all, race, sleep, step, workflow, Failure};

/// Holds.
#[step(retries = 2)]
pub async fn reserve(order: &str, n: u64) -> Result<u64, Error> {
    if order.is_empty() {
        return Err(Error);
    }
    Ok(n + 1)
}

/// Waits.
#[fragment]
pub async fn settle(total: &mut u64, n: u64) -> Result<(), Failure> {
    sleep!(nap, "10ms").await;
    *total += reserve("settle", n).await?;
    Ok(())
}

/// Looks.
#[fragment]
pub async fn peek(n: u64) -> Result<u64, Failure> {
    reserve("peek", n).await
}

/// Uses all of the language.
#[workflow]
pub async fn checkout(order: String, items: Vec<u64>) -> Result<u64, Failure> {
    let mut total = reserve(&order, 1).await?;
    'items: for item in &items {
        total += reserve(&order, *item).await?;
    }
    settle(&mut total, 1).await?;
    #[step(name = "settled_again")]
    settle(&mut total, 2).await?;
    let seen = peek(1).await?;
    #[step(name = "again")]
    let again = peek(1).await?;
    #[step(name = "doubled")]
    let doubled = { total * 2 }?;
    let (a, b) = join!(both, a = reserve(&order, 1).await?, b = 2).await?;
    let won = race!(
        first,
        a = reserve(&order, 1).await?,
        b = { reserve(&order, 2).await? }
    )
    .await?;
    let all = join_all!(
        every,
        limit = 2,
        for item in items {
            reserve(&order, item).await?
        }
    )
    .await?;
    Ok(total + seen + again + doubled + a + b + won.value + all.iter().sum::<u64>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_workflow_runs_under_another_name_of_the_library() {
        let engine = wf::Engine::builder()
            .workflow(checkout)
            .store(wf::MemoryStore::new())
            .build()
            .await
            .expect("a memory store opens");
        let total = engine.run("a", checkout("o".to_owned(), vec![1, 2])).await;
        // 2 + 2 + 3 + 2 + 3, 2 + 2, 24, 2 + 2, 2 or 3, 2 + 3.
        let total = total.expect("no step fails");
        assert!(total == 51 || total == 52, "{total}");
    }

    // UA-07: what is in a fragment is told apart by the site of its call.
    #[test]
    fn a_fragment_called_twice_has_a_site_for_each_call() {
        let paths: Vec<_> = checkout::SITES.iter().map(|site| site.path).collect();
        assert!(
            paths.contains(&"peek") && paths.contains(&"again"),
            "{paths:?}"
        );
    }
}
