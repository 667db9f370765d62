//! Values, clocks, ids and hooks at their extremes.

use std::sync::{Arc, Mutex};
use std::time::Duration;
use workflow::{Clock, Failure, StartError, Timestamp, join_all, sleep, step, workflow};
use workflow_tests::{Counter, World, pass};

#[step(timeout = "none")]
async fn one(calls: &Counter) -> u64 {
    calls.hit();
    1
}

#[workflow]
async fn nan(x: f64) -> Result<f64, Failure> {
    Ok(x)
}

#[derive(Clone, serde::Serialize)]
struct Mean;
impl<'de> serde::Deserialize<'de> for Mean {
    fn deserialize<D: serde::Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        panic!("mean")
    }
}
#[workflow]
async fn mean(x: Mean) -> Result<u64, Failure> {
    let _ = x;
    Ok(1)
}

#[workflow]
async fn forever(secs: u64) -> Result<u64, Failure> {
    sleep!(nap, Duration::from_secs(secs)).await;
    Ok(1)
}

#[workflow]
async fn wide(n: u64, #[state] calls: Counter) -> Result<u64, Failure> {
    let out = join_all!(
        all,
        for _i in 0..n {
            one(&calls).await?
        }
    )
    .await?;
    Ok(out.len() as u64)
}

#[workflow]
async fn deep(n: u64, #[state] calls: Counter) -> Result<u64, Failure> {
    let mut total = 0;
    'l: for _i in 0..n {
        total += one(&calls).await?;
    }
    Ok(total)
}

#[workflow]
async fn fails(#[state] calls: Counter) -> Result<u64, Failure> {
    let x = #[step(retries = 0)]
    bad(&calls).await?;
    Ok(x)
}
#[expect(clippy::unused_async, reason = "a call as users have them")]
async fn bad(calls: &Counter) -> Result<u64, std::io::Error> {
    calls.hit();
    Err(std::io::Error::other("no"))
}

async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_hours(3), future)
        .await
        .expect("it hangs")
}

macro_rules! engine {
    ($world:expr, $calls:expr) => {
        $world
            .engine()
            .state($calls.clone())
            .workflow(nan)
            .workflow(mean)
            .workflow(forever)
            .workflow(wide)
            .workflow(deep)
            .workflow(fails)
    };
}

#[tokio::test(start_paused = true)]
async fn an_input_that_does_not_survive_json_starts_nothing() {
    let (world, calls) = (World::new(), Counter::default());
    let engine = engine!(world, calls).build().await.unwrap();
    let refused = engine.start("a", nan(f64::NAN)).await.unwrap_err();
    assert!(
        matches!(
            refused,
            StartError::Input {
                workflow: "nan",
                ..
            }
        ),
        "{refused}"
    );
    assert!(engine.status("a").await.is_err());
}

#[tokio::test(start_paused = true)]
async fn an_input_whose_reading_panics_holds_back_no_shutdown() {
    let (world, calls) = (World::new(), Counter::default());
    let engine = engine!(world, calls).build().await.unwrap();
    let one = engine.clone();
    let started = tokio::spawn(async move { one.start("a", mean(Mean)).await.map(drop) }).await;
    assert!(started.is_err(), "its own panic reaches whoever called");
    soon(engine.shutdown(Duration::from_secs(1))).await.unwrap();
}

// RVT-FIX-56
#[tokio::test(start_paused = true)]
async fn sleeps_of_extreme_lengths_saturate_and_leave_the_run_usable() {
    let (world, calls) = (World::new(), Counter::default());
    let engine = engine!(world, calls).build().await.unwrap();
    for (id, secs) in [
        ("a", u64::MAX),
        ("b", u64::MAX / 1_000),
        ("c", i64::MAX as u64 / 1_000),
    ] {
        let run = engine.start(id, forever(secs)).await.unwrap();
        pass(1_000).await;
        assert_eq!(
            run.status().await.unwrap().wake_at,
            Some(Timestamp::MAX),
            "{secs} s"
        );
        run.cancel().await.unwrap();
    }
    assert_eq!(engine.run("z", forever(0)).await.unwrap(), 1);
    soon(engine.shutdown(Duration::MAX)).await.unwrap();
}

/// A clock that is set by hand.
#[derive(Debug, Clone)]
struct Hand(Arc<Mutex<i64>>);

impl Hand {
    fn set(&self, millis: i64) {
        *self.0.lock().unwrap() = millis;
    }
}

impl Clock for Hand {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(*self.0.lock().unwrap())
    }
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_set_back_and_forth_loses_no_wake_up() {
    let (world, calls) = (World::new(), Counter::default());
    let hand = Hand(Arc::new(Mutex::new(1_000_000_000)));
    let engine = engine!(world, calls)
        .clock(hand.clone())
        .build()
        .await
        .unwrap();
    pass(100).await;
    hand.set(5_000);
    let run = engine.start("a", forever(3_600)).await.unwrap();
    pass(100).await;
    assert_eq!(engine.in_memory(), 0);
    for (now, id) in [(3_700_000, "b"), (i64::MAX, "c")] {
        hand.set(now);
        pass(20_000).await;
        assert!(run.status().await.unwrap().state.is_final(), "before {id}");
        hand.set(0);
        let _ = engine.start(id, forever(3_600)).await.unwrap();
    }
    // Where time ends, a deadline is never in the future, and nothing spins.
    hand.set(i64::MIN);
    let run = engine.start("d", forever(3_600)).await.unwrap();
    pass(20_000).await;
    hand.set(0);
    pass(20_000).await;
    assert!(run.status().await.unwrap().state.is_final());
}

#[tokio::test]
async fn wide_fan_outs_and_long_loops_do_each_thing_once() {
    for n in [1_000, 5_000] {
        let (world, calls) = (World::new(), Counter::default());
        let engine = engine!(world, calls).build().await.unwrap();
        assert_eq!(engine.run("w", wide(n)).await.unwrap(), n);
        assert_eq!(calls.count() as u64, n);
    }
    let (world, calls) = (World::new(), Counter::default());
    let engine = engine!(world, calls).build().await.unwrap();
    assert_eq!(engine.run("d", deep(20_000)).await.unwrap(), 20_000);
}

#[tokio::test]
async fn a_hook_that_blocks_does_not_hold_a_shutdown_for_ever() {
    let (world, calls) = (World::new(), Counter::default());
    let (let_go, hold) = std::sync::mpsc::channel::<()>();
    let hold = Mutex::new(hold);
    let engine = engine!(world, calls)
        .on_error(move |_| {
            let _ = hold.lock().unwrap().recv();
        })
        .build()
        .await
        .unwrap();
    engine.run("a", fails()).await.unwrap_err();
    let shutdown = engine.shutdown(Duration::from_millis(200));
    let ended = tokio::time::timeout(Duration::from_secs(5), shutdown).await;
    drop(let_go);
    ended.expect("it hangs").unwrap();
}

#[tokio::test]
async fn odd_ids_are_refused_or_kept_apart() {
    let (world, calls) = (World::new(), Counter::default());
    let folder = tempfile::tempdir().unwrap();
    let engine = engine!(world, calls);
    let engine = engine.open(folder.path().join("a.redb")).await.unwrap();
    let long = "x".repeat(100_000);
    for id in ["", "a/b", "\0", "a\nb", long.as_str()] {
        let refused = engine.start(id, forever(0)).await.unwrap_err();
        assert!(matches!(refused, StartError::InvalidId(_)), "{refused}");
    }
    // A composed and a decomposed letter are two ids: bytes are compared, not looks.
    for id in [
        " ",
        "\u{202e}x",
        "\u{e9}",
        "e\u{301}",
        "..",
        "%2f",
        "\u{1f980}",
        "#",
    ] {
        assert_eq!(engine.run(id, forever(0)).await.unwrap(), 1);
        let again = engine.attach::<forever>(id).await.unwrap();
        assert_eq!(again.id().as_str(), id);
        assert_eq!(again.result().await.unwrap(), 1);
    }
    let runs = engine
        .list(&workflow::store::RunFilter::default())
        .await
        .unwrap();
    assert_eq!(runs.rows.len(), 8);
    engine.shutdown(Duration::from_secs(1)).await.unwrap();
}
