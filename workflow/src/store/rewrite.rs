//! Changing what a run has behind it: retrying what failed, going back to where it was.

use super::mail::{self, Sender, View};
use super::transition::{Transition, follow};
use super::{Appended, InboxChange, Post, RunPatch};
use crate::replay::{Message, Record, RunKey};

/// What an operator changes in one run. See [`Store::rewrite`](super::Store::rewrite).
#[derive(Debug, Clone)]
pub struct Rewrite {
    /// The run.
    pub run: RunKey,
    /// Its last record, as the writer saw it.
    pub expected_seq: u64,
    /// The numbers of records that are deleted, in order.
    pub remove: Vec<u64>,
    /// New records, in `seq` order without a gap after `expected_seq`: no number is given twice.
    pub records: Vec<Record>,
    /// What changes in the run's row.
    pub patch: RunPatch,
    /// Messages given back at their old place: what had taken them is deleted.
    pub returns: Vec<Message>,
    /// What it does to others, in the same transaction.
    pub posts: Vec<Post>,
}

/// Writes all of these, if each may be written.
pub(super) fn rewrite<V: View>(view: &mut V, rewrites: Vec<Rewrite>) -> Result<Appended, V::Fault> {
    for rewrite in &rewrites {
        match view.row(rewrite.run)? {
            None => return Ok(Appended::Final),
            Some(row) if row.last_seq != rewrite.expected_seq => return Ok(Appended::Lost),
            Some(_) => {}
        }
        follow(rewrite.expected_seq, &rewrite.records)?;
    }
    for rewrite in rewrites {
        let Some(row) = view.row(rewrite.run)? else {
            continue;
        };
        let last_seq = rewrite.expected_seq + rewrite.records.len() as u64;
        let mut transition = Transition {
            run: rewrite.run,
            epoch: row.epoch,
            number: 0,
            expected_seq: rewrite.expected_seq,
            last_seq,
            create: None,
            deletes: Vec::new(),
            removed: rewrite.remove,
            patch: rewrite.patch,
            effects: Vec::new(),
        };
        let inbox = InboxChange {
            returns: rewrite.returns,
            ..InboxChange::default()
        };
        mail::receive(view, &mut transition, inbox)?;
        let sender = Sender {
            run: transition.run,
            epoch: transition.epoch,
            at: transition.patch.at,
            code: transition.patch.code,
        };
        view.write(transition, rewrite.records.into());
        for post in rewrite.posts {
            sender.post(view, post)?;
        }
    }
    Ok(Appended::Applied)
}
