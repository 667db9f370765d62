//! What is in the journal and not yet in the tables, in memory.
//!
//! 1. A run stands here exactly when the journal holds batches of it that are not folded. Then its row here is the
//!    newest, and what the tables say of it is past.
//! 2. Nothing gets here before it is durable: a reader never sees what a crash may take back.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};

use bytes::Bytes;

use super::core::Options;
use super::entry::Entry;
use crate::replay::{RunId, RunKey, Timestamp};
use crate::store::RunRow;

/// So many waiting runs are folded before anything else asks for it: each takes memory as long as it is not, and will not change soon.
const WAITING: usize = 1024;
/// When the tail is so many times as long as it should be, commits have to fold, too: memory is bounded, and folds keep up.
const PRESSURE: usize = 4;

/// A batch as it stands in the journal, and the number of the commit that it is in. Its bytes only: there may be many.
#[derive(Debug)]
pub(super) struct Logged {
    commit: u64,
    run: RunKey,
    bytes: Bytes,
}

/// What is not folded yet.
#[derive(Debug, Default)]
pub(super) struct Tail {
    pub(super) runs: BTreeMap<RunKey, TailRun>,
    /// The ids of the runs above; those created here are nowhere else.
    pub(super) ids: HashMap<RunId, RunKey>,
    pub(super) due: BTreeSet<(Timestamp, RunKey)>,
    pub(super) active: BTreeSet<RunKey>,
    pub(super) log: VecDeque<Logged>,
    /// How many batches were before those of the log.
    pub(super) gone: u64,
    pub(super) bytes: usize,
    /// The number of the next commit.
    pub(super) next: u64,
}

/// A run of which batches are not folded yet.
#[derive(Debug)]
pub(super) struct TailRun {
    pub(super) row: Box<RunRow>,
    /// The places of its batches, counted from the first that the log ever had.
    entries: VecDeque<u64>,
}

/// How much is folded at once.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slice {
    pub(super) entries: usize,
    pub(super) runs: usize,
    pub(super) bytes: usize,
}

impl Tail {
    /// Takes in a durable batch. `stored` is the run's row from the tables, when it is not here.
    pub(super) fn push(&mut self, commit: u64, entry: &Entry, stored: Option<Box<RunRow>>) {
        let run = entry.run();
        let transition = &entry.transition;
        let place = self.gone + self.log.len() as u64;
        if let Some(new) = &transition.create {
            let row = Box::new(transition.created(new));
            self.ids.insert(new.id.clone(), run);
            self.index(&row);
            self.runs.insert(
                run,
                TailRun {
                    row,
                    entries: VecDeque::from([place]),
                },
            );
        } else {
            // The tables' index still tells of a run that comes here now: what is here goes before it.
            let mut past = (None, false);
            if let Some(row) = stored {
                self.ids.insert(row.id.clone(), run);
                self.runs.insert(
                    run,
                    TailRun {
                        row,
                        entries: VecDeque::new(),
                    },
                );
            } else if let Some(tail) = self.runs.get(&run) {
                past = (tail.row.wake_at, tail.row.state.is_active());
            }
            let Some(tail) = self.runs.get_mut(&run) else {
                return;
            };
            transition.apply(&mut tail.row);
            tail.entries.push_back(place);
            let present = (tail.row.wake_at, tail.row.state.is_active());
            self.reindex(run, past, present);
        }
        self.bytes += entry.bytes.len();
        self.log.push_back(Logged {
            commit,
            run,
            bytes: entry.bytes.clone(),
        });
        self.next = commit + 1;
    }

    /// Lets go of everything before commit `folded`: it is in the tables now.
    pub(super) fn forget(&mut self, folded: u64) {
        while self
            .log
            .front()
            .is_some_and(|logged| logged.commit < folded)
        {
            let Some(Logged { run, bytes, .. }) = self.log.pop_front() else {
                return;
            };
            self.gone += 1;
            self.bytes -= bytes.len();
            let Some(tail) = self.runs.get_mut(&run) else {
                continue;
            };
            tail.entries.pop_front();
            if tail.entries.is_empty()
                && let Some(tail) = self.runs.remove(&run)
            {
                self.ids.remove(&tail.row.id);
                self.active.remove(&run);
                if let Some(at) = tail.row.wake_at {
                    self.due.remove(&(at, run));
                }
            }
        }
        if self.log.is_empty() {
            // A burst must not keep its memory for ever.
            *self = Self {
                next: self.next,
                ..Self::default()
            };
        }
    }

    /// The first unfolded batches: whole commits, until `slice` is full.
    pub(super) fn oldest(&self, slice: Slice) -> (Vec<(RunKey, Bytes)>, u64) {
        let mut taken = Vec::new();
        let mut runs = HashSet::new();
        let mut bytes = 0;
        let mut last = None;
        for logged in &self.log {
            let full =
                taken.len() >= slice.entries || runs.len() >= slice.runs || bytes >= slice.bytes;
            if full && last != Some(logged.commit) {
                break;
            }
            last = Some(logged.commit);
            bytes += logged.bytes.len();
            runs.insert(logged.run);
            taken.push((logged.run, logged.bytes.clone()));
        }
        (taken, last.map_or(self.next, |commit| commit + 1))
    }

    /// The unfolded batches of a run, and their commits.
    pub(super) fn batches(&self, run: &TailRun) -> Vec<(u64, Bytes)> {
        let places = run.entries.iter().filter_map(|place| {
            let index = usize::try_from(place - self.gone).ok()?;
            self.log.get(index)
        });
        places
            .map(|logged| (logged.commit, logged.bytes.clone()))
            .collect()
    }

    /// Whether it is time to fold.
    pub(super) fn is_full(&self, options: &Options) -> bool {
        self.log.len() >= options.fold_entries
            || self.bytes >= options.fold_bytes
            || self.due.len() >= WAITING
    }

    /// Whether it is so much past that time that commits have to fold, too.
    pub(super) fn is_pressing(&self, options: &Options) -> bool {
        self.log.len() >= PRESSURE * options.fold_entries || self.due.len() >= PRESSURE * WAITING
    }

    fn index(&mut self, row: &RunRow) {
        self.reindex(row.key, (None, false), (row.wake_at, row.state.is_active()));
    }

    fn reindex(
        &mut self,
        run: RunKey,
        past: (Option<Timestamp>, bool),
        present: (Option<Timestamp>, bool),
    ) {
        if past.0 != present.0 {
            if let Some(at) = past.0 {
                self.due.remove(&(at, run));
            }
            if let Some(at) = present.0 {
                self.due.insert((at, run));
            }
        }
        match (past.1, present.1) {
            (true, false) => self.active.remove(&run),
            (false, true) => self.active.insert(run),
            _ => false,
        };
    }
}
