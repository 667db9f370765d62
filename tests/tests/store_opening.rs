//! Opening a file: what it may be instead of a store, and that it is left alone then.

#![expect(
    clippy::unwrap_used,
    reason = "what is not as it should be fails the test"
)]

use std::fs;

use redb::{Database, TableDefinition};
use workflow::store::{RedbStore, Store, StoreError, StoreFile};

use workflow_tests::disk::{Disk, Fault, Left};
use workflow_tests::scene::{block_on, start};

/// Opens a file that cannot be opened, and sees that it was left as it was.
fn refused(path: &std::path::Path) -> StoreError {
    let before = fs::read(path).ok();
    let error = RedbStore::open(path).unwrap_err();
    assert_eq!(fs::read(path).ok(), before, "the file was changed");
    assert!(!error.is_retryable());
    error
}

fn filled(path: &std::path::Path) {
    let store = RedbStore::open(path).unwrap();
    for number in 0..200 {
        block_on(start(&store, &format!("run-{number}")));
    }
    block_on(store.close()).unwrap();
}

#[test]
fn a_file_that_another_store_has_open_is_locked() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s.redb");
    let store = RedbStore::open(&path).unwrap();
    let owner = block_on(start(&store, "a"));
    assert!(
        matches!(RedbStore::open(&path), Err(StoreError::Locked { path: locked }) if locked == path)
    );
    assert!(
        block_on(store.row(owner.run)).unwrap().is_some(),
        "the first is not disturbed"
    );
    drop(store);
    assert!(
        RedbStore::open(&path).is_ok(),
        "the file can be opened at once after the store is gone"
    );
}

#[test]
fn a_file_of_a_newer_format_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s.redb");
    filled(&path);
    let database = Database::open(&path).unwrap();
    let txn = database.begin_write().unwrap();
    txn.open_table(TableDefinition::<&str, u128>::new("workflow.meta"))
        .unwrap()
        .insert("format", 9)
        .unwrap();
    txn.commit().unwrap();
    drop(database);
    let error = refused(&path);
    assert!(
        matches!(
            error,
            StoreError::NewerFormat {
                found: 9,
                supported: 2,
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn a_damaged_file_is_told_so() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s.redb");
    filled(&path);
    let whole = fs::read(&path).unwrap();
    for (start, end) in [(4096, whole.len()), (64, 320)] {
        let mut bytes = whole.clone();
        bytes[start..end].fill(0x5a);
        fs::write(&path, &bytes).unwrap();
        let error = refused(&path);
        assert!(
            matches!(error, StoreError::Damaged { .. }),
            "{start}: {error}"
        );
    }
    for len in [5, 100, 4096, whole.len() / 2] {
        fs::write(&path, &whole[..len]).unwrap();
        let error = refused(&path);
        assert!(
            matches!(error, StoreError::Damaged { .. }),
            "{len}: {error}"
        );
    }
    fs::write(&path, &whole).unwrap();
    assert!(RedbStore::open(&path).is_ok());
}

#[test]
fn a_damaged_file_that_was_not_closed_is_told_so_too() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s.redb");
    filled(&path);
    let store = RedbStore::open(&path).unwrap();
    block_on(start(&store, "open"));
    let killed = directory.path().join("killed.redb");
    let mut bytes = fs::read(&path).unwrap();
    let log = fs::read(directory.path().join("s.redb-log")).unwrap();
    let killed_log = directory.path().join("killed.redb-log");
    fs::write(&killed, &bytes).unwrap();
    fs::write(&killed_log, &log).unwrap();
    assert!(RedbStore::open(&killed).is_ok(), "without damage it opens");
    bytes[4096..].fill(0x5a);
    fs::write(&killed, &bytes).unwrap();
    fs::write(&killed_log, &log).unwrap();
    let error = refused(&killed);
    assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
}

#[test]
fn what_is_something_else_is_not_a_store() {
    let directory = tempfile::tempdir().unwrap();
    let text = directory.path().join("notes.txt");
    fs::write(
        &text,
        "these are my notes, and no store at all\n".repeat(300),
    )
    .unwrap();
    let error = refused(&text);
    assert!(matches!(error, StoreError::NotAStore { .. }), "{error}");

    let other = directory.path().join("other.redb");
    let database = Database::create(&other).unwrap();
    let txn = database.begin_write().unwrap();
    txn.open_table(TableDefinition::<u64, u64>::new("accounts"))
        .unwrap()
        .insert(1, 1)
        .unwrap();
    txn.commit().unwrap();
    drop(database);
    let error = refused(&other);
    assert!(matches!(error, StoreError::NotAStore { .. }), "{error}");
    assert!(
        error.to_string().contains("accounts") && error.to_string().contains("other.redb"),
        "{error}"
    );

    let error = RedbStore::open(directory.path()).unwrap_err();
    assert!(matches!(error, StoreError::NotAStore { .. }), "{error}");
}

#[test]
fn a_path_that_cannot_be_made_is_an_error_of_the_system() {
    let directory = tempfile::tempdir().unwrap();
    let error = RedbStore::open(directory.path().join("missing/s.redb")).unwrap_err();
    assert!(matches!(error, StoreError::Io { .. }), "{error}");
}

#[test]
fn an_empty_file_and_one_whose_creation_was_cut_off_become_stores() {
    let directory = tempfile::tempdir().unwrap();
    for len in [0, 1 << 20] {
        let path = directory.path().join(format!("{len}.redb"));
        fs::write(&path, vec![0; len]).unwrap();
        let store = RedbStore::open(&path).unwrap();
        assert_eq!(store.identity().boot, 1);
    }
}

#[test]
fn a_file_whose_creation_is_cut_off_anywhere_becomes_a_store() {
    let directory = tempfile::tempdir().unwrap();
    let mut created = false;
    let mut cut = 0;
    while !created {
        let disk = Disk::default();
        disk.fault(cut, Fault::PowerCut);
        let backend = disk.clone();
        let opened = RedbStore::builder().open_backend(move |file| Ok(backend.backend(file)));
        created = opened.is_ok();
        for (turn, left) in [Left::Nothing, Left::All, Left::Some(cut + 1)]
            .into_iter()
            .enumerate()
        {
            let path = directory.path().join(format!("{cut}-{turn}.redb"));
            let left_there = disk.after_power_cut(left);
            fs::write(&path, left_there.bytes(StoreFile::Tables)).unwrap();
            let log = directory.path().join(format!("{cut}-{turn}.redb-log"));
            fs::write(log, left_there.bytes(StoreFile::Log)).unwrap();
            let store = RedbStore::open(&path);
            let store = store.unwrap_or_else(|error| panic!("cut at {cut}, {left:?}: {error}"));
            block_on(start(&store, "a"));
        }
        cut += 1;
    }
    assert!(cut > 5, "{cut} operations do not make a store");
}

#[test]
fn a_file_that_only_begins_like_a_creation_that_was_cut_off_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s.redb");
    let disk = Disk::default();
    // After the length, the header without its first bytes, and their sync.
    disk.fault(2, Fault::PowerCut);
    let backend = disk.clone();
    let opened = RedbStore::builder().open_backend(move |file| Ok(backend.backend(file)));
    assert!(opened.is_err());
    let mut bytes = disk.bytes(StoreFile::Tables);
    assert!(bytes[..9].iter().all(|byte| *byte == 0) && bytes.iter().any(|byte| *byte != 0));
    let last = bytes.len() - 1;
    for at in [9, 100, last] {
        bytes[at] ^= 0x55;
        fs::write(&path, &bytes).unwrap();
        let error = refused(&path);
        assert!(matches!(error, StoreError::NotAStore { .. }), "{error}");
        bytes[at] ^= 0x55;
    }
}

#[test]
fn every_opening_is_counted_and_the_id_stays() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s.redb");
    let identities: Vec<_> = (0..3)
        .map(|_| RedbStore::open(&path).unwrap().identity())
        .collect();
    assert!(
        identities
            .iter()
            .all(|identity| identity.id == identities[0].id)
    );
    assert!(identities.iter().map(|identity| identity.boot).eq(1..=3));
}
