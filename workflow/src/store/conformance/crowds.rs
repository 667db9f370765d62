//! What holds when many write at once, and when somebody stops waiting.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};
use std::thread;

use super::scene::{Owner, loaded, names, step, value};
use super::{Harness, block_on};
use crate::replay::{Location, RunState};
use crate::store::{Appended, BoxFuture, Store, StoreError};

type Appending<'a> = BoxFuture<'a, Result<Appended, StoreError>>;

fn poll(appending: &mut Appending<'_>) -> Poll<Result<Appended, StoreError>> {
    Pin::new(appending).poll(&mut Context::from_waker(Waker::noop()))
}

/// RVT-STORE-05, RVT-STORE-06: nothing of a crowd is lost, also when it does not fit in one commit.
pub fn a_thousand_appends_at_once_are_all_kept<H: Harness>() {
    const THREADS: u64 = 16;
    const RUNS: u64 = 63;
    let (mut place, store) = H::fresh();
    let threads: Vec<_> = (0..THREADS)
        .map(|thread| {
            let store = Arc::clone(&store);
            thread::spawn(move || {
                let mut owners: Vec<_> = (0..RUNS)
                    .map(|run| Owner::start(&store, &format!("run-{thread}-{run}")))
                    .collect();
                let big = format!("\"{}\"", "x".repeat(2_000));
                let appends: Vec<_> = owners
                    .iter_mut()
                    .map(|owner| {
                        owner.batch(
                            vec![value(&Location::root().site("s"), &big)],
                            RunState::Running,
                        )
                    })
                    .collect();
                let mut waiting: Vec<_> = appends
                    .into_iter()
                    .map(|append| store.append(append))
                    .collect();
                let early: Vec<_> = waiting.iter_mut().map(poll).collect();
                for (early, late) in early.into_iter().zip(waiting) {
                    let answer = match early {
                        Poll::Ready(answer) => answer,
                        Poll::Pending => block_on(late),
                    };
                    assert_eq!(answer.unwrap(), Appended::Applied);
                }
                owners
            })
        })
        .collect();
    let owners: Vec<_> = threads
        .into_iter()
        .flat_map(|thread| thread.join().unwrap())
        .collect();
    let store = place.crash(&store);
    assert_eq!(owners.len() as u64, THREADS * RUNS);
    for owner in &owners {
        assert_eq!(names(&loaded(&store, owner.run)), ["", "s"]);
    }
    assert_eq!(
        block_on(store.active(None, usize::MAX)).unwrap().len(),
        owners.len()
    );
}

/// Rule 7.
pub fn appends_of_one_run_keep_their_order<H: Harness>() {
    let (_place, store) = H::fresh();
    let mut owner = Owner::start(&store, "a");
    let steps: Vec<_> = (0..50).map(|number| format!("s{number}")).collect();
    let appends: Vec<_> = steps
        .iter()
        .map(|name| owner.batch(vec![step(name)], RunState::Running))
        .collect();
    let mut waiting: Vec<_> = appends
        .into_iter()
        .map(|append| store.append(append))
        .collect();
    let early: Vec<_> = waiting.iter_mut().map(poll).collect();
    for (early, late) in early.into_iter().zip(waiting) {
        let answer = match early {
            Poll::Ready(answer) => answer,
            Poll::Pending => block_on(late),
        };
        assert_eq!(answer.unwrap(), Appended::Applied);
    }
    let history = names(&loaded(&store, owner.run));
    assert!(history.iter().skip(1).eq(&steps), "{history:?}");
}

/// Rule 6: under a crowd, appends dropped after their first poll are written whole or not at all, and nobody waits for ever.
pub fn a_dropped_append_strands_nobody<H: Harness>() {
    let (_place, store) = H::fresh();
    let threads: Vec<_> = (0..8)
        .map(|thread| {
            let store = Arc::clone(&store);
            thread::spawn(move || {
                for turn in 0..25 {
                    let (owner, create) =
                        Owner::create(&*store, &format!("dropped-{thread}-{turn}"));
                    let mut dropped = store.append(create);
                    drop(poll(&mut dropped));
                    drop(dropped);
                    let mut kept = Owner::start(&store, &format!("kept-{thread}-{turn}"));
                    kept.write(&store, vec![step("s"), step("t")], RunState::Running);
                    assert_eq!(names(&loaded(&store, kept.run)), ["", "s", "t"]);
                    if let Some(loaded) = block_on(store.load(owner.run)).unwrap() {
                        assert_eq!(names(&loaded), [""]);
                    }
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
}

/// Rule 6, the hard case: a future that is kept but never polled again, and so never takes what it is offered.
pub fn an_abandoned_append_strands_nobody<H: Harness>() {
    let (_place, store) = H::fresh();
    let threads: Vec<_> = (0..8)
        .map(|thread| {
            let store = Arc::clone(&store);
            thread::spawn(move || {
                let mut abandoned = Vec::new();
                for turn in 0..25 {
                    let (_, create) = Owner::create(&*store, &format!("abandoned-{thread}-{turn}"));
                    let mut appending = store.append(create);
                    let _ = poll(&mut appending);
                    abandoned.push(appending);
                    Owner::start(&store, &format!("kept-{thread}-{turn}"));
                }
                abandoned.len()
            })
        })
        .collect();
    let abandoned: usize = threads
        .into_iter()
        .map(|thread| thread.join().unwrap())
        .sum();
    assert_eq!(abandoned, 200);
    Owner::start(&store, "last");
}

/// Rules 2 and 8: while batches of two records are written, and pruned, every load sees pairs, and its row agrees.
pub fn a_reader_sees_only_whole_batches<H: Harness>() {
    let (mut place, store) = H::fresh();
    let mut owner = Owner::start(&store, "a");
    let stop = Arc::new(AtomicBool::new(false));
    let readers: Vec<_> = (0..2)
        .map(|_| {
            let (store, stop, run) = (Arc::clone(&store), Arc::clone(&stop), owner.run);
            thread::spawn(move || {
                let mut reads = 0_u64;
                let mut newest = 0;
                while !stop.load(Ordering::Relaxed) || reads == 0 {
                    let loaded = loaded(&store, run);
                    assert_eq!(
                        loaded.history.last().map(|record| record.seq),
                        Some(loaded.row.last_seq)
                    );
                    assert_eq!(loaded.history.len() % 2, 1, "{:?}", names(&loaded));
                    assert!(loaded.row.last_seq >= newest, "a later read saw less");
                    assert!(loaded.history.is_sorted_by_key(|record| record.seq));
                    newest = loaded.row.last_seq;
                    reads += 1;
                }
            })
        })
        .collect();
    let iteration = |number| Location::root().site("i").iteration(number);
    for number in 0..400_u64 {
        let scope = iteration(number);
        let records = vec![value(&scope.site("s"), "1"), value(&scope.site("t"), "2")];
        let mut append = owner.batch(records, RunState::Running);
        append.deletes = number.checked_sub(20).map(iteration).into_iter().collect();
        assert_eq!(block_on(store.append(append)).unwrap(), Appended::Applied);
        if number % 100 == 50 {
            place.rest(&store);
        }
    }
    stop.store(true, Ordering::Relaxed);
    for reader in readers {
        reader.join().unwrap();
    }
    assert_eq!(loaded(&store, owner.run).history.len(), 41);
}
