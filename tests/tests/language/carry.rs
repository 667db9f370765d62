//! `#[carry]`: loops that run for years in constant space.

use std::time::Duration;

use workflow::{Engine, Failure, Record, Watched, sleep, step, workflow};
use workflow_tests::{Counter, World, pass};

#[step]
async fn counted(calls: &Counter, n: u64) -> u64 {
    calls.hit();
    n
}

// RVT-LOOP-01
#[workflow]
async fn counting(until: u64, #[state] calls: Counter) -> Result<u64, Failure> {
    let mut count = 0;
    #[carry(count, every = 2)]
    'again: loop {
        counted(&calls, count).await?;
        count += 1;
        if count >= until {
            break 'again;
        }
    }
    Ok(count)
}

#[workflow]
async fn over_items(items: Vec<u64>, #[state] calls: Counter) -> Result<(u64, usize), Failure> {
    let mut total = 0;
    let limit = 100;
    #[carry(total, every = 3, keep = 1)]
    'items: for item in &items {
        if *item == 0 {
            continue 'items;
        }
        total += counted(&calls, *item).await?;
        if total > limit {
            break 'items;
        }
    }
    Ok((total, items.len()))
}

#[workflow]
async fn given(#[state] calls: Counter) -> Result<String, Failure> {
    let mut left = 3;
    let mut text = String::new();
    #[carry(left, text)]
    let value = 'again: loop {
        left -= 1;
        text.push('x');
        counted(&calls, left).await?;
        if left == 0 {
            break 'again text.len();
        }
    };
    Ok(format!("{value} {text}"))
}

#[workflow]
async fn polling(#[state] calls: Counter) -> Result<(), Failure> {
    let mut seen = 0u64;
    #[carry(seen)]
    'poll: while seen < 45 {
        seen += 1;
        counted(&calls, seen).await?;
        sleep!(pause, Duration::from_secs(60)).await;
    }
    Ok(())
}

async fn engine(world: &World, calls: &Counter) -> Engine {
    world
        .engine()
        .state(calls.clone())
        .workflow(counting)
        .workflow(over_items)
        .workflow(given)
        .workflow(polling)
        .build()
        .await
        .unwrap()
}

/// The iterations of which steps are stored.
fn kept(history: &[Record], loop_name: &str) -> Vec<String> {
    let prefix = format!("{loop_name}[");
    let mut found: Vec<_> = history
        .iter()
        .map(|record| record.location.to_string())
        .filter(|location| location.starts_with(&prefix) && location.contains("/counted"))
        .collect();
    found.sort();
    found.dedup();
    found
}

// RVT-LOOP-10 RVT-LOOP-16
#[tokio::test(start_paused = true)]
async fn a_carried_loop_ends_and_its_early_iterations_are_gone() {
    let (world, calls) = (World::new(), Counter::default());
    let engine = engine(&world, &calls).await;
    assert_eq!(engine.run("a", counting(4)).await.unwrap(), 4);
    let run = engine.attach::<counting>("a").await.unwrap();
    let history = run.history().await.unwrap();
    assert_eq!(
        kept(&history, "again"),
        ["again[2]/counted", "again[3]/counted"]
    );
    assert_eq!(calls.count(), 4);
    assert_eq!(engine.run("g", given()).await.unwrap(), "3 xxx");
}

// M16
#[tokio::test(start_paused = true)]
async fn who_watches_from_the_beginning_is_told_which_records_are_gone() {
    let (world, calls) = (World::new(), Counter::default());
    let engine = engine(&world, &calls).await;
    engine.run("a", counting(6)).await.unwrap();
    let run = engine.attach::<counting>("a").await.unwrap();
    let mut watch = run.watch(1);
    let (mut seen, mut gone) = (Vec::new(), Vec::new());
    while let Some(watched) = watch.next().await.unwrap() {
        match watched {
            Watched::Record(record) => seen.push(record.seq),
            Watched::Gap { from, to } => gone.extend(from..=to),
        }
    }
    let last = run.status().await.unwrap().records;
    let mut all = [seen.clone(), gone.clone()].concat();
    all.sort_unstable();
    assert_eq!(all, (1..=last).collect::<Vec<_>>());
    assert!(!gone.is_empty() && seen.is_sorted());
}

#[tokio::test(start_paused = true)]
async fn a_carried_for_passes_over_what_is_behind_and_stops_where_it_would() {
    let (world, calls) = (World::new(), Counter::default());
    let engine = engine(&world, &calls).await;
    let items = vec![5, 0, 7, 0, 90, 8, 9];
    let ended = engine.run("a", over_items(items)).await.unwrap();
    assert_eq!(ended, (102, 7));
    assert_eq!(calls.count(), 3);
}

// RVT-LOOP-18 RVT-LOOP-09
#[tokio::test(start_paused = true)]
async fn a_poller_is_woken_evicted_and_cut_off_and_its_history_does_not_grow() {
    let (mut world, calls) = (World::new(), Counter::default());
    let mut most = 0;
    for _ in 0..6 {
        let engine = engine(&world, &calls).await;
        let run = engine.start("p", polling()).await.unwrap();
        pass(60 * 8 * 1000).await;
        most = most.max(run.history().await.unwrap().len());
        world = world.crash();
    }
    let engine = engine(&world, &calls).await;
    let run = engine.attach::<polling>("p").await.unwrap();
    run.result().await.unwrap();
    assert_eq!(calls.count(), 45, "no step was had twice");
    assert!(most < 130, "{most} records");
    let kept = kept(&run.history().await.unwrap(), "poll");
    // The last iteration had nothing but its condition.
    assert_eq!(kept.len(), 19);
}
