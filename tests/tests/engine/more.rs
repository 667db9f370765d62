//! Extremes.
use std::sync::{Arc, Mutex};
use std::time::Duration;
use workflow::{Clock, Error, Failure, Timestamp, join_all, sleep, step, workflow};
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
async fn f1_an_input_that_does_not_read_back() {
    let (world, calls) = (World::new(), Counter::default());
    let engine = engine!(world, calls).build().await.unwrap();
    let run = engine.start("a", nan(f64::NAN)).await;
    if let Ok(run) = run {
        let result = soon(run.result()).await;
        assert!(matches!(result, Err(Error::Parked(_))), "{result:?}");
        run.status().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn f2_an_input_whose_reading_panics() {
    let (world, calls) = (World::new(), Counter::default());
    let engine = engine!(world, calls).build().await.unwrap();
    let one = engine.clone();
    let started = tokio::spawn(async move { one.start("a", mean(Mean)).await.map(drop) }).await;
    println!("{started:?}");
    soon(engine.shutdown(Duration::from_secs(1))).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn f3_sleeps_of_extreme_lengths() {
    let (world, calls) = (World::new(), Counter::default());
    let engine = engine!(world, calls).build().await.unwrap();
    for (id, secs) in [
        ("a", u64::MAX),
        ("b", u64::MAX / 1_000),
        ("c", i64::MAX as u64 / 1000),
        ("d", i64::MAX as u64 / 1000 - 2000),
    ] {
        let run = engine.start(id, forever(secs)).await.unwrap();
        pass(1_000).await;
        println!("{:?}", run.status().await.unwrap());
        run.cancel().await.unwrap();
    }
    assert_eq!(engine.run("z", forever(0)).await.unwrap(), 1);
    pass(1_000_000).await;
    soon(engine.shutdown(Duration::MAX)).await.unwrap();
}

#[derive(Debug, Clone)]
struct Hand(Arc<Mutex<i64>>);
impl Clock for Hand {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(*self.0.lock().unwrap())
    }
}

#[tokio::test(start_paused = true)]
async fn f4_a_clock_that_jumps() {
    let (world, calls) = (World::new(), Counter::default());
    let hand = Hand(Arc::new(Mutex::new(1_000_000_000)));
    let engine = engine!(world, calls)
        .clock(hand.clone())
        .build()
        .await
        .unwrap();
    pass(100).await;
    *hand.0.lock().unwrap() = 5_000;
    let run = engine.start("a", forever(3_600)).await.unwrap();
    pass(100).await;
    assert_eq!(engine.in_memory(), 0);
    *hand.0.lock().unwrap() = 3_700_000;
    pass(20_000).await;
    assert!(run.status().await.unwrap().state.is_final());
    *hand.0.lock().unwrap() = 0;
    let run = engine.start("b", forever(3_600)).await.unwrap();
    pass(100).await;
    *hand.0.lock().unwrap() = i64::MAX;
    pass(20_000).await;
    assert!(run.status().await.unwrap().state.is_final());
    let run = engine.start("c", forever(3_600)).await.unwrap();
    pass(20_000).await;
    println!("{:?}", run.status().await.unwrap());
    *hand.0.lock().unwrap() = i64::MIN;
    let run = engine.start("d", forever(3_600)).await.unwrap();
    pass(20_000).await;
    println!("{:?}", run.status().await.unwrap());
    *hand.0.lock().unwrap() = 0;
    pass(20_000).await;
    assert!(run.status().await.unwrap().state.is_final());
}

#[tokio::test]
async fn f5_wide_and_deep() {
    for n in [1_000, 2_000, 5_000, 10_000] {
        let (world, calls) = (World::new(), Counter::default());
        let engine = engine!(world, calls).build().await.unwrap();
        let at = std::time::Instant::now();
        assert_eq!(engine.run("w", wide(n)).await.unwrap(), n);
        let live = at.elapsed();
        assert_eq!(calls.count() as u64, n);
        println!("wide {n}: {live:?}");
    }
    for n in [1_000, 10_000, 50_000] {
        let (world, calls) = (World::new(), Counter::default());
        let engine = engine!(world, calls).build().await.unwrap();
        let at = std::time::Instant::now();
        assert_eq!(engine.run("w", deep(n)).await.unwrap(), n);
        println!("deep {n}: {:?}", at.elapsed());
    }
}

#[tokio::test]
async fn f6_a_hook_that_blocks_does_not_hold_shutdown_for_ever() {
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
    let ended = tokio::time::timeout(
        Duration::from_secs(5),
        engine.shutdown(Duration::from_millis(200)),
    )
    .await;
    drop(let_go);
    ended.expect("it hangs").unwrap();
}

#[tokio::test(start_paused = true)]
async fn f7_odd_ids() {
    let (world, calls) = (World::new(), Counter::default());
    let folder = tempfile::tempdir().unwrap();
    let engine = engine!(world, calls)
        .open(folder.path().join("a.redb"))
        .await
        .unwrap();
    let _ = &world;
    let long = "x".repeat(100_000);
    for id in [
        "",
        " ",
        "a/b",
        "\0",
        "\u{202e}x",
        "a\nb",
        "é",
        "e\u{301}",
        "..",
        "%2f",
        "🦀",
        "#",
        long.as_str(),
    ] {
        match engine.start(id, forever(0)).await {
            Ok(run) => {
                assert_eq!(run.result().await.unwrap(), 1);
                assert_eq!(
                    engine
                        .attach::<forever>(id)
                        .await
                        .unwrap()
                        .result()
                        .await
                        .unwrap(),
                    1
                );
            }
            Err(error) => println!("{:?}: {error}", &id.chars().take(9).collect::<String>()),
        }
    }
}
