//! `attempt!`: a block at whose edge failures stop.

use workflow::{Engine, Failure, FailureKind, attempt, join, step, workflow};
use workflow_tests::{Counter, World};

#[derive(Debug, thiserror::Error, serde::Serialize, serde::Deserialize, PartialEq)]
#[error("declined: {reason}")]
struct Declined {
    reason: String,
}

#[step(retries = 0)]
async fn charge(calls: &Counter, card: &str) -> Result<u32, Declined> {
    calls.hit();
    if card == "bad" {
        return Err(Declined {
            reason: "no funds".into(),
        });
    }
    Ok(7)
}

#[step]
async fn noted(calls: &Counter) -> usize {
    calls.hit()
}

// RVT-TRY-05 RVT-TRY-01
#[workflow]
async fn fallback(#[state] calls: Counter) -> Result<String, Failure> {
    let mut tried = Vec::new();
    let first = attempt!(first, {
        noted(&calls).await?;
        tried.push("first");
        charge(&calls, "bad").await?
    })
    .await;
    let failure = first.unwrap_err();
    assert_eq!(failure.location().to_string(), "first/charge");
    assert_eq!(failure.kind(), FailureKind::Exhausted);
    assert_eq!(failure.attempts(), 1);
    let declined: Declined = failure.downcast().unwrap();
    let second = attempt!(second, {
        tried.push("second");
        charge(&calls, "good").await?
    })
    .await?;
    Ok(format!(
        "{} {second} after {}",
        tried.join(","),
        declined.reason
    ))
}

// RVT-TRY-06
#[workflow]
async fn joined(#[state] calls: Counter) -> Result<String, Failure> {
    let tried = attempt!(both, {
        join!(
            pay,
            good = charge(&calls, "good").await?,
            bad = charge(&calls, "bad").await?
        )
        .await?
    })
    .await;
    let failure = tried.unwrap_err();
    Ok(format!("{} {}", failure.kind(), failure.location()))
}

async fn engine(world: &World, calls: &Counter) -> Engine {
    world
        .engine()
        .state(calls.clone())
        .workflow(fallback)
        .workflow(joined)
        .build()
        .await
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_failure_in_a_block_is_data_outside_of_it_and_the_block_may_change_locals() {
    let (world, calls) = (World::new(), Counter::default());
    let engine = engine(&world, &calls).await;
    let run = engine.run("a", fallback()).await.unwrap();
    assert_eq!(run, "first,second 7 after no funds");
    assert_eq!(engine.run("b", joined()).await.unwrap(), "join both/pay");
    assert_eq!(calls.count(), 5);
}
