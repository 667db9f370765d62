//! Flows that are known at compile time: their stages are an enum.

use std::fmt;

use super::flow::{Flow, FlowState};
use super::graph::Graph;
use super::position::StageName;
use crate::replay::Site;

/// What a stage is called in code: a [`StageName`], or an enum of the stages of one flow.
pub trait StageKey: fmt::Debug + Clone + PartialEq + Send + Sync + 'static {
    /// The stage of that name; `None` when there is none.
    fn of(name: &StageName) -> Option<Self>;

    /// Its name.
    fn name(&self) -> &str;
}

impl StageKey for StageName {
    fn of(name: &StageName) -> Option<Self> {
        Some(name.clone())
    }

    fn name(&self) -> &str {
        self.as_str()
    }
}

/// The data of a flow that is described by `#[guided]`, on an `impl` of that data.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say which flow it is the data of",
    label = "not described by `#[guided]`",
    note = "help: put `#[guided(id = \"..\")]` on an `impl` of it; or, where it is of a flow that was built at run time, name that: `guide!(name, data, flow = flow)`"
)]
pub trait Guided: FlowState {
    /// Its stages, so that a `match` over them is checked to be complete.
    type Stage: StageKey + Copy + Eq;

    /// Its shape.
    const GRAPH: Graph;

    /// The sites of the code of its stages, with the stage before their paths: `create[]/publish`. They are what a preflight shows of them.
    const SITES: &'static [Site] = &[];

    /// The flow itself.
    fn flow() -> &'static Flow<Self>;
}
