//! Who a run is: its id, its number in a store, and the code that drives it.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use super::Location;

/// The id of a run: what the user called it, or, for a child run, `parent/location`.
///
/// An id that a user gives is 1 to 512 bytes long and holds neither `/` nor control characters, so that
/// it can never be mistaken for the id of a child run.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RunId(Arc<str>);

impl RunId {
    /// The longest id a user may give, in bytes.
    pub const MAX: usize = 512;

    /// Checks an id that a user gave.
    ///
    /// # Errors
    /// [`InvalidRunId`] when it is empty, longer than [`RunId::MAX`] bytes, or holds `/` or a control character.
    ///
    /// ```
    /// use workflow::RunId;
    ///
    /// assert!(RunId::new("order-17").is_ok());
    /// assert!(RunId::new("order-17/ship").is_err());
    /// ```
    pub fn new(id: impl AsRef<str>) -> Result<Self, InvalidRunId> {
        let id = id.as_ref();
        let refused = |reason| {
            Err(InvalidRunId {
                id: id.chars().take(64).collect(),
                reason,
            })
        };
        if id.is_empty() {
            return refused("it is empty");
        }
        if id.len() > Self::MAX {
            return refused("it is longer than 512 bytes");
        }
        if id.contains('/') {
            return refused("it holds `/`, which stands between a parent run and its child");
        }
        if id.chars().any(char::is_control) {
            return refused("it holds a control character");
        }
        Ok(Self(id.into()))
    }

    /// The id of the child run that `parent` starts at `location` in its generation `generation`.
    pub fn child(parent: &Self, location: &Location, generation: u32) -> Self {
        let text = if generation == 0 {
            format!("{parent}/{location}")
        } else {
            format!("{parent}/{location}#{generation}")
        };
        Self(text.into())
    }

    /// True when it is the id of a child of that run, or of one further down, which the engine made.
    pub fn is_under(&self, parent: &Self) -> bool {
        self.0
            .strip_prefix(&*parent.0)
            .is_some_and(|rest| rest.starts_with('/'))
    }

    /// An id as a store gives it back: it was checked when it was written.
    pub fn from_stored(id: &str) -> Self {
        Self(id.into())
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for RunId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

/// What [`RunId::new`] refuses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{id}` cannot be the id of a run: {reason}")]
pub struct InvalidRunId {
    id: String,
    reason: &'static str,
}

/// The number of a run in its store, in start order. Internal: users name runs by [`RunId`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RunKey(pub u64);

/// Which build of the program wrote a record: a fingerprint of the registered workflows, set by the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct CodeId(pub u64);

#[cfg(test)]
mod tests {
    use super::*;

    // U21
    #[test]
    fn a_user_cannot_name_a_run_like_a_child() {
        let parent = RunId::new("o1").unwrap();
        let child = RunId::child(&parent, &Location::root().site("ship"), 0);
        assert_eq!(child.as_str(), "o1/ship");
        assert!(RunId::new(child.as_str()).is_err());
        assert_ne!(
            child,
            RunId::child(&parent, &Location::root().site("ship"), 1)
        );
    }

    #[test]
    fn an_empty_an_endless_and_a_hostile_id_are_refused() {
        assert!(RunId::new("").is_err());
        assert!(RunId::new("x".repeat(513)).is_err());
        assert!(RunId::new("a\nb").is_err());
        assert!(RunId::new("x".repeat(512)).is_ok());
    }
}
