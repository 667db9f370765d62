//! Histories that grow long: said once, with where they grow, before they are felt.
//!
//! What a carried loop has deleted does not count. How much that is only the store knows, so what is counted here is a bound,
//! and the store is asked when the bound is passed.

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::Inner;
use super::live::Live;
use crate::replay::{Record, RunKey};

/// So many places are named.
const PLACES: usize = 3;

/// The runs that were told of since the engine was built.
#[derive(Debug, Default)]
pub(crate) struct Long(Mutex<HashSet<RunKey>>);

/// How many records a run may have, at most.
#[derive(Debug, Default)]
pub(crate) struct Length(AtomicU64);

impl Length {
    /// So many more. How many there may be now.
    fn add(&self, records: usize) -> u64 {
        let records = u64::try_from(records).unwrap_or(u64::MAX);
        self.0.fetch_add(records, Ordering::Relaxed) + records
    }
}

impl Inner {
    /// A run's history has so many records more.
    pub(super) fn grew(self: &Arc<Self>, live: &Arc<Live>, records: usize) {
        let limit = self.long_history;
        if live.length.add(records) <= limit {
            return;
        }
        // Counted anew from what there is; so a loop that is pruned asks once in so many records.
        live.length.0.store(0, Ordering::Relaxed);
        let (inner, live) = (Arc::clone(self), Arc::clone(live));
        tokio::spawn(async move {
            // A store that fails now is told of by who needs it.
            if let Ok(Some(loaded)) = inner.store.load(live.run).await {
                inner.weigh(&live, &loaded.history);
            }
        });
    }

    /// A run's history is this one: says so when it is long, once for each run.
    pub(super) fn weigh(&self, live: &Live, history: &[Record]) {
        let records = history.len() as u64;
        live.length.0.fetch_add(records, Ordering::Relaxed);
        if records <= self.long_history {
            return;
        }
        // From here on it may double before anybody looks again.
        live.length.0.store(0, Ordering::Relaxed);
        let mut told = self.long.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !told.insert(live.run) {
            return;
        }
        drop(told);
        tracing::warn!(
            run = %live.id,
            workflow = live.workflow,
            records,
            at = places(history),
            "the history grows long, and is read whole whenever the run comes back: let a loop `#[carry]` what it needs, or \
             end the run and start another"
        );
    }
}

/// Where most of a history is: `polls[]/poll 9800, begin 1`.
fn places(history: &[Record]) -> String {
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for record in history.iter().filter(|record| !record.location.is_root()) {
        *counts.entry(record.location.path()).or_default() += 1;
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let places = counts.iter().take(PLACES);
    let places: Vec<_> = places
        .map(|(path, count)| format!("{path} {count}"))
        .collect();
    places.join(", ")
}
