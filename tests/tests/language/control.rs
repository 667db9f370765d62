//! What an operator does to runs: recover, rewind, fork.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use workflow::replay::{Body, Control};
use workflow::{
    Channel, ControlError, Engine, Error, Failure, RunState, attempt, current_step, join, progress,
    race, random, recv, sleep, step, uuid, version, workflow,
};
use workflow_tests::{World, pass};

/// What was done, in order; and what fails, how often.
#[derive(Debug, Clone, Default)]
struct Log(Arc<Mutex<(Vec<String>, Vec<String>)>>);

impl Log {
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap().0)
    }

    fn fails(&self, what: &[&str]) {
        self.0.lock().unwrap().1 = what.iter().map(|what| (*what).to_owned()).collect();
    }

    fn write(&self, what: &str) -> Result<(), String> {
        let mut log = self.0.lock().unwrap();
        log.0.push(what.to_owned());
        match log.1.iter().position(|fails| fails == what) {
            Some(_) => Err(format!("{what} fails")),
            None => Ok(()),
        }
    }
}

#[step(retries = 1, backoff(fixed, wait = "1s"))]
async fn act(log: &Log, what: &str) -> Result<String, String> {
    log.write(what)?;
    Ok(what.to_owned())
}

#[step(retries = 0)]
async fn key(log: &Log) -> Result<String, String> {
    log.write("key")?;
    Ok(current_step().idempotency_key())
}

static NOTE: Channel<String> = Channel::new("note");
static ASK: Channel<String, String> = Channel::new("ask");

/// Three steps.
#[workflow]
async fn steps(#[state] log: Log) -> Result<String, Failure> {
    #[step(name = "one")]
    act(&log, "one").await?;
    #[step(name = "two")]
    act(&log, "two").await?;
    #[step(name = "three")]
    act(&log, "three").await
}

/// A caught failure, then one that is not.
#[workflow]
async fn caught(#[state] log: Log) -> Result<bool, Failure> {
    #[step(name = "maybe")]
    let maybe = act(&log, "maybe").await;
    #[step(name = "surely")]
    act(&log, "surely").await?;
    Ok(maybe.is_ok())
}

#[workflow]
async fn branches(#[state] log: Log) -> Result<(String, String), Failure> {
    join!(
        both,
        a = {
            #[step(name = "a1")]
            act(&log, "a1").await?;
            #[step(name = "a2")]
            act(&log, "a2").await?
        },
        b = {
            #[step(name = "b1")]
            act(&log, "b1").await?;
            sleep!(nap, "10s").await;
            #[step(name = "b2")]
            act(&log, "b2").await?
        },
    )
    .await
}

#[workflow]
async fn child(#[state] log: Log) -> Result<String, Failure> {
    #[step(name = "inner")]
    act(&log, "inner").await
}

#[workflow]
async fn parent(#[state] log: Log) -> Result<String, Failure> {
    #[step(name = "before")]
    act(&log, "before").await?;
    let value = child().await?;
    #[step(name = "after")]
    act(&log, "after").await?;
    Ok(value)
}

#[workflow]
async fn listening(#[state] log: Log) -> Result<String, Failure> {
    let first = recv!(first, NOTE).await?;
    #[step(name = "kept")]
    act(&log, "kept").await?;
    let second = recv!(second, NOTE).await?;
    let request = recv!(asked, ASK).await?;
    let question = request.value().clone();
    request.reply("yes".to_owned()).await?;
    sleep!(rest, "1h").await;
    Ok(format!("{first} {second} {question}"))
}

#[workflow]
async fn looping(#[state] log: Log) -> Result<u32, Failure> {
    let mut total = 0;
    #[carry(total, every = 1, keep = 2)]
    'items: for item in 0..6u32 {
        #[step(name = "add")]
        act(&log, &format!("add {item}")).await?;
        total += item;
    }
    #[step(name = "end")]
    act(&log, "end").await?;
    Ok(total)
}

#[workflow]
async fn racing(#[state] log: Log) -> Result<String, Failure> {
    let won = race!(
        first,
        fast = {
            #[step(name = "run")]
            act(&log, "fast").await?
        },
        slow = {
            sleep!(nap, "1h").await;
            "slow".to_owned()
        },
    )
    .await?;
    #[step(name = "then")]
    act(&log, &won.value).await
}

/// What is derived before and after a step.
#[workflow]
async fn derived(#[state] log: Log) -> Result<(String, String, String), Failure> {
    let before = uuid!(before).to_string();
    let dice: u64 = random!(dice);
    // A choice by it: another value would be a divergence.
    let first = if dice % 2 == 0 {
        #[step(name = "even")]
        key(&log).await?
    } else {
        #[step(name = "odd")]
        key(&log).await?
    };
    let after = uuid!(after).to_string();
    #[step(name = "last")]
    let last = key(&log).await?;
    let _ = first;
    Ok((before, after, last))
}

#[workflow]
async fn mixed(#[state] log: Log) -> Result<u32, Failure> {
    progress!("begun");
    let way = version!(way, 2).await;
    let tried = attempt!(first, {
        #[step(name = "x")]
        act(&log, "x").await?
    })
    .await;
    'rounds: for _ in 0..2 {
        #[step(name = "y")]
        act(&log, "y").await?;
    }
    #[step(name = "z")]
    act(&log, "z").await?;
    Ok(way + u32::from(tried.is_ok()))
}

#[workflow]
async fn napping(rounds: u32, #[state] log: Log) -> Result<u32, Failure> {
    'outer: for round in 0..rounds {
        'inner: for turn in 0..2u32 {
            #[step(name = "turn")]
            act(&log, &format!("{round}.{turn}")).await?;
            sleep!(nap, "1h").await;
        }
    }
    #[step(name = "after")]
    act(&log, "after").await?;
    Ok(rounds)
}

async fn opened(world: &World, log: &Log) -> Engine {
    let builder = world.engine().state(log.clone());
    let builder = builder.workflow(steps).workflow(caught).workflow(branches);
    let builder = builder.workflow(child).workflow(parent).workflow(listening);
    let builder = builder.workflow(looping).workflow(racing).workflow(derived);
    builder
        .workflow(mixed)
        .workflow(napping)
        .build()
        .await
        .unwrap()
}

async fn fresh() -> (World, Log, Engine) {
    let (world, log) = (World::new(), Log::default());
    let engine = opened(&world, &log).await;
    (world, log, engine)
}

fn why(error: ControlError) -> String {
    error.to_string()
}

// ===== recover =====

// RVT-STEP-15 RVT-FIX-52 RVT-FIX-59
#[tokio::test(start_paused = true)]
async fn a_failed_run_is_retried_with_all_its_attempts_and_no_trace_of_the_failure() {
    let (world, log, engine) = fresh().await;
    log.fails(&["two"]);
    let run = engine.start("a", steps()).await.unwrap();
    assert!(matches!(run.result().await, Err(Error::Failed(_))));
    assert_eq!(log.take(), ["one", "two", "two"]);
    run.recover().await.unwrap();
    // It is driven without further help, and waits before its second attempt again.
    pass(500).await;
    assert_eq!(log.take(), ["two"]);
    assert!(matches!(run.result().await, Err(Error::Failed(_))));
    assert_eq!(log.take(), ["two"]);

    log.fails(&[]);
    engine.recover("a").await.unwrap();
    assert_eq!(run.result().await.unwrap(), "three");
    assert_eq!(log.take(), ["two", "three"]);
    let history = run.history().await.unwrap();
    let recovered =
        |record: &&workflow::Record| matches!(record.body, Body::Control(Control::Recovered));
    assert_eq!(history.iter().filter(recovered).count(), 2);
    assert!(!format!("{history:?}").contains("fails"));
    // So it is after a restart.
    let world = world.crash();
    drop((run, engine));
    let engine = opened(&world, &log).await;
    let run = engine.attach::<steps>("a").await.unwrap();
    assert_eq!(run.result().await.unwrap(), "three");
    assert_eq!(log.take(), [""; 0]);
}

// U16
#[tokio::test(start_paused = true)]
async fn a_failure_that_the_workflow_went_on_after_stays() {
    let (_, log, engine) = fresh().await;
    log.fails(&["maybe", "surely"]);
    let run = engine.start("a", caught()).await.unwrap();
    assert!(run.result().await.is_err());
    log.take();
    log.fails(&[]);
    run.recover().await.unwrap();
    assert!(!run.result().await.unwrap(), "it went on after a failure");
    assert_eq!(log.take(), ["surely"]);
}

// RVT-FIX-51
#[tokio::test(start_paused = true)]
async fn a_join_that_failed_by_one_branch_retries_that_one() {
    let (_, log, engine) = fresh().await;
    log.fails(&["a2"]);
    let run = engine.start("a", branches()).await.unwrap();
    assert!(run.result().await.is_err());
    log.take();
    log.fails(&[]);
    run.recover().await.unwrap();
    let (a, b) = run.result().await.unwrap();
    assert_eq!((&*a, &*b), ("a2", "b2"));
    assert_eq!(log.take(), ["a2"]);
}

// U16: the child that it failed by is recovered in the same transaction.
#[tokio::test(start_paused = true)]
async fn a_run_that_failed_by_its_child_is_recovered_with_it() {
    let (world, log, engine) = fresh().await;
    log.fails(&["inner"]);
    let run = engine.start("a", parent()).await.unwrap();
    assert!(run.result().await.is_err());
    log.take();
    log.fails(&[]);
    run.recover().await.unwrap();
    let world = world.crash();
    drop((run, engine));
    let engine = opened(&world, &log).await;
    let run = engine.attach::<parent>("a").await.unwrap();
    assert_eq!(run.result().await.unwrap(), "inner");
    assert!(
        log.take()
            .ends_with(&["inner".to_owned(), "after".to_owned()])
    );
}

// U13 RVT-FIX-50: never on top of what was undone.
#[tokio::test(start_paused = true)]
async fn a_run_that_rolled_back_is_recovered_from_its_checkpoint() {
    let (world, log, engine) = fresh().await;
    log.fails(&["two"]);
    let run = engine.start("a", steps()).await.unwrap();
    assert!(run.result().await.is_err());
    log.take();
    log.fails(&[]);
    // What a roll-back leaves behind: a checkpoint was passed first, and `one` is undone.
    let mut records = run.history().await.unwrap();
    let mut like = |at: usize, location: &str, body: Body| {
        let record = workflow::Record {
            location: workflow::Location::root().site(location),
            body,
            ..records[at].clone()
        };
        records.insert(at, record);
    };
    like(1, "point", Body::Checkpoint);
    let undone = Body::Undone {
        undoes: 3,
        attempt: 1,
        outcome: Ok(()),
        skipped: None,
    };
    like(5, "one", undone);
    for (seq, record) in (1..).zip(&mut records) {
        record.seq = seq;
    }
    rolled_back(&world, "b", records).await;
    let run = engine.attach::<steps>("b").await.unwrap();
    assert!(run.result().await.is_err());
    run.recover().await.unwrap();
    assert_eq!(run.result().await.unwrap(), "three");
    assert_eq!(log.take(), ["one", "two", "three"]);
    let generation = |record: &workflow::Record| match &record.body {
        Body::Control(Control::Rewound { generation, to, .. }) => {
            Some((*generation, to.to_string()))
        }
        _ => None,
    };
    let history = run.history().await.unwrap();
    assert_eq!(
        history.iter().find_map(generation),
        Some((1, "point".to_owned()))
    );
}

/// Puts a failed run with this history into the store.
async fn rolled_back(world: &World, id: &str, records: Vec<workflow::Record>) {
    use workflow::store::{Append, Appended, InboxChange, NewRun, RunPatch, Store};
    let store = &world.store;
    let append = Append {
        run: store.allocate(),
        epoch: store.identity().boot,
        number: 1,
        expected_seq: 0,
        create: Some(NewRun {
            id: workflow::RunId::new(id).unwrap(),
            workflow: "steps".to_owned(),
            parent: None,
            detached: false,
            not_before: None,
            priority: 0,
        }),
        records,
        deletes: Vec::new(),
        patch: RunPatch {
            state: Some(RunState::Failed),
            ..RunPatch::default()
        },
        inbox: InboxChange::default(),
        posts: Vec::new(),
    };
    assert_eq!(store.append(append).await.unwrap(), Appended::Applied);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_recovered_says_why_and_stays_as_it_is() {
    let (_, log, engine) = fresh().await;
    assert!(matches!(
        engine.recover("nobody").await,
        Err(ControlError::NotFound { .. })
    ));
    let run = engine.start("a", steps()).await.unwrap();
    run.result().await.unwrap();
    let before = run.history().await.unwrap();
    assert_eq!(
        why(run.recover().await.unwrap_err()),
        "run `a` is completed, so it cannot be recovered"
    );
    assert_eq!(run.history().await.unwrap(), before);
    let _ = log.take();
}

// ===== rewind =====

// RVT-REPLAY-01 RVT-REPLAY-06 RVT-FIX-45
#[tokio::test(start_paused = true)]
async fn a_rewound_run_does_again_what_lies_after_the_target() {
    let (world, log, engine) = fresh().await;
    let run = engine.start("a", steps()).await.unwrap();
    run.result().await.unwrap();
    log.take();

    let planned = run.rewind_dry_run("two").await.unwrap();
    let before = run.history().await.unwrap();
    assert_eq!(run.status().await.unwrap().state, RunState::Completed);
    let places: Vec<_> = planned
        .removed
        .iter()
        .map(|record| record.location.to_string())
        .collect();
    assert_eq!(places, ["two", "three", ""]);
    assert_eq!(log.take(), [""; 0]);

    log.fails(&["two"]);
    let done = run.rewind("two").await.unwrap();
    assert_eq!(done, planned);
    assert_eq!(done.generation, 1);
    pass(500).await;
    let status = run.status().await.unwrap();
    assert_eq!((status.state.is_final(), status.finished_at), (false, None));
    assert_eq!(run.try_result().await.unwrap(), None);
    let history = run.history().await.unwrap();
    assert_eq!(history[..2], before[..2], "the input and `one` stay");
    assert!(matches!(
        history[2].body,
        Body::Control(Control::Rewound {
            removed: 3,
            generation: 1,
            ..
        })
    ));
    log.fails(&[]);
    assert_eq!(run.result().await.unwrap(), "three");
    assert_eq!(log.take(), ["two", "two", "three"]);

    let world = world.crash();
    drop((run, engine));
    let engine = opened(&world, &log).await;
    let run = engine.attach::<steps>("a").await.unwrap();
    assert_eq!(run.result().await.unwrap(), "three");
    // RVT-REPLAY-02
    engine.rewind("a", "").await.unwrap();
    assert_eq!(run.result().await.unwrap(), "three");
    assert_eq!(log.take(), ["one", "two", "three"]);
}

// RVT-REPLAY-05
#[tokio::test(start_paused = true)]
async fn a_rewind_to_nowhere_changes_nothing() {
    let (_, _, engine) = fresh().await;
    let run = engine.start("a", steps()).await.unwrap();
    run.result().await.unwrap();
    let before = run.history().await.unwrap();
    assert_eq!(
        why(run.rewind("four").await.unwrap_err()),
        "run `a`: nothing is recorded at `four`"
    );
    assert_eq!(run.history().await.unwrap(), before);
    assert_eq!(run.result().await.unwrap(), "three");
}

// U15
#[tokio::test(start_paused = true)]
async fn what_ran_beside_the_target_stays() {
    let (_, log, engine) = fresh().await;
    let run = engine.start("a", branches()).await.unwrap();
    run.result().await.unwrap();
    log.take();
    run.rewind("both/a/a2").await.unwrap();
    run.result().await.unwrap();
    assert_eq!(log.take(), ["a2"]);
    // Also while a branch waits.
    let run = engine.start("b", branches()).await.unwrap();
    pass(100).await;
    log.take();
    run.rewind("both/a/a1").await.unwrap();
    run.result().await.unwrap();
    assert_eq!(log.take(), ["a1", "a2", "b2"]);
}

// RVT-FIX-46
#[tokio::test(start_paused = true)]
async fn a_rewind_into_a_loop_keeps_earlier_iterations_and_versions() {
    let (_, log, engine) = fresh().await;
    let run = engine.start("a", mixed()).await.unwrap();
    assert_eq!(run.result().await.unwrap(), 3);
    assert_eq!(log.take(), ["x", "y", "y", "z"]);
    run.rewind("rounds[1]/y").await.unwrap();
    assert_eq!(run.result().await.unwrap(), 3);
    assert_eq!(log.take(), ["y", "z"]);
    run.rewind("first/x").await.unwrap();
    assert_eq!(run.result().await.unwrap(), 3);
    assert_eq!(log.take(), ["x", "y", "y", "z"]);
    assert_eq!(run.status().await.unwrap().records, 17);
}

// RVT-REPLAY-04 RVT-FIX-76
#[tokio::test(start_paused = true)]
async fn a_run_that_sleeps_in_a_loop_is_rewound_to_a_step_of_it() {
    let (_, log, engine) = fresh().await;
    let run = engine.start("a", napping(2)).await.unwrap();
    pass(3 * 3_600_000 + 1_000).await;
    assert_eq!(log.take(), ["0.0", "0.1", "1.0", "1.1"]);
    run.rewind("outer[1]/inner[1]/turn").await.unwrap();
    pass(1_000).await;
    assert_eq!(log.take(), ["1.1"]);
    // It sleeps again, from now on.
    assert_eq!(run.status().await.unwrap().state, RunState::Waiting);
    pass(3_500_000).await;
    assert_eq!(log.take(), [""; 0]);
    run.result().await.unwrap();
    assert_eq!(log.take(), ["after"]);
    // And when it has ended: the outer iteration before stays, that of the target is done again from there.
    run.rewind("outer[1]/inner[0]/turn").await.unwrap();
    run.result().await.unwrap();
    assert_eq!(log.take(), ["1.0", "1.1", "after"]);
}

// U10 U15
#[tokio::test(start_paused = true)]
async fn a_rewind_into_a_carried_loop_goes_to_kept_iterations_only() {
    let (_, log, engine) = fresh().await;
    let run = engine.start("a", looping()).await.unwrap();
    assert_eq!(run.result().await.unwrap(), 15);
    log.take();
    let error = run.rewind("items[1]/add").await.unwrap_err();
    assert_eq!(
        why(error),
        "run `a`: `items[1]/add` lies in an iteration of `items` that is no longer kept: rewind to `items`"
    );
    run.rewind("items[5]/add").await.unwrap();
    assert_eq!(run.result().await.unwrap(), 15);
    assert_eq!(log.take(), ["add 5", "end"]);
    run.rewind("items").await.unwrap();
    assert_eq!(run.result().await.unwrap(), 15);
    assert_eq!(log.take().len(), 7);
}

// U15
#[tokio::test(start_paused = true)]
async fn a_race_that_is_won_is_rewound_as_a_whole() {
    let (_, log, engine) = fresh().await;
    let run = engine.start("a", racing()).await.unwrap();
    run.result().await.unwrap();
    log.take();
    for inside in ["first/fast/run", "first/fast", "first/slow/nap"] {
        assert!(
            why(run.rewind(inside).await.unwrap_err()).ends_with("rewind to `first`"),
            "{inside}"
        );
    }
    run.rewind("first").await.unwrap();
    assert_eq!(run.result().await.unwrap(), "fast");
    assert_eq!(log.take(), ["fast", "fast"]);
}

// U15: what had been taken is in the inbox again, unless it was answered.
#[tokio::test(start_paused = true)]
async fn taken_messages_go_back_to_their_old_places() {
    let (world, log, engine) = fresh().await;
    let run = engine.start("a", listening()).await.unwrap();
    for note in ["n1", "n2", "n3"] {
        run.send(&NOTE, &note.to_owned()).await.unwrap();
    }
    assert_eq!(run.request(&ASK, &"q1".to_owned()).await.unwrap(), "yes");
    pass(100).await;
    log.take();
    let rewound = run.rewind("second").await.unwrap();
    assert_eq!(rewound.returned.len(), 1);
    pass(100).await;
    let world = world.crash();
    drop((run, engine));
    let engine = opened(&world, &log).await;
    let run = engine.attach::<listening>("a").await.unwrap();
    assert_eq!(run.request(&ASK, &"q2".to_owned()).await.unwrap(), "yes");
    assert_eq!(run.result().await.unwrap(), "n1 n2 q2");
    assert_eq!(log.take(), [""; 0]);
}

// U15
#[tokio::test(start_paused = true)]
async fn a_rewound_run_starts_its_child_anew_and_cancels_the_old_one() {
    let (_, log, engine) = fresh().await;
    let run = engine.start("a", parent()).await.unwrap();
    run.result().await.unwrap();
    log.take();
    run.rewind("child").await.unwrap();
    assert_eq!(run.result().await.unwrap(), "inner");
    assert_eq!(log.take(), ["inner", "after"]);
    assert_eq!(
        engine.status("a/child").await.unwrap().state,
        RunState::Completed
    );
    assert_eq!(
        engine.status("a/child#1").await.unwrap().state,
        RunState::Completed
    );

    log.fails(&["inner"]);
    let run = engine.start("b", parent()).await.unwrap();
    pass(500).await;
    let rewound = run.rewind("before").await.unwrap();
    assert_eq!(rewound.cancelled.len(), 1);
    log.fails(&[]);
    assert_eq!(run.result().await.unwrap(), "inner");
    assert_eq!(
        engine.status("b/child").await.unwrap().state,
        RunState::Cancelled
    );
}

// U15: what is done again has other keys; what stands before comes out as it did.
#[tokio::test(start_paused = true)]
async fn a_generation_is_in_what_is_derived_after_the_target_and_not_before() {
    let (world, log, engine) = fresh().await;
    for id in ["a", "b", "c", "d"] {
        let run = engine.start(id, derived()).await.unwrap();
        let (before, after, last) = run.result().await.unwrap();
        run.rewind("last").await.unwrap();
        let second = run.result().await.unwrap();
        assert_eq!(second.0, before);
        assert_ne!(second.1, after, "it stands after what is kept");
        assert_ne!(second.2, last);
        let again = run.rewind("last").await.unwrap();
        assert_eq!(again.generation, 2);
        let third = run.result().await.unwrap();
        assert_eq!(third.0, before);
        assert_ne!(third.2, second.2);
    }
    // A replay after a restart derives the same.
    let run = engine.attach::<derived>("a").await.unwrap();
    let whole = run.result().await.unwrap();
    drop(run);
    let world = world.crash();
    drop(engine);
    let engine = opened(&world, &log).await;
    let run = engine.attach::<derived>("a").await.unwrap();
    assert_eq!(run.result().await.unwrap(), whole);
}

// RVT-FIX-48
#[tokio::test(start_paused = true)]
async fn a_cancelled_run_is_not_rewound() {
    let (_, _, engine) = fresh().await;
    let run = engine.start("a", branches()).await.unwrap();
    pass(100).await;
    run.cancel().await.unwrap();
    assert!(matches!(
        run.rewind("both").await,
        Err(ControlError::State {
            state: RunState::Cancelled,
            ..
        })
    ));
}

// ===== fork =====

#[tokio::test(start_paused = true)]
async fn a_fork_goes_on_from_a_copy_and_leaves_the_first_run_alone() {
    let (world, log, engine) = fresh().await;
    let run = engine.start("a", steps()).await.unwrap();
    run.result().await.unwrap();
    let before = run.history().await.unwrap();
    log.take();
    let fork = run.fork("b", Some("three")).await.unwrap();
    assert_eq!(fork.result().await.unwrap(), "three");
    assert_eq!(log.take(), ["three"]);
    assert_eq!(run.history().await.unwrap(), before);
    engine.fork("a", "c", None).await.unwrap();
    let whole = engine.attach::<steps>("c").await.unwrap();
    assert_eq!(whole.result().await.unwrap(), "three");
    assert_eq!(log.take(), [""; 0]);
    assert!(matches!(
        run.fork("b", None).await,
        Err(ControlError::Exists { .. })
    ));
    assert!(matches!(
        run.fork("x/y", None).await,
        Err(ControlError::InvalidId(_))
    ));
    let world = world.crash();
    drop((run, fork, whole, engine));
    let engine = opened(&world, &log).await;
    // The same start is the fork.
    let fork = engine.start("b", steps()).await.unwrap();
    assert_eq!(fork.result().await.unwrap(), "three");
    assert_eq!(log.take(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_fork_has_keys_and_children_of_its_own_and_replays_what_it_copied() {
    let (_, log, engine) = fresh().await;
    let run = engine.start("a", derived()).await.unwrap();
    let (before, after, last) = run.result().await.unwrap();
    for id in ["f1", "f2", "f3"] {
        let fork = run.fork(id, Some("last")).await.unwrap();
        let (same, other, key) = fork.result().await.unwrap();
        assert_eq!(same, before);
        assert_ne!(other, after);
        assert_ne!(key, last);
    }

    log.fails(&["inner"]);
    let run = engine.start("p", parent()).await.unwrap();
    pass(500).await;
    log.fails(&[]);
    let fork = run.fork("q", None).await.unwrap();
    assert_eq!(fork.result().await.unwrap(), "inner");
    assert_eq!(
        engine.status("q/child").await.unwrap().state,
        RunState::Completed
    );
    assert_eq!(run.result().await.unwrap(), "inner");
}

#[tokio::test(start_paused = true)]
async fn a_fork_of_a_run_that_was_asked_has_no_inbox_and_answers_nobody() {
    let (_, log, engine) = fresh().await;
    let run = engine.start("a", listening()).await.unwrap();
    for note in ["n1", "n2", "n3"] {
        run.send(&NOTE, &note.to_owned()).await.unwrap();
    }
    assert_eq!(run.request(&ASK, &"q1".to_owned()).await.unwrap(), "yes");
    log.take();
    let fork = run.fork("b", Some("second")).await.unwrap();
    pass(100).await;
    assert_eq!(fork.status().await.unwrap().waits_for, ["note"]);
    fork.send(&NOTE, &"m2".to_owned()).await.unwrap();
    assert_eq!(fork.request(&ASK, &"q2".to_owned()).await.unwrap(), "yes");
    assert_eq!(fork.result().await.unwrap(), "n1 m2 q2");
    assert_eq!(run.result().await.unwrap(), "n1 n2 q1");
    assert_eq!(log.take(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_shuts_down_rewinds_nothing() {
    let (_, _, engine) = fresh().await;
    let run = engine.start("a", steps()).await.unwrap();
    run.result().await.unwrap();
    engine.shutdown(Duration::ZERO).await.unwrap();
    assert!(run.rewind("two").await.is_err());
}
