//! Batches in few words.

use workflow::replay::{
    Body, CodeId, Location, Payload, Record, RunId, RunKey, RunState, Timestamp,
};
use workflow::store::{
    Append, Appended, InboxChange, NewRun, RedbStore, RunPatch, Store, StoreError,
};

use crate::disk::Disk;

/// Who drives a run.
#[derive(Clone, Debug)]
pub struct Owner {
    /// The run.
    pub run: RunKey,
    /// In which epoch it owns it.
    pub epoch: u64,
    /// Of its last batch.
    pub number: u64,
    /// Of its last record.
    pub seq: u64,
}

/// A batch of one record.
pub fn append(owner: &mut Owner, body: Body, name: &str) -> Append {
    let record = Record {
        seq: owner.seq + 1,
        at: Timestamp::from_millis(1),
        code: CodeId(1),
        location: Location::root().site(name),
        body,
    };
    let expected_seq = owner.seq;
    owner.seq += 1;
    owner.number += 1;
    Append {
        run: owner.run,
        epoch: owner.epoch,
        number: owner.number,
        expected_seq,
        create: None,
        records: vec![record],
        deletes: Vec::new(),
        patch: RunPatch {
            state: Some(RunState::Running),
            code: CodeId(1),
            ..RunPatch::default()
        },
        inbox: InboxChange::default(),
        posts: Vec::new(),
    }
}

/// A batch with the outcome of a step.
pub fn step(owner: &mut Owner, name: &str) -> Append {
    append(owner, Body::Closed(Payload::json("1")), name)
}

/// The batch that creates a run, and who will own it.
///
/// # Panics
/// When `id` is none.
pub fn create(store: &RedbStore, id: &str) -> (Owner, Append) {
    let mut owner = Owner {
        run: store.allocate(),
        epoch: store.identity().boot,
        number: 0,
        seq: 0,
    };
    let mut append = step(&mut owner, "begin");
    append.create = Some(NewRun {
        id: RunId::new(id).expect("a valid id"),
        workflow: "w".to_owned(),
        parent: None,
        detached: false,
        not_before: None,
        priority: 0,
    });
    (owner, append)
}

/// Creates a run.
///
/// # Panics
/// When the store refuses.
pub async fn start(store: &RedbStore, id: &str) -> Owner {
    let (owner, append) = create(store, id);
    assert_eq!(
        store.append(append).await.expect("a store that works"),
        Appended::Applied
    );
    owner
}

/// Opens the store on a disk.
///
/// # Errors
/// As opening does.
pub fn open(disk: &Disk) -> Result<RedbStore, StoreError> {
    let disk = disk.clone();
    RedbStore::builder().open_backend(move |file| Ok(disk.backend(file)))
}

/// Waits, where there is no runtime.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    workflow::store::conformance::block_on(future)
}
