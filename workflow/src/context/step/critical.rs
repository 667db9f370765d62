//! Errors that another attempt would not mend.

use std::error::Error;
use std::fmt;

use crate::codec::BoxError;

/// Marks an error as one that another attempt would not mend: the step fails at once.
///
/// It may stand anywhere in the chain of an error's sources.
///
/// ```
/// fn parse(text: &str) -> Result<u32, Box<dyn std::error::Error + Send + Sync>> {
///     Ok(text.parse().map_err(workflow::critical)?)
/// }
/// # assert!(parse("x").is_err());
/// ```
pub fn critical(error: impl Into<BoxError>) -> Critical {
    Critical(error.into())
}

/// An error marked by [`critical`]. It says what the marked error says.
pub struct Critical(BoxError);

impl Critical {
    /// The marked error.
    pub fn into_inner(self) -> Box<dyn Error + Send + Sync> {
        self.0
    }
}

impl fmt::Display for Critical {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Debug for Critical {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl Error for Critical {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source()
    }
}
