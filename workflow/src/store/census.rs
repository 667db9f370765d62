//! How many runs there are.

use std::collections::BTreeMap;

use crate::replay::RunState;

/// How many runs a store has, as of one instant.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Census {
    /// Grows with everything that is committed to the store, whatever it is: the same number, the same rows. `None` when the store
    /// does not know.
    pub commit: Option<u64>,
    /// How many, by workflow and state: in the order of the workflows' names, then of a run's life. What there is none of is left out.
    pub counts: Vec<RunCount>,
}

/// How many runs of a workflow are in a state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunCount {
    /// The workflow's name.
    pub workflow: String,
    /// The state.
    pub state: RunState,
    /// So many.
    pub runs: u64,
}

/// Runs, being counted.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tally(BTreeMap<String, [u64; RunState::ALL.len()]>);

impl Tally {
    pub(crate) fn add(&mut self, workflow: &str, state: RunState) {
        if let Some(count) = self.count(workflow, state) {
            *count += 1;
            return;
        }
        self.0.insert(workflow.to_owned(), Default::default());
        self.add(workflow, state);
    }

    #[cfg(feature = "redb")]
    pub(crate) fn remove(&mut self, workflow: &str, state: RunState) {
        if let Some(count) = self.count(workflow, state) {
            *count = count.saturating_sub(1);
        }
    }

    fn count(&mut self, workflow: &str, state: RunState) -> Option<&mut u64> {
        let place = RunState::ALL.iter().position(|known| *known == state)?;
        self.0.get_mut(workflow)?.get_mut(place)
    }

    pub(crate) fn census(&self, commit: Option<u64>) -> Census {
        let all = self.0.iter().flat_map(|(workflow, counts)| {
            let counts = RunState::ALL.into_iter().zip(counts);
            counts.map(move |(state, runs)| RunCount {
                workflow: workflow.clone(),
                state,
                runs: *runs,
            })
        });
        Census {
            commit,
            counts: all.filter(|count| count.runs > 0).collect(),
        }
    }
}
