//! Taking back what was recorded of an operation.

use std::sync::Arc;

use super::definition::Core;
use super::error::RestoreError;
use super::shared::Shared;
use super::snapshot::{Record, Snapshot};
use super::state::State;
use super::work::{Ended, Work};

impl Shared {
    /// Takes back a record of this operation.
    pub(super) fn restore(self: &Arc<Self>, snapshot: &Snapshot) -> Result<(), RestoreError> {
        let name = self.name();
        if snapshot.name() != name {
            let found = snapshot.name().to_owned();
            return Err(RestoreError::OtherOperation { name, found });
        }
        if let Some((at, status)) = in_flight(snapshot, "") {
            return Err(RestoreError::RecordInFlight { name, at, status });
        }
        if let Some(json) = snapshot.result_json() {
            (self.core.fits)(json).map_err(|reason| RestoreError::Result {
                name: name.clone(),
                reason,
            })?;
        }
        // Made outside of the lock, swapped in whole.
        let children = self.restored_all(snapshot.children());
        let earlier = self.restored_all(snapshot.earlier());
        self.change(|state| {
            let status = state.record.status;
            if state.closed {
                return Err(RestoreError::Closed { name });
            }
            if status.is_in_flight() || state.is_stopping() {
                return Err(RestoreError::InFlight { name, status });
            }
            self.take_back(state, snapshot.record());
            state.children = children;
            state.earlier = earlier;
            state.show();
            Ok(())
        })
    }

    fn restored_all(self: &Arc<Self>, snapshots: &[Snapshot]) -> Vec<Arc<Self>> {
        let each = snapshots.iter();
        each.map(|snapshot| self.restored_child(snapshot)).collect()
    }

    fn restored_child(self: &Arc<Self>, snapshot: &Snapshot) -> Arc<Self> {
        let known = self.core.known.iter();
        let core = known.clone().find(|core| core.name == snapshot.name());
        let core = core.map_or_else(|| unknown(snapshot), Arc::clone);
        let child = self.child(&core, 0, 0);
        child.change(|state| child.take_back(state, snapshot.record()));
        let children = child.restored_all(snapshot.children());
        let earlier = child.restored_all(snapshot.earlier());
        child.change(|state| {
            state.children = children;
            state.earlier = earlier;
            state.show();
        });
        child
    }

    /// Everything but children. What the definition says holds, and not what it said when it was recorded.
    fn take_back(&self, state: &mut State, record: &Record) {
        let revision = state.record.revision.max(record.revision);
        let own = &state.record;
        state.record = Record {
            title: own.title.clone(),
            description: own.description.clone(),
            metadata: own.metadata.clone(),
            revision,
            children: Vec::new(),
            earlier: Vec::new(),
            logs: Vec::new(),
            ..record.clone()
        };
        let most = self.core.max_logs();
        let skipped = record.logs.len().saturating_sub(most);
        state.lines = record.logs.iter().skip(skipped).cloned().collect();
    }
}

/// The first operation of the tree that is in flight.
fn in_flight(snapshot: &Snapshot, above: &str) -> Option<(String, super::Status)> {
    let path = format!("{above}{}", snapshot.name());
    if snapshot.status().is_in_flight() {
        return Some((path, snapshot.status()));
    }
    let above = format!("{path}/");
    let mut below = snapshot.children().iter().chain(snapshot.earlier());
    below.find_map(|child| in_flight(child, &above))
}

/// The definition of a child that no definition names: it can be looked at, and nothing else.
fn unknown(snapshot: &Snapshot) -> Arc<Core> {
    let record = snapshot.record();
    let work = Work::Blocking(Arc::new(|_| {
        Ended::Panicked("its definition is not known".to_owned())
    }));
    let mut core = Core::new(record.name.clone(), work, |_| Ok(()));
    core.title.clone_from(&record.title);
    core.description.clone_from(&record.description);
    core.metadata.clone_from(&record.metadata);
    Arc::new(core)
}
