//! Taking a recorded history in.

use super::tree::{NONE, Name};
use super::{Outcome, Ready, Replay, Standing, Turn};
use crate::replay::{AttemptState, Body, CodeId, Kind, Location, Opened, Record, Segment, Waiting};

/// A history that no run could have written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HistoryError {
    /// It does not start with `Begun`.
    #[error("the history does not begin with how the run began")]
    NoBeginning,
    /// Its numbers do not increase.
    #[error("record {found} follows record {after}")]
    Disordered {
        /// The number before.
        after: u64,
        /// The number found.
        found: u64,
    },
    /// A location has two outcomes.
    #[error("record {seq} is a second outcome of `{location}`")]
    Twice {
        /// The second one's number.
        seq: u64,
        /// The location.
        location: Location,
    },
    /// A record of a kind that this version never writes and cannot replay.
    #[error("record {seq} at `{location}` is of a kind that this version does not replay")]
    Unsupported {
        /// Its number.
        seq: u64,
        /// Its location.
        location: Location,
    },
    /// A record that cannot stand where it does.
    #[error("record {seq} at `{location}` cannot be there: {what}")]
    Impossible {
        /// Its number.
        seq: u64,
        /// Its location.
        location: Location,
        /// Why not.
        what: &'static str,
    },
}

impl Replay {
    /// The machine of a run that goes on. `row` is what its row says.
    ///
    /// # Errors
    /// [`HistoryError`] when no run could have written this history.
    pub fn load(history: Vec<Record>, code: CodeId, row: Standing) -> Result<Self, HistoryError> {
        Self::load_where(history, code, row, |_| true)
    }

    /// The same, without what is recorded where `replayed` says no. The ledger is the run's, wherever its entries come from.
    pub(super) fn load_where(
        history: Vec<Record>,
        code: CodeId,
        row: Standing,
        replayed: impl Fn(&Location) -> bool,
    ) -> Result<Self, HistoryError> {
        let Some(Record {
            body: Body::Begun(begun),
            ..
        }) = history.first()
        else {
            return Err(HistoryError::NoBeginning);
        };
        let mut replay = Self::empty(begun, code);
        replay.row = row;
        let mut path = Path::default();
        for record in history {
            if record.seq <= replay.last_seq {
                return Err(HistoryError::Disordered {
                    after: replay.last_seq,
                    found: record.seq,
                });
            }
            replay.last_seq = record.seq;
            if let Body::Control(control) = &record.body {
                replay.load_control(record.seq, control);
                continue;
            }
            if record.body.is_fact() {
                replay.ledger.take(&record.location, &record.body);
                if let Body::State { payload, .. } = record.body {
                    let base = super::notes::base_of(&record.location);
                    replay.notes.positions.insert(base, payload);
                } else if replayed(&record.location) {
                    replay.load_fact(record.location, record.seq, &record.body);
                }
                continue;
            }
            if !replayed(&record.location) {
                continue;
            }
            let node = replay.place(&record.location, record.seq, &mut path);
            let covers = matches!(record.body, Body::Carried { .. });
            replay.take(node, record)?;
            if covers {
                path.0.clear();
            }
        }
        replay.tree.rewind_cursors();
        Ok(replay)
    }

    /// Finds or makes the node of a location. Most records share their way with the one before.
    fn place(&mut self, location: &Location, seq: u64, path: &mut Path) -> u32 {
        let mut at = 0;
        for (depth, segment) in location.segments().enumerate() {
            if let Some(&known) = path.0.get(depth) {
                if self.tree.get(known).name.is(segment) {
                    at = known;
                    continue;
                }
                path.0.truncate(depth);
            }
            let beyond = self.tree.is_beyond_last(at, segment);
            at = match if beyond {
                None
            } else {
                self.tree.find(at, segment)
            } {
                Some(known) => known,
                None => self.add_recorded(at, segment, location, seq),
            };
            path.0.push(at);
        }
        at
    }

    fn add_recorded(
        &mut self,
        parent: u32,
        segment: Segment<'_>,
        location: &Location,
        seq: u64,
    ) -> u32 {
        let child = self.tree.add(parent, Name::recorded(segment, location));
        let node = self.tree.get_mut(child);
        node.recorded = true;
        node.touched = true;
        node.first_seq = seq;
        if parent != NONE {
            self.tree.get_mut(parent).touched = true;
        }
        child
    }

    /// Puts what a record says into its node.
    fn take(&mut self, node: u32, record: Record) -> Result<(), HistoryError> {
        let (seq, location) = (record.seq, record.location);
        let known = self.tree.get_mut(node);
        match record.body {
            Body::Opened(opened) => {
                known.kind = Some(match opened {
                    Opened::Join(_) => Kind::Join,
                    Opened::Race(_) => Kind::Race,
                    Opened::JoinAll(_) => Kind::JoinAll,
                    Opened::Carry(_) => Kind::Loop,
                    Opened::Stage { .. } => super::visits::KIND,
                });
                self.tree.rare(node).opened = Some(opened);
            }
            Body::Waiting(Waiting::Sleep { until }) => {
                known.kind = Some(Kind::Sleep);
                self.tree.rare(node).until = Some(until);
            }
            Body::Waiting(Waiting::Recv { until, .. }) => {
                known.kind = Some(Kind::Recv);
                self.tree.rare(node).until = until;
            }
            Body::Waiting(Waiting::Child { id, .. }) => {
                known.kind = Some(Kind::Child);
                self.tree.rare(node).child = Some(id);
            }
            // It only says that the code had come here.
            Body::Waiting(Waiting::Body) => known.kind = known.kind.or(Some(Kind::Step)),
            Body::Attempt { number, state } => {
                known.kind = Some(Kind::Step);
                let rare = self.tree.rare(node);
                match state {
                    AttemptState::Started => rare.started = Some(number),
                    AttemptState::Failed { failure, wake_at } => {
                        rare.failed = Some((number, failure, wake_at));
                        rare.started = None;
                    }
                }
            }
            body @ (Body::Ended(_) | Body::Taken(_)) => {
                if known.outcome.is_some() {
                    return Err(HistoryError::Twice { seq, location });
                }
                let (kind, outcome) = match body {
                    Body::Ended(ended) => (ended.kind, Outcome::Ended(ended.outcome)),
                    Body::Taken(messages) => (Kind::Recv, Outcome::Taken(messages)),
                    _ => return Err(HistoryError::Unsupported { seq, location }),
                };
                known.kind = Some(kind);
                known.outcome = Some(outcome);
                let stamp = known.stamp;
                self.turns.push_back(Turn {
                    node,
                    stamp,
                    ready: Ready::Now,
                });
            }
            Body::Carried { next, state } => {
                if known.iteration().is_none_or(|index| index + 1 != next) {
                    return Err(HistoryError::Unsupported { seq, location });
                }
                known.unconsumed += 1;
                self.unconsumed += 1;
                self.load_boundary(node, Outcome::Carried { next, state });
                return Ok(());
            }
            Body::Decided { branch } => {
                let rare = self.tree.rare(node);
                rare.decided = Some(branch);
                rare.decided_seq = seq;
            }
            _ => return Err(HistoryError::Unsupported { seq, location }),
        }
        self.tree.get_mut(node).unconsumed += 1;
        self.unconsumed += 1;
        Ok(())
    }
}

/// The nodes on the way to the record before.
#[derive(Default)]
struct Path(Vec<u32>);
