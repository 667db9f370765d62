//! The store of a process that ends at one of its writes.

use std::fmt;
use std::sync::Arc;

use super::event::{Cut, Told};
use super::recorder::Recorder;
use crate::replay::{Location, Message, NewMessage, Payload, Record, RunId, RunKey, Timestamp};
use crate::store::{
    Answer, Append, Appended, BoxFuture, DeadLetter, Deleted, Deletion, Delivery, Identity, Loaded,
    MemoryStore, Page, Rewrite, RunFilter, RunRow, Store, StoreError,
};

/// A store in memory whose process may end at each write, before it and after it. From then on it answers nobody.
pub(super) struct CuttingStore {
    below: MemoryStore,
    recorder: Arc<Recorder>,
}

/// The same for all, so that what is derived from it comes out the same.
const ID: u128 = 0x0063_7261_7368_2065_7665_7279_7768_6572;

type Asked<'a, T> = BoxFuture<'a, Result<T, StoreError>>;

impl CuttingStore {
    pub(super) fn new(below: MemoryStore, recorder: Arc<Recorder>) -> Self {
        Self { below, recorder }
    }

    /// What the next process finds.
    pub(super) fn left(&self) -> MemoryStore {
        self.below.crash()
    }

    fn reads<'a, T: Send + 'a>(&'a self, read: Asked<'a, T>) -> Asked<'a, T> {
        Box::pin(async move {
            self.recorder.alive().await;
            read.await
        })
    }

    /// Writes, unless the process ends before that; and ends it after that, if it does.
    fn writes<'a, T: Send + 'a>(
        &'a self,
        run: Option<RunKey>,
        told: Told,
        write: Asked<'a, T>,
        written: impl FnOnce() + Send + 'a,
    ) -> Asked<'a, T> {
        Box::pin(async move {
            self.recorder.alive().await;
            let cut = self.recorder.write(run, told);
            if cut == Some(Cut::Before) {
                self.recorder.die().await;
            }
            let answer = write.await;
            if answer.is_ok() {
                written();
            }
            if cut == Some(Cut::After) {
                self.recorder.die().await;
            }
            answer
        })
    }
}

fn told(what: impl Into<String>) -> Told {
    Told {
        of: None,
        places: Vec::<Location>::new(),
        what: what.into(),
    }
}

impl Store for CuttingStore {
    fn identity(&self) -> Identity {
        Identity {
            id: ID,
            ..self.below.identity()
        }
    }

    fn allocate(&self) -> RunKey {
        self.below.allocate()
    }

    fn append(&self, append: Append) -> Asked<'_, Appended> {
        let words = self.recorder.describe(&append);
        let (run, kept) = (append.run, append.clone());
        let written = move || self.recorder.written(&kept);
        self.writes(Some(run), words, self.below.append(append), written)
    }

    fn cancel(&self, run: RunKey, at: Timestamp) -> Asked<'_, Appended> {
        let words = told("the run is cancelled");
        self.writes(Some(run), words, self.below.cancel(run, at), || {})
    }

    fn rewrite(&self, rewrites: Vec<Rewrite>) -> Asked<'_, Appended> {
        let run = rewrites.first().map(|rewrite| rewrite.run);
        let words = told("what is behind the run was changed");
        self.writes(run, words, self.below.rewrite(rewrites), || {})
    }

    fn delete(&self, deletions: Vec<Deletion>) -> Asked<'_, Vec<Deleted>> {
        self.writes(
            None,
            told("runs were deleted"),
            self.below.delete(deletions),
            || {},
        )
    }

    fn deliver<'a>(
        &'a self,
        to: &'a RunId,
        message: NewMessage,
        at: Timestamp,
        keep_until: Timestamp,
    ) -> Asked<'a, Delivery> {
        let words = Told {
            of: Some((to.clone(), String::new())),
            ..told(format!("a message on `{}` has arrived", message.channel))
        };
        let delivered = self.below.deliver(to, message, at, keep_until);
        self.writes(None, words, delivered, || {})
    }

    fn find<'a>(&'a self, id: &'a RunId) -> Asked<'a, Option<RunRow>> {
        self.reads(self.below.find(id))
    }

    fn row(&self, run: RunKey) -> Asked<'_, Option<RunRow>> {
        self.reads(self.below.row(run))
    }

    fn load(&self, run: RunKey) -> Asked<'_, Option<Loaded>> {
        self.reads(self.below.load(run))
    }

    fn first(&self, run: RunKey) -> Asked<'_, Option<Record>> {
        self.reads(self.below.first(run))
    }

    fn due(
        &self,
        after: Option<(Timestamp, RunKey)>,
        until: Timestamp,
        limit: usize,
    ) -> Asked<'_, Vec<(Timestamp, RunKey)>> {
        self.reads(self.below.due(after, until, limit))
    }

    fn active(&self, after: Option<RunKey>, limit: usize) -> Asked<'_, Vec<RunKey>> {
        self.reads(self.below.active(after, limit))
    }

    fn inbox(&self, run: RunKey, after: u64, limit: usize) -> Asked<'_, Vec<Message>> {
        self.reads(self.below.inbox(run, after, limit))
    }

    fn dead_letters(&self, run: RunKey, after: u64, limit: usize) -> Asked<'_, Vec<DeadLetter>> {
        self.reads(self.below.dead_letters(run, after, limit))
    }

    fn answer(&self, request: u128) -> Asked<'_, Option<Answer>> {
        self.reads(self.below.answer(request))
    }

    fn value<'a>(&'a self, key: &'a str) -> Asked<'a, Option<Payload>> {
        self.reads(self.below.value(key))
    }

    fn values<'a>(
        &'a self,
        prefix: &'a str,
        after: Option<&'a str>,
        limit: usize,
    ) -> Asked<'a, Vec<(String, Payload)>> {
        self.reads(self.below.values(prefix, after, limit))
    }

    fn put(&self, values: Vec<(String, Option<Payload>)>) -> Asked<'_, ()> {
        let words = told("values of the library's own were written");
        self.writes(None, words, self.below.put(values), || {})
    }

    fn list<'a>(&'a self, filter: &'a RunFilter) -> Asked<'a, Page> {
        self.reads(self.below.list(filter))
    }

    fn close(&self) -> Asked<'_, ()> {
        self.reads(self.below.close())
    }
}

impl fmt::Debug for CuttingStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CuttingStore").finish_non_exhaustive()
    }
}
