//! From what went wrong in user code to what is recorded of it.

use std::error::Error;
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::error::RunError;
use crate::codec::BoxError;
use crate::context::{BlockedMark, Critical};
use crate::replay::{Failure, FailureKind, Location, Segment};

/// So many sources of an error are looked at: one whose chain leads back to itself ends there.
const DEPTH: usize = 32;

/// What an attempt's error means.
pub(super) enum Meaning {
    /// The work cannot go on before somebody does something.
    Blocked(String),
    /// The attempt failed; whether another one may mend it.
    Failed(Failure, bool),
}

/// What an attempt's error means. The error's code is the user's: it is asked with care.
pub(super) fn meaning(error: &BoxError, location: &Location) -> Meaning {
    let error = &**error;
    if let Some(blocked) = find::<BlockedMark>(error) {
        return Meaning::Blocked(blocked.reason().to_owned());
    }
    let (mut kind, mut mends) = (FailureKind::Exhausted, true);
    // A child's failure is also found under an error that hides the `RunError` it was made of.
    if let Some(failure) = find::<Failure>(error) {
        kind = FailureKind::Child;
        mends = failure.kind() != FailureKind::Critical;
    } else if find::<RunError>(error).is_some() {
        kind = FailureKind::Child;
    }
    if find::<Critical>(error).is_some() || !mends {
        (kind, mends) = (FailureKind::Critical, false);
    }
    let mut said: Vec<String> = sources(error).map(text_of).collect();
    // One that is its own source says nothing more.
    said.dedup();
    let chain = said.split_off(1.min(said.len()));
    let message = said.pop().unwrap_or_default();
    let failure = Failure::new(kind, location.clone(), message).with_chain(chain);
    Meaning::Failed(failure, mends)
}

/// The error and its sources, as far as they are looked at.
fn sources<'e>(
    error: &'e (dyn Error + 'static),
) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    let mut next = Some(error);
    std::iter::from_fn(move || {
        let error = next?;
        next = error.source();
        Some(error)
    })
    .take(DEPTH)
}

fn find<'e, E: Error + 'static>(error: &'e (dyn Error + 'static)) -> Option<&'e E> {
    sources(error).find_map(|error| error.downcast_ref())
}

/// What user code says, also when it panics while saying it.
pub(super) fn text_of(said: impl Display) -> String {
    catch_unwind(AssertUnwindSafe(|| said.to_string()))
        .unwrap_or_else(|_| "an error that panicked when asked what it says".to_owned())
}

/// What a panic said.
pub(super) fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a value that is no text".to_owned())
}

/// How a failure is written: its location as names, its kind as a word.
#[derive(Serialize, Deserialize)]
pub(super) struct StoredFailure {
    kind: String,
    location: Vec<String>,
    attempts: u32,
    message: String,
    #[serde(default)]
    chain: Vec<String>,
}

impl StoredFailure {
    #[expect(clippy::ref_option, reason = "serde passes the field by reference")]
    pub(super) fn serialize<S: Serializer>(
        failure: &Option<Failure>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        failure.as_ref().map(Self::of).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Failure>, D::Error> {
        let stored = Option::<Self>::deserialize(deserializer)?;
        Ok(stored.map(Self::into_failure))
    }

    fn of(failure: &Failure) -> Self {
        let names = failure.location().segments().map(|segment| match segment {
            Segment::Site(name) | Segment::Branch(name) => name.to_owned(),
            Segment::Iter(index) => index.to_string(),
            Segment::Key { key, .. } => key.to_owned(),
        });
        Self {
            kind: failure.kind().word().to_owned(),
            location: names.collect(),
            attempts: failure.attempts(),
            message: failure.message().to_owned(),
            chain: failure.chain().to_vec(),
        }
    }

    fn into_failure(self) -> Failure {
        let root = Location::root();
        let location = self.location.iter().fold(root, |at, name| at.site(name));
        let kind = KINDS.iter().find(|kind| kind.word() == self.kind);
        // A kind of a later version is some failure.
        Failure::new(
            kind.copied().unwrap_or(FailureKind::Returned),
            location,
            self.message,
        )
        .with_attempts(self.attempts)
        .with_chain(self.chain)
    }
}

/// The kinds of failure that an operation makes.
const KINDS: &[FailureKind] = &[
    FailureKind::Exhausted,
    FailureKind::TimedOut,
    FailureKind::Critical,
    FailureKind::Interrupted,
    FailureKind::Panicked,
    FailureKind::Child,
    FailureKind::Encode,
    FailureKind::Decode,
    FailureKind::Rollback,
];
