//! Workflows that are not right: each is found out, at the right place.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use workflow::testing::{Broken, crash_everywhere};
use workflow::{Failure, sleep, step, workflow};
use workflow_tests::Counter;

#[step]
async fn reserve() -> u32 {
    3
}

#[step]
async fn ship(n: u32) -> u32 {
    n
}

fn says(broken: &Broken, texts: &[&str]) {
    let said = broken.to_string();
    println!("{said}\n");
    for text in texts {
        assert!(said.contains(text), "`{text}` is not in:\n{said}");
    }
    assert_eq!(said, format!("{broken:?}"));
}

/// What code outside of steps can get at, though the macro refuses it where it is seen: something global. Made anew, it begins at 0.
#[derive(Debug, Clone)]
struct Global(&'static AtomicU32);

impl Global {
    fn new(times: &'static AtomicU32) -> Self {
        times.store(0, Ordering::SeqCst);
        Self(times)
    }

    fn count(&self) -> u32 {
        self.0.load(Ordering::SeqCst)
    }
}

fn hit(times: &AtomicU32) -> u32 {
    times.fetch_add(1, Ordering::SeqCst) + 1
}

static CHARGED: AtomicU32 = AtomicU32::new(0);

/// An effect beside the steps.
#[workflow]
async fn careless() -> Result<u32, Failure> {
    let held = reserve().await?;
    sleep!(pause, "1h").await;
    #[nondeterministic(reason = "planted")]
    hit(&CHARGED);
    Ok(ship(held).await?)
}

#[tokio::test]
async fn an_effect_outside_of_steps_is_found_between_its_neighbours() {
    let found = crash_everywhere(careless())
        .fresh(|| Global::new(&CHARGED))
        .effect("charges", Global::count);
    let broken = found.await.unwrap_err();
    says(
        &broken,
        &[
            "without it   charges: 1",
            "with it      charges: 2",
            "outside of steps",
            "after `pause` (sleep)",
            "no later than `ship` (call)",
            "found.rs:",
        ],
    );
    assert_eq!(broken.location(), Some("ship"));
}

/// A step whose effect counts twice.
#[step]
async fn charge(bank: &Counter, cents: u32) -> u32 {
    bank.hit();
    cents
}

#[workflow]
async fn doubles(#[state] bank: Counter) -> Result<u32, Failure> {
    let held = reserve().await?;
    let paid = charge(&bank, held).await?;
    Ok(ship(paid).await?)
}

#[tokio::test]
async fn an_effect_that_counts_twice_is_found_in_its_step() {
    let run = || {
        crash_everywhere(doubles())
            .fresh(Counter::default)
            .effect("charges", Counter::count)
    };
    let broken = run().await.unwrap_err();
    says(
        &broken,
        &[
            "the body of attempt 1 of `charge` had ended, and nothing of that was written",
            "this crash cut off `charge`",
            "idempotency_key()",
        ],
    );
    assert_eq!(broken.location(), Some("charge"));
    // As it says: that one alone.
    let number = broken.crash().unwrap();
    let again = run().only(number).await.unwrap_err();
    assert_eq!(again.crash(), Some(number));
    let before = run().only(number - 1).await;
    assert!(before.is_ok(), "{before:?}");
}

static WAVERED: AtomicU32 = AtomicU32::new(0);

/// What is not recorded decides where the code goes.
#[workflow]
async fn wavers() -> Result<u32, Failure> {
    let held = reserve().await?;
    #[nondeterministic(reason = "planted")]
    let times = hit(&WAVERED);
    if times == 1 {
        #[step(name = "first")]
        ship(held).await?;
    } else {
        #[step(name = "second")]
        ship(held).await?;
    }
    Ok(held)
}

#[tokio::test]
async fn a_branch_that_is_not_recorded_is_found_as_a_divergence() {
    let broken = crash_everywhere(wavers())
        .fresh(|| Global::new(&WAVERED))
        .await
        .unwrap_err();
    says(
        &broken,
        &[
            "just after it was written that `first` ended",
            "it is parked (diverged)",
            "found.rs:",
            "what decides there has to be recorded",
        ],
    );
    assert_eq!(broken.location(), Some("first"));
}

/// A message that is taken by a step, from a queue in memory.
type Queue = Arc<Mutex<VecDeque<u32>>>;

#[step(timeout = "none")]
async fn next(queue: Queue) -> u32 {
    loop {
        let taken = queue.lock().unwrap().pop_front();
        if let Some(taken) = taken {
            return taken;
        }
        std::future::pending::<()>().await;
    }
}

#[workflow]
async fn consumes(#[state] queue: Queue) -> Result<u32, Failure> {
    reserve().await?;
    next(queue.clone()).await
}

#[tokio::test]
async fn a_message_that_is_lost_is_found_where_it_was_taken() {
    let broken = crash_everywhere(consumes())
        .fresh(|| Queue::new(Mutex::new([5].into())))
        .await
        .unwrap_err();
    says(
        &broken,
        &[
            "the body of attempt 1 of `next` had ended",
            "without it   the run completed with 5",
            "with it      the run has not ended: after 366 days it is running in the body of `next`",
            "Take messages by `recv!`",
        ],
    );
    assert_eq!(broken.location(), Some("next"));
}

static COUNTED: AtomicU32 = AtomicU32::new(0);

/// A value that counts how often the code ran.
#[workflow]
async fn counts() -> Result<u32, Failure> {
    #[nondeterministic(reason = "planted")]
    let times = hit(&COUNTED);
    reserve().await?;
    Ok(u32::try_from(times).unwrap())
}

#[tokio::test]
async fn an_outcome_that_differs_is_told_with_both() {
    let broken = crash_everywhere(counts())
        .fresh(|| Global::new(&COUNTED))
        .await;
    says(
        &broken.unwrap_err(),
        &[
            "without it   the run completed with 1",
            "with it      the run completed with 2",
            "code outside of steps gives something else",
        ],
    );
}

static EVER: AtomicU32 = AtomicU32::new(0);

#[workflow]
async fn remembers() -> Result<u32, Failure> {
    reserve().await?;
    #[nondeterministic(reason = "planted")]
    let times = EVER.fetch_add(1, Ordering::SeqCst);
    Ok(times)
}

#[tokio::test]
async fn what_differs_without_a_crash_is_told_first() {
    let broken = crash_everywhere(remembers()).await.unwrap_err();
    says(
        &broken,
        &[
            "two runs without any crash do not end alike",
            ".outcome(..)",
        ],
    );
    assert_eq!(broken.crash(), None);
}

#[workflow]
async fn waits() -> Result<u32, Failure> {
    static NEVER: workflow::Channel<u32> = workflow::Channel::new("never");
    workflow::recv!(answer, NEVER).await
}

#[tokio::test]
async fn a_run_that_waits_for_ever_is_told_of_with_what_it_waits_for() {
    let broken = crash_everywhere(waits()).await.unwrap_err();
    says(
        &broken,
        &["has not ended", "at `answer`", "a message on `never`"],
    );
}
