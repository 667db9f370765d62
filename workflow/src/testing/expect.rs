//! What a history has to say.

use std::collections::BTreeMap;
use std::fmt;

use crate::replay::{
    AttemptState, Body, Finished, History, Kind, Location, Record, Segment, Waiting,
};

/// Says what the history of a run has to say. Each method panics when it does not, at the line that calls it, with the whole history in
/// few words.
///
/// Locations are written as reports show them: `charge`, `settle/paid/payment`, `items[3]/ship`.
///
/// ```
/// # use workflow::{Engine, Failure, MemoryStore, step, workflow};
/// # #[step]
/// # async fn reserve(item: String) -> usize { item.len() }
/// # #[step]
/// # async fn charge(cents: usize) -> usize { cents }
/// # #[workflow]
/// # async fn order(item: String) -> Result<usize, Failure> { Ok(charge(reserve(item).await?).await?) }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let engine = Engine::builder().workflow(order).store(MemoryStore::new()).build().await?;
/// # let run = engine.start("order-1", order("book".to_owned())).await?;
/// # run.result().await?;
/// use workflow::testing::expect;
///
/// expect(&run.export().await?)
///     .steps(["reserve", "charge"])
///     .attempts("charge", 1)
///     .nothing_at("refund")
///     .completed();
/// # Ok(())
/// # }
/// ```
pub fn expect(history: &History) -> Expect<'_> {
    Expect { history }
}

/// What a history has to say. Made by [`expect`].
#[derive(Debug, Clone)]
pub struct Expect<'h> {
    history: &'h History,
}

impl Expect<'_> {
    /// These steps have ended, well or not, in this order, and no others.
    ///
    /// # Panics
    /// When that is not so.
    #[track_caller]
    pub fn steps(&self, locations: impl IntoIterator<Item = impl AsRef<str>>) -> &Self {
        let wanted = locations.into_iter();
        let wanted: Vec<_> = wanted.map(|at| at.as_ref().to_owned()).collect();
        let found = self.ended_steps();
        assert!(
            wanted == found,
            "these steps were to end, in this order: {}\nthese did:                               {}\n{self}",
            Listed(&wanted),
            Listed(&found)
        );
        self
    }

    /// The operation at the first location ended before the one at the second did; both have.
    ///
    /// # Panics
    /// When that is not so.
    #[track_caller]
    pub fn in_order(&self, first: &str, second: &str) -> &Self {
        let (one, other) = (self.end_of(first), self.end_of(second));
        for (location, end) in [(first, one), (second, other)] {
            assert!(end.is_some(), "`{location}` has not ended\n{self}");
        }
        assert!(
            one < other,
            "`{first}` was to end before `{second}`, and ended after it\n{self}"
        );
        self
    }

    /// The step at this location succeeded.
    ///
    /// # Panics
    /// When that is not so.
    #[track_caller]
    pub fn succeeded(&self, location: &str) -> &Self {
        match self.outcome_of(location) {
            Some(Outcome { failed: None, .. }) => self,
            Some(Outcome {
                failed: Some(failure),
                ..
            }) => panic!("`{location}` was to succeed, and failed: {failure}\n{self}"),
            None => panic!("`{location}` was to succeed, and has not ended\n{self}"),
        }
    }

    /// The step at this location failed for good, with something that contains this text.
    ///
    /// # Panics
    /// When that is not so.
    #[track_caller]
    pub fn failed_with(&self, location: &str, text: &str) -> &Self {
        match self.outcome_of(location) {
            Some(Outcome {
                failed: Some(failure),
                ..
            }) => assert!(
                failure.contains(text),
                "`{location}` was to fail with `{text}`, and failed otherwise: {failure}\n{self}"
            ),
            Some(_) => panic!("`{location}` was to fail, and succeeded\n{self}"),
            None => panic!("`{location}` was to fail, and has not ended\n{self}"),
        }
        self
    }

    /// The step at this location has ended, after so many attempts.
    ///
    /// # Panics
    /// When that is not so.
    #[track_caller]
    pub fn attempts(&self, location: &str, attempts: u32) -> &Self {
        match self.outcome_of(location) {
            Some(found) => assert!(
                found.attempts == attempts,
                "`{location}` was to take {attempts} attempts, and took {}\n{self}",
                found.attempts
            ),
            None => {
                panic!("`{location}` was to take {attempts} attempts, and has not ended\n{self}")
            }
        }
        self
    }

    /// Nothing is recorded at this location or under it.
    ///
    /// # Panics
    /// When that is not so.
    #[track_caller]
    pub fn nothing_at(&self, location: &str) -> &Self {
        let found = self.history.records().iter().find(|record| {
            let at = record.location.to_string();
            let rest = at.strip_prefix(location);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '[']))
        });
        assert!(
            found.is_none(),
            "nothing was to be recorded at `{location}`\n{self}"
        );
        self
    }

    /// This branch won the race at this location.
    ///
    /// # Panics
    /// When that is not so.
    #[track_caller]
    pub fn won(&self, race: &str, branch: &str) -> &Self {
        let decided = self.at(race).find_map(|record| match &record.body {
            Body::Decided { branch } => Some(branch.as_str()),
            _ => None,
        });
        assert!(
            decided == Some(branch),
            "`{branch}` was to win the race `{race}`, and {} did\n{self}",
            decided.map_or("nobody".to_owned(), |won| format!("`{won}`"))
        );
        self
    }

    /// The effects of the steps at these locations were undone, in this order, and no others.
    ///
    /// # Panics
    /// When that is not so.
    #[track_caller]
    pub fn undone(&self, locations: impl IntoIterator<Item = impl AsRef<str>>) -> &Self {
        let wanted = locations.into_iter();
        let wanted: Vec<_> = wanted.map(|at| at.as_ref().to_owned()).collect();
        let found = self.undone_steps();
        assert!(
            wanted == found,
            "these were to be undone, in this order: {}\nthese were:                              {}\n{self}",
            Listed(&wanted),
            Listed(&found)
        );
        self
    }

    /// The history says that the operation at this location waits: a sleep, a message, a child that has not ended.
    ///
    /// A run that is in memory waits before it says so; [`Replay`](super::Replay) tells of each history where the code is.
    ///
    /// # Panics
    /// When that is not so.
    #[track_caller]
    pub fn waits_at(&self, location: &str) -> &Self {
        let waits = self
            .at(location)
            .any(|record| matches!(record.body, Body::Waiting(_)));
        assert!(
            waits && self.end_of(location).is_none(),
            "`{location}` was to wait\n{self}"
        );
        self
    }

    /// The run completed.
    ///
    /// # Panics
    /// When that is not so.
    #[track_caller]
    pub fn completed(&self) -> &Self {
        match self.history.finished() {
            Some(Finished::Completed(_)) => self,
            _ => panic!("the run was to complete\n{self}"),
        }
    }

    /// The run failed, with something that contains this text.
    ///
    /// # Panics
    /// When that is not so.
    #[track_caller]
    pub fn failed(&self, text: &str) -> &Self {
        match self.history.finished() {
            Some(Finished::Failed(failure)) => assert!(
                failure.to_string().contains(text),
                "the run was to fail with `{text}`, and failed otherwise\n{self}"
            ),
            _ => panic!("the run was to fail\n{self}"),
        }
        self
    }

    /// The run was cancelled.
    ///
    /// # Panics
    /// When that is not so.
    #[track_caller]
    pub fn cancelled(&self) -> &Self {
        match self.history.finished() {
            Some(Finished::Cancelled) => self,
            _ => panic!("the run was to be cancelled\n{self}"),
        }
    }

    /// The run has not ended.
    ///
    /// # Panics
    /// When that is not so.
    #[track_caller]
    pub fn open(&self) -> &Self {
        assert!(
            self.history.finished().is_none(),
            "the run was not to have ended\n{self}"
        );
        self
    }

    fn at(&self, location: &str) -> impl Iterator<Item = &Record> {
        let records = self.history.records().iter();
        records.filter(move |record| record.location.to_string() == location)
    }

    fn ended_steps(&self) -> Vec<String> {
        let steps = self.history.records().iter();
        let steps = steps.filter(
            |record| matches!(&record.body, Body::Ended(ended) if ended.kind == Kind::Step),
        );
        steps.map(|record| record.location.to_string()).collect()
    }

    fn undone_steps(&self) -> Vec<String> {
        let armed = armed(self.history);
        let undone = self.history.records().iter();
        let undone = undone.filter_map(|record| match &record.body {
            Body::Undone {
                undoes,
                outcome: Ok(()),
                ..
            } => armed.get(undoes).map(ToString::to_string),
            _ => None,
        });
        undone.collect()
    }

    /// The number of the record with which the operation there ended.
    fn end_of(&self, location: &str) -> Option<u64> {
        let end = self
            .at(location)
            .find(|record| record.body.is_outcome() || matches!(record.body, Body::Decided { .. }));
        end.map(|record| record.seq)
    }

    fn outcome_of(&self, location: &str) -> Option<Outcome> {
        self.at(location).find_map(|record| match &record.body {
            Body::Ended(ended) => Some(Outcome {
                attempts: ended.attempts,
                failed: ended.outcome.as_ref().err().map(ToString::to_string),
            }),
            _ => None,
        })
    }
}

struct Outcome {
    attempts: u32,
    failed: Option<String>,
}

/// The steps whose effects are to be undone, by the number of their entry.
fn armed(history: &History) -> BTreeMap<u64, &Location> {
    let armed = history.records().iter();
    let armed = armed.filter_map(|record| match &record.body {
        Body::Armed {
            number, location, ..
        } => Some((*number, location)),
        _ => None,
    });
    armed.collect()
}

struct Listed<'l>(&'l [String]);

impl fmt::Display for Listed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("none");
        }
        f.write_str(&self.0.join(", "))
    }
}

/// The history in few words, a line for each record that says something.
impl fmt::Display for Expect<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (id, workflow) = (self.history.id(), self.history.workflow());
        write!(f, "the history of `{id}`, a run of `{workflow}`:")?;
        let armed = armed(self.history);
        for record in self.history.records() {
            let said = said(&record.body, &armed);
            let Some(said) = said else { continue };
            // The ledger's own locations are nobody's.
            let of_code = !record.location.is_root()
                && !matches!(record.location.segments().next(), Some(Segment::Site(name)) if name.starts_with('\0'));
            let seq = record.seq;
            if of_code {
                write!(f, "\n  {seq:>4}  {}: {said}", record.location)?;
            } else {
                write!(f, "\n  {seq:>4}  {said}")?;
            }
        }
        Ok(())
    }
}

/// What a record says, in few words.
fn said(body: &Body, armed: &BTreeMap<u64, &Location>) -> Option<String> {
    Some(match body {
        Body::Begun(_) => "the run begins".to_owned(),
        Body::Waiting(Waiting::Sleep { .. }) => "sleeps".to_owned(),
        Body::Waiting(Waiting::Recv { .. }) => "waits for a message".to_owned(),
        Body::Waiting(Waiting::Child { id, .. }) => format!("starts the run `{id}`"),
        Body::Attempt {
            number,
            state: AttemptState::Started,
        } => format!("attempt {number} begins"),
        Body::Attempt {
            number,
            state: AttemptState::Failed { failure, .. },
        } => format!("attempt {number} fails: {}", failure.message()),
        Body::Ended(ended) => {
            let attempts = match (ended.kind, ended.attempts) {
                (Kind::Step, attempts) if attempts != 1 => format!(" after {attempts} attempts"),
                _ => String::new(),
            };
            match &ended.outcome {
                Ok(_) => format!("{} ends{attempts}", ended.kind),
                Err(failure) => format!("{} fails{attempts}: {}", ended.kind, failure.message()),
            }
        }
        Body::Taken(messages) => format!("takes {} message(s)", messages.len()),
        Body::Decided { branch } => format!("`{branch}` wins"),
        Body::Carried { next, .. } => format!("goes on with iteration {next}"),
        Body::Pin { value, .. } => format!("version {value}"),
        Body::Unwinding { cause: Some(_) } => "the run failed and is undone".to_owned(),
        Body::Unwinding { cause: None } => "the run was cancelled and is undone".to_owned(),
        Body::Undone {
            undoes, outcome, ..
        } => {
            let at = armed.get(undoes).map(ToString::to_string);
            let at = at.unwrap_or_default();
            match outcome {
                Ok(()) => format!("`{at}` is undone"),
                Err(failure) => format!("the undo of `{at}` fails: {}", failure.message()),
            }
        }
        Body::Finished(Finished::Completed(_)) => "the run completes".to_owned(),
        Body::Finished(Finished::Failed(failure)) => format!("the run fails: {failure}"),
        Body::Finished(Finished::Cancelled) => "the run is cancelled".to_owned(),
        Body::Control(_) => "the run was changed from outside".to_owned(),
        _ => return None,
    })
}
