//! The laws of storage, for every store this library brings.

#![expect(
    clippy::unwrap_used,
    reason = "what is not as it should be fails the test"
)]

use std::sync::Arc;

use workflow::store::conformance::Harness;
use workflow::store::{MemoryStore, RedbStore, Store};

use workflow_tests::disk::{Disk, Left};

mod memory {
    use super::*;

    struct Memory;

    impl Harness for Memory {
        type Store = MemoryStore;

        fn fresh() -> (Self, Arc<MemoryStore>) {
            (Self, Arc::new(MemoryStore::new()))
        }

        fn reopen(&mut self, closed: Arc<MemoryStore>) -> Arc<MemoryStore> {
            Arc::new(closed.crash())
        }

        fn crash(&mut self, crashed: &Arc<MemoryStore>) -> Arc<MemoryStore> {
            Arc::new(crashed.crash())
        }
    }

    workflow::conformance!(Memory);
}

/// A crash is a power cut: nothing that was not synced is there after it.
struct PowerCut {
    disk: Disk,
}

fn open(disk: &Disk) -> Arc<RedbStore> {
    let disk = disk.clone();
    // Folds happen where the laws ask for them, and in the crowds.
    Arc::new(
        RedbStore::builder()
            .fold_threshold(500)
            .open_backend(move |file| Ok(disk.backend(file)))
            .unwrap(),
    )
}

impl Harness for PowerCut {
    type Store = RedbStore;

    fn fresh() -> (Self, Arc<RedbStore>) {
        let disk = Disk::default();
        let store = open(&disk);
        (Self { disk }, store)
    }

    fn reopen(&mut self, closed: Arc<RedbStore>) -> Arc<RedbStore> {
        drop(closed);
        open(&self.disk)
    }

    fn crash(&mut self, _: &Arc<RedbStore>) -> Arc<RedbStore> {
        self.disk = self.disk.after_power_cut(Left::Nothing);
        open(&self.disk)
    }

    fn rest(&mut self, store: &Arc<RedbStore>) {
        store.fold().unwrap();
    }
}

mod redb_after_a_power_cut {
    workflow::conformance!(super::PowerCut);
}

/// A real file, and a process that was killed: what was written is there, whether it was synced or not.
mod redb_in_a_file {
    use super::*;

    struct Files {
        directory: tempfile::TempDir,
        opening: u32,
    }

    impl Files {
        fn open(&self) -> Arc<RedbStore> {
            let path = self.directory.path().join(format!("{}.redb", self.opening));
            Arc::new(RedbStore::builder().fold_threshold(500).open(path).unwrap())
        }
    }

    impl Harness for Files {
        type Store = RedbStore;

        fn fresh() -> (Self, Arc<RedbStore>) {
            let place = Self {
                directory: tempfile::tempdir().unwrap(),
                opening: 0,
            };
            let store = place.open();
            (place, store)
        }

        fn reopen(&mut self, closed: Arc<RedbStore>) -> Arc<RedbStore> {
            drop(closed);
            self.open()
        }

        fn crash(&mut self, _: &Arc<RedbStore>) -> Arc<RedbStore> {
            let name = |opening, end| self.directory.path().join(format!("{opening}.redb{end}"));
            for end in ["", "-log"] {
                std::fs::copy(name(self.opening, end), name(self.opening + 1, end)).unwrap();
            }
            self.opening += 1;
            self.open()
        }

        fn rest(&mut self, store: &Arc<RedbStore>) {
            store.fold().unwrap();
        }
    }

    workflow::conformance!(Files);
}

#[test]
fn a_store_can_be_used_behind_a_pointer() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    assert_eq!(store.identity().boot, 1);
}
