//! What can go wrong in a store.

use std::error::Error;
use std::path::PathBuf;

/// Why a store could not do what it was asked.
///
/// Never a step's failure: no attempt is used up by one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Another process, or another engine in this one, has the file open.
    #[error("`{}` is in use by another process: stop it, or ask it instead of opening its file", path.display())]
    Locked {
        /// The file.
        path: PathBuf,
    },
    /// The file was written by a newer version of this library.
    #[error("`{}` has format {found}, this program reads up to {supported}: deploy a program with a newer `workflow`", path.display())]
    NewerFormat {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u32,
        /// The newest format this program reads.
        supported: u32,
    },
    /// The file is damaged.
    #[error("`{}` is damaged ({detail}): restore it from a backup; it was not changed", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What was found.
        detail: String,
    },
    /// The file is something else.
    #[error("`{}` is not a workflow store ({detail}): give the path of one, or of a file that does not exist yet", path.display())]
    NotAStore {
        /// The file.
        path: PathBuf,
        /// What it looks like.
        detail: String,
    },
    /// The store was not closed, and its log, which has the newest commits, is not beside it.
    #[error("`{}` was not closed, and its log `{}` is missing: move both together, and put it back beside the store", path.display(), log.display())]
    LogMissing {
        /// The file.
        path: PathBuf,
        /// Where its log should be.
        log: PathBuf,
    },
    /// The store was closed when this file was written, and the log beside it has commits of a later time: the file is an older copy,
    /// a restored backup as a rule, and the store that the log belongs to was not closed.
    #[error(
        "`{}` is an older copy of its store: the log `{}` beside it has commits that were made later and are not in it. To go back to this copy and lose those, move the log away; to keep them, put the store's own file back beside its log",
        path.display(), log.display()
    )]
    LogAhead {
        /// The file.
        path: PathBuf,
        /// The log, which was not changed.
        log: PathBuf,
    },
    /// There is already something where a backup is to be written.
    #[error("`{}` exists, and a backup overwrites nothing: give another path, or move that away", path.display())]
    Exists {
        /// What is there.
        path: PathBuf,
    },
    /// A record or row does not decode.
    #[error("a stored {what} does not decode: {detail}")]
    Corrupt {
        /// What it is.
        what: &'static str,
        /// Why not.
        detail: String,
    },
    /// A record or row was written by a newer version of this library. It is intact, and waits for that version.
    #[error(
        "a stored {what} was written by a newer version of `workflow` ({detail}): deploy a program with that version"
    )]
    Newer {
        /// What it is.
        what: &'static str,
        /// What is not known here.
        detail: String,
    },
    /// The batch does not follow the run's last record, takes a message that is not in its inbox, or gives one back that
    /// is, or never was: a bug in the caller.
    #[error(
        "the batch does not fit the run: it builds on record or message {expected}, the run's last one is {found}"
    )]
    Conflict {
        /// The last record that the batch expects, or the arrival of the message.
        expected: u64,
        /// The run's last record, or the newest arrival in its inbox.
        found: u64,
    },
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
    /// The operating system or the database failed.
    #[error("{operation} failed")]
    Io {
        /// What was being done.
        operation: &'static str,
        /// Whether trying again may help.
        retryable: bool,
        /// Why it failed.
        source: Box<dyn Error + Send + Sync>,
    },
}

impl StoreError {
    /// Whether trying the same again may help.
    pub fn is_retryable(&self) -> bool {
        matches!(
            self,
            Self::Io {
                retryable: true,
                ..
            }
        )
    }
}
