//! The one error a durable operation gives.

use std::error::Error;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Location, Payload};

/// Why a durable operation did not succeed, as it was recorded: the same on the first run and on every replay.
///
/// One pointer wide. Its typed value, where there is one, comes back by [`Failure::downcast`].
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Failure(Box<Inner>);

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Inner {
    kind: FailureKind,
    #[serde(default, skip_serializing_if = "Location::is_root")]
    location: Location,
    attempts: u32,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    type_name: String,
    message: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    chain: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    value: Option<Payload>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    branches: Vec<Failure>,
}

/// What kind of thing went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FailureKind {
    /// Every attempt failed.
    Exhausted,
    /// An attempt took longer than the step's timeout, and the step does not retry on that.
    TimedOut,
    /// The error was marked critical, so no further attempt was made.
    Critical,
    /// An `at_most_once` step, or one whose body killed the process again and again, was cut off: whether its effect
    /// happened is unknown.
    Interrupted,
    /// The step's body panicked on every attempt.
    Panicked,
    /// At least one branch of a join failed; [`Failure::branches`] has them all.
    Join,
    /// Every branch of a race failed; [`Failure::branches`] has them all.
    Race,
    /// It cannot go on before somebody does something, as its error says: made by [`blocked`](crate::blocked).
    Blocked,
    /// A child workflow failed.
    Child,
    /// A child or a requested run was cancelled.
    Cancelled,
    /// The value could not be encoded, or is over the payload limit: nothing of it was written.
    Encode,
    /// A recorded value does not decode into the type the code now has.
    Decode,
    /// Two items of a `join_all!` have the same key; no branch was started.
    DuplicateKey,
    /// What was waited for is no longer there.
    Gone,
    /// The user's code asked for a rollback.
    Rollback,
    /// The workflow's own code returned an error that came from no durable operation.
    Returned,
}

impl FailureKind {
    /// The word for it in messages and in stored form.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Exhausted => "exhausted",
            Self::TimedOut => "timed out",
            Self::Critical => "critical",
            Self::Interrupted => "interrupted",
            Self::Panicked => "panicked",
            Self::Join => "join",
            Self::Race => "race",
            Self::Blocked => "blocked",
            Self::Child => "child",
            Self::Cancelled => "cancelled",
            Self::Encode => "encode",
            Self::Decode => "decode",
            Self::DuplicateKey => "duplicate key",
            Self::Gone => "gone",
            Self::Rollback => "rollback",
            Self::Returned => "returned",
        }
    }
}

impl fmt::Display for FailureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl Failure {
    /// A failure of `kind` at `location` with a message and nothing else.
    pub fn new(kind: FailureKind, location: Location, message: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            kind,
            location,
            attempts: 1,
            type_name: String::new(),
            message: message.into(),
            chain: Vec::new(),
            value: None,
            branches: Vec::new(),
        }))
    }

    /// A failure that carries what an error says: its message, and its sources in order.
    pub fn from_error(
        kind: FailureKind,
        location: Location,
        type_name: &str,
        error: &(dyn Error + 'static),
    ) -> Self {
        let mut chain = Vec::new();
        let mut source = error.source();
        while let Some(cause) = source {
            chain.push(cause.to_string());
            source = cause.source();
        }
        let mut failure = Self::new(kind, location, error.to_string());
        type_name.clone_into(&mut failure.0.type_name);
        failure.0.chain = chain;
        failure
    }

    /// The same failure after so many attempts.
    #[must_use]
    pub fn with_attempts(mut self, attempts: u32) -> Self {
        self.0.attempts = attempts;
        self
    }

    /// The same failure of another kind.
    #[must_use]
    pub fn with_kind(mut self, kind: FailureKind) -> Self {
        self.0.kind = kind;
        self
    }

    /// The same failure at another location.
    #[must_use]
    pub fn with_location(mut self, location: Location) -> Self {
        self.0.location = location;
        self
    }

    /// The same failure with the name of the error's type.
    #[must_use]
    pub fn with_type_name(mut self, type_name: impl Into<String>) -> Self {
        self.0.type_name = type_name.into();
        self
    }

    /// The same failure with the messages of the error's sources, the nearest first.
    #[must_use]
    pub fn with_chain(mut self, chain: Vec<String>) -> Self {
        self.0.chain = chain;
        self
    }

    /// The same failure with the error's own encoded value.
    #[must_use]
    pub fn with_value(mut self, value: Option<Payload>) -> Self {
        self.0.value = value;
        self
    }

    /// The same failure with those of its branches.
    #[must_use]
    pub fn with_branches(mut self, branches: Vec<Failure>) -> Self {
        self.0.branches = branches;
        self
    }

    /// What kind of thing went wrong.
    pub fn kind(&self) -> FailureKind {
        self.0.kind
    }

    /// Where: the step's, join's or race's location in the run.
    pub fn location(&self) -> &Location {
        &self.0.location
    }

    /// How many times the step's body was entered.
    pub fn attempts(&self) -> u32 {
        self.0.attempts
    }

    /// The name of the error's type, as the compiler spelled it when it was recorded; empty when there was no error value.
    pub fn type_name(&self) -> &str {
        &self.0.type_name
    }

    /// The error's own message.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The messages of the error's sources, the nearest first.
    pub fn chain(&self) -> &[String] {
        &self.0.chain
    }

    /// The error's own value as it was encoded, where its type is serializable.
    pub fn value(&self) -> Option<&Payload> {
        self.0.value.as_ref()
    }

    /// The failures of the branches, for [`FailureKind::Join`] and [`FailureKind::Race`].
    pub fn branches(&self) -> &[Failure] {
        &self.0.branches
    }
}

/// `` `charge` failed (exhausted after 4 attempts): card declined: no funds ``
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = &*self.0;
        if inner.location.is_root() {
            write!(f, "{}", inner.message)?;
        } else {
            write!(f, "`{}` failed ({}", inner.location, inner.kind)?;
            if inner.attempts > 1 {
                write!(f, " after {} attempts", inner.attempts)?;
            }
            write!(f, "): {}", inner.message)?;
        }
        for cause in &inner.chain {
            write!(f, ": {cause}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = &*self.0;
        let mut out = f.debug_struct("Failure");
        out.field("kind", &inner.kind)
            .field("location", &inner.location)
            .field("attempts", &inner.attempts);
        if !inner.type_name.is_empty() {
            out.field("type_name", &inner.type_name);
        }
        out.field("message", &inner.message);
        if !inner.chain.is_empty() {
            out.field("chain", &inner.chain);
        }
        if let Some(value) = &inner.value {
            out.field("value", value);
        }
        if !inner.branches.is_empty() {
            out.field("branches", &inner.branches);
        }
        out.finish()
    }
}

impl Error for Failure {}
