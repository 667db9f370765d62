//! What stands before a long sleep is over when the process is killed during it: after the restart none of it is done
//! again, and all of it comes out the same.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use workflow::{
    Definition, Failure, FailureKind, Output, Workflow, critical, fragment, join, race, sleep,
    step, workflow,
};
use workflow_tests::{Counter, World, pass};

#[step(timeout = "none")]
async fn work(calls: &Counter, millis: u64) -> u32 {
    pass(millis).await;
    u32::try_from(calls.hit()).unwrap()
}

#[step]
async fn unit(calls: &Counter) {
    calls.hit();
}

#[step(ephemeral)]
async fn relaxed(calls: &Counter) -> u32 {
    u32::try_from(calls.hit()).unwrap()
}

/// Runs `call` into its long sleep, kills the process there, and lets another one finish it. Its value, and how many
/// bodies there were before and after the kill.
async fn killed_asleep<W, A, F>(
    definition: F,
    call: impl Fn() -> workflow::Call<W>,
) -> (Result<Output<W>, workflow::Error>, usize, usize)
where
    W: Workflow,
    F: Definition<A, Workflow = W> + Copy,
{
    let (world, calls) = (World::new(), Counter::default());
    let engine = world
        .engine()
        .workflow(definition)
        .state(calls.clone())
        .build()
        .await
        .unwrap();
    let run = engine.start("r", call()).await.unwrap();
    while run
        .status()
        .await
        .unwrap()
        .wake_at
        .is_none_or(|at| at.as_millis() < 3_000_000)
    {
        pass(10).await;
    }
    let before = calls.count();
    let world = world.crash();
    drop((run, engine));
    let engine = world
        .engine()
        .workflow(definition)
        .state(calls.clone())
        .build()
        .await
        .unwrap();
    let value = engine.run("r", call()).await;
    (value, before, calls.count())
}

#[workflow]
async fn two_by_two(#[state] calls: Counter, a: u64, b: u64) -> Result<(u32, u32), Failure> {
    let both = join!(
        both,
        a = {
            work(&calls, a).await?;
            #[step(name = "again")]
            let second = work(&calls, b).await?;
            second
        },
        b = {
            work(&calls, b).await?;
            #[step(name = "again")]
            let second = work(&calls, a).await?;
            second
        }
    )
    .await?;
    sleep!(long, "1h").await;
    Ok(both)
}

// RVT-FIX-01
#[tokio::test(start_paused = true)]
async fn a_join_of_two_by_two_steps_of_any_length_survives_the_restart() {
    for seed in 0..100u64 {
        let (a, b) = (seed * 7 % 31, seed * 13 % 30);
        let (value, before, after) = killed_asleep(two_by_two, || two_by_two(a, b)).await;
        let (one, other) = value.unwrap();
        assert!(one != other && one <= 4 && other <= 4);
        assert_eq!((before, after), (4, 4), "lengths {a} and {b}");
    }
}

#[workflow]
async fn beside_a_saving_sibling(#[state] calls: Counter) -> Result<(), Failure> {
    join!(
        both,
        saves = {
            work(&calls, 1).await?;
        },
        quiet = {
            unit(&calls).await?;
            relaxed(&calls).await?;
            pause(&calls).await?;
            sleep!(long, "1h").await;
        }
    )
    .await?;
    Ok(())
}

#[fragment]
async fn pause(calls: &Counter) -> Result<(), Failure> {
    work(calls, 3).await?;
    Ok(())
}

// RVT-FIX-03, RVT-FIX-05
#[tokio::test(start_paused = true)]
async fn unit_and_ephemeral_steps_beside_a_sibling_that_saves_run_once() {
    let (value, before, after) =
        killed_asleep(beside_a_saving_sibling, beside_a_saving_sibling).await;
    value.unwrap();
    assert_eq!((before, after), (4, 4));
}

#[workflow]
async fn containers_in_iterations(#[state] calls: Counter) -> Result<u32, Failure> {
    let mut sum = 0;
    'outer: for _ in 0..2 {
        let (a, b) = join!(both, a = work(&calls, 2).await?, b = work(&calls, 1).await?).await?;
        sum += a + b;
        'inner: for _ in 0..2 {
            sum += work(&calls, 1).await?;
        }
        sleep!(long, "1h").await;
    }
    Ok(sum)
}

// RVT-FIX-06, RVT-FIX-07
#[tokio::test(start_paused = true)]
async fn a_finished_join_and_a_finished_inner_loop_before_a_sleep_are_re_entered() {
    let (value, before, after) =
        killed_asleep(containers_in_iterations, containers_in_iterations).await;
    assert_eq!(value.unwrap(), (1..=8).sum::<u32>());
    assert_eq!((before, after), (4, 8));
}

#[step(retries = 3)]
async fn declined(calls: &Counter) -> Result<u32, workflow::Critical> {
    if calls.hit() == 1 {
        Err(critical("declined"))
    } else {
        Ok(1)
    }
}

#[step(timeout = "5ms")]
async fn slow_once(calls: &Counter) -> u32 {
    if calls.hit() == 1 {
        pass(25).await;
    }
    1
}

#[workflow]
async fn caught(timed: bool, #[state] calls: Counter) -> Result<String, Failure> {
    let failed = if timed {
        slow_once(&calls).await
    } else {
        declined(&calls).await
    };
    sleep!(long, "1h").await;
    Ok(failed.map_or_else(
        |failure| failure.kind().word().to_owned(),
        |_| "went well".to_owned(),
    ))
}

// RVT-FIX-10, RVT-FIX-11
#[tokio::test(start_paused = true)]
async fn a_failure_that_was_data_is_the_same_data_after_the_restart() {
    for (timed, kind) in [(false, "critical"), (true, "timed out")] {
        let (value, before, after) = killed_asleep(caught, || caught(timed)).await;
        assert_eq!((value.unwrap().as_str(), before, after), (kind, 1, 1));
    }
}

static IN_BRANCHES: AtomicUsize = AtomicUsize::new(0);

#[workflow]
async fn re_entered(#[state] calls: Counter) -> Result<(u32, String), Failure> {
    let (a, won) = join!(
        both,
        a = {
            #[nondeterministic(reason = "what the test is told by")]
            IN_BRANCHES.fetch_add(1, Ordering::SeqCst);
            work(&calls, 1).await?
        },
        raced = race!(
            first,
            slow = {
                work(&calls, 60_000).await?;
                "slow"
            },
            plain = {
                let inner = race!(
                    inner,
                    one = {
                        unit(&calls).await?;
                        "nested"
                    }
                )
                .await?;
                inner.value
            }
        )
        .await?
        .value
    )
    .await?;
    sleep!(long, "1h").await;
    Ok((a, won.to_owned()))
}

// RVT-JOIN-04, RVT-JOIN-06, RVT-RACE-04, RVT-RACE-06: containers are re-entered, so that locals come out right; what is
// recorded in them is not done again, and a decided race runs its winner only.
#[tokio::test(start_paused = true)]
async fn finished_joins_and_won_races_are_walked_again_and_do_nothing_again() {
    IN_BRANCHES.store(0, Ordering::SeqCst);
    let (value, before, after) = killed_asleep(re_entered, re_entered).await;
    assert_eq!(value.unwrap(), (2, "nested".to_owned()));
    assert_eq!(
        (before, after),
        (2, 2),
        "the loser was dropped, and is not run again"
    );
    assert!(
        IN_BRANCHES.load(Ordering::SeqCst) >= 2,
        "code outside of steps is walked on each replay"
    );
}

#[workflow]
async fn all_asleep() -> Result<String, Failure> {
    let won = race!(
        first,
        later = {
            sleep!(two, "2h").await;
            "later"
        },
        sooner = {
            sleep!(one, "1h").await;
            "sooner"
        }
    )
    .await?;
    Ok(won.branch.to_owned())
}

// RVT-RACE-11: the earliest of the branches' deadlines.
#[tokio::test(start_paused = true)]
async fn a_race_of_sleeping_branches_wakes_at_the_earliest() {
    let world = World::new();
    let engine = world.engine().workflow(all_asleep).build().await.unwrap();
    let run = engine.start("r", all_asleep()).await.unwrap();
    pass(5).await;
    let status = run.status().await.unwrap();
    assert_eq!(
        status.wake_at.unwrap().since(status.created_at).as_secs(),
        3_600
    );
    assert_eq!(engine.in_memory(), 0);
    assert_eq!(run.result().await.unwrap(), "sooner");
}

#[step(retries = 0)]
async fn once(calls: &Counter) -> Result<u32, std::fmt::Error> {
    calls.hit();
    Err(std::fmt::Error)
}

mod later {
    use super::*;

    #[step(retries = 2)]
    pub(super) async fn once(calls: &Counter) -> Result<u32, std::fmt::Error> {
        calls.hit();
        Ok(1)
    }

    #[workflow]
    pub(super) async fn limited(#[state] calls: Counter) -> Result<String, Failure> {
        let failed = once(&calls).await.map_err(|failure| failure.kind());
        sleep!(long, "1h").await;
        Ok(format!("{failed:?}"))
    }
}

#[workflow]
async fn limited(#[state] calls: Counter) -> Result<String, Failure> {
    let failed = once(&calls).await.map_err(|failure| failure.kind());
    sleep!(long, "1h").await;
    Ok(format!("{failed:?}"))
}

// RVT-FIX-78
#[tokio::test(start_paused = true)]
async fn a_step_that_was_exhausted_stays_so_when_the_code_later_allows_more() {
    let (world, calls) = (World::new(), Counter::default());
    let engine = world
        .engine()
        .workflow(limited)
        .state(calls.clone())
        .build()
        .await
        .unwrap();
    engine.start("r", limited()).await.unwrap();
    pass(50).await;
    let world = world.crash();
    drop(engine);
    let engine = world
        .engine()
        .workflow(later::limited)
        .state(calls.clone())
        .build()
        .await
        .unwrap();
    let value = engine.run("r", later::limited()).await.unwrap();
    assert_eq!(
        (value, calls.count()),
        (format!("{:?}", Err::<u32, _>(FailureKind::Exhausted)), 1)
    );
}

/// Bodies of one step that are alive at once, at most.
#[derive(Debug, Clone, Default)]
struct Alive(Arc<(AtomicUsize, AtomicUsize)>);

impl Alive {
    fn enter(&self) -> Leave {
        let now = self.0.0.fetch_add(1, Ordering::SeqCst) + 1;
        self.0.1.fetch_max(now, Ordering::SeqCst);
        Leave(self.clone())
    }
}

struct Leave(Alive);

impl Drop for Leave {
    fn drop(&mut self) {
        self.0.0.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[step(
    timeout = "5ms",
    retry_on_timeout,
    retries = 2,
    backoff(fixed, wait = "0s")
)]
async fn always_slow(alive: &Alive) -> u32 {
    let _inside = alive.enter();
    pass(1_000).await;
    1
}

#[step(timeout = "3000000s")]
async fn patient(alive: &Alive) -> u32 {
    let _inside = alive.enter();
    pass(10_000).await;
    1
}

#[workflow]
async fn slow(#[state] alive: Alive) -> Result<u32, Failure> {
    patient(&alive).await?;
    always_slow(&alive).await
}

// RVT-FIX-54, RVT-FIX-55
#[tokio::test(start_paused = true)]
async fn a_timed_out_body_is_dropped_before_the_next_begins_and_long_timeouts_are_long() {
    let alive = Alive::default();
    let world = World::new();
    let engine = world
        .engine()
        .workflow(slow)
        .state(alive.clone())
        .build()
        .await
        .unwrap();
    let failure = engine.run("r", slow()).await.unwrap_err();
    let failure = failure.failure().unwrap();
    assert_eq!(
        (failure.location().to_string().as_str(), failure.attempts()),
        ("always_slow", 3)
    );
    assert_eq!(
        alive.0.1.load(Ordering::SeqCst),
        1,
        "two bodies of one step were alive at once"
    );
    assert_eq!(
        alive.0.0.load(Ordering::SeqCst),
        0,
        "a body outlives its timeout"
    );
}

#[step]
async fn not_a_number(calls: &Counter) -> f64 {
    calls.hit();
    f64::NAN
}

#[workflow]
async fn nan(#[state] calls: Counter) -> Result<f64, Failure> {
    not_a_number(&calls).await
}

#[workflow]
async fn careful(#[state] calls: Counter) -> Result<u32, Failure> {
    // Every error there is, is handled; that the run goes to sleep is none.
    sleep!(long, "1h").await;
    let one = work(&calls, 1).await.unwrap_or(100);
    sleep!(longer, "2h").await;
    Ok(one)
}

// RVT-FIX-62, RVT-FIX-65
#[tokio::test(start_paused = true)]
async fn what_cannot_be_recorded_fails_once_by_name_and_sleeping_is_no_error() {
    let calls = Counter::default();
    let world = World::new();
    let engine = world
        .engine()
        .workflow(nan)
        .workflow(careful)
        .state(calls.clone())
        .build()
        .await
        .unwrap();
    let failure = engine.run("nan", nan()).await.unwrap_err();
    let failure = failure.failure().unwrap();
    assert_eq!(
        (failure.kind(), failure.location().to_string().as_str()),
        (FailureKind::Encode, "not_a_number")
    );
    assert_eq!(calls.count(), 1);
    assert_eq!(engine.run("careful", careful()).await.unwrap(), 2);
}
