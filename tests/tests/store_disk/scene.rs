//! Batches in few words.

use workflow::replay::{
    Body, CodeId, Location, Payload, Record, RunId, RunKey, RunState, Timestamp,
};
use workflow::store::{
    Append, Appended, InboxChange, NewRun, RedbStore, RunPatch, Store, StoreError,
};

use super::Disk;

#[derive(Clone, Debug)]
pub(crate) struct Owner {
    pub(crate) run: RunKey,
    pub(crate) epoch: u64,
    pub(crate) number: u64,
    pub(crate) seq: u64,
}

pub(crate) fn append(owner: &mut Owner, body: Body, name: &str) -> Append {
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

pub(crate) fn step(owner: &mut Owner, name: &str) -> Append {
    append(owner, Body::Closed(Payload::json("1")), name)
}

pub(crate) fn create(store: &RedbStore, id: &str) -> (Owner, Append) {
    let mut owner = Owner {
        run: store.allocate(),
        epoch: store.identity().boot,
        number: 0,
        seq: 0,
    };
    let mut append = step(&mut owner, "begin");
    append.create = Some(NewRun {
        id: RunId::new(id).unwrap(),
        workflow: "w".to_owned(),
        parent: None,
        detached: false,
    });
    (owner, append)
}

pub(crate) async fn start(store: &RedbStore, id: &str) -> Owner {
    let (owner, append) = create(store, id);
    assert_eq!(store.append(append).await.unwrap(), Appended::Applied);
    owner
}

pub(crate) fn open(disk: &Disk) -> Result<RedbStore, StoreError> {
    let disk = disk.clone();
    RedbStore::builder().open_backend(move |file| Ok(disk.backend(file)))
}

pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    workflow::store::conformance::block_on(future)
}
