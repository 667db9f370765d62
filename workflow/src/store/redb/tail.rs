//! What is in the log and not yet in the tables, in memory.
//!
//! 1. A run stands here exactly when the log holds batches of it that are not folded. Then its row here is the
//!    newest, and what the tables say of it is past.
//! 2. Nothing gets here before it is durable: a reader never sees what a crash may take back.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use bytes::Bytes;

use super::core::Options;
use super::log::{HEAD, Place};
use super::mail::Mail;
use crate::replay::{RunId, RunKey, RunState, Timestamp};
use crate::store::census::Tally;
use crate::store::transition::Transition;
use crate::store::{Census, RunRow};

/// So many waiting runs are folded before anything else asks for it: each takes memory as long as it is not, and will not
/// change soon.
const WAITING: usize = 1024;
/// When the tail is so many times as long as it should be, commits have to fold, too: memory is bounded, and folds keep up.
const PRESSURE: usize = 4;

/// What was written in one commit: a frame of the log, of which the batches of the runs are parts.
#[derive(Debug, Clone)]
pub(super) struct Commit {
    pub(super) number: u64,
    pub(super) place: Place,
    /// Its frame, with room for the head at least.
    pub(super) frame: Bytes,
    pub(super) batches: usize,
}

impl Commit {
    /// Its batches as they are written.
    pub(super) fn value(&self) -> Bytes {
        self.frame.slice(HEAD.min(self.frame.len())..)
    }
}

/// What is not folded yet.
#[derive(Debug, Default)]
pub(super) struct Tail {
    pub(super) runs: BTreeMap<RunKey, TailRun>,
    /// The ids of the runs above; those created here are nowhere else.
    pub(super) ids: HashMap<RunId, RunKey>,
    pub(super) due: BTreeSet<(Timestamp, RunKey)>,
    pub(super) active: BTreeSet<RunKey>,
    pub(super) log: VecDeque<Commit>,
    pub(super) batches: usize,
    pub(super) bytes: usize,
    pub(super) mail: Mail,
    /// Whether the tables keep messages for runs to come.
    pub(super) strays: bool,
    /// The number of the next commit.
    pub(super) next: u64,
    pub(super) counted: Counted,
}

/// How many runs there are, of those before `next`: what is committed changes it from then on.
#[derive(Debug)]
pub(super) struct Counted {
    pub(super) tally: Tally,
    /// From where on nothing is counted yet; `None` when everything is. Nobody counts before somebody asks.
    pub(super) next: Option<u64>,
}

impl Default for Counted {
    fn default() -> Self {
        Self {
            tally: Tally::default(),
            next: Some(0),
        }
    }
}

impl Counted {
    /// A run that was in one state is in another. Before and after, it need not be there.
    fn moved(&mut self, row: &RunRow, past: Option<RunState>, present: Option<RunState>) {
        if self.next.is_some_and(|next| row.key.0 >= next) || past == present {
            return;
        }
        if let Some(past) = past {
            self.tally.remove(&row.workflow, past);
        }
        if let Some(present) = present {
            self.tally.add(&row.workflow, present);
        }
    }
}

/// A run of which batches are not folded yet.
#[derive(Debug)]
pub(super) struct TailRun {
    /// Boxed: a map keeps places for more than it has.
    pub(super) row: Box<RunRow>,
    /// Its batches as they are written, each with the number of its commit.
    pub(super) entries: VecDeque<(u64, Bytes)>,
    /// It was deleted: what is here only hides what the tables still have of it.
    pub(super) gone: bool,
}

/// What the tail says before the tables are asked.
#[derive(Debug, Clone, Copy)]
pub(super) enum Known<T> {
    There(T),
    /// It was deleted: the tables still have it.
    Gone,
}

impl<T> Known<T> {
    pub(super) fn there(self) -> Option<T> {
        match self {
            Self::There(what) => Some(what),
            Self::Gone => None,
        }
    }
}

impl Tail {
    /// Takes in a durable batch of the commit that [`close`](Self::close) ends. `stored` is the run's row from the tables,
    /// when it is not here.
    pub(super) fn push(
        &mut self,
        transition: &Transition,
        entry: Bytes,
        stored: Option<Box<RunRow>>,
    ) {
        let (run, commit) = (transition.run, self.next);
        if let Some(new) = &transition.create {
            let row = Box::new(transition.created(new));
            self.ids.insert(new.id.clone(), run);
            self.index(&row);
            self.counted.moved(&row, None, Some(row.state));
            self.runs.insert(
                run,
                TailRun {
                    row,
                    entries: VecDeque::from([(commit, entry)]),
                    gone: false,
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
                        row,
                        entries: VecDeque::new(),
                        gone: false,
                    },
                );
            } else if let Some(tail) = self.runs.get(&run) {
                past = (tail.row.wake_at, tail.row.state.is_active());
            }
            let Some(tail) = self.runs.get_mut(&run) else {
                return;
            };
            let was = (!tail.gone).then_some(tail.row.state);
            transition.apply(&mut tail.row);
            tail.entries.push_back((commit, entry));
            tail.gone |= transition.deletes_run();
            let is = (!tail.gone).then_some(tail.row.state);
            self.counted.moved(&tail.row, was, is);
            let present = (tail.row.wake_at, tail.row.state.is_active());
            self.reindex(run, past, present);
        }
        self.mail.apply_all(commit, transition);
    }

    /// The row of a run, if this is where it is to be looked for.
    pub(super) fn row(&self, run: RunKey) -> Option<Known<&RunRow>> {
        let tail = self.runs.get(&run)?;
        Some(if tail.gone {
            Known::Gone
        } else {
            Known::There(&tail.row)
        })
    }

    /// The run with an id, if this is where it is to be looked for.
    pub(super) fn run(&self, id: &RunId) -> Option<Known<RunKey>> {
        let run = *self.ids.get(id)?;
        Some(match self.row(run)? {
            Known::There(_) => Known::There(run),
            Known::Gone => Known::Gone,
        })
    }

    /// All batches of a durable commit were taken in.
    pub(super) fn close(&mut self, frame: Bytes, place: Place, batches: usize) {
        self.batches += batches;
        self.bytes += frame.len();
        self.log.push_back(Commit {
            number: self.next,
            place,
            frame,
            batches,
        });
        self.next += 1;
    }

    /// Lets go of everything before commit `folded`: it is in the tables now. `runs` are those that it was about.
    pub(super) fn forget(&mut self, folded: u64, runs: impl Iterator<Item = RunKey>) {
        let past = self.log.partition_point(|commit| commit.number < folded);
        for commit in self.log.drain(..past) {
            self.batches -= commit.batches;
            self.bytes -= commit.frame.len();
        }
        for run in runs {
            let Some(tail) = self.runs.get_mut(&run) else {
                continue;
            };
            let past = tail.entries.partition_point(|(commit, _)| *commit < folded);
            tail.entries.drain(..past);
            if tail.entries.is_empty()
                && let Some(tail) = self.runs.remove(&run)
            {
                // A deleted one's may be another's by now.
                if self.ids.get(&tail.row.id) == Some(&run) {
                    self.ids.remove(&tail.row.id);
                }
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
                counted: std::mem::take(&mut self.counted),
                ..Self::default()
            };
        }
    }

    /// The first unfolded commits: up to so many batches and bytes, but at least one.
    pub(super) fn oldest(&self, batches: usize, bytes: usize) -> Vec<Commit> {
        let (mut seen, mut size) = (0, 0);
        let fits = self.log.iter().take_while(|commit| {
            let room = seen < batches && size < bytes;
            seen += commit.batches;
            size += commit.frame.len();
            room
        });
        fits.cloned().collect()
    }

    /// Where the oldest unfolded commit stands in the log.
    pub(super) fn begins(&self) -> Option<u64> {
        self.log.front().map(|commit| commit.place.at)
    }

    /// Whether it is time to fold.
    pub(super) fn is_full(&self, options: &Options) -> bool {
        self.batches >= options.fold_entries
            || self.bytes >= options.fold_bytes
            || self.due.len() >= WAITING
    }

    /// Whether it is so much past that time that commits have to fold, too.
    pub(super) fn is_pressing(&self, options: &Options) -> bool {
        self.batches >= options.fold_entries.saturating_mul(PRESSURE)
            || self.bytes >= options.fold_bytes.saturating_mul(PRESSURE)
            || self.due.len() >= PRESSURE * WAITING
    }

    /// How many runs there are, when all were counted.
    pub(super) fn census(&self) -> Census {
        self.counted.tally.census(Some(self.next))
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
