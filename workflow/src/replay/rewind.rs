//! Going back: which records a rewind, a recovery or a fork takes out of a history.
//!
//! Worked out from the history alone, without the code. In a scope the heads stand in the order of their first records; members of a
//! join, race or `join_all!` stand beside each other. So *sequentially after* a location lies what comes later in its scope or in one
//! that it lies in, and nothing that runs beside it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::{
    AttemptState, Body, Control, Kind, Location, Message, Opened, Record, RunId, Segment, Waiting,
};

/// Why a history cannot be taken back to where it was asked to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RewindError {
    /// Nothing is recorded there.
    #[error("nothing is recorded at `{location}`")]
    Unknown {
        /// As it was asked for.
        location: String,
    },
    /// It lies in a race that is won: its other branches are gone, so it cannot be run again in part.
    #[error("`{location}` lies in the race `{race}`, which is won: rewind to `{race}`")]
    Decided {
        /// As it was asked for.
        location: String,
        /// The race.
        race: Location,
    },
    /// It lies in an iteration of a carried loop that is no longer kept.
    #[error(
        "`{location}` lies in an iteration of `{container}` that is no longer kept: rewind to `{container}`"
    )]
    Pruned {
        /// As it was asked for.
        location: String,
        /// The loop.
        container: Location,
    },
    /// What stands before it was undone, so going on from there would build on what is no longer so.
    #[error("the effect of `{undone}` was undone: rewind to it, or to what stands before it")]
    Undone {
        /// The first location whose effect was undone and that would stay.
        undone: Location,
    },
    /// Nothing that failed is last in its scope: the workflow went on after every failure, or failed by itself.
    #[error("no failed step is the last thing that the run did: there is nothing to retry")]
    NothingToRetry,
}

/// What a rewind does to a history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rewind {
    /// To where.
    pub to: Location,
    /// The records that go, in order.
    pub removed: Vec<Record>,
}

impl Rewind {
    /// The rewind of a history to a location in its text form, so that what is recorded there is done again; the root for
    /// the run's beginning.
    ///
    /// # Errors
    /// [`RewindError`].
    pub fn plan(history: &[Record], location: impl fmt::Display) -> Result<Self, RewindError> {
        let map = Map::of(history);
        let to = map.locate(&location.to_string())?;
        let removed: BTreeSet<u64> = history
            .iter()
            .filter(|record| map.goes(record, &to))
            .map(|record| record.seq)
            .collect();
        check_undone(history, &removed)?;
        let goes = |record: &&Record| match record.body {
            Body::Undone { undoes, .. } => removed.contains(&undoes),
            _ => removed.contains(&record.seq),
        };
        Ok(Self {
            removed: history.iter().filter(goes).cloned().collect(),
            to,
        })
    }

    /// The messages that the removed records had taken.
    pub fn taken(&self) -> impl Iterator<Item = &Message> {
        self.removed.iter().flat_map(|record| match &record.body {
            Body::Taken(messages) => messages.as_slice(),
            _ => &[],
        })
    }

    /// The children that the removed records had started and waited for.
    pub fn children(&self) -> impl Iterator<Item = &RunId> {
        self.removed.iter().filter_map(|record| match &record.body {
            Body::Waiting(Waiting::Child {
                id,
                detached: false,
            }) => Some(id),
            _ => None,
        })
    }
}

/// What a recovery takes out of the history of a run that failed: its end, and the failures that it failed by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recovery {
    /// The records that go, in order.
    pub removed: Vec<Record>,
    /// Children that failed, and have to be recovered, too: the run goes on waiting for them.
    pub children: Vec<RunId>,
}

impl Recovery {
    /// The recovery of a failed run. It resets exactly the failed outcomes that are the last head of their scope with every
    /// ancestor last, too: those that the workflow did not go on after.
    ///
    /// # Errors
    /// [`RewindError::NothingToRetry`], [`RewindError::Undone`].
    pub fn plan(history: &[Record]) -> Result<Self, RewindError> {
        let map = Map::of(history);
        let failed: BTreeMap<&Location, Kind> = history
            .iter()
            .filter_map(|record| match &record.body {
                Body::Ended(ended) if ended.outcome.is_err() && map.is_last(&record.location) => {
                    Some((&record.location, ended.kind))
                }
                _ => None,
            })
            .collect();
        if failed.is_empty() {
            return Err(RewindError::NothingToRetry);
        }
        let mut children = Vec::new();
        let mut goes = |record: &&Record| match (&record.body, failed.get(&record.location)) {
            (Body::Finished(_), _) => true,
            (
                Body::Waiting(Waiting::Child {
                    id,
                    detached: false,
                }),
                Some(Kind::Child),
            ) => {
                children.push(id.clone());
                false
            }
            (body, Some(_)) => !body.is_fact(),
            (_, None) => false,
        };
        let removed: Vec<_> = history.iter().filter(&mut goes).cloned().collect();
        let seqs = removed.iter().map(|record| record.seq).collect();
        check_undone(history, &seqs)?;
        Ok(Self { removed, children })
    }
}

/// A copy of a history for another run, without what concerns only the first.
///
/// Waits and outcomes are copied, so what was done is not done again. Requests that were taken can no longer be answered, children that had not
/// ended are started anew, and attempts that had only begun have not.
pub fn fork(history: &[Record], rewind: Option<&Rewind>, from: &RunId, seed: u128) -> Vec<Record> {
    let gone: BTreeSet<u64> = rewind
        .iter()
        .flat_map(|rewind| rewind.removed.iter().map(|record| record.seq))
        .collect();
    let ended: BTreeSet<&Location> = history
        .iter()
        .filter(|record| matches!(record.body, Body::Ended(_)))
        .map(|record| &record.location)
        .collect();
    let stays = |record: &&Record| {
        let copied = match &record.body {
            Body::Finished(_) | Body::Undone { .. } => false,
            Body::Control(control) => {
                matches!(control, Control::Rewound { .. } | Control::Forked { .. })
            }
            Body::Waiting(Waiting::Child { .. })
            | Body::Attempt {
                state: AttemptState::Started,
                ..
            } => ended.contains(&record.location),
            _ => true,
        };
        copied && !gone.contains(&record.seq)
    };
    let mut numbers = BTreeMap::new();
    let mut copies = Vec::new();
    for record in history.iter().filter(stays) {
        let mut copy = record.clone();
        copy.seq = copies.len() as u64 + 1;
        numbers.insert(record.seq, copy.seq);
        match &mut copy.body {
            Body::Begun(begun) => {
                begun.parent = None;
                begun.forked_from = Some(from.clone());
            }
            Body::Taken(messages) => {
                for message in messages {
                    message.reply_to = None;
                    // Its answer would be that of the first run's request.
                    message.id ^= seed;
                }
            }
            Body::Settled { up_to } => {
                *up_to = numbers
                    .range(..=*up_to)
                    .next_back()
                    .map_or(0, |(_, seq)| *seq);
            }
            _ => {}
        }
        copies.push(copy);
    }
    copies
}

/// What is recorded where.
struct Map(BTreeMap<Location, Place>);

#[derive(Debug, Clone, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
struct Place {
    /// The number of the first record here or below.
    first: u64,
    /// The same, of what is no fact; 0 when there is nothing else.
    head: u64,
    /// The head of what comes last in it.
    last: u64,
    /// Its members run side by side.
    concurrent: bool,
    /// Which branch won the race.
    decided: bool,
    /// It is a carried loop.
    carries: bool,
    /// It is an iteration of one, and its end is recorded.
    boundary: bool,
}

impl Map {
    fn of(history: &[Record]) -> Self {
        let mut places: BTreeMap<Location, Place> = BTreeMap::new();
        for record in history {
            if is_about_the_run(&record.body) {
                continue;
            }
            let mut above = Location::root();
            for segment in record.location.segments() {
                let location = above.child(segment);
                let place = places.entry(location.clone()).or_default();
                if place.first == 0 {
                    place.first = record.seq;
                }
                if place.head == 0 && !record.body.is_fact() {
                    place.head = record.seq;
                    // Heads come in their order.
                    places.entry(above).or_default().last = record.seq;
                }
                above = location;
            }
            let place = places.entry(record.location.clone()).or_default();
            match &record.body {
                Body::Opened(Opened::Join(_) | Opened::Race(_) | Opened::JoinAll(_)) => {
                    place.concurrent = true;
                }
                Body::Opened(Opened::Carry(_)) => place.carries = true,
                Body::Decided { .. } => place.decided = true,
                Body::Carried { .. } => place.boundary = true,
                _ => {}
            }
        }
        Self(places)
    }

    fn get(&self, location: &Location) -> Place {
        self.0.get(location).cloned().unwrap_or_default()
    }

    /// The location of this text form.
    fn locate(&self, text: &str) -> Result<Location, RewindError> {
        if text.is_empty() {
            return Ok(Location::root());
        }
        let known = self.0.keys().find(|location| location.to_string() == *text);
        let Some(to) = known else {
            return Err(self.missing(text));
        };
        let mut above = Location::root();
        for segment in to.segments() {
            let here = self.get(&above);
            if here.decided {
                return Err(RewindError::Decided {
                    location: text.to_owned(),
                    race: above,
                });
            }
            if here.carries
                && let Segment::Iter(index @ 1..) = segment
                && !self.get(&above.iteration(index - 1)).boundary
            {
                return Err(RewindError::Pruned {
                    location: text.to_owned(),
                    container: above,
                });
            }
            above = above.child(segment);
        }
        Ok(to.clone())
    }

    /// Why there is nothing at a location.
    fn missing(&self, text: &str) -> RewindError {
        let location = text.to_owned();
        // The innermost recorded container that the text begins with.
        let above = self.0.iter().filter(|(above, _)| {
            let above = above.to_string();
            text.strip_prefix(&above)
                .is_some_and(|rest| rest.starts_with(['/', '[']))
        });
        match above.max_by_key(|(above, _)| above.as_bytes().len()) {
            Some((race, place)) if place.decided => RewindError::Decided {
                location,
                race: race.clone(),
            },
            Some((container, place)) if place.carries && self.is_pruned(container, text) => {
                RewindError::Pruned {
                    location,
                    container: container.clone(),
                }
            }
            _ => RewindError::Unknown { location },
        }
    }

    /// Whether the text names an iteration of a carried loop before those that are kept.
    fn is_pruned(&self, carried: &Location, text: &str) -> bool {
        let prefix = format!("{carried}[");
        let index = text
            .strip_prefix(&prefix)
            .and_then(|rest| rest.split(']').next())
            .and_then(|index| index.parse::<u64>().ok());
        let kept = self.0.keys().filter(|location| location.is_under(carried));
        let lowest = kept
            .filter_map(|location| {
                let depth = carried.segments().count();
                match location.segments().nth(depth) {
                    Some(Segment::Iter(index)) => Some(index),
                    _ => None,
                }
            })
            .min();
        matches!((index, lowest), (Some(index), Some(lowest)) if index < lowest)
    }

    /// Whether a record goes when the run is taken back to before `to`.
    fn goes(&self, record: &Record, to: &Location) -> bool {
        if is_about_the_run(&record.body) {
            return matches!(record.body, Body::Finished(_));
        }
        if record.location.is_under(to) {
            return true;
        }
        if to.is_under(&record.location) {
            // A container that it lies in has come to no end any more.
            return matches!(
                record.body,
                Body::Carried { .. } | Body::Closed(_) | Body::Decided { .. }
            );
        }
        let (above, mine, its) = parting(&record.location, to);
        !self.get(&above).concurrent && self.get(&mine).first > self.get(&its).first
    }

    /// Whether the code did nothing after this, and after nothing that it lies in.
    fn is_last(&self, location: &Location) -> bool {
        let mut above = Location::root();
        for segment in location.segments() {
            let mine = above.child(segment);
            let (scope, place) = (self.get(&above), self.get(&mine));
            if scope.decided || place.boundary {
                return false;
            }
            if !scope.concurrent && scope.last > place.head {
                return false;
            }
            above = mine;
        }
        true
    }
}

/// What was undone does not stay.
fn check_undone(history: &[Record], removed: &BTreeSet<u64>) -> Result<(), RewindError> {
    let undone: BTreeSet<u64> = history
        .iter()
        .filter_map(|record| match &record.body {
            Body::Undone {
                undoes,
                outcome: Ok(()),
                ..
            } => Some(*undoes),
            _ => None,
        })
        .collect();
    let stays = history
        .iter()
        .find(|record| undone.contains(&record.seq) && !removed.contains(&record.seq));
    match stays {
        Some(record) => Err(RewindError::Undone {
            undone: record.location.clone(),
        }),
        None => Ok(()),
    }
}

/// Whether a record says something of the run as a whole, and not of a place in it.
fn is_about_the_run(body: &Body) -> bool {
    matches!(
        body,
        Body::Begun(_) | Body::Control(_) | Body::Finished(_) | Body::Undone { .. }
    )
}

/// The innermost scope that two locations lie in, neither under the other, and the way into each from there.
fn parting(one: &Location, other: &Location) -> (Location, Location, Location) {
    let mut above = Location::root();
    for (mine, its) in one.segments().zip(other.segments()) {
        if mine != its {
            return (above.clone(), above.child(mine), above.child(its));
        }
        above = above.child(mine);
    }
    (above.clone(), above.clone(), above)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::{Begun, CodeId, Ended, Failure, FailureKind, Payload, Timestamp};

    /// A history of these records after its beginning, each where its location is written.
    fn history(records: &[(&str, Body)]) -> Vec<Record> {
        let begun = Begun {
            workflow: "w".to_owned(),
            input: Payload::json("{}"),
            input_hash: 0,
            seed: 7,
            generation: 0,
            parent: None,
            forked_from: None,
        };
        let begun = ("", Body::Begun(Box::new(begun)));
        let all = [&[begun], records].concat();
        (1..)
            .zip(all)
            .map(|(seq, (at, body))| record(seq, at, body))
            .collect()
    }

    fn record(seq: u64, at: &str, body: Body) -> Record {
        let mut location = Location::root();
        for (depth, name) in at.split('/').filter(|name| !name.is_empty()).enumerate() {
            location = match (name.parse(), name.strip_prefix('|')) {
                (Ok(index), _) => location.iteration(index),
                (_, Some(branch)) => location.branch(branch),
                _ => location.site(name),
            };
            assert!(depth < 9);
        }
        Record {
            seq,
            at: Timestamp::default(),
            code: CodeId(1),
            location,
            body,
        }
    }

    fn ended(outcome: Result<(), FailureKind>) -> Body {
        let outcome = match outcome {
            Ok(()) => Ok(Payload::json("1")),
            Err(kind) => Err(Failure::new(kind, Location::root(), "no")),
        };
        Body::Ended(Ended {
            kind: Kind::Step,
            outcome,
            attempts: 1,
            started_at: Timestamp::default(),
            input_hash: None,
        })
    }

    fn done() -> Body {
        ended(Ok(()))
    }

    fn failed() -> Body {
        ended(Err(FailureKind::Exhausted))
    }

    fn end() -> Body {
        let failure = Failure::new(FailureKind::Exhausted, Location::root(), "no");
        Body::Finished(super::super::Finished::Failed(failure))
    }

    fn join() -> Body {
        Body::Opened(Opened::Join(vec!["a".to_owned(), "b".to_owned()]))
    }

    fn undone(undoes: u64) -> Body {
        Body::Undone {
            undoes,
            attempt: 1,
            outcome: Ok(()),
            skipped: None,
        }
    }

    fn pin() -> Body {
        Body::Pin {
            value: 2,
            latest: 2,
        }
    }

    fn seqs(records: &[Record]) -> Vec<u64> {
        records.iter().map(|record| record.seq).collect()
    }

    fn rewound(history: &[Record], to: &str) -> Vec<u64> {
        seqs(&Rewind::plan(history, to).unwrap().removed)
    }

    // U15
    #[test]
    fn what_lies_sequentially_after_goes_and_what_runs_beside_stays() {
        let history = history(&[
            ("gate", pin()),
            ("j", join()),
            ("j/|a/a1", done()),
            ("j/|b/b1", done()),
            ("j/|a/gate", pin()),
            ("j/|a/a2", done()),
            ("j/|b/b2", done()),
            ("late", pin()),
            ("then", done()),
            ("", end()),
        ]);
        assert_eq!(rewound(&history, "j/a/a2"), [7, 9, 10, 11]);
        assert_eq!(rewound(&history, "j/a/a1"), [4, 6, 7, 9, 10, 11]);
        assert_eq!(rewound(&history, "j/b"), [5, 8, 9, 10, 11]);
        assert_eq!(rewound(&history, "then"), [10, 11]);
        assert_eq!(rewound(&history, ""), [2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
        let unknown = Rewind::plan(&history, "j/a/a3").unwrap_err();
        assert_eq!(unknown.to_string(), "nothing is recorded at `j/a/a3`");
    }

    #[test]
    fn an_iteration_that_is_gone_back_into_has_not_ended() {
        let carry = Body::Opened(Opened::Carry(vec!["n".to_owned()]));
        let carried = |next| Body::Carried {
            next,
            state: Payload::json("1"),
        };
        let history = history(&[
            ("i", carry),
            ("i/4", carried(5)),
            ("i/5/s", done()),
            ("i/5", carried(6)),
            ("i/6/s", done()),
            ("end", done()),
        ]);
        assert_eq!(rewound(&history, "i[5]/s"), [4, 5, 6, 7]);
        assert_eq!(rewound(&history, "i[6]"), [6, 7]);
        for gone in ["i[3]/s", "i[4]"] {
            assert!(matches!(
                Rewind::plan(&history, gone),
                Err(RewindError::Pruned { .. })
            ));
        }
        assert!(matches!(
            Rewind::plan(&history, "i[7]/s"),
            Err(RewindError::Unknown { .. })
        ));
    }

    // RVT-FIX-50
    #[test]
    fn what_was_undone_does_not_stay() {
        let history = history(&[
            ("point", Body::Checkpoint),
            ("book", done()),
            ("pay", failed()),
            ("", undone(3)),
            ("", end()),
        ]);
        let refused = Recovery::plan(&history).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "the effect of `book` was undone: rewind to it, or to what stands before it"
        );
        assert_eq!(Rewind::plan(&history, "pay"), Err(refused));
        // With the effect goes the record that it was undone.
        assert_eq!(rewound(&history, "book"), [3, 4, 5, 6]);
    }

    // U16
    #[test]
    fn only_what_the_workflow_did_not_go_on_after_is_retried() {
        let attempt = Body::Attempt {
            number: 1,
            state: AttemptState::Failed {
                failure: Failure::new(FailureKind::Exhausted, Location::root(), "no"),
                wake_at: Timestamp::default(),
            },
        };
        let history = history(&[
            ("caught", failed()),
            ("j", join()),
            ("j/|a/caught", failed()),
            ("j/|b/s", attempt),
            ("j/|a/s", failed()),
            ("j/|b/s", failed()),
            ("j/|b/late", pin()),
            ("", end()),
        ]);
        let plan = Recovery::plan(&history).unwrap();
        assert_eq!(seqs(&plan.removed), [5, 6, 7, 9]);
        assert_eq!(plan.children, []);
    }

    #[test]
    fn a_failure_in_a_race_that_was_won_is_not_retried() {
        let race = Body::Opened(Opened::Race(vec!["a".to_owned(), "b".to_owned()]));
        let decided = Body::Decided {
            branch: "a".to_owned(),
        };
        let history = history(&[
            ("r", race),
            ("r/|a/s", failed()),
            ("r", decided),
            ("", end()),
        ]);
        assert_eq!(Recovery::plan(&history), Err(RewindError::NothingToRetry));
        for inside in ["r/a/s", "r/a", "r/b/lost"] {
            assert!(
                matches!(
                    Rewind::plan(&history, inside),
                    Err(RewindError::Decided { .. })
                ),
                "{inside}"
            );
        }
        assert_eq!(rewound(&history, "r"), [2, 3, 4, 5]);
    }

    #[test]
    fn a_copy_is_numbered_anew_and_leaves_out_what_is_only_the_firsts() {
        let id = RunId::from_stored("a/child");
        let child = |detached| {
            Body::Waiting(Waiting::Child {
                id: id.clone(),
                detached,
            })
        };
        let started = Body::Attempt {
            number: 1,
            state: AttemptState::Started,
        };
        let history = history(&[
            ("one", done()),
            ("old", child(false)),
            ("old", done()),
            ("up", Body::Settled { up_to: 4 }),
            ("new", child(false)),
            ("begun", started),
            ("last", done()),
            ("", end()),
        ]);
        let from = RunId::from_stored("a");
        let copy = fork(&history, None, &from, 9);
        assert_eq!(seqs(&copy), [1, 2, 3, 4, 5, 6]);
        let places: Vec<_> = copy
            .iter()
            .map(|record| record.location.to_string())
            .collect();
        assert_eq!(places, ["", "one", "old", "old", "up", "last"]);
        assert_eq!(copy[4].body, Body::Settled { up_to: 4 });
        let rewind = Rewind::plan(&history, "old").unwrap();
        assert_eq!(fork(&history, Some(&rewind), &from, 9).len(), 2);
        assert!(matches!(&copy[0].body, Body::Begun(begun) if begun.forked_from == Some(from)));
    }
}
