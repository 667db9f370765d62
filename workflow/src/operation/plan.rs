//! Operations that depend on each other.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::error::{Refused, RollbackError, RunError};
use super::flight::Flight;
use super::shared::Shared;
use super::snapshot::{Snapshot, Status};
use super::work::BoxFuture;
use super::{Operation, rollback};
use crate::context::Cancelled;

/// Operations, and which of them need which others first.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use workflow::operation::{Operation, Plan};
///
/// let fetch = Operation::define("fetch", |_| async { Ok::<_, String>(3) }).build();
/// let check = Operation::define("check", |_| async { Ok::<_, String>(true) }).build();
/// let store = Operation::define("store", |_| async { Ok::<_, String>(()) }).build();
/// let plan = Plan::builder()
///     .operation(&fetch)
///     .operation(&check)
///     .operation_after(&store, ["fetch", "check"])
///     .limit(2)
///     .build()?;
/// plan.run().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Plan(Arc<Inner>);

struct Inner {
    /// Each after what it depends on.
    nodes: Vec<Node>,
    limit: usize,
    on_failure: OnFailure,
}

struct Node {
    shared: Arc<Shared>,
    /// Which nodes it depends on.
    after: Vec<usize>,
}

/// What becomes of the others when an operation of a plan does not succeed. What depends on it is skipped in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum OnFailure {
    /// They go on. The default.
    #[default]
    Continue,
    /// What runs may end; nothing else is begun.
    Stop,
    /// What runs is cancelled; nothing else is begun.
    Cancel,
}

/// Describes a plan. Made by [`Plan::builder`].
#[derive(Default)]
#[must_use = "help: end it with `.build()`"]
pub struct PlanBuilder {
    nodes: Vec<(Arc<Shared>, Vec<String>)>,
    limit: Option<usize>,
    on_failure: OnFailure,
}

/// Why a plan cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// Operations that depend on each other in a circle: none of them could begin.
    #[error("these operations wait for each other: {}; take one of the dependencies out", path.join(" -> "))]
    Cycle {
        /// The names, each depending on the next; the first stands at the end again.
        path: Vec<String>,
    },
    /// An operation depends on one that is not part of the plan.
    #[error(
        "operation `{operation}` depends on `{dependency}`, which is not in the plan: add it; there are {}", known.join(", ")
    )]
    Unknown {
        /// The operation.
        operation: String,
        /// The name it gives.
        dependency: String,
        /// The names in the plan.
        known: Vec<String>,
    },
    /// Two operations have one name.
    #[error("two operations of the plan are called `{name}`: give one of them another name")]
    SameName {
        /// The name.
        name: String,
    },
    /// Nothing could ever begin.
    #[error("the plan's limit is 0, so nothing could ever begin: give it 1 at least")]
    NoRoom,
}

/// What of a plan did not succeed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlanFailure {
    /// What ended without success, in the order in which it ended: names and errors.
    pub failed: Vec<(String, RunError)>,
    /// What was skipped because of that: names and causes.
    pub skipped: Vec<(String, String)>,
}

impl fmt::Display for PlanFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, (_, error)) in self.failed.iter().enumerate() {
            let between = if number > 0 { "; " } else { "" };
            write!(f, "{between}{error}")?;
        }
        if !self.skipped.is_empty() {
            let names: Vec<_> = self.skipped.iter().map(|(name, _)| &**name).collect();
            write!(f, "; skipped for that: {}", names.join(", "))?;
        }
        Ok(())
    }
}

impl std::error::Error for PlanFailure {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        let (_, first) = self.failed.first()?;
        Some(first)
    }
}

impl PlanBuilder {
    /// Adds an operation that depends on nothing.
    pub fn operation<T>(mut self, operation: &Operation<T>) -> Self {
        self.nodes.push((Arc::clone(&operation.shared), Vec::new()));
        self
    }

    /// Adds an operation that begins after these have succeeded. They may be added later.
    pub fn operation_after<T>(
        mut self,
        operation: &Operation<T>,
        dependencies: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        let after = dependencies.into_iter().map(Into::into).collect();
        self.nodes.push((Arc::clone(&operation.shared), after));
        self
    }

    /// How many run at a time; the default is all that can.
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = Some(limit);
        self
    }

    /// What becomes of the others when one does not succeed; the default is that they go on.
    pub fn on_failure(mut self, on_failure: OnFailure) -> Self {
        self.on_failure = on_failure;
        self
    }

    /// The plan.
    ///
    /// # Errors
    /// [`PlanError`]: a cycle, an unknown dependency, two operations of one name, or no room for any.
    pub fn build(self) -> Result<Plan, PlanError> {
        if self.limit == Some(0) {
            return Err(PlanError::NoRoom);
        }
        let names: Vec<_> = self.nodes.iter().map(|(node, _)| node.name()).collect();
        let mut at = HashMap::new();
        for (index, name) in names.iter().enumerate() {
            if at.insert(&**name, index).is_some() {
                return Err(PlanError::SameName { name: name.clone() });
            }
        }
        let mut after = Vec::new();
        for (node, dependencies) in &self.nodes {
            let found = dependencies.iter().map(|name| {
                at.get(&**name).copied().ok_or_else(|| PlanError::Unknown {
                    operation: node.name(),
                    dependency: name.clone(),
                    known: names.clone(),
                })
            });
            after.push(found.collect::<Result<Vec<_>, _>>()?);
        }
        let order = order(&after).map_err(|cycle| PlanError::Cycle {
            path: cycle
                .iter()
                .filter_map(|at| names.get(*at).cloned())
                .collect(),
        })?;
        let mut place = vec![0; order.len()];
        for (new, old) in order.iter().enumerate() {
            if let Some(place) = place.get_mut(*old) {
                *place = new;
            }
        }
        let nodes = order.iter().filter_map(|old| {
            Some(Node {
                shared: Arc::clone(&self.nodes.get(*old)?.0),
                after: after
                    .get(*old)?
                    .iter()
                    .filter_map(|at| place.get(*at).copied())
                    .collect(),
            })
        });
        Ok(Plan(Arc::new(Inner {
            nodes: nodes.collect(),
            limit: self.limit.unwrap_or(usize::MAX),
            on_failure: self.on_failure,
        })))
    }
}

impl fmt::Debug for PlanBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self
            .nodes
            .iter()
            .map(|(node, after)| (&node.core.name, after));
        f.debug_map().entries(names).finish()
    }
}

/// An order in which each node stands after what it depends on, and otherwise as they were added; or a cycle.
fn order(after: &[Vec<usize>]) -> Result<Vec<usize>, Vec<usize>> {
    let mut order: Vec<usize> = Vec::new();
    while order.len() < after.len() {
        let placed = |at: &usize| order.contains(at);
        let ready = (0..after.len())
            .find(|at| !placed(at) && after.get(*at).is_none_or(|after| after.iter().all(placed)));
        let Some(ready) = ready else {
            return Err(cycle(after, &order));
        };
        order.push(ready);
    }
    Ok(order)
}

/// A cycle among the nodes that could not be placed. Each of them depends on another of them, so going on from one to the
/// next comes back.
fn cycle(after: &[Vec<usize>], placed: &[usize]) -> Vec<usize> {
    let is_left = |at: &usize| !placed.contains(at);
    let mut path: Vec<usize> = (0..after.len()).find(is_left).into_iter().collect();
    while let Some(next) = path
        .last()
        .and_then(|at| after.get(*at)?.iter().copied().find(is_left))
    {
        if let Some(start) = path.iter().position(|at| *at == next) {
            path.drain(..start);
            path.push(next);
            break;
        }
        path.push(next);
    }
    path
}

impl Plan {
    /// Begins to describe a plan.
    pub fn builder() -> PlanBuilder {
        PlanBuilder::default()
    }

    /// Runs the operations: each begins when all that it depends on have succeeded (or were skipped by hand) and there is room.
    /// Until then it is queued, and its [`Snapshot::reason`] says what for.
    ///
    /// Run again, it runs what did not succeed; what has is not repeated.
    ///
    /// # Errors
    /// [`PlanFailure`]: at least one did not succeed. What depends on one that did not is skipped, and says so.
    ///
    /// # Cancel safety
    /// Dropping the future cancels what is running or queued.
    pub async fn run(&self) -> Result<(), PlanFailure> {
        let mut going = Going::new(&self.0);
        std::future::poll_fn(|task| going.poll(task)).await
    }

    /// Cancels every operation that is in flight.
    pub fn cancel(&self, reason: impl Into<String>) {
        let reason = reason.into();
        // The last first, so that none begins because another one has ended.
        for node in self.0.nodes.iter().rev() {
            node.shared.cancel(&reason);
        }
    }

    /// Undoes what the operations did, the one that ended last first.
    ///
    /// # Errors
    /// [`RollbackError`]: the first undo that failed. The next rollback goes on with that one.
    ///
    /// # Cancel safety
    /// As that of [`Operation::rollback`].
    pub async fn rollback(&self) -> Result<(), RollbackError> {
        let nodes = self.0.nodes.iter().enumerate();
        let mut owing: Vec<_> = nodes
            .filter(|(_, node)| node.shared.owes_undo())
            .map(|(at, node)| (node.shared.snapshot().completed_at(), at, &node.shared))
            .collect();
        // Of two that ended at once, the later in the plan cannot be needed by the other. One that has not ended, because it is
        // blocked, comes first.
        owing.sort_by_key(|(ended, at, _)| (ended.is_none(), *ended, *at));
        for (_, _, shared) in owing.into_iter().rev() {
            rollback::roll_back(Arc::clone(shared)).await?;
        }
        Ok(())
    }

    /// The operations as they are now, each after what it depends on.
    pub fn snapshots(&self) -> Vec<Snapshot> {
        let nodes = self.0.nodes.iter();
        nodes.map(|node| node.shared.snapshot()).collect()
    }
}

impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |node: &Node| node.shared.name();
        let names = self.0.nodes.iter().map(|node| {
            let after = node.after.iter().filter_map(|at| self.0.nodes.get(*at));
            (name(node), after.map(name).collect::<Vec<_>>())
        });
        f.debug_map().entries(names).finish()
    }
}

/// A plan that is being run.
struct Going<'p> {
    plan: &'p Inner,
    places: Vec<Place>,
    failed: Vec<(String, RunError)>,
    skipped: Vec<(String, String)>,
    /// Nothing else is begun, because of this operation.
    stopped_by: Option<String>,
}

/// Where an operation of a running plan stands.
enum Place {
    Queued(Flight, Cancelled),
    Running(BoxFuture<Result<String, RunError>>),
    Succeeded,
    /// Passed over by hand: what depends on it waits for what it would have waited for.
    Skipped,
    /// What depends on it cannot begin.
    Ended,
}

impl<'p> Going<'p> {
    fn new(plan: &'p Inner) -> Self {
        let mut going = Self {
            plan,
            places: Vec::new(),
            failed: Vec::new(),
            skipped: Vec::new(),
            stopped_by: None,
        };
        for node in &plan.nodes {
            let place = going.enter(node);
            going.places.push(place);
        }
        going
    }

    fn enter(&mut self, node: &Node) -> Place {
        let by_plan = {
            let state = node.shared.lock();
            if state.record.status == Status::Succeeded {
                return Place::Succeeded;
            }
            // Skipped by hand it has no cause.
            match state.record.status {
                Status::Skipped if state.record.reason.is_none() => return Place::Skipped,
                Status::Skipped => state.threads == 0,
                _ => false,
            }
        };
        if by_plan {
            // It is refused below if it cannot be.
            let _ = node.shared.reset();
        }
        match Flight::queue(&node.shared, Some(self.waits_for(node, false))) {
            Ok(flight) => {
                let cancelled = flight.token.cancelled();
                Place::Queued(flight, cancelled)
            }
            Err(refused) => self.refused(node, refused),
        }
    }

    fn refused(&mut self, node: &Node, refused: Refused) -> Place {
        self.failed.push((node.shared.name(), refused.into()));
        self.stop(&node.shared);
        Place::Ended
    }

    fn poll(&mut self, task: &mut Context<'_>) -> Poll<Result<(), PlanFailure>> {
        loop {
            // One that ends makes room, and may let others begin.
            let mut ended = false;
            for at in 0..self.places.len() {
                ended |= self.poll_node(at, task);
            }
            if !ended {
                break;
            }
        }
        if !self.places.iter().all(Place::is_over) {
            return Poll::Pending;
        }
        if self.failed.is_empty() && self.skipped.is_empty() {
            return Poll::Ready(Ok(()));
        }
        Poll::Ready(Err(PlanFailure {
            failed: std::mem::take(&mut self.failed),
            skipped: std::mem::take(&mut self.skipped),
        }))
    }

    /// Drives one operation; true when it ended.
    fn poll_node(&mut self, at: usize, task: &mut Context<'_>) -> bool {
        let plan = self.plan;
        let (Some(node), Some(place)) = (plan.nodes.get(at), self.places.get_mut(at)) else {
            return false;
        };
        let ended = match place {
            Place::Succeeded | Place::Skipped | Place::Ended => return false,
            Place::Running(running) => match running.as_mut().poll(task) {
                Poll::Pending => return false,
                Poll::Ready(ended) => ended.map(drop),
            },
            Place::Queued(_, cancelled) => {
                if std::pin::Pin::new(cancelled).poll(task).is_pending() {
                    return self.begin(at, node, task);
                }
                Err(node.shared.stopped_by())
            }
        };
        // Whoever ended is dropped before the next one begins.
        let over = match &ended {
            Ok(()) => Place::Succeeded,
            Err(RunError::Skipped { .. }) => Place::Skipped,
            Err(_) => Place::Ended,
        };
        self.put(at, over);
        if let Err(error) = ended
            && !matches!(error, RunError::Skipped { .. })
        {
            self.failed.push((node.shared.name(), error));
            self.stop(&node.shared);
        }
        true
    }

    /// Begins one that is queued, if it may; true when it is skipped instead, or has ended at once.
    fn begin(&mut self, at: usize, node: &Node, task: &mut Context<'_>) -> bool {
        if let Some(cause) = self.cause_to_skip(node) {
            self.skipped.push((node.shared.name(), cause.clone()));
            // It is queued, and so can be.
            let _ = node.shared.skip(Some(&cause));
            self.put(at, Place::Ended);
            return true;
        }
        let is_ready = node.after.iter().all(|at| self.has_succeeded(*at));
        let running = |place: &&Place| matches!(place, Place::Running(_));
        let has_room = self.places.iter().filter(running).count() < self.plan.limit;
        if !is_ready || !has_room {
            self.says_what_for(node, is_ready);
            return false;
        }
        let queued = self.places.get_mut(at);
        if let Some(place) = queued
            && let Place::Queued(flight, _) = std::mem::replace(place, Place::Ended)
        {
            *place = Place::Running(Box::pin(flight.run_untyped(None)));
        }
        self.poll_node(at, task)
    }

    /// Why a queued operation cannot begin any more.
    fn cause_to_skip(&self, node: &Node) -> Option<String> {
        if let Some(cause) = self.cause_above(node) {
            let cause = &self.plan.nodes.get(cause)?.shared;
            let status = cause.lock().record.status;
            return Some(format!(
                "`{}` did not succeed: it is {status}",
                cause.core.name
            ));
        }
        let cause = self.stopped_by.as_ref()?;
        Some(format!(
            "the plan was stopped because `{cause}` did not succeed"
        ))
    }

    fn says_what_for(&self, node: &Node, is_ready: bool) {
        let reason = self.waits_for(node, is_ready);
        node.shared.change(|state| {
            if state.record.status == Status::Queued
                && state.record.reason.as_deref() != Some(&reason)
            {
                state.record.reason = Some(reason);
                state.show();
            }
        });
    }

    fn waits_for(&self, node: &Node, is_ready: bool) -> String {
        if is_ready {
            let limit = self.plan.limit;
            return format!("room: no more than {limit} at a time");
        }
        let left = node.after.iter().filter(|at| !self.has_succeeded(**at));
        let names: Vec<_> = left
            .filter_map(|at| Some(self.plan.nodes.get(*at)?.shared.name()))
            .collect();
        if names.is_empty() {
            "its turn".to_owned()
        } else {
            names.join(", ")
        }
    }

    /// The dependency that did not succeed, also beyond skipped ones.
    fn cause_above(&self, node: &Node) -> Option<usize> {
        node.after
            .iter()
            .find_map(|at| match self.places.get(*at)? {
                Place::Ended => Some(*at),
                Place::Skipped => self.cause_above(self.plan.nodes.get(*at)?),
                _ => None,
            })
    }

    fn has_succeeded(&self, at: usize) -> bool {
        match self.places.get(at) {
            Some(Place::Succeeded) => true,
            Some(Place::Skipped) => self.plan.nodes.get(at).is_some_and(|node| {
                let mut above = node.after.iter();
                above.all(|at| self.has_succeeded(*at))
            }),
            _ => false,
        }
    }

    fn put(&mut self, at: usize, place: Place) {
        if let Some(there) = self.places.get_mut(at) {
            *there = place;
        }
    }

    /// One did not succeed: applies the policy.
    fn stop(&mut self, cause: &Shared) {
        if self.plan.on_failure == OnFailure::Continue {
            return;
        }
        self.stopped_by.get_or_insert_with(|| cause.name());
        if self.plan.on_failure == OnFailure::Cancel {
            let reason = format!("`{}` of the same plan did not succeed", cause.core.name);
            for (node, place) in self.plan.nodes.iter().zip(&self.places) {
                if matches!(place, Place::Running(_)) {
                    node.shared.cancel(&reason);
                }
            }
        }
    }
}

impl Place {
    fn is_over(&self) -> bool {
        matches!(self, Self::Succeeded | Self::Skipped | Self::Ended)
    }
}
