//! Deleting runs that have ended, with everything that is kept of them.

use std::collections::BTreeSet;

use super::mail::{Effect, View};
use super::transition::Transition;
use crate::replay::RunKey;

/// A run that is to be deleted. See [`Store::delete`](super::Store::delete).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deletion {
    /// The run.
    pub run: RunKey,
    /// Its last record, as the one who deletes it saw it.
    pub expected_seq: u64,
    /// The requests that it took: their answers go with it.
    pub requests: Vec<u128>,
}

/// What became of a deletion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Deleted {
    /// Nothing of the run is there any more.
    Deleted,
    /// It has not ended, or no longer. Nothing was written.
    Live,
    /// Its parent has not ended, and it is not detached. Nothing was written.
    Awaited,
    /// It has changed since it was looked at. Nothing was written.
    Changed,
    /// There is none of that number. Nothing was written.
    Missing,
}

/// Deletes each of these that may be deleted, and says so of each.
pub(super) fn delete<V: View>(
    view: &mut V,
    deletions: Vec<Deletion>,
) -> Result<Vec<Deleted>, V::Fault> {
    let mut gone = BTreeSet::new();
    let mut deleted = Vec::with_capacity(deletions.len());
    for deletion in deletions {
        let answer = if gone.contains(&deletion.run) {
            Deleted::Missing
        } else {
            judge(view, &deletion)?
        };
        if answer == Deleted::Deleted
            && let Some(row) = view.row(deletion.run)?
        {
            gone.insert(deletion.run);
            let mut transition = Transition::touch(row, row.updated_at);
            transition.effects.push(Effect::Gone(deletion.requests));
            view.write(transition, V::Records::default());
        }
        deleted.push(answer);
    }
    Ok(deleted)
}

fn judge<V: View>(view: &mut V, deletion: &Deletion) -> Result<Deleted, V::Fault> {
    let parent = match view.row(deletion.run)? {
        None => return Ok(Deleted::Missing),
        Some(row) if !row.state.is_final() => return Ok(Deleted::Live),
        Some(row) if row.last_seq != deletion.expected_seq => return Ok(Deleted::Changed),
        Some(row) if row.detached => None,
        Some(row) => row.parent.as_ref().map(|(parent, _)| parent.clone()),
    };
    if let Some(parent) = parent
        && let Some(parent) = view.find(&parent)?
        && view.row(parent)?.is_some_and(|row| !row.state.is_final())
    {
        return Ok(Deleted::Awaited);
    }
    Ok(Deleted::Deleted)
}
