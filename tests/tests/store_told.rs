//! What a store tells of its commits to who listens.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use workflow::store::{Committed, RedbStore, Store};

use workflow_tests::scene::{block_on, create, start};

#[test]
fn every_batch_is_in_one_commit_that_is_told_to_the_first_who_listens() {
    let directory = tempfile::tempdir().unwrap();
    let store = Arc::new(RedbStore::open(directory.path().join("s.redb")).unwrap());
    // Before anybody listens nothing is told.
    block_on(start(&store, "early"));
    let told = Arc::new(Mutex::new(Vec::<Committed>::new()));
    let heard = Arc::clone(&told);
    store.tell_commits(Arc::new(move |committed| {
        heard.lock().unwrap().push(committed);
    }));
    store.tell_commits(Arc::new(|_| unreachable!("another listens already")));
    block_on(start(&store, "alone"));
    assert_eq!(told.lock().unwrap().len(), 1);
    assert_eq!(told.lock().unwrap()[0].batches, 1);

    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .build()
        .unwrap();
    runtime.block_on(async {
        let appends: Vec<_> = (0..400)
            .map(|number| create(&store, &format!("run-{number}")).1)
            .collect();
        let tasks = appends.into_iter().map(|append| {
            let store = Arc::clone(&store);
            tokio::spawn(async move { store.append(append).await.unwrap() })
        });
        for task in tasks.collect::<Vec<_>>() {
            task.await.unwrap();
        }
    });
    let batches = || -> usize {
        let told = told.lock().unwrap();
        told.iter().map(|committed| committed.batches).sum()
    };
    // Of the last it is told after those who waited have gone on.
    while batches() < 401 {
        std::thread::yield_now();
    }
    block_on(store.close()).unwrap();
    assert_eq!(batches(), 401);
    let told = told.lock().unwrap();
    assert!(told.len() < 401, "commits are grouped: {}", told.len());
    assert!(told.iter().all(|committed| committed.took > Duration::ZERO));
}

/// A listener is not the store's code.
#[test]
fn a_listener_that_panics_or_asks_the_store_harms_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let store = Arc::new(RedbStore::open(directory.path().join("s.redb")).unwrap());
    let asked = Arc::downgrade(&store);
    store.tell_commits(Arc::new(move |_| {
        // No lock is held meanwhile.
        asked.upgrade().unwrap().fold().unwrap();
        panic!("a recorder that is broken");
    }));
    for id in ["a", "b", "c"] {
        block_on(start(&store, id));
    }
    block_on(store.close()).unwrap();
}
