//! What a hard kill leaves to be done by the next opening.

#![expect(
    clippy::unwrap_used,
    reason = "what is not as it should be fails the test"
)]

mod store_disk;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use redb::Database;
use store_disk::scene::{block_on, open, start};
use store_disk::{Disk, Left};
use workflow::store::Store;

/// Whether the file would have to be read through if the process were killed now.
fn needs_repair(disk: &Disk) -> bool {
    let killed = disk.after_power_cut(Left::All);
    let repaired = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&repaired);
    Database::builder()
        .set_repair_callback(move |_| flag.store(true, Ordering::SeqCst))
        .create_with_backend(killed.backend())
        .unwrap();
    repaired.load(Ordering::SeqCst)
}

// UA-66
#[test]
fn a_hard_kill_in_an_idle_moment_leaves_a_file_that_opens_without_a_repair() {
    let disk = Disk::default();
    let store = open(&disk).unwrap();
    for number in 0..20 {
        block_on(start(&store, &format!("run-{number}")));
    }
    let since = Instant::now();
    while needs_repair(&disk) {
        assert!(since.elapsed() < Duration::from_secs(30), "nobody folds");
        std::thread::yield_now();
    }
    let killed = disk.after_power_cut(Left::Nothing);
    let opened = open(&killed).unwrap();
    let active = block_on(opened.active(None, usize::MAX)).unwrap();
    assert_eq!(active.len(), 20);
}

// UA-66
#[test]
fn a_fold_and_an_opening_leave_a_file_that_opens_without_a_repair() {
    let disk = Disk::default();
    let store = open(&disk).unwrap();
    assert!(!needs_repair(&disk), "created");
    block_on(start(&store, "a"));
    store.fold().unwrap();
    assert!(!needs_repair(&disk), "folded");
    block_on(start(&store, "b"));
    let killed = disk.after_power_cut(Left::All);
    let opened = open(&killed).unwrap();
    assert!(!needs_repair(&killed), "opened after a kill");
    drop(opened);
}
