//! A store of either kind, and what is left of it when the process is killed.

use std::fs;

use tempfile::TempDir;
use workflow::{Engine, EngineBuilder, RedbStore, Timestamp, TokioClock};
use workflow_tests::World;

pub(crate) enum Either {
    Memory(World),
    Redb(TempDir, TokioClock),
}

impl Either {
    pub(crate) fn each() -> [Self; 2] {
        let clock = TokioClock::starting_at(Timestamp::from_millis(1_000_000));
        let folder = tempfile::tempdir().unwrap();
        [Self::Memory(World::new()), Self::Redb(folder, clock)]
    }

    /// An engine over it, to be given workflows. Of a file there is one at a time.
    pub(crate) fn engine(&self) -> EngineBuilder {
        match self {
            Self::Memory(world) => world.engine(),
            Self::Redb(folder, clock) => {
                let store = RedbStore::open(folder.path().join("runs.redb")).unwrap();
                Engine::builder().store(store).clock(*clock).code_id(1)
            }
        }
    }

    /// What a restart would find if the process were killed now.
    pub(crate) fn crash(&self) -> Self {
        match self {
            Self::Memory(world) => Self::Memory(world.crash()),
            Self::Redb(folder, clock) => {
                let copy = tempfile::tempdir().unwrap();
                for file in fs::read_dir(folder.path()).unwrap() {
                    let file = file.unwrap();
                    fs::copy(file.path(), copy.path().join(file.file_name())).unwrap();
                }
                Self::Redb(copy, *clock)
            }
        }
    }
}
