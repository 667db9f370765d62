//! Errors that say that somebody has to do something first.

use std::fmt;

/// Says that work cannot go on before somebody does something: approves, pays, decides.
///
/// Returned from the body of a step, or from an operation's work, wherever in an error's chain of sources it stands, it ends that as
/// blocked: it is not retried. A parent that passes it on with `?` is blocked, too. A step fails with
/// [`FailureKind::Blocked`](crate::FailureKind::Blocked); the stage of a guided flow whose code passes that on is blocked, until
/// [`Guide::release`](crate::guided::Guide::release) lets it go on from there.
///
/// ```
/// # use workflow::operation::{Attempt, blocked};
/// async fn publish(cx: Attempt) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
///     let Some(approver) = cx.released::<String>() else {
///         return Err(blocked("needs an approval").into());
///     };
///     cx.log(format!("approved by {approver}"));
///     Ok(())
/// }
/// ```
pub fn blocked(reason: impl Into<String>) -> Blocked {
    Blocked(BlockedMark(reason.into()))
}

/// An error made by [`blocked`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocked(BlockedMark);

/// What a [`Blocked`] has as its source: some errors (`anyhow`'s) hide the type of what they were made of, and show its source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockedMark(String);

impl Blocked {
    /// What has to be done.
    pub fn reason(&self) -> &str {
        self.0.reason()
    }
}

impl BlockedMark {
    /// What has to be done.
    pub fn reason(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for BlockedMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "blocked: {}", self.0)
    }
}

impl std::error::Error for BlockedMark {}

impl fmt::Display for Blocked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl std::error::Error for Blocked {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}
