//! The workflows an engine knows, and the state they need.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use crate::codec::Codec;
use crate::context::{ArgError, Args, Body, Call, StateType, States, Undo, Workflow};
use crate::graph::Graph;
use crate::replay::{Alive, CodeId, Record, Site};

/// What code is called with, and what comes of it.
pub(crate) type Start = dyn Fn(Args) -> Result<Body, ArgError> + Send + Sync;

/// The visits of a history that are replayed.
pub(crate) type FindAlive = dyn Fn(&dyn Codec, &[Record]) -> Vec<Alive> + Send + Sync;

/// A workflow as the registry keeps it: its type is erased, its functions stay.
#[derive(Clone)]
pub(crate) struct Entry {
    pub(crate) name: &'static str,
    pub(crate) sites: &'static [Site],
    pub(crate) path: &'static str,
    pub(crate) states: fn() -> Vec<StateType>,
    pub(crate) run: Arc<Start>,
    pub(crate) undos: &'static [Undo],
    /// Of a guided flow; of a workflow everything is replayed.
    pub(crate) alive: Option<Arc<FindAlive>>,
}

impl Entry {
    pub(crate) fn of<W: Workflow>() -> Self {
        Self {
            name: W::NAME,
            sites: W::SITES,
            path: std::any::type_name::<W>(),
            states: W::states,
            run: Arc::new(W::run),
            undos: W::UNDOS,
            alive: None,
        }
    }
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.path)
    }
}

/// What [`EngineBuilder::workflow`](super::EngineBuilder::workflow) takes: a `#[workflow]` function by its name.
///
/// `Arguments` is the tuple of the function's parameter types; the compiler finds it.
#[diagnostic::on_unimplemented(
    message = "this is not a workflow",
    label = "not a `#[workflow]` function",
    note = "a `#[step]` or `#[fragment]` is called from a workflow's body, and not run by itself",
    note = "help: put `#[workflow]` on the function, or on one that calls it"
)]
pub trait Definition<Arguments> {
    /// The type the attribute made beside the function.
    type Workflow: Workflow;
}

macro_rules! definition {
    ($($argument:ident)*) => {
        impl<F, W, $($argument),*> Definition<($($argument,)*)> for F
        where
            F: Fn($($argument),*) -> Call<W>,
            W: Workflow,
        {
            type Workflow = W;
        }
    };
}

definition!();
definition!(A1);
definition!(A1 A2);
definition!(A1 A2 A3);
definition!(A1 A2 A3 A4);
definition!(A1 A2 A3 A4 A5);
definition!(A1 A2 A3 A4 A5 A6);
definition!(A1 A2 A3 A4 A5 A6 A7);
definition!(A1 A2 A3 A4 A5 A6 A7 A8);
definition!(A1 A2 A3 A4 A5 A6 A7 A8 A9);
definition!(A1 A2 A3 A4 A5 A6 A7 A8 A9 A10);
definition!(A1 A2 A3 A4 A5 A6 A7 A8 A9 A10 A11);
definition!(A1 A2 A3 A4 A5 A6 A7 A8 A9 A10 A11 A12);

/// The workflows by name.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    entries: HashMap<&'static str, Entry>,
    /// The pictures of those that are workflows.
    graphs: HashMap<&'static str, Graph>,
}

impl Registry {
    /// Adds a workflow; gives the one that has its name already, if that is another.
    pub(crate) fn add(&mut self, entry: Entry) -> Option<Entry> {
        let path = entry.path;
        match self.entries.insert(entry.name, entry) {
            Some(before) if before.path != path => Some(before),
            _ => None,
        }
    }

    pub(crate) fn get(&self, name: &str) -> Option<Entry> {
        self.entries.get(name).cloned()
    }

    pub(crate) fn draw(&mut self, graph: Graph) {
        self.graphs.insert(graph.name(), graph);
    }

    pub(crate) fn graph(&self, name: &str) -> Option<Graph> {
        self.graphs.get(name).copied()
    }

    /// The names of those that are workflows, in order.
    pub(crate) fn workflows(&self) -> Vec<&'static str> {
        let workflows = self.entries.values().filter(|entry| entry.alive.is_none());
        let mut names: Vec<_> = workflows.map(|entry| entry.name).collect();
        names.sort_unstable();
        names
    }

    /// The states that workflows need and that are not there: (workflow, parameter, type).
    pub(crate) fn missing(&self, states: &States) -> Vec<(&'static str, StateType)> {
        let needed = self.entries.values().flat_map(|entry| {
            (entry.states)()
                .into_iter()
                .map(|state| (entry.name, state))
        });
        let mut missing: Vec<_> = needed.filter(|(_, state)| !states.has(state)).collect();
        missing.sort_by_key(|(workflow, state)| (*workflow, state.parameter));
        missing
    }

    /// A fingerprint of what this program would do: the sites of its workflows, and which build it is.
    ///
    /// Two builds that differ only in a condition have the same sites, so the executable's own size and time count
    /// too. A false difference costs one more try of each parked run; a false sameness would leave them parked.
    pub(crate) fn code_id(&self) -> CodeId {
        use std::hash::{Hash, Hasher};
        // Stable across builds and machines, unlike the standard library's.
        let mut hasher = siphasher::sip::SipHasher13::new_with_keys(0x776f_726b, 0x666c_6f77);
        let mut entries: Vec<_> = self.entries.values().collect();
        entries.sort_by_key(|entry| entry.name);
        for entry in entries {
            entry.name.hash(&mut hasher);
            for site in entry.sites {
                (site.path, site.kind.word()).hash(&mut hasher);
            }
        }
        if let Ok(file) = std::env::current_exe().and_then(std::fs::metadata) {
            file.len().hash(&mut hasher);
            if let Ok(modified) = file.modified() {
                modified.hash(&mut hasher);
            }
        }
        CodeId(hasher.finish())
    }
}
