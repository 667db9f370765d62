//! What a hard kill leaves to be done by the next opening.

#![expect(
    clippy::unwrap_used,
    reason = "what is not as it should be fails the test"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use redb::Database;
use workflow::store::{Store, StoreFile};
use workflow_tests::disk::{Disk, Left};
use workflow_tests::scene::{block_on, open, start};

/// Whether the file would have to be read through if the process were killed now.
fn needs_repair(disk: &Disk) -> bool {
    let killed = disk.after_power_cut(Left::All);
    let repaired = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&repaired);
    Database::builder()
        .set_repair_callback(move |_| flag.store(true, Ordering::SeqCst))
        .create_with_backend(killed.backend(StoreFile::Tables))
        .unwrap();
    repaired.load(Ordering::SeqCst)
}

// UA-66
#[test]
fn a_hard_kill_at_any_operation_leaves_a_file_that_opens_without_a_repair() {
    let disk = Disk::default();
    let store = open(&disk).unwrap();
    assert!(!needs_repair(&disk), "created");
    let mut acknowledged = 0;
    for number in 0..20 {
        block_on(start(&store, &format!("run-{number}")));
        acknowledged += 1;
        if number % 7 == 6 {
            store.fold().unwrap();
        }
        assert!(!needs_repair(&disk), "after {number}");
        let killed = disk.after_power_cut(Left::All);
        let opened = open(&killed).unwrap();
        let active = block_on(opened.active(None, usize::MAX)).unwrap();
        assert_eq!(active.len(), acknowledged);
        assert!(!needs_repair(&killed), "opened after a kill");
    }
}
