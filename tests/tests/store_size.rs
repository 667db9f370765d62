//! How large the file is after much was written and deleted, and how long steps take meanwhile.

#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "what is not as it should be fails the test; what is measured is told"
)]

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use workflow::replay::{Body, Finished, Payload, RunState};
use workflow::store::encoding::{encode_record, encode_row};
use workflow::store::{Append, Deleted, Deletion, RedbStore, RunFilter, Store};
use workflow::{Engine, Failure, Retention, workflow};

use workflow_tests::disk::{Disk, Fault, Left};
use workflow_tests::scene::{Owner, append, block_on, create, open, start, step};

const PAYLOAD: usize = 100;
const WAVE: usize = 1_000;
const KEPT: Duration = Duration::from_secs(100_001);

/// Writes all of these, many at once.
fn write(store: &Arc<RedbStore>, appends: Vec<Append>) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .build()
        .unwrap();
    runtime.block_on(async {
        let mut left = appends.into_iter();
        loop {
            let group: Vec<_> = left.by_ref().take(2_000).collect();
            if group.is_empty() {
                break;
            }
            let tasks = group.into_iter().map(|append| {
                let store = Arc::clone(store);
                tokio::spawn(async move { store.append(append).await.unwrap() })
            });
            for task in tasks.collect::<Vec<_>>() {
                task.await.unwrap();
            }
        }
    });
}

/// So many runs of so many steps, written in rounds, as runs that are under way at the same time write them; all have ended.
fn churn(store: &Arc<RedbStore>, runs: usize, steps: usize, name: &str) -> Vec<Owner> {
    let value = Payload::json("7".repeat(PAYLOAD));
    let (mut owners, begins): (Vec<Owner>, Vec<Append>) = (0..runs)
        .map(|run| create(store, &format!("{name}-{run}")))
        .unzip();
    write(store, begins);
    for round in 0..steps {
        let step = |owner: &mut Owner| {
            append(owner, Body::Closed(value.clone()), &format!("step-{round}"))
        };
        let appends = owners.iter_mut().map(step).collect();
        write(store, appends);
    }
    let ends = owners.iter_mut().map(|owner| {
        let mut end = append(
            owner,
            Body::Finished(Finished::Completed(value.clone())),
            "end",
        );
        end.patch.state = Some(RunState::Completed);
        end
    });
    let ends = ends.collect();
    write(store, ends);
    owners
}

fn delete(store: &RedbStore, owners: &[Owner]) {
    for some in owners.chunks(64) {
        let deletions = some.iter().map(|owner| Deletion {
            run: owner.run,
            expected_seq: owner.seq,
            requests: Vec::new(),
        });
        let deleted = block_on(store.delete(deletions.collect())).unwrap();
        assert!(deleted.iter().all(|answer| *answer == Deleted::Deleted));
    }
}

/// What the store holds, as it is written.
fn live(store: &RedbStore) -> u64 {
    let mut bytes = Vec::new();
    let mut size = 0;
    let filter = RunFilter {
        limit: usize::MAX - 1,
        ..RunFilter::default()
    };
    for row in block_on(store.list(&filter)).unwrap().rows {
        encode_row(&row, &mut bytes);
        for record in block_on(store.load(row.key)).unwrap().unwrap().history {
            encode_record(&record, &mut bytes);
        }
        size += bytes.len() as u64;
        bytes.clear();
    }
    size
}

fn size(path: &Path) -> u64 {
    std::fs::metadata(path).unwrap().len()
}

/// Of `runs` one in `keep` stays.
fn comes_back(runs: usize, steps: usize, keep: usize) {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("store.redb");
    let store = Arc::new(RedbStore::open(&path).unwrap());
    // As an engine does that has a thousand under way.
    let waves = runs.div_ceil(WAVE);
    let wave = |wave: usize| {
        churn(
            &store,
            WAVE.min(runs - wave * WAVE),
            steps,
            &format!("wave-{wave}"),
        )
    };
    let owners: Vec<_> = (0..waves).flat_map(wave).collect();
    store.fold().unwrap();
    let full = (size(&path), live(&store));
    let (kept, gone): (Vec<_>, Vec<_>) = owners
        .into_iter()
        .enumerate()
        .partition(|(at, _)| at % keep == 0);
    let gone: Vec<_> = gone.into_iter().map(|(_, owner)| owner).collect();
    delete(&store, &gone);
    store.fold().unwrap();
    let deleted = size(&path);
    let begun = Instant::now();
    store.compact().unwrap();
    let took = begun.elapsed();
    let (file, live) = (size(&path), live(&store));
    eprintln!(
        "{runs} runs of {steps} steps: {} KiB of {} KiB live; deleted to {} KiB live: {} KiB, compacted {} KiB in {took:?}",
        full.0 >> 10,
        full.1 >> 10,
        live >> 10,
        deleted >> 10,
        file >> 10
    );
    assert!(file <= 3 * live, "{file} bytes for {live}");
    // It goes on, and is whole after a restart.
    churn(&store, 10, 2, "later");
    block_on(store.close()).unwrap();
    drop(store);
    let store = RedbStore::open(&path).unwrap();
    let page = block_on(store.list(&RunFilter {
        limit: usize::MAX - 1,
        ..RunFilter::default()
    }))
    .unwrap();
    assert_eq!(page.rows.len(), kept.len() + 10);
}

// UA-67
#[test]
fn the_file_gives_its_room_back() {
    comes_back(1_000, 40, 10);
}

// UA-67
#[test]
#[ignore = "writes a million steps: minutes"]
fn the_file_gives_its_room_back_after_a_million_steps() {
    comes_back(10_000, 100, 10);
}

/// A few runs in many chunks each, half of them deleted again: what a compaction has to do.
fn scattered(store: &RedbStore) -> Vec<Owner> {
    let value = Payload::json("7".repeat(3_000));
    let mut owners: Vec<_> = (0..8)
        .map(|run| block_on(start(store, &format!("run-{run}"))))
        .collect();
    for _ in 0..4 {
        for owner in &mut owners {
            let step = append(owner, Body::Closed(value.clone()), "step");
            block_on(store.append(step)).unwrap();
        }
        store.fold().unwrap();
    }
    for owner in &mut owners[4..] {
        let mut end = step(owner, "end");
        end.patch.state = Some(RunState::Cancelled);
        block_on(store.append(end)).unwrap();
    }
    let gone = owners.split_off(4);
    delete(store, &gone);
    store.fold().unwrap();
    owners
}

fn assert_whole(store: &RedbStore, owners: &[Owner], when: &str) {
    let page = block_on(store.list(&RunFilter::default())).unwrap();
    assert_eq!(page.rows.len(), owners.len(), "{when}");
    for owner in owners {
        let history = block_on(store.load(owner.run)).unwrap().unwrap().history;
        let numbers: Vec<_> = history.iter().map(|record| record.seq).collect();
        assert_eq!(numbers, (1..=owner.seq).collect::<Vec<_>>(), "{when}");
    }
}

// UA-67
#[test]
fn a_power_cut_in_a_compaction_loses_nothing() {
    let disk = Disk::default();
    let store = open(&disk).unwrap();
    let owners = scattered(&store);
    let before = disk.done();
    store.compact().unwrap();
    let operations = disk.done() - before;
    assert_whole(&store, &owners, "compacted");
    drop(store);
    assert!(operations > 20, "it writes: {operations}");
    for cut in 0..operations {
        let disk = Disk::default();
        let store = open(&disk).unwrap();
        let owners = scattered(&store);
        disk.fault(cut, Fault::PowerCut);
        drop(store.compact());
        for left in [Left::Nothing, Left::All, Left::Some(7 * cut + 3)] {
            let when = format!("cut at {cut}, {left:?}");
            let copy = disk.after_power_cut(left);
            let store = open(&copy).unwrap_or_else(|error| panic!("{when}: {error}"));
            assert_whole(&store, &owners, &when);
        }
    }
}

#[test]
fn a_compaction_whose_write_fails_leaves_the_store_working() {
    for at in 0..40 {
        let disk = Disk::default();
        let store = open(&disk).unwrap();
        let mut owners = scattered(&store);
        disk.fault(at, Fault::Hiccup);
        drop(store.compact());
        let when = format!("a hiccup at {at}");
        assert_whole(&store, &owners, &when);
        for owner in &mut owners {
            let append = step(owner, "later");
            block_on(store.append(append)).unwrap();
        }
        store.compact().unwrap();
        assert_whole(&store, &owners, &when);
    }
}

#[test]
fn who_reads_and_commits_during_a_compaction_waits_and_is_served() {
    let place = tempfile::tempdir().unwrap();
    let store = RedbStore::open(place.path().join("store.redb")).unwrap();
    let owners = scattered(&store);
    std::thread::scope(|scope| {
        for mut owner in owners {
            let store = &store;
            scope.spawn(move || {
                for turn in 0..50 {
                    let append = step(&mut owner, "beside");
                    block_on(store.append(append)).unwrap();
                    let history = block_on(store.load(owner.run)).unwrap().unwrap().history;
                    assert_eq!(history.len() as u64, owner.seq, "turn {turn}");
                }
            });
        }
        for _ in 0..5 {
            store.compact().unwrap();
        }
    });
    block_on(store.close()).unwrap();
    assert!(store.compact().is_err(), "it is closed");
}

#[workflow::step]
async fn nothing() -> u32 {
    1
}

#[workflow]
async fn brief() -> Result<u32, Failure> {
    nothing().await
}

/// How long each of these runs took, in order; until `over` says so, and as many as asked at least.
async fn laps(engine: &Engine, name: &str, least: usize, over: impl Fn() -> bool) -> Vec<Duration> {
    let mut laps = Vec::new();
    while laps.len() < least || !over() {
        let begun = Instant::now();
        let id = format!("{name}-{}", laps.len());
        engine.run(id, brief()).await.unwrap();
        laps.push(begun.elapsed());
    }
    laps.sort();
    laps
}

/// The latency of steps beside nothing, and beside the deletion of so many runs: the longest but one in a hundred.
fn swept_beside(runs: usize, least: usize) -> (Duration, Duration) {
    let place = tempfile::tempdir().unwrap();
    let store = Arc::new(RedbStore::open(place.path().join("store.redb")).unwrap());
    drop(churn(&store, runs, 1, "old"));
    store.fold().unwrap();
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).enable_all().build().unwrap();
    let slow = |laps: &[Duration]| laps[laps.len() * 99 / 100];
    runtime.block_on(async {
        let builder = || {
            let store = Arc::<RedbStore>::clone(&store);
            Engine::builder().workflow(brief).shared_store(store)
        };
        let engine = builder().build().await.unwrap();
        let before = laps(&engine, "before", least, || true).await;
        drop(engine);
        // Those of before ended in 1970; those of now are kept.
        let builder = builder().retention(Retention::all(KEPT));
        let engine = builder.build().await.unwrap();
        let begun = Instant::now();
        let sweep = tokio::spawn({
            let engine = engine.clone();
            async move { engine.gc().await.unwrap() }
        });
        let beside = laps(&engine, "beside", least, || sweep.is_finished()).await;
        sweep.await.unwrap();
        let took = begun.elapsed();
        let filter = RunFilter {
            limit: usize::MAX - 1,
            ..RunFilter::default()
        };
        let left = store.list(&filter).await.unwrap().rows.len();
        assert_eq!(left, before.len() + beside.len());
        let (alone, with) = (slow(&before), slow(&beside));
        let middle = |laps: &[Duration]| laps[laps.len() / 2];
        eprintln!(
            "{runs} runs deleted in {took:?} beside {} steps; alone {:?}, p99 {alone:?}; beside {:?}, p99 {with:?}",
            beside.len(), middle(&before), middle(&beside)
        );
        engine.shutdown(Duration::ZERO).await.unwrap();
        (alone, with)
    })
}

// UA-59
#[test]
fn steps_go_on_while_old_runs_are_deleted() {
    swept_beside(3_000, 200);
}

// UA-59
#[test]
#[ignore = "deletes a million runs: minutes"]
fn the_latency_of_steps_does_not_double_while_a_million_runs_are_deleted() {
    let (alone, with) = swept_beside(1_000_000, 5_000);
    assert!(with <= alone * 2, "{with:?} beside, {alone:?} alone");
}
