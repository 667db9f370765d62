//! One run's history, outside of its store.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{
    Begun, Body, Control, Finished, HistoryError, Kind, Location, Opened, Payload, Record, RunId,
    Segment, Waiting, ledger_location, position_location,
};

/// One run's history, exported: what a program needs to replay it, and what a person can read.
///
/// [`Engine::export`](crate::Engine::export) gives it, [`to_json`](Self::to_json) writes it, and
/// [`testing::replay`](crate::testing::replay) replays it against the code of today.
///
/// # Its JSON form
///
/// ```json
/// {
///   "format": 1,
///   "id": "order-17",
///   "records": [
///     {"seq": 1, "at": 1764475944123, "code": "00000000000000a1",
///      "body": {"begun": {"workflow": "order", "input": {"json": {"item": "book"}}, "input_hash": "5b0a…",
///                         "seed": "1f07…", "generation": 0}}},
///     {"seq": 2, "at": 1764475944130, "code": "00000000000000a1", "location": ["items", 3, "ship"],
///      "body": {"ended": {"kind": "step", "outcome": {"ok": {"json": 4}}, "attempts": 1, "started_at": 1764475944124}}}
///   ]
/// }
/// ```
///
/// - Records are in order of `seq`, and the first is `begun`: the workflow's name, the input, the seed, the generation. A run
///   that was rewound has a later generation in a `control` record.
/// - `at` and other instants are milliseconds since the Unix epoch; `code` is the build that wrote the record.
/// - A `location` is a list: a text is a site, a number an iteration or item, `{"branch": "paid"}` a branch,
///   `{"key": "sku-9", "occurrence": 0}` an iteration or item that has a key. The body of the workflow has none.
/// - A `body` is an object with one field, named after what happened, or just that name where there is nothing more to say. It is
///   what [`Body`] says, in snake case.
/// - A value is `{"json": ..}`, byte for byte as it was recorded; or, where the engine's codec sealed it,
///   `{"codec": 7, "hex": ".."}`. An outcome is `{"ok": value}` or `{"failed": failure}`.
/// - Numbers of 64 bits and more that are not counted (seeds, hashes, ids) are hexadecimal text.
///
/// Files of format 1 are read by every later version. What a version does not know is an error, and not passed over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct History {
    id: RunId,
    records: Vec<Record>,
}

/// A text that is no history.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// It is not JSON, or not of the form that [`History`] describes.
    #[error("line {line}, column {column}: {message}")]
    Json {
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
        /// What is wrong there.
        message: String,
    },
    /// A newer version wrote it.
    #[error("it has format {found}, and this version reads format {FORMAT}: update `workflow`")]
    Format {
        /// Its format.
        found: u32,
    },
    /// No run could have written these records.
    #[error(transparent)]
    History(#[from] HistoryError),
}

/// The format that is written.
const FORMAT: u32 = 1;

/// The largest number that counts anything: so many do not come together, and every tool reads it.
const MOST: u64 = 1 << 53;

/// The deepest location. Deeper ones are not written by a program that ends.
const DEEPEST: usize = 256;

impl History {
    /// The history of this run.
    ///
    /// # Errors
    /// [`HistoryError`] when no run could have written these records.
    pub fn new(id: RunId, records: Vec<Record>) -> Result<Self, HistoryError> {
        check(&records)?;
        Ok(Self { id, records })
    }

    /// The history of a run as its store has it; absent when there is none.
    #[cfg(feature = "engine")]
    pub(crate) fn stored(id: RunId, records: Vec<Record>) -> Option<Self> {
        Begun::of(&records)
            .is_some()
            .then_some(Self { id, records })
    }

    /// Reads what [`to_json`](Self::to_json) wrote.
    ///
    /// # Errors
    /// [`ImportError`], which says what is wrong and where.
    pub fn from_json(json: &str) -> Result<Self, ImportError> {
        #[derive(Deserialize)]
        struct Format {
            format: u32,
        }
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Whole {
            #[serde(rename = "format")]
            _format: u32,
            id: RunId,
            records: Vec<Record>,
        }
        // First, for the rest of a newer form cannot be read.
        let Format { format } = serde_json::from_str(json)?;
        if format != FORMAT {
            return Err(ImportError::Format { found: format });
        }
        let Whole { id, records, .. } = serde_json::from_str(json)?;
        Ok(Self::new(id, records)?)
    }

    /// Its JSON form, with a line for each record: two exports of one run differ where the run went on.
    #[expect(clippy::missing_panics_doc, reason = "writing to memory does not fail")]
    pub fn to_json(&self) -> String {
        let text = |record| {
            serde_json::to_string::<Record>(record)
                .expect("a record has text for keys, and writing to memory does not fail")
        };
        let records: Vec<_> = self.records.iter().map(text).collect();
        let id = serde_json::Value::from(self.id.as_str());
        format!(
            "{{\n\"format\": {FORMAT},\n\"id\": {id},\n\"records\": [\n{}\n]\n}}\n",
            records.join(",\n")
        )
    }

    /// The run's id.
    pub fn id(&self) -> &RunId {
        &self.id
    }

    /// The workflow's name.
    pub fn workflow(&self) -> &str {
        &self.begun().workflow
    }

    /// The run's input: an object with a field per parameter.
    pub fn input(&self) -> &Payload {
        &self.begun().input
    }

    /// What the run's `uuid!`, `random!` and idempotency keys are derived from.
    pub fn seed(&self) -> u128 {
        let forked = self.controls().filter_map(|control| match control {
            Control::Forked { seed } => Some(*seed),
            _ => None,
        });
        forked.last().unwrap_or(self.begun().seed)
    }

    /// How many times the run was rewound or compensated and recovered.
    pub fn generation(&self) -> u32 {
        let rewound = self.controls().filter_map(|control| match control {
            Control::Rewound { generation, .. } => Some(*generation),
            _ => None,
        });
        rewound.last().unwrap_or(self.begun().generation)
    }

    /// The records, in order.
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// How the run ended, if it has.
    pub fn finished(&self) -> Option<&Finished> {
        match &self.records.last()?.body {
            Body::Finished(finished) => Some(finished),
            _ => None,
        }
    }

    /// The history of the run when it had no record after `seq`; absent when it had none at all.
    ///
    /// What was deleted since is not in it: a run that decided a race then has no records of the losers now.
    pub fn up_to(&self, seq: u64) -> Option<Self> {
        let kept = self.records.iter().take_while(|record| record.seq <= seq);
        let records: Vec<_> = kept.cloned().collect();
        let id = self.id.clone();
        (!records.is_empty()).then_some(Self { id, records })
    }

    fn begun(&self) -> &Begun {
        Begun::of(&self.records).expect("a history begins with how the run began: that was checked")
    }

    fn controls(&self) -> impl Iterator<Item = &Control> {
        self.records.iter().filter_map(|record| match &record.body {
            Body::Control(control) => Some(control),
            _ => None,
        })
    }
}

impl FromStr for History {
    type Err = ImportError;

    fn from_str(json: &str) -> Result<Self, ImportError> {
        Self::from_json(json)
    }
}

impl Serialize for History {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct;
        let mut whole = serializer.serialize_struct("History", 3)?;
        whole.serialize_field("format", &FORMAT)?;
        whole.serialize_field("id", &self.id)?;
        whole.serialize_field("records", &self.records)?;
        whole.end()
    }
}

impl<'de> Deserialize<'de> for History {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use serde::de::Error;
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Whole {
            format: u32,
            id: RunId,
            records: Vec<Record>,
        }
        let whole = Whole::deserialize(deserializer)?;
        let found = whole.format;
        if found != FORMAT {
            return Err(D::Error::custom(ImportError::Format { found }));
        }
        Self::new(whole.id, whole.records).map_err(D::Error::custom)
    }
}

impl From<serde_json::Error> for ImportError {
    fn from(error: serde_json::Error) -> Self {
        let (line, column) = (error.line(), error.column());
        // The place stands in the text, too.
        let place = format!(" at line {line} column {column}");
        let message = error.to_string();
        let message = message.strip_suffix(&place).unwrap_or(&message).to_owned();
        Self::Json {
            line,
            column,
            message,
        }
    }
}

// ----- what no run could have written -----

/// What the records before say of a location.
#[derive(Debug, Default)]
struct Said<'a> {
    /// What is there.
    kind: Option<Kind>,
    /// Nothing more comes: its outcome was recorded.
    ended: bool,
    opened: Option<&'a Opened>,
    /// Of a carried loop: its first and its last iteration, and how many of them have ended.
    iterations: Option<(u64, u64)>,
    boundaries: u64,
    /// The last boundary.
    next: u64,
}

/// Checks that a run could have written these records, as far as a replay relies on it: the machine takes what a store gives it
/// as written by itself, and a file may hold anything.
fn check(records: &[Record]) -> Result<(), HistoryError> {
    let Some(Record {
        body: Body::Begun(_),
        ..
    }) = records.first()
    else {
        return Err(HistoryError::NoBeginning);
    };
    let mut checked = Checked::default();
    let mut last = 0;
    for (index, record) in records.iter().enumerate() {
        if record.seq <= last {
            return Err(HistoryError::Disordered {
                after: last,
                found: record.seq,
            });
        }
        last = record.seq;
        let begins = matches!(record.body, Body::Begun(_));
        let ends = matches!(record.body, Body::Finished(_));
        let what = if record.seq > MOST {
            Err("its number is too large")
        } else if begins != (index == 0) {
            Err("a run begins once")
        } else if ends && index + 1 < records.len() {
            Err("something follows the end")
        } else {
            checked.take(record)
        };
        what.map_err(|what| HistoryError::Impossible {
            seq: record.seq,
            location: record.location.clone(),
            what,
        })?;
    }
    Ok(())
}

#[derive(Default)]
struct Checked<'a> {
    said: BTreeMap<Location, Said<'a>>,
    /// What something lies under.
    scopes: BTreeSet<Location>,
}

impl<'a> Checked<'a> {
    fn take(&mut self, record: &'a Record) -> Result<(), &'static str> {
        let location = &record.location;
        match &record.body {
            Body::Begun(_) | Body::Unwinding { .. } | Body::Finished(_) => {
                return at_root(location);
            }
            Body::Control(_) => return Ok(()),
            Body::Armed { number, .. } => return in_ledger(location, *number),
            Body::Undone { undoes, .. } => return in_ledger(location, *undoes),
            Body::State { revision, .. } => return is_position(location, *revision),
            _ => {}
        }
        self.place(location)?;
        let said = self.said.entry(location.clone()).or_default();
        if said.ended {
            return Err("something follows its outcome");
        }
        let kind = match &record.body {
            Body::Opened(opened) => {
                // A visit is, when its stage is left.
                let again = matches!(opened, Opened::Stage { .. }) && said.opened == Some(opened);
                if said.opened.is_some() && !again {
                    return Err("it is opened a second time");
                }
                said.opened = Some(opened);
                Some(match opened {
                    Opened::Join(_) => Kind::Join,
                    Opened::Race(_) => Kind::Race,
                    Opened::JoinAll(_) => Kind::JoinAll,
                    Opened::Carry(_) => Kind::Loop,
                    Opened::Stage { .. } => Kind::Stage,
                })
            }
            Body::Waiting(Waiting::Sleep { .. }) => Some(Kind::Sleep),
            Body::Waiting(Waiting::Child { .. }) => Some(Kind::Child),
            // It only says that the code had come here.
            Body::Waiting(Waiting::Body) => None,
            Body::Attempt { .. } => Some(Kind::Step),
            Body::Waiting(Waiting::Recv { .. }) | Body::Taken(_) => Some(Kind::Recv),
            Body::Ended(ended) => Some(ended.kind),
            Body::Decided { branch } => {
                let among =
                    matches!(said.opened, Some(Opened::Race(names)) if names.contains(branch));
                return if among {
                    Ok(())
                } else {
                    Err("a branch won that the race does not have")
                };
            }
            Body::Carried { next, .. } => return self.boundary(location, *next),
            // Facts are looked up by name, and concern nothing else.
            Body::Pin { .. } | Body::Removed { .. } | Body::Checkpoint | Body::Settled { .. } => {
                return Ok(());
            }
            _ => return Err("it is of a kind that this version does not replay"),
        };
        said.ended = matches!(record.body, Body::Ended(_) | Body::Taken(_));
        let is_wait_of_iteration = kind.is_none();
        // What a stage's code asks of its guide ends, and a visit does not.
        let is_asked = kind == Some(Kind::Stage) && said.ended;
        let is_operation = is_asked
            || matches!(
                kind,
                Some(
                    Kind::Step
                        | Kind::Sleep
                        | Kind::Now
                        | Kind::Recv
                        | Kind::Send
                        | Kind::Reply
                        | Kind::Child
                        | Kind::Rollback
                )
            );
        if is_operation || is_wait_of_iteration {
            if is_operation && self.scopes.contains(location) {
                return Err("it is one operation, and something lies under it");
            }
        } else if said.opened.is_none() {
            return Err("it is no operation that has an outcome");
        }
        if matches!(&record.body, Body::Ended(ended) if ended.kind == Kind::Recv) {
            return Err("a receive ends by what it takes");
        }
        if let Some(kind) = kind
            && said.kind.replace(kind).is_some_and(|before| before != kind)
        {
            return Err("an earlier record says that it is of another kind");
        }
        Ok(())
    }

    /// Checks that a location can be, after what was recorded before.
    fn place(&mut self, location: &Location) -> Result<(), &'static str> {
        let mut scope = Location::root();
        let mut within = None;
        for (depth, segment) in location.segments().enumerate() {
            if depth == DEEPEST {
                return Err("its location is too deep");
            }
            let fits = match (within, segment) {
                // The visits of a stage of a guide, and what is tried beside its body.
                (None, Segment::Branch(_)) | (Some(Segment::Branch(_)), Segment::Iter(_)) => true,
                (Some(Segment::Iter(_)), Segment::Branch(name)) => name.starts_with('\0'),
                (None | Some(Segment::Branch(_) | Segment::Iter(_) | Segment::Key { .. }), at) => {
                    matches!(at, Segment::Site(_))
                }
                (Some(Segment::Site(_)), at) => {
                    let said = self.said.get_mut(&scope);
                    let opened = said.as_ref().and_then(|said| said.opened);
                    if said
                        .as_ref()
                        .is_some_and(|said| said.kind.is_some() && opened.is_none())
                    {
                        return Err("it lies under an operation");
                    }
                    match (opened, at) {
                        (
                            Some(Opened::Join(names) | Opened::Race(names)),
                            Segment::Branch(name),
                        ) => names.iter().any(|known| known == name),
                        (Some(Opened::JoinAll(items)), Segment::Iter(index)) => index < *items,
                        (Some(Opened::Carry(_)), Segment::Iter(index)) => {
                            if let Some(said) = said {
                                let (first, last) = said.iterations.unwrap_or((index, index));
                                let iterations = (first.min(index), last.max(index));
                                // Those that are kept follow each other, and each but the last has ended.
                                if index > MOST || iterations.1 - iterations.0 > said.boundaries + 1
                                {
                                    return Err("the loop has not come to this iteration");
                                }
                                said.iterations = Some(iterations);
                            }
                            true
                        }
                        (None, Segment::Iter(index)) => index <= MOST,
                        (None, Segment::Site(_))
                        | (None | Some(Opened::JoinAll(_)), Segment::Key { .. }) => true,
                        _ => false,
                    }
                }
            };
            if !fits {
                return Err("its location is one that no code has");
            }
            if depth > 0 {
                self.scopes.insert(scope.clone());
            }
            scope = scope.child(segment);
            within = Some(segment);
        }
        if within.is_none() {
            return Err("it has no location");
        }
        Ok(())
    }

    fn boundary(&mut self, location: &Location, next: u64) -> Result<(), &'static str> {
        let Some(Segment::Iter(index)) = location.segments().last() else {
            return Err("only an iteration has an end");
        };
        let segments = location.segments().count();
        let carried = location
            .segments()
            .take(segments - 1)
            .fold(Location::root(), |at, segment| at.child(segment));
        let carried = self.said.get_mut(&carried);
        let Some(carried) = carried.filter(|said| matches!(said.opened, Some(Opened::Carry(_))))
        else {
            return Err("the loop carries nothing");
        };
        if index.checked_add(1) != Some(next) || next <= carried.next {
            return Err("the iterations do not follow each other");
        }
        carried.next = next;
        carried.boundaries += 1;
        Ok(())
    }
}

fn at_root(location: &Location) -> Result<(), &'static str> {
    if location.is_root() {
        Ok(())
    } else {
        Err("it concerns the whole run, and has a location")
    }
}

/// The positions of a guide lie at a place of their own.
fn is_position(location: &Location, revision: u64) -> Result<(), &'static str> {
    let place = position_location(&Location::root(), revision);
    if location.as_bytes().ends_with(place.as_bytes()) {
        Ok(())
    } else {
        Err("a position lies among the positions, under its revision")
    }
}

fn in_ledger(location: &Location, number: u64) -> Result<(), &'static str> {
    if number > 0 && number <= MOST && *location == ledger_location(number) {
        Ok(())
    } else {
        Err("it is an entry of the ledger, and lies elsewhere")
    }
}
