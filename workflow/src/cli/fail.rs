//! Why something was not done, and the exit code that says so.

use std::fmt;
use std::io;

use workflow::store::StoreError;
use workflow::{
    AttachError, CancelError, ControlError, Error, ScheduleError, SendError, SkipUndoError,
};

/// What went wrong.
#[derive(Debug)]
pub(crate) enum Fail {
    /// There is no such run. Exit code 1.
    NotFound(String),
    /// It was refused, or could not be done. Exit code 1.
    Refused(String),
    /// It was done, and what was found is not as it should be; all of it was said. Exit code 1.
    Found,
    /// What was asked cannot be meant. Exit code 2.
    Usage(String),
    /// The store could not be opened. Exit code 3.
    Unopened(String),
    /// Whoever read the output has gone: nothing more is to be said. Exit code 0.
    Unread,
}

impl Fail {
    pub(crate) fn refused(what: impl fmt::Display) -> Self {
        Self::Refused(what.to_string())
    }

    pub(crate) fn code(&self) -> u8 {
        match self {
            Self::Unread => 0,
            Self::NotFound(_) | Self::Refused(_) | Self::Found => 1,
            Self::Usage(_) => 2,
            Self::Unopened(_) => 3,
        }
    }

    /// The word for it in JSON.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::Unread => "unread",
            Self::NotFound(_) => "not_found",
            Self::Refused(_) => "refused",
            Self::Found => "found",
            Self::Usage(_) => "usage",
            Self::Unopened(_) => "unopened",
        }
    }

    /// What is said of it, if anything is left to say.
    pub(crate) fn message(&self) -> Option<&str> {
        match self {
            Self::NotFound(what)
            | Self::Refused(what)
            | Self::Usage(what)
            | Self::Unopened(what) => Some(what),
            Self::Found | Self::Unread => None,
        }
    }
}

/// Output that could not be written. Files of ours say so themselves.
impl From<io::Error> for Fail {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::Unread,
            _ => Self::Refused(format!("the output cannot be written: {error}")),
        }
    }
}

impl From<StoreError> for Fail {
    fn from(error: StoreError) -> Self {
        Self::Refused(whole(&error))
    }
}

macro_rules! of_a_run {
    ($($error:ident)*) => { $(
        impl From<$error> for Fail {
            fn from(error: $error) -> Self {
                match &error {
                    $error::NotFound { .. } => Self::NotFound(error.to_string()),
                    _ => Self::Refused(whole(&error)),
                }
            }
        }
    )* };
}
of_a_run!(AttachError CancelError ControlError ScheduleError SkipUndoError);

impl From<SendError> for Fail {
    fn from(error: SendError) -> Self {
        Self::Refused(whole(&error))
    }
}

impl From<Error> for Fail {
    fn from(error: Error) -> Self {
        match error {
            Error::Attach(error) => error.into(),
            error => Self::Refused(whole(&error)),
        }
    }
}

/// An error with what caused it, where it does not say that itself.
pub(crate) fn whole(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let said = error.to_string();
        if !text.contains(&said) {
            text.push_str(": ");
            text.push_str(&said);
        }
        cause = error.source();
    }
    text
}
