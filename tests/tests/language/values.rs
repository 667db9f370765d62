//! What an application keeps in the engine's store, in the transactions of its steps.

use std::sync::Arc;
use std::time::Duration;

use workflow::{
    Error, Failure, FailureKind, PutError, attempt, checkpoint, current_step, race, rollback,
    sleep, step, workflow,
};
use workflow_tests::{Counter, Fault, FaultStore, World, pass};

#[derive(Debug, thiserror::Error)]
enum Refused {
    #[error(transparent)]
    Put(#[from] PutError),
    #[error("sold out")]
    SoldOut,
}

/// Books a seat; which call it was is written down with the booking.
#[step(retries = 0)]
async fn book(calls: &Counter, seat: u32) -> Result<usize, Refused> {
    let call = calls.hit();
    current_step().put(format!("seats/{seat}"), &call)?;
    current_step().put("newest", &seat)?;
    Ok(call)
}

async fn unbook(call: usize, seat: Counter) -> Result<(), PutError> {
    let _ = seat;
    let location = current_step().location().to_string();
    let seat = location
        .trim_start_matches("seats[")
        .trim_end_matches("]/book");
    current_step().remove(format!("seats/{seat}"))?;
    current_step().put(format!("undone/{seat}"), &call)
}

#[workflow]
async fn trip(seats: u32, fails: bool, #[state] calls: Counter) -> Result<u32, Failure> {
    checkpoint!(begun);
    'seats: for seat in 0..seats {
        #[step(undo(unbook))]
        book(&calls, seat).await?;
    }
    if fails {
        sold_out().await?;
    }
    Ok(seats)
}

#[step(retries = 0)]
async fn sold_out() -> Result<(), Refused> {
    current_step().put("never", &1)?;
    Err(Refused::SoldOut)
}

// UA-52, RVT-HOST-12
#[tokio::test(start_paused = true)]
async fn a_value_is_there_exactly_when_its_step_is_recorded_at_whatever_commit_the_process_dies() {
    let mut whole = false;
    let mut cut = 1;
    while !whole {
        for fault in [Fault::Before, Fault::After] {
            let (world, calls) = (World::new(), Counter::default());
            let faults = (0..cut).map(|_| Fault::None).chain([fault]);
            let faults = faults.chain([Fault::Before; 1_000]);
            let store = FaultStore::over(&world.store, faults);
            let builder = world.engine().shared_store(Arc::new(store.clone()));
            let builder = builder.state(calls.clone()).workflow(trip);
            let engine = builder.build().await.unwrap();
            let run = engine.start("a", trip(3, false)).await.unwrap();
            pass(50).await;
            whole = store.left() >= 1_000;
            drop((run, engine));

            let world = world.crash();
            let engine = world.engine().state(calls.clone()).workflow(trip);
            let engine = engine.build().await.unwrap();
            let history = engine.attach::<trip>("a").await.unwrap();
            assert_eq!(history.result().await.unwrap(), 3);
            let rows: Vec<(String, usize)> = engine.values("seats/", None, 9).await.unwrap();
            let keys: Vec<_> = rows.iter().map(|(key, _)| &**key).collect();
            assert_eq!(keys, ["seats/0", "seats/1", "seats/2"], "cut {cut}");
            // The row is of the very call that is recorded, also where the body ran twice.
            for (record, (_, call)) in recorded(&history.history().await.unwrap()).zip(&rows) {
                assert_eq!(record, *call, "cut {cut}");
            }
            assert_eq!(engine.value::<u32>("newest").await.unwrap(), Some(2));
        }
        cut += 1;
    }
    assert!(cut > 4, "{cut}");
}

fn recorded(history: &[workflow::replay::Record]) -> impl Iterator<Item = usize> {
    history.iter().filter_map(|record| match &record.body {
        workflow::replay::Body::Ended(ended) => {
            let payload = ended.outcome.as_ref().ok()?;
            serde_json::from_slice(&payload.bytes).ok()
        }
        _ => None,
    })
}

#[tokio::test(start_paused = true)]
async fn what_is_undone_takes_its_values_back_and_a_failed_attempt_leaves_none() {
    let world = World::new();
    let engine = world.engine().state(Counter::default()).workflow(trip);
    let engine = engine.build().await.unwrap();
    let error = engine.run("a", trip(2, true)).await.unwrap_err();
    assert!(matches!(error, Error::Failed(_)), "{error}");
    let seats: Vec<(String, usize)> = engine.values("seats/", None, 9).await.unwrap();
    assert_eq!(seats, []);
    let undone: Vec<(String, usize)> = engine.values("undone/", None, 9).await.unwrap();
    assert_eq!(
        undone,
        [("undone/0".to_owned(), 1), ("undone/1".to_owned(), 2)]
    );
    assert_eq!(engine.value::<u32>("never").await.unwrap(), None);
}

#[workflow]
async fn tried(#[state] calls: Counter) -> Result<usize, Failure> {
    checkpoint!(begun);
    'seats: for seat in 0..2 {
        #[step(undo(unbook))]
        book(&calls, seat).await?;
    }
    rollback!(back, to = begun).await;
    #[step(name = "instead")]
    book(&calls, 9).await
}

#[tokio::test(start_paused = true)]
async fn a_part_that_is_rolled_back_takes_its_values_back_and_the_run_goes_on() {
    let world = World::new();
    let engine = world.engine().state(Counter::default()).workflow(tried);
    let engine = engine.build().await.unwrap();
    assert_eq!(engine.run("a", tried()).await.unwrap(), 3);
    let all: Vec<(String, usize)> = engine.values("", None, 9).await.unwrap();
    let all: Vec<_> = all.iter().map(|(key, value)| (&**key, *value)).collect();
    let undone = [("undone/0", 1), ("undone/1", 2)];
    assert_eq!(
        all,
        [&[("newest", 9), ("seats/9", 3)][..], &undone].concat()
    );
}

#[step(timeout = "none")]
async fn slowly(key: &str, millis: u64) -> Result<(), PutError> {
    current_step().put(key, &millis)?;
    pass(millis).await;
    Ok(())
}

#[workflow]
async fn fastest() -> Result<(), Failure> {
    race!(
        r,
        fast = {
            #[step(name = "one")]
            slowly("fast", 10).await?
        },
        slow = {
            #[step(name = "one")]
            slowly("slow", 1_000).await?
        }
    )
    .await?;
    sleep!(nap, "1m").await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn the_loser_of_a_race_leaves_no_value() {
    let world = World::new();
    let engine = world.engine().workflow(fastest).build().await.unwrap();
    engine.run("a", fastest()).await.unwrap();
    let all: Vec<(String, u64)> = engine.values("", None, 9).await.unwrap();
    assert_eq!(all, [("fast".to_owned(), 10)]);
}

/// Succeeds at the third call.
#[step(retries = 5)]
async fn at_last(calls: &Counter) -> Result<usize, Refused> {
    let call = calls.hit();
    current_step().put(format!("tries/{call}"), &call)?;
    if call < 3 {
        return Err(Refused::SoldOut);
    }
    Ok(call)
}

#[step(retries = 0)]
async fn large(bytes: usize) -> Result<(), PutError> {
    current_step().put("large", &"x".repeat(bytes))
}

#[workflow]
async fn retried(#[state] calls: Counter) -> Result<String, Failure> {
    at_last(&calls).await?;
    let kept = attempt!(keep, { large(100_000).await? }).await;
    Ok(match kept {
        Err(failure) => {
            assert_eq!(failure.kind(), FailureKind::Encode);
            failure.message().to_owned()
        }
        Ok(()) => String::new(),
    })
}

#[tokio::test(start_paused = true)]
async fn only_the_attempt_that_is_recorded_writes_and_what_is_too_large_fails_the_step() {
    let world = World::new();
    let engine = world
        .engine()
        .state(Counter::default())
        .payload_limit(1_000);
    let engine = engine.workflow(retried).build().await.unwrap();
    let said = engine.run("a", retried()).await.unwrap();
    assert!(
        said.contains("`large`") && said.contains("payload limit of 1000"),
        "{said}"
    );
    let all: Vec<(String, u64)> = engine.values("", None, 9).await.unwrap();
    assert_eq!(all, [("tries/3".to_owned(), 3)]);
    let error = engine.value::<String>("tries/3").await.unwrap_err();
    assert!(
        matches!(&error, Error::Value { key, .. } if key == "tries/3"),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_rewind_leaves_values_and_what_is_done_again_replaces_them() {
    let world = World::new();
    let calls = Counter::default();
    let engine = world.engine().state(calls.clone()).workflow(trip);
    let engine = engine.build().await.unwrap();
    engine.run("a", trip(2, false)).await.unwrap();
    let run = engine.attach::<trip>("a").await.unwrap();
    run.rewind("seats[1]/book").await.unwrap();
    run.result().await.unwrap();
    let seats: Vec<(String, usize)> = engine.values("seats/", None, 9).await.unwrap();
    assert_eq!(
        seats,
        [("seats/0".to_owned(), 1), ("seats/1".to_owned(), 3)]
    );
}

#[tokio::test]
async fn a_step_in_a_unit_test_puts_its_values_nowhere() {
    assert_eq!(book(&Counter::default(), 7).await.unwrap(), 1);
    assert!(workflow::try_current_step().is_none());
    pass(0).await;
    let _ = Duration::ZERO;
}

#[step(retries = 0)]
async fn takes(key: &str, removes: bool) -> Result<(), PutError> {
    if removes {
        return current_step().remove(key);
    }
    current_step().put(key, &1)
}

#[workflow]
async fn intrudes(key: String, removes: bool) -> Result<(), Failure> {
    takes(&key, removes).await
}

#[tokio::test(start_paused = true)]
async fn a_key_of_the_librarys_own_is_refused() {
    let engine = World::new().engine().workflow(intrudes).build().await;
    let engine = engine.unwrap();
    for (id, removes) in [("a", false), ("b", true)] {
        let call = intrudes("\0begun/export".to_owned(), removes);
        let Err(Error::Failed(failure)) = engine.run(id, call).await else {
            panic!("it was taken")
        };
        let says = failure.message();
        assert!(
            says.starts_with("`\\0begun/export` cannot be put"),
            "{says}"
        );
    }
}
