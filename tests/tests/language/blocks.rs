//! Blocks and loops: what stops at their edge, and what a restart in the middle of one does.

use workflow::{
    Channel, Engine, Error, Failure, FailureKind, RunState, attempt, join, race, recv, sleep, step,
    workflow,
};
use workflow_tests::{Counter, World, pass};

static ITEMS: Channel<Vec<String>, usize> = Channel::new("items");

#[step(retries = 0)]
async fn charge(calls: &Counter, card: &str) -> Result<String, std::io::Error> {
    calls.hit();
    if card.starts_with("bad") {
        return Err(std::io::Error::other(format!("{card} declined")));
    }
    Ok(card.to_owned())
}

#[step(retries = 3, backoff(fixed, wait = "1h"))]
async fn flaky(calls: &Counter) -> Result<usize, std::io::Error> {
    match calls.hit() {
        n if n < 3 => Err(std::io::Error::other("not yet")),
        n => Ok(n),
    }
}

#[workflow]
async fn all_lose(#[state] calls: Counter) -> Result<String, Failure> {
    let tried = attempt!(pay, {
        race!(
            cards,
            first = charge(&calls, "bad 1").await?,
            second = charge(&calls, "bad 2").await?
        )
        .await?
        .value
    })
    .await;
    let failure = tried.unwrap_err();
    let inside: Vec<_> = failure.branches().iter().map(Failure::message).collect();
    Ok(format!(
        "{} {} {}",
        failure.kind(),
        failure.location(),
        inside.len()
    ))
}

#[workflow]
async fn patient(#[state] calls: Counter) -> Result<usize, Failure> {
    let tried = attempt!(again, { flaky(&calls).await? }).await;
    Ok(tried.unwrap_or(0))
}

#[workflow]
async fn picky(#[state] calls: Counter) -> Result<String, Failure> {
    let tried = attempt!(pay, { charge(&calls, "bad").await? }).await;
    match tried {
        // What this workflow can handle; anything else is its own failure.
        Err(failure) if failure.kind() == FailureKind::Race => Ok("lost".to_owned()),
        other => other,
    }
}

#[workflow]
async fn decided(#[state] calls: Counter) -> Result<String, Failure> {
    let mut seen = Vec::new();
    let tried = attempt!(pay, {
        let won = race!(
            cards,
            good = charge(&calls, "good").await?,
            late = {
                sleep!(window, "2h").await;
                "late".to_owned()
            }
        )
        .await?;
        seen.push(won.branch);
        sleep!(settle, "1h").await;
        won.value
    })
    .await;
    Ok(format!("{} {seen:?}", tried?))
}

async fn engine(world: &World, calls: &Counter) -> Engine {
    world
        .engine()
        .state(calls.clone())
        .workflow(all_lose)
        .workflow(patient)
        .workflow(picky)
        .workflow(decided)
        .workflow(third_pass)
        .workflow(failing_loop)
        .workflow(batches)
        .workflow(fans)
        .build()
        .await
        .unwrap()
}

// RVT-TRY-07
#[tokio::test(start_paused = true)]
async fn a_block_gives_the_failure_of_a_race_that_nobody_won() {
    let (world, calls) = (World::new(), Counter::default());
    let engine = engine(&world, &calls).await;
    let told = engine.run("a", all_lose()).await.unwrap();
    assert_eq!(told, "race pay/cards 2");
}

// RVT-TRY-10
#[tokio::test(start_paused = true)]
async fn a_block_waits_with_its_step_for_the_next_attempt() {
    let (world, calls) = (World::new(), Counter::default());
    let engine = engine(&world, &calls).await;
    let run = engine.start("a", patient()).await.unwrap();
    pass(10_000).await;
    let status = run.status().await.unwrap();
    assert_eq!(status.state, RunState::Waiting);
    assert_eq!(run.try_result().await.unwrap(), None);
    assert_eq!(calls.count(), 1);
    drop((run, engine));
    let world = world.crash();
    let engine = self::engine(&world, &calls).await;
    let run = engine.attach::<patient>("a").await.unwrap();
    assert_eq!(run.result().await.unwrap(), 3);
    assert_eq!(calls.count(), 3);
}

// RVT-TRY-12: there is no list of what is caught. A `match` gives back what it does not handle.
#[tokio::test(start_paused = true)]
async fn what_a_workflow_does_not_handle_of_a_blocks_failures_is_its_own_failure() {
    let (world, calls) = (World::new(), Counter::default());
    let engine = engine(&world, &calls).await;
    let Error::Failed(failure) = engine.run("a", picky()).await.unwrap_err() else {
        panic!()
    };
    assert_eq!(failure.kind(), FailureKind::Exhausted);
    assert_eq!(failure.location().to_string(), "pay/charge");
}

// RVT-FIX-09
#[tokio::test(start_paused = true)]
async fn a_decided_race_in_a_block_is_decided_after_a_restart_in_that_block() {
    for cut in [10_000, 1_800_000, 3_599_000] {
        let (world, calls) = (World::new(), Counter::default());
        let engine = engine(&world, &calls).await;
        engine.start("a", decided()).await.unwrap();
        pass(cut).await;
        drop(engine);
        let world = world.crash();
        let engine = self::engine(&world, &calls).await;
        let run = engine.attach::<decided>("a").await.unwrap();
        assert_eq!(run.result().await.unwrap(), r#"good ["good"]"#);
        assert_eq!(calls.count(), 1);
    }
}

#[workflow]
async fn third_pass(#[state] calls: Counter) -> Result<String, Failure> {
    let mut pass = 0;
    let done = 'passes: loop {
        pass += 1;
        charge(&calls, "good").await?;
        if pass < 3 {
            continue 'passes;
        }
        break "done".to_owned();
    };
    Ok(done)
}

#[workflow]
async fn failing_loop(#[state] calls: Counter) -> Result<u32, Failure> {
    let mut count = 0;
    #[carry(count)]
    'cards: for card in ["good", "bad", "good"] {
        charge(&calls, card).await?;
        count += 1;
    }
    Ok(count)
}

// RVT-LOOP-02 RVT-LOOP-03
#[tokio::test(start_paused = true)]
async fn a_loop_goes_on_until_it_breaks_and_gives_what_it_breaks_with() {
    let (world, calls) = (World::new(), Counter::default());
    let engine = engine(&world, &calls).await;
    assert_eq!(engine.run("a", third_pass()).await.unwrap(), "done");
    assert_eq!(calls.count(), 3);
}

// RVT-LOOP-15
#[tokio::test(start_paused = true)]
async fn what_fails_in_a_loop_fails_the_workflow_at_its_iteration() {
    let (world, calls) = (World::new(), Counter::default());
    let engine = engine(&world, &calls).await;
    let Error::Failed(failure) = engine.run("a", failing_loop()).await.unwrap_err() else {
        panic!()
    };
    assert_eq!(failure.location().to_string(), "cards[1]/charge");
    assert_eq!(failure.message(), "bad declined");
}

/// Takes lists until an empty one comes, and answers each when it is worked off.
#[workflow]
async fn batches(#[state] calls: Counter) -> Result<Vec<String>, Failure> {
    let mut done = Vec::new();
    'batches: loop {
        let batch = recv!(batch, ITEMS).await?;
        let items = batch.value().clone();
        'items: for item in &items {
            done.push(charge(&calls, item).await?);
        }
        batch.reply(items.len()).await?;
        if items.len() < 2 {
            break 'batches;
        }
    }
    Ok(done)
}

/// The same, side by side.
#[workflow]
async fn fans(#[state] calls: Counter) -> Result<Vec<String>, Failure> {
    let mut done = Vec::new();
    #[carry(done)]
    'batches: loop {
        let batch = recv!(batch, ITEMS).await?;
        let items = batch.value().clone();
        let (first, rest) = join!(
            both,
            first = charge(&calls, &items[0]).await?,
            rest = match items.get(1) {
                Some(item) => Some(charge(&calls, item).await?),
                None => None,
            }
        )
        .await?;
        done.push(first);
        done.extend(rest);
        batch.reply(items.len()).await?;
        if items.len() < 2 {
            break 'batches;
        }
    }
    Ok(done)
}

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|&text| text.to_owned()).collect()
}

// RVT-LOOP-05 RVT-LOOP-06 RVT-LOOP-08
#[tokio::test(start_paused = true)]
async fn messages_are_worked_off_in_loops_and_nothing_twice_across_restarts() {
    for joined in [false, true] {
        for restart in [false, true] {
            let (mut world, calls) = (World::new(), Counter::default());
            let mut engine = engine(&world, &calls).await;
            if joined {
                engine.start("a", fans()).await.unwrap();
            } else {
                engine.start("a", batches()).await.unwrap();
            }
            pass(1_000).await;
            let ask = async |engine: &Engine, items: &[&str]| {
                let items = texts(items);
                if joined {
                    let run = engine.attach::<fans>("a").await.unwrap();
                    run.request(&ITEMS, &items).await.unwrap()
                } else {
                    let run = engine.attach::<batches>("a").await.unwrap();
                    run.request(&ITEMS, &items).await.unwrap()
                }
            };
            assert_eq!(ask(&engine, &["a", "b"]).await, 2);
            assert_eq!(calls.count(), 2);
            if restart {
                pass(10_000).await;
                assert_eq!(engine.in_memory(), 0);
                drop(engine);
                world = world.crash();
                engine = self::engine(&world, &calls).await;
            }
            assert_eq!(ask(&engine, &["c"]).await, 1);
            let done = if joined {
                let run = engine.attach::<fans>("a").await.unwrap();
                run.result().await.unwrap()
            } else {
                let run = engine.attach::<batches>("a").await.unwrap();
                run.result().await.unwrap()
            };
            assert_eq!(done, ["a", "b", "c"]);
            assert_eq!(calls.count(), 3, "nothing is done twice");
        }
    }
}
