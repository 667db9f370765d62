//! What is in the journal and not yet in the tables, in memory.
//!
//! 1. A run stands here exactly when the journal holds batches of it that are not folded. Then its row here is the
//!    newest, and what the tables say of it is past.
//! 2. Nothing gets here before it is durable: a reader never sees what a crash may take back.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use super::entry::Entry;
use super::mail::Mail;
use crate::replay::{RunId, RunKey, Timestamp};
use crate::store::RunRow;

/// A batch, and the number of the commit that it is in.
pub(super) type Logged = (u64, Arc<Entry>);

/// What is not folded yet.
#[derive(Debug, Default)]
pub(super) struct Tail {
    pub(super) runs: BTreeMap<RunKey, TailRun>,
    /// The ids of the runs above; those created here are nowhere else.
    pub(super) ids: HashMap<RunId, RunKey>,
    pub(super) due: BTreeSet<(Timestamp, RunKey)>,
    pub(super) active: BTreeSet<RunKey>,
    pub(super) log: VecDeque<Logged>,
    pub(super) bytes: usize,
    pub(super) mail: Mail,
    /// Whether the tables keep messages for runs to come.
    pub(super) strays: bool,
    /// The number of the next commit.
    pub(super) next: u64,
}

/// A run of which batches are not folded yet.
#[derive(Debug)]
pub(super) struct TailRun {
    pub(super) row: RunRow,
    pub(super) entries: VecDeque<Logged>,
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
    pub(super) fn push(&mut self, commit: u64, entry: Arc<Entry>, stored: Option<Box<RunRow>>) {
        let run = entry.run();
        let transition = &entry.transition;
        if let Some(new) = &transition.create {
            let row = transition.created(new);
            self.ids.insert(new.id.clone(), run);
            self.index(&row);
            self.runs.insert(
                run,
                TailRun {
                    row,
                    entries: VecDeque::from([(commit, Arc::clone(&entry))]),
                },
            );
        } else if !transition.is_nobody() {
            // The tables' index still tells of a run that comes here now: what is here goes before it.
            let mut past = (None, false);
            if let Some(row) = stored {
                self.ids.insert(row.id.clone(), run);
                self.runs.insert(
                    run,
                    TailRun {
                        row: *row,
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
            tail.entries.push_back((commit, Arc::clone(&entry)));
            let present = (tail.row.wake_at, tail.row.state.is_active());
            self.reindex(run, past, present);
        }
        for effect in &entry.transition.effects {
            self.mail.apply(commit, run, effect);
        }
        self.bytes += entry.bytes.len();
        self.log.push_back((commit, entry));
        self.next = commit + 1;
    }

    /// Lets go of everything before commit `folded`: it is in the tables now.
    pub(super) fn forget(&mut self, folded: u64) {
        while self.log.front().is_some_and(|(commit, _)| *commit < folded) {
            let Some((_, entry)) = self.log.pop_front() else {
                return;
            };
            self.bytes -= entry.bytes.len();
            let run = entry.run();
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
        self.mail.forget(folded);
        if self.log.is_empty() {
            // A burst must not keep its memory for ever.
            *self = Self {
                next: self.next,
                strays: self.strays,
                ..Self::default()
            };
        }
    }

    /// The first unfolded batches: whole commits, until `slice` is full.
    pub(super) fn oldest(&self, slice: Slice) -> (Vec<Arc<Entry>>, u64) {
        let mut taken = Vec::new();
        let mut runs = HashSet::new();
        let mut bytes = 0;
        let mut last = None;
        for (commit, entry) in &self.log {
            let full =
                taken.len() >= slice.entries || runs.len() >= slice.runs || bytes >= slice.bytes;
            if full && last != Some(*commit) {
                break;
            }
            last = Some(*commit);
            bytes += entry.bytes.len();
            runs.insert(entry.run());
            taken.push(Arc::clone(entry));
        }
        (taken, last.map_or(self.next, |commit| commit + 1))
    }

    /// Whether messages are kept for runs to come.
    pub(super) fn has_strays(&self) -> bool {
        self.strays || self.mail.has_strays()
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
