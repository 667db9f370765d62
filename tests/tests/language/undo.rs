//! Sagas: what was done is undone when the run fails.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use workflow::{
    Engine, Error, ErrorEvent, Failure, FailureKind, ParkReason, RunState, SkipUndoError, attempt,
    checkpoint, join, race, rollback, settle, sleep, step, workflow,
};
use workflow_tests::{World, pass};

/// What the outside world saw.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<(Vec<String>, u32)>>);

impl Log {
    fn say(&self, what: impl Into<String>) {
        self.0.lock().unwrap().0.push(what.into());
    }

    fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().0.clone()
    }

    /// The next so many undos fail.
    fn fail_undos(&self, times: u32) {
        self.0.lock().unwrap().1 = times;
    }

    fn undo(&self, what: &str) -> Result<(), std::io::Error> {
        let mut inner = self.0.lock().unwrap();
        if inner.1 > 0 {
            inner.1 -= 1;
            inner.0.push(format!("failed undo {what}"));
            return Err(std::io::Error::other("the bank is closed"));
        }
        inner.0.push(format!("undo {what}"));
        Ok(())
    }
}

#[step(retries = 0)]
async fn book(log: &Log, what: &str) -> Result<String, std::io::Error> {
    if what == "nothing" {
        return Err(std::io::Error::other("sold out"));
    }
    log.say(format!("book {what}"));
    Ok(what.to_owned())
}

#[step(retries = 0, timeout = "1s")]
async fn slow(log: &Log) -> Result<String, std::io::Error> {
    log.say("slow begins");
    tokio::time::sleep(Duration::from_secs(59)).await;
    Ok("slow".to_owned())
}

async fn unbook(what: String, log: Log) -> Result<(), std::io::Error> {
    log.undo(&what)
}

async fn unbook_maybe(what: Option<String>, log: Log) -> Result<(), std::io::Error> {
    log.undo(&format!("{what:?}"))
}

#[workflow]
async fn trip(fails: bool, nap: u64, #[state] log: Log) -> Result<String, Failure> {
    book(&log, "insurance").await?;
    checkpoint!(begun);
    #[step(name = "hotel", undo(unbook))]
    let hotel = book(&log, "hotel").await?;
    let (car, _) = join!(
        both,
        car = {
            #[step(name = "car", undo(|what: String, log: Log| async move { log.undo(&what) }))]
            book(&log, "car").await?
        },
        map = {
            #[step(name = "map")]
            book(&log, "map").await?
        }
    )
    .await?;
    sleep!(think, Duration::from_millis(nap)).await;
    #[step(name = "flight")]
    book(&log, if fails { "nothing" } else { "flight" }).await?;
    Ok(format!("{hotel} {car}"))
}

// U12
#[workflow]
async fn uncertain(#[state] log: Log) -> Result<(), Failure> {
    checkpoint!(begun);
    #[step(name = "first", undo(unbook))]
    book(&log, "first").await?;
    #[step(name = "slow", undo(unbook_maybe))]
    slow(&log).await?;
    Ok(())
}

#[workflow]
async fn settled(#[state] log: Log) -> Result<(), Failure> {
    checkpoint!(begun);
    #[step(name = "first", undo(unbook))]
    book(&log, "first").await?;
    settle!(paid);
    #[step(name = "second", undo(unbook))]
    book(&log, "second").await?;
    #[step(name = "third")]
    book(&log, "nothing").await?;
    Ok(())
}

#[workflow]
async fn everywhere(#[state] log: Log) -> Result<(), Failure> {
    checkpoint!(begun);
    'nights: for night in 0..2u32 {
        #[step(undo(unbook))]
        book(&log, &format!("night {night}")).await?;
    }
    let lost = race!(
        fastest,
        slow = {
            #[step(name = "loser", undo(unbook))]
            book(&log, "loser").await?;
            sleep!(wait, "1h").await;
        },
        fast = sleep!(quick, "1m").await
    )
    .await?;
    let caught = attempt!(tried, {
        #[step(name = "caught", undo(unbook))]
        book(&log, "caught").await?;
        #[step(name = "never")]
        book(&log, "nothing").await?;
    })
    .await;
    assert!(caught.is_err() && lost.branch == "fast");
    #[step(name = "last")]
    book(&log, "nothing").await?;
    Ok(())
}

async fn engine(world: &World, log: &Log) -> Engine {
    world
        .engine()
        .state(log.clone())
        .workflow(trip)
        .workflow(uncertain)
        .workflow(settled)
        .workflow(everywhere)
        .build()
        .await
        .unwrap()
}

fn undone(log: &Log) -> Vec<String> {
    let all = log.all();
    all.into_iter()
        .filter(|said| said.starts_with("undo "))
        .collect()
}

// RVT-RB-01 RVT-RB-06 RVT-RB-08
#[tokio::test(start_paused = true)]
async fn a_run_that_fails_undoes_newest_first_and_fails_with_its_own_failure() {
    let (world, log) = (World::new(), Log::default());
    let engine = engine(&world, &log).await;
    let error = engine.run("a", trip(true, 10)).await.unwrap_err();
    let Error::Failed(failure) = error else {
        panic!("{error}")
    };
    assert_eq!(failure.location().to_string(), "flight");
    assert_eq!(undone(&log), ["undo car", "undo hotel"]);
    assert!(engine.run("a", trip(true, 10)).await.is_err());
    assert_eq!(undone(&log).len(), 2, "nothing is undone twice");
    assert_eq!(engine.run("b", trip(false, 10)).await.unwrap(), "hotel car");
    assert_eq!(undone(&log).len(), 2, "nothing of a run that completed");
}

// RVT-RB-07
#[tokio::test(start_paused = true)]
async fn an_undo_that_fails_is_tried_again_and_each_attempt_is_recorded_and_reported() {
    let (world, log) = (World::new(), Log::default());
    let heard = Arc::new(Mutex::new(Vec::new()));
    let ears = Arc::clone(&heard);
    let builder = world.engine().state(log.clone()).workflow(trip);
    let engine = builder
        .on_error(move |event| {
            if let ErrorEvent::Undo { attempt, .. } = event {
                ears.lock().unwrap().push(*attempt);
            }
        })
        .build()
        .await
        .unwrap();
    log.fail_undos(2);
    engine.run("a", trip(true, 10)).await.unwrap_err();
    assert_eq!(undone(&log), ["undo car", "undo hotel"]);
    pass(10).await;
    assert_eq!(*heard.lock().unwrap(), [1, 2]);
    let history = engine
        .attach::<trip>("a")
        .await
        .unwrap()
        .history()
        .await
        .unwrap();
    let told = format!("{history:?}");
    assert_eq!(told.matches("the bank is closed").count(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_undo_that_keeps_failing_parks_the_run_and_can_be_tried_again_or_skipped() {
    let (world, log) = (World::new(), Log::default());
    let engine = engine(&world, &log).await;
    log.fail_undos(6);
    let Error::Parked(parked) = engine.run("a", trip(true, 10)).await.unwrap_err() else {
        panic!()
    };
    assert_eq!(parked.reason, ParkReason::UndoFailed);
    assert!(
        parked.detail.contains("`both/car/car` keeps failing"),
        "{}",
        parked.detail
    );
    let other = engine.skip_undo("a", 1, "hand-made").await.unwrap_err();
    assert!(matches!(other, SkipUndoError::OtherEntry { at: 2, .. }));
    engine.skip_undo("a", 2, "called the bank").await.unwrap();
    let run = engine.attach::<trip>("a").await.unwrap();
    let Error::Failed(_) = run.result().await.unwrap_err() else {
        panic!()
    };
    assert_eq!(undone(&log), ["undo hotel"]);
    let told = format!("{:?}", run.history().await.unwrap());
    assert!(told.contains("called the bank"));

    log.fail_undos(4);
    engine.run("b", trip(true, 10)).await.unwrap_err();
    engine.resume("b").await.unwrap();
    let run = engine.attach::<trip>("b").await.unwrap();
    assert!(matches!(run.result().await.unwrap_err(), Error::Failed(_)));
    assert_eq!(undone(&log).len(), 3);
}

// U12
#[tokio::test(start_paused = true)]
async fn an_undo_that_takes_an_option_also_undoes_what_timed_out() {
    let (world, log) = (World::new(), Log::default());
    let engine = engine(&world, &log).await;
    let Error::Failed(failure) = engine.run("a", uncertain()).await.unwrap_err() else {
        panic!()
    };
    assert_eq!(failure.kind(), FailureKind::TimedOut);
    assert_eq!(undone(&log), ["undo None", "undo first"]);
}

#[tokio::test(start_paused = true)]
async fn what_was_settled_is_final() {
    let (world, log) = (World::new(), Log::default());
    let engine = engine(&world, &log).await;
    engine.run("a", settled()).await.unwrap_err();
    assert_eq!(undone(&log), ["undo second"]);
}

#[tokio::test(start_paused = true)]
async fn loops_losers_and_caught_failures_are_undone_too() {
    let (world, log) = (World::new(), Log::default());
    let engine = engine(&world, &log).await;
    engine.run("a", everywhere()).await.unwrap_err();
    assert_eq!(
        undone(&log),
        ["undo caught", "undo loser", "undo night 1", "undo night 0"]
    );
}

// RVT-RB-05 M8
#[tokio::test(start_paused = true)]
async fn cancelling_undoes_only_when_asked_and_lets_bodies_end_first() {
    let (world, log) = (World::new(), Log::default());
    let engine = engine(&world, &log).await;
    let run = engine.start("a", trip(false, 3_600_000)).await.unwrap();
    pass(10_000).await;
    run.cancel().await.unwrap();
    assert_eq!(undone(&log), Vec::<String>::new());
    assert!(matches!(
        run.result().await.unwrap_err(),
        Error::Cancelled(_)
    ));

    let run = engine.start("b", trip(false, 3_600_000)).await.unwrap();
    pass(10_000).await;
    assert_eq!(engine.in_memory(), 0);
    run.cancel().and_undo().await.unwrap();
    assert!(matches!(
        run.result().await.unwrap_err(),
        Error::Cancelled(_)
    ));
    assert_eq!(undone(&log), ["undo car", "undo hotel"]);
    assert_eq!(run.status().await.unwrap().state, RunState::Cancelled);

    // Its body runs when it is cancelled.
    let run = engine.start("c", uncertain()).await.unwrap();
    pass(500).await;
    run.cancel().and_undo().await.unwrap();
    assert!(matches!(
        run.result().await.unwrap_err(),
        Error::Cancelled(_)
    ));
    assert_eq!(undone(&log)[2..], ["undo None", "undo first"]);
}

// The saga is killed at each of its commits, also while it is undone.
#[tokio::test(start_paused = true)]
async fn whatever_is_cut_off_each_effect_is_undone_once_newest_first() {
    for cut in 0..40 {
        let (mut world, log) = (World::new(), Log::default());
        let mut ended = false;
        for drive in 0..60 {
            let engine = engine(&world, &log).await;
            let run = if drive == 0 {
                engine.start("a", trip(true, 10)).await.unwrap()
            } else {
                engine.attach::<trip>("a").await.unwrap()
            };
            // A crash after so many polls of the runtime, and then after every few.
            for _ in 0..cut {
                tokio::task::yield_now().await;
            }
            if run.try_result().await.is_err() {
                ended = true;
                break;
            }
            if drive > 2 {
                pass(1_000).await;
            }
            world = world.crash();
        }
        assert!(ended, "cut {cut}");
        let undone = undone(&log);
        let mut once = undone.clone();
        once.dedup();
        // What was cut off before it was recorded is done again; never out of order.
        assert_eq!(once, ["undo car", "undo hotel"], "cut {cut}");
    }
}

#[workflow]
async fn fallback(#[state] log: Log) -> Result<String, Failure> {
    checkpoint!(begun);
    #[step(name = "insurance", undo(unbook))]
    book(&log, "insurance").await?;
    checkpoint!(chosen);
    let by_train = attempt!(train, {
        #[step(name = "seat", undo(unbook))]
        book(&log, "seat").await?;
        #[step(name = "meal", undo(unbook))]
        book(&log, "meal").await?;
        #[step(name = "bed")]
        book(&log, "nothing").await?
    })
    .await;
    if by_train.is_err() {
        rollback!(back, to = chosen).await;
        #[step(name = "plane", undo(unbook))]
        book(&log, "plane").await?;
    }
    sleep!(think, "1h").await;
    Ok("there".to_owned())
}

#[tokio::test(start_paused = true)]
async fn a_saga_that_tries_another_way_undoes_the_first_and_goes_on() {
    let (world, log) = (World::new(), Log::default());
    let open = |world: World, log: Log| async move {
        let builder = world.engine().state(log).workflow(fallback);
        builder.build().await.unwrap()
    };
    let engine = open(world.clone(), log.clone()).await;
    log.fail_undos(2);
    engine.start("a", fallback()).await.unwrap();
    pass(10_000).await;
    assert_eq!(undone(&log), ["undo meal", "undo seat"]);
    drop(engine);
    let engine = open(world.crash(), log.clone()).await;
    let run = engine.attach::<fallback>("a").await.unwrap();
    assert_eq!(run.result().await.unwrap(), "there");
    assert_eq!(undone(&log).len(), 2, "a replay undoes nothing again");

    // And if it fails after all, the rest is undone at the end.
    let run = engine.start("b", fallback()).await.unwrap();
    pass(10_000).await;
    run.cancel().and_undo().await.unwrap();
    run.result().await.unwrap_err();
    assert_eq!(
        undone(&log)[2..],
        ["undo meal", "undo seat", "undo plane", "undo insurance"]
    );

    log.fail_undos(4);
    let run = engine.start("c", fallback()).await.unwrap();
    let Error::Parked(parked) = run.result().await.unwrap_err() else {
        panic!()
    };
    assert_eq!(parked.reason, ParkReason::UndoFailed);
    engine.skip_undo("c", 3, "eaten").await.unwrap();
    assert_eq!(run.result().await.unwrap(), "there");
    assert_eq!(undone(&log)[6..], ["undo seat"]);
}

#[workflow]
async fn seasons(#[state] log: Log) -> Result<(), Failure> {
    checkpoint!(begun);
    #[step(name = "earlier", undo(unbook))]
    book(&log, "earlier").await?;
    join!(
        both,
        slow = {
            sleep!(pause, "10s").await;
            #[step(name = "slow", undo(unbook))]
            book(&log, "slow").await?
        },
        fast = {
            #[step(name = "fast", undo(unbook))]
            book(&log, "fast").await?
        }
    )
    .await?;
    'years: for year in 1..=3u32 {
        checkpoint!(new_year);
        #[step(name = "year", undo(unbook))]
        book(&log, &format!("year {year}")).await?;
        if year == 3 {
            #[step(name = "end")]
            book(&log, "nothing").await?;
        }
    }
    Ok(())
}

// RVT-FIX-16 RVT-FIX-17 RVT-FIX-18
#[tokio::test(start_paused = true)]
async fn what_was_done_in_branches_and_iterations_is_undone_in_reverse_order_of_its_end() {
    let (world, log) = (World::new(), Log::default());
    let builder = world.engine().state(log.clone()).workflow(seasons);
    let engine = builder.build().await.unwrap();
    engine.run("a", seasons()).await.unwrap_err();
    assert_eq!(
        undone(&log),
        [
            "undo year 3",
            "undo year 2",
            "undo year 1",
            "undo slow",
            "undo fast",
            "undo earlier"
        ]
    );
}

/// There is no list of what an `attempt!` catches, and no error that asks for a rollback: `attempt!` catches every failure, and
/// what it is not to catch is thrown again.
#[workflow]
async fn choosy(what: String, #[state] log: Log) -> Result<String, Failure> {
    checkpoint!(begun);
    #[step(name = "first", undo(unbook))]
    book(&log, "first").await?;
    let tried = attempt!(tried, {
        #[step(name = "second")]
        book(&log, &what).await?
    })
    .await;
    match tried {
        Err(failure) if failure.kind() == FailureKind::Exhausted => Err(failure),
        Err(failure) => Ok(failure.to_string()),
        Ok(second) => Ok(second),
    }
}

#[step(retries = 5)]
async fn hopeless(log: &Log) -> Result<(), workflow::Critical> {
    log.say("hopeless");
    Err(workflow::critical(std::io::Error::other(
        "roll it all back",
    )))
}

#[workflow]
async fn giving_up(#[state] log: Log) -> Result<(), Failure> {
    checkpoint!(begun);
    #[step(name = "first", undo(unbook))]
    book(&log, "first").await?;
    hopeless(&log).await
}

// RVT-TRY-03 RVT-TRY-04 RVT-TRY-08 RVT-STEP-13: excluded by the design, and this is what stands for it.
#[tokio::test(start_paused = true)]
async fn a_rollback_is_asked_for_by_failing_and_a_block_lets_through_what_it_throws_again() {
    let (world, log) = (World::new(), Log::default());
    let builder = world.engine().state(log.clone());
    let builder = builder.workflow(choosy).workflow(giving_up);
    let engine = builder.build().await.unwrap();
    let Error::Failed(failure) = engine.run("a", choosy("nothing".into())).await.unwrap_err()
    else {
        panic!()
    };
    assert_eq!(failure.location().to_string(), "tried/second");
    assert_eq!(undone(&log), ["undo first"]);
    assert_eq!(engine.run("b", choosy("bed".into())).await.unwrap(), "bed");
    let Error::Failed(failure) = engine.run("c", giving_up()).await.unwrap_err() else {
        panic!()
    };
    assert_eq!(failure.kind(), FailureKind::Critical);
    let runs = log.all().iter().filter(|said| *said == "hopeless").count();
    assert_eq!(runs, 1);
    assert_eq!(undone(&log).len(), 2);
}
