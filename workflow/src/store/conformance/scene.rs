//! What the laws are told with: batches in few words.

use std::sync::Arc;

use super::block_on;
use crate::replay::{
    Begun, Body, CodeId, Ended, Finished, Kind, Location, Payload, Record, RunId, RunKey, RunState,
    Timestamp,
};
use crate::store::{
    Append, Appended, InboxChange, Loaded, NewRun, RunPatch, RunRow, Store, StoreError,
};

/// One run as its owner knows it.
#[derive(Debug, Clone)]
pub(super) struct Owner {
    pub(super) run: RunKey,
    pub(super) epoch: u64,
    pub(super) number: u64,
    pub(super) seq: u64,
}

pub(super) const CODE: CodeId = CodeId(0xc0de);

pub(super) fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

pub(super) fn id(text: &str) -> RunId {
    RunId::new(text).expect("the laws use good ids")
}

pub(super) fn patch(state: RunState) -> RunPatch {
    RunPatch {
        state: Some(state),
        at: at(1_000),
        code: CODE,
        ..RunPatch::default()
    }
}

pub(super) fn value(location: &Location, text: &str) -> (Location, Body) {
    let ended = Ended {
        kind: Kind::Step,
        outcome: Ok(Payload::json(text.to_owned())),
        attempts: 1,
        started_at: at(900),
        input_hash: None,
    };
    (location.clone(), Body::Ended(ended))
}

pub(super) fn step(name: &str) -> (Location, Body) {
    value(&Location::root().site(name), "1")
}

pub(super) fn finished(finished: Finished) -> (Location, Body) {
    (Location::root(), Body::Finished(finished))
}

impl Owner {
    /// The batch that creates a run, and its owner.
    pub(super) fn create(store: &impl Store, name: &str) -> (Self, Append) {
        let mut owner = Self {
            run: store.allocate(),
            epoch: store.identity().boot,
            number: 0,
            seq: 0,
        };
        let begun = Body::Begun(Box::new(Begun {
            workflow: "checkout".to_owned(),
            input: Payload::json("{}"),
            input_hash: 1,
            seed: 2,
            generation: 0,
            parent: None,
            forked_from: None,
        }));
        let mut append = owner.batch(vec![(Location::root(), begun)], RunState::Running);
        append.create = Some(NewRun {
            id: id(name),
            workflow: "checkout".to_owned(),
            parent: None,
            detached: false,
            not_before: None,
            priority: 0,
        });
        (owner, append)
    }

    /// Creates a run.
    pub(super) fn start(store: &Arc<impl Store>, name: &str) -> Self {
        let (owner, append) = Self::create(&**store, name);
        assert_eq!(done(store, append), Appended::Applied);
        owner
    }

    /// The next batch, without writing it.
    pub(super) fn batch(&mut self, records: Vec<(Location, Body)>, state: RunState) -> Append {
        let expected_seq = self.seq;
        let records: Vec<_> = records
            .into_iter()
            .map(|(location, body)| {
                self.seq += 1;
                Record {
                    seq: self.seq,
                    at: at(1_000),
                    code: CODE,
                    location,
                    body,
                }
            })
            .collect();
        self.number += 1;
        Append {
            run: self.run,
            epoch: self.epoch,
            number: self.number,
            expected_seq,
            create: None,
            records,
            deletes: Vec::new(),
            patch: patch(state),
            inbox: InboxChange::default(),
            posts: Vec::new(),
        }
    }

    /// Writes the next batch.
    pub(super) fn write(
        &mut self,
        store: &Arc<impl Store>,
        records: Vec<(Location, Body)>,
        state: RunState,
    ) {
        let append = self.batch(records, state);
        assert_eq!(done(store, append), Appended::Applied);
    }

    /// Waits, until `wake_at` if there is one.
    pub(super) fn sleep(&mut self, store: &Arc<impl Store>, wake_at: Option<i64>) {
        let mut append = self.batch(Vec::new(), RunState::Waiting);
        append.patch.wake_at = Some(wake_at.map(at));
        assert_eq!(done(store, append), Appended::Applied);
    }
}

pub(super) fn tried(store: &Arc<impl Store>, append: Append) -> Result<Appended, StoreError> {
    block_on(store.append(append))
}

pub(super) fn done(store: &Arc<impl Store>, append: Append) -> Appended {
    tried(store, append).expect("the store works")
}

pub(super) fn row(store: &Arc<impl Store>, run: RunKey) -> RunRow {
    block_on(store.row(run))
        .expect("the store works")
        .expect("the run exists")
}

pub(super) fn loaded(store: &Arc<impl Store>, run: RunKey) -> Loaded {
    block_on(store.load(run))
        .expect("the store works")
        .expect("the run exists")
}

pub(super) fn names(loaded: &Loaded) -> Vec<String> {
    loaded
        .history
        .iter()
        .map(|record| record.location.to_string())
        .collect()
}

/// Chance that comes out the same every time.
#[derive(Debug, Clone)]
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}
