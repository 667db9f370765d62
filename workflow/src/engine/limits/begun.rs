//! The begins that count for a rate, as they are stored: each is a value, written in the transaction that begins the run.
//!
//! So a crash between two begins forgets none, whatever became of the runs since, and opening a store reads as many as there were in
//! the last interval. One that does not count any more is removed by a later begin of the workflow.

use std::sync::Arc;

use super::gates::Group;
use crate::codec::{self, BoxError, Codec};
use crate::replay::{Payload, RunKey, Timestamp};

/// What their keys begin with. No value of an application does: those that begin with a NUL are the library's.
pub(super) const PREFIX: &str = "\0begun/";

/// A begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::engine) struct Begun {
    pub(super) at: Timestamp,
    pub(super) run: RunKey,
}

impl Begun {
    /// Its key.
    pub(super) fn key(self, workflow: &str) -> String {
        let at = self.at.as_millis().cast_unsigned();
        format!("{PREFIX}{workflow}/{at:016x}/{:016x}", self.run.0)
    }

    /// The begin and its workflow, from its key.
    pub(super) fn read(key: &str) -> Option<(&str, Self)> {
        let mut parts = key.strip_prefix(PREFIX)?.rsplitn(3, '/');
        let run = u64::from_str_radix(parts.next()?, 16).ok()?;
        let at = u64::from_str_radix(parts.next()?, 16).ok()?;
        let begun = Self {
            at: Timestamp::from_millis(at.cast_signed()),
            run: RunKey(run),
        };
        Some((parts.next()?, begun))
    }
}

/// The key of a group, sealed as its runs' inputs are: it is made of them.
pub(super) fn seal(codec: &dyn Codec, group: &Group) -> Result<Payload, BoxError> {
    codec::seal(codec, serde_json::to_vec(&group.key.as_deref())?)
}

pub(super) fn open(codec: &dyn Codec, sealed: &Payload) -> Result<Option<Arc<str>>, BoxError> {
    let json = codec::open(codec, sealed)?;
    let key: Option<String> = serde_json::from_slice(&json)?;
    Ok(key.map(Arc::from))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_reads_as_it_was_written_whatever_the_workflow_is_called() {
        for (workflow, at) in [("export", 1_764_475_944_123), ("a/b", -1), ("", i64::MIN)] {
            let begun = Begun {
                at: Timestamp::from_millis(at),
                run: RunKey(u64::MAX),
            };
            assert_eq!(Begun::read(&begun.key(workflow)), Some((workflow, begun)));
        }
        assert_eq!(Begun::read("\0begun/export"), None);
    }
}
