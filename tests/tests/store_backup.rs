//! Backups of a store that is in use, and what becomes of one that is put in the store's place.

#![expect(
    clippy::unwrap_used,
    reason = "what is not as it should be fails the test"
)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use workflow::replay::Payload;
use workflow::store::{RedbStore, RunFilter, Store, StoreError};
use workflow::{Engine, Failure, RunId, Timestamp, step, workflow};

use workflow_tests::scene::{append, block_on, create, start, step as record};

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn of(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn names(&self) -> Vec<String> {
        let names = fs::read_dir(self.0.path()).unwrap();
        let mut names: Vec<_> = names
            .map(|file| file.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

/// How far every run of a store is.
fn runs(store: &RedbStore) -> BTreeMap<String, u64> {
    let filter = RunFilter {
        limit: usize::MAX,
        ..RunFilter::default()
    };
    let page = block_on(store.list(&filter)).unwrap();
    let rows = page.rows.into_iter();
    rows.map(|row| (row.id.to_string(), row.last_seq)).collect()
}

/// A copy that is opened, and closed again.
fn opened(path: &Path) -> RedbStore {
    let log = PathBuf::from(format!("{}-log", path.display()));
    assert!(!log.exists(), "a copy has no log");
    RedbStore::open(path).unwrap()
}

#[test]
fn a_backup_under_load_has_all_that_was_acknowledged_before_it_and_whole_commits() {
    let place = Place::new();
    let store = Arc::new(
        RedbStore::builder()
            .fold_threshold(512)
            .open(place.of("s.redb"))
            .unwrap(),
    );
    for number in 0..300 {
        block_on(start(&store, &format!("old-{number}")));
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let acknowledged = Arc::new(Mutex::new(BTreeMap::<String, u64>::new()));
        let over = Arc::new(AtomicBool::new(false));
        let writers = (0..16).map(|number| {
            let (store, acknowledged, over) = (
                Arc::clone(&store),
                Arc::clone(&acknowledged),
                Arc::clone(&over),
            );
            tokio::spawn(async move {
                let id = format!("run-{number}");
                let mut owner = start(&store, &id).await;
                while !over.load(Ordering::Relaxed) {
                    let append = record(&mut owner, "s");
                    store.append(append).await.unwrap();
                    acknowledged.lock().unwrap().insert(id.clone(), owner.seq);
                }
            })
        });
        let writers: Vec<_> = writers.collect();
        for number in 0..4 {
            while acknowledged.lock().unwrap().len() < 16 {
                tokio::task::yield_now().await;
            }
            let before = acknowledged.lock().unwrap().clone();
            let copy = place.of(&format!("{number}.backup"));
            store.backup(&copy).await.unwrap();
            let after = acknowledged.lock().unwrap().clone();
            assert!(
                before.iter().any(|(id, seq)| after[id] > *seq),
                "nothing was committed meanwhile"
            );

            let copy = opened(&copy);
            let found = runs(&copy);
            assert_eq!(found.len(), 316);
            for (id, sure) in &before {
                let last = found[id];
                assert!(
                    last >= *sure,
                    "{id} is at {last}, and {sure} was acknowledged"
                );
                let run = copy.find(&RunId::new(id).unwrap()).await.unwrap().unwrap();
                let history = copy.load(run.key).await.unwrap().unwrap().history;
                let numbers: Vec<_> = history.iter().map(|record| record.seq).collect();
                assert_eq!(numbers, (1..=last).collect::<Vec<_>>(), "{id}");
            }
            start(&copy, "after").await;
        }
        over.store(true, Ordering::Relaxed);
        for writer in writers {
            writer.await.unwrap();
        }
    });
    block_on(store.close()).unwrap();
    let names = ["0.backup", "1.backup", "2.backup", "3.backup", "s.redb"];
    assert_eq!(place.names(), names);
}

#[step]
async fn note(key: &str) -> Result<(), workflow::PutError> {
    workflow::current_step().put(key, &7)?;
    Ok(())
}

#[workflow]
async fn noted(key: String) -> Result<(), Failure> {
    note(&key).await
}

#[tokio::test]
async fn a_backup_has_what_the_store_has() {
    let place = Place::new();
    let engine = Engine::builder().workflow(noted);
    let engine = engine.open(place.of("s.redb")).await.unwrap();
    engine.run("a", noted("of-a".to_owned())).await.unwrap();
    engine.shutdown(Duration::ZERO).await.unwrap();
    let store = Arc::new(RedbStore::open(place.of("s.redb")).unwrap());
    let shared: Arc<dyn Store> = Arc::<RedbStore>::clone(&store);
    let engine = Engine::builder().shared_store(shared).drives_nothing();
    let engine = engine.build().await.unwrap();
    let (mut owner, begin) = create(&store, "b");
    store.append(begin).await.unwrap();
    let mut sleeping = append(
        &mut owner,
        workflow::replay::Body::Closed(Payload::json("1")),
        "s",
    );
    sleeping.patch.wake_at = Some(Some(Timestamp::from_millis(9_000)));
    store.append(sleeping).await.unwrap();
    let channel: workflow::Channel<u32> = workflow::Channel::new("c");
    engine.send("later", &channel, &1).await.unwrap();
    engine.send("b", &channel, &2).await.unwrap();

    store.backup(place.of("s.backup")).await.unwrap();
    let copy = opened(&place.of("s.backup"));
    assert_eq!(copy.identity().id, store.identity().id);
    assert_eq!(runs(&copy), runs(&store));
    for run in [
        owner.run,
        store
            .find(&RunId::new("a").unwrap())
            .await
            .unwrap()
            .unwrap()
            .key,
    ] {
        let (mine, its) = (
            store.load(run).await.unwrap(),
            copy.load(run).await.unwrap(),
        );
        assert_eq!(format!("{mine:?}"), format!("{its:?}"));
        let (mine, its) = (store.inbox(run, 0, 9).await, copy.inbox(run, 0, 9).await);
        assert_eq!(format!("{mine:?}"), format!("{its:?}"));
    }
    assert_eq!(copy.inbox(owner.run, 0, 9).await.unwrap().len(), 1);
    let due =
        |store: Arc<RedbStore>| async move { store.due(None, Timestamp::MAX, 9).await.unwrap() };
    let copy = Arc::new(copy);
    assert_eq!(due(Arc::clone(&copy)).await, due(Arc::clone(&store)).await);
    assert_eq!(due(Arc::clone(&copy)).await.len(), 1);
    assert_eq!(
        copy.active(None, 9).await.unwrap(),
        store.active(None, 9).await.unwrap()
    );
    let values = copy.values("", None, 9).await.unwrap();
    assert_eq!(values.len(), 1);
    assert_eq!(
        format!("{values:?}"),
        format!("{:?}", store.values("", None, 9).await.unwrap())
    );
    // What came for a run that is started later is there, too.
    let later = start(&copy, "later").await;
    assert_eq!(copy.inbox(later.run, 0, 9).await.unwrap().len(), 1);
}

#[test]
fn a_backup_is_no_larger_than_the_store_and_overwrites_nothing() {
    let place = Place::new();
    let store = RedbStore::open(place.of("s.redb")).unwrap();
    let mut owners: Vec<_> = (0..400)
        .map(|number| block_on(start(&store, &format!("run-{number}"))))
        .collect();
    for _ in 0..8 {
        for owner in &mut owners {
            let name = format!("s{}", owner.seq);
            block_on(store.append(record(owner, &name))).unwrap();
        }
        store.fold().unwrap();
    }
    block_on(store.backup(place.of("s.backup"))).unwrap();
    store.compact().unwrap();
    let size = |name| fs::metadata(place.of(name)).unwrap().len();
    let (copy, compacted) = (size("s.backup"), size("s.redb"));
    assert!(copy <= compacted + compacted / 8, "{copy} of {compacted}");

    let written = fs::read(place.of("s.backup")).unwrap();
    for path in [
        place.of("s.backup"),
        place.of("s.redb"),
        place.0.path().to_owned(),
    ] {
        let error = block_on(store.backup(&path)).unwrap_err();
        assert!(
            matches!(&error, StoreError::Exists { path: told } if *told == path),
            "{error}"
        );
    }
    assert!(fs::read(place.of("s.backup")).unwrap() == written);
    let error = block_on(store.backup(place.of("nowhere/s.backup"))).unwrap_err();
    assert!(matches!(error, StoreError::Io { .. }), "{error}");
    block_on(store.close()).unwrap();
    let error = block_on(store.backup(place.of("late.backup"))).unwrap_err();
    assert!(matches!(error, StoreError::Closed), "{error}");
    assert_eq!(place.names(), ["s.backup", "s.redb"]);
}

#[test]
fn compacting_waits_for_a_backup_and_closing_ends_it() {
    let place = Place::new();
    let store = Arc::new(RedbStore::open(place.of("s.redb")).unwrap());
    for number in 0..300 {
        block_on(start(&store, &format!("run-{number}")));
    }
    let backup = |name: &str| {
        let (store, path) = (Arc::clone(&store), place.of(name));
        std::thread::spawn(move || block_on(store.backup(path)))
    };
    let begun = || place.names().iter().any(|name| name.ends_with("-part"));
    let first = backup("first.backup");
    while !begun() && !first.is_finished() {
        std::thread::yield_now();
    }
    store.compact().unwrap();
    first.join().unwrap().unwrap();
    assert_eq!(runs(&opened(&place.of("first.backup"))).len(), 300);

    let second = backup("second.backup");
    while !begun() && !second.is_finished() {
        std::thread::yield_now();
    }
    block_on(store.close()).unwrap();
    match second.join().unwrap() {
        Ok(()) => assert_eq!(runs(&opened(&place.of("second.backup"))).len(), 300),
        Err(error) => {
            assert!(matches!(error, StoreError::Closed), "{error}");
            assert!(!place.of("second.backup").exists());
        }
    }
    assert!(!begun(), "nothing is left of it: {:?}", place.names());
}

/// What a kill would leave, looked at again and again while a backup is made.
#[test]
fn what_is_of_a_backup_before_it_is_whole_is_never_a_store_of_less() {
    let place = Place::new();
    let aside = Place::new();
    let store = Arc::new(RedbStore::open(place.of("s.redb")).unwrap());
    let mut owners: Vec<_> = (0..600)
        .map(|number| block_on(start(&store, &format!("run-{number}"))))
        .collect();
    let big = Payload::json(format!("\"{}\"", "7".repeat(40 << 10)));
    for owner in &mut owners {
        let append = append(owner, workflow::replay::Body::Closed(big.clone()), "s");
        block_on(store.append(append)).unwrap();
    }
    let backup = std::thread::spawn({
        let (store, path) = (Arc::clone(&store), place.of("s.backup"));
        move || block_on(store.backup(path))
    });
    let mut seen = 0;
    while !backup.is_finished() {
        let part = place
            .names()
            .into_iter()
            .find(|name| name.ends_with("-part"));
        let Some(part) = part else { continue };
        let whole = place.of("s.backup").exists();
        let copied = fs::copy(place.of(&part), aside.of("cut"));
        if copied.is_err() || whole {
            continue;
        }
        seen += 1;
        if let Ok(cut) = RedbStore::open(aside.of("cut")) {
            // Nothing was written yet, or nothing is to be written any more.
            let runs = runs(&cut).len();
            let begun = cut.identity().id != store.identity().id && runs == 0;
            assert!(begun || runs == 600, "{runs} runs");
        }
        for name in aside.names() {
            fs::remove_file(aside.of(&name)).unwrap();
        }
    }
    backup.join().unwrap().unwrap();
    assert!(seen > 2, "looked at {seen} times");
    assert_eq!(runs(&opened(&place.of("s.backup"))).len(), 600);
}

#[test]
fn an_older_copy_in_the_place_of_a_store_that_was_not_closed_is_told_and_nothing_is_dropped() {
    let place = Place::new();
    let crashed = |name: &str, lay: &str| {
        fs::copy(place.of(name), place.of(lay)).unwrap();
        fs::copy(place.of("s.redb-log"), place.of(&format!("{lay}-log"))).unwrap();
    };
    let store = RedbStore::open(place.of("s.redb")).unwrap();
    block_on(start(&store, "one"));
    block_on(store.backup(place.of("s.backup"))).unwrap();
    // With nothing new there is nothing to be lost: everything in the log is in the copy.
    crashed("s.backup", "same.redb");
    assert_eq!(
        runs(&RedbStore::open(place.of("same.redb")).unwrap()).len(),
        1
    );

    block_on(start(&store, "two"));
    for folded in [false, true] {
        if folded {
            store.fold().unwrap();
        }
        let lay = format!("restored-{folded}.redb");
        let log = place.of(&format!("{lay}-log"));
        crashed("s.backup", &lay);
        let before = fs::read(&log).unwrap();
        let error = RedbStore::open(place.of(&lay)).unwrap_err();
        assert!(
            matches!(&error, StoreError::LogAhead { path, log: told } if *path == place.of(&lay) && *told == log),
            "{error}"
        );
        assert!(!error.is_retryable());
        let told = error.to_string();
        assert!(
            told.contains("move the log away") && told.contains("put the store's own file back"),
            "{told}"
        );
        assert!(before == fs::read(&log).unwrap(), "the log was changed");
        // One way out: what is lost was said.
        fs::rename(&log, place.of("gone")).unwrap();
        assert_eq!(runs(&RedbStore::open(place.of(&lay)).unwrap()).len(), 1);
        // The other.
        let own = format!("own-{folded}.redb");
        crashed("s.redb", &own);
        assert_eq!(runs(&RedbStore::open(place.of(&own)).unwrap()).len(), 2);
    }
    // Over one that was closed it is simply what is opened.
    block_on(store.close()).unwrap();
    fs::copy(place.of("s.backup"), place.of("s.redb")).unwrap();
    let store = RedbStore::open(place.of("s.redb")).unwrap();
    assert_eq!(runs(&store).len(), 1);
    block_on(start(&store, "three"));
}
