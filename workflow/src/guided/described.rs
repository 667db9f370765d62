//! Flows that `#[guided]` describes: each is built once, when it is first asked for, with those that it nests.
//!
//! 1. What is built is known by thread, so that flows that nest each other in a circle are found, and do not wait for each other.
//! 2. It is built before it is kept: two threads may build the same one, and the first one stays. Held meanwhile, two flows of a circle
//!    would wait for each other across threads.

use std::any::TypeId;
use std::cell::RefCell;
use std::sync::OnceLock;

use super::faults::Fault;
use super::flow::{Flow, FlowBuilder};
use super::key::Guided;

thread_local! {
    /// The flows that are being built, each for the one before it, with their names.
    static BUILDING: RefCell<Vec<(TypeId, &'static str)>> = const { RefCell::new(Vec::new()) };
}

/// The flow of that name, which is built if it is not there.
///
/// # Panics
/// When it has a fault: flows nest each other in a circle, or the macro's rules are not the library's, and that is a bug.
pub fn described<F: Guided>(
    kept: &'static OnceLock<Flow<F>>,
    name: &'static str,
    describe: impl FnOnce() -> FlowBuilder<F>,
) -> &'static Flow<F> {
    if let Some(flow) = kept.get() {
        return flow;
    }
    let building = Building::begin::<F>(name);
    let built = describe().build();
    drop(building);
    let flow = built.unwrap_or_else(|faults| {
        let is_circle = |fault: &Fault| matches!(fault, Fault::NestedInCircle { .. });
        // That alone the macro cannot see.
        assert!(!faults.faults().iter().all(is_circle), "{faults}");
        unreachable!(
            "`#[guided]` lets pass what the library refuses; this is a bug in `workflow`: {faults}"
        )
    });
    kept.get_or_init(|| flow)
}

/// The names of the flows that are being built from this one on, if it is.
pub(super) fn circle<F: Guided>() -> Option<Vec<String>> {
    BUILDING.with_borrow(|building| {
        let from = building
            .iter()
            .position(|(flow, _)| *flow == TypeId::of::<F>())?;
        let names = building[from..].iter().map(|(_, name)| (*name).to_owned());
        Some(names.collect())
    })
}

/// A flow is being built as long as this is held.
struct Building;

impl Building {
    fn begin<F: Guided>(name: &'static str) -> Self {
        BUILDING.with_borrow_mut(|building| building.push((TypeId::of::<F>(), name)));
        Self
    }
}

impl Drop for Building {
    fn drop(&mut self) {
        BUILDING.with_borrow_mut(Vec::pop);
    }
}
