//! Where a guide stands when it is opened: what of its history is alive, and what has to be migrated first.
//!
//! 1. The newest position says where it is. Only the visits that it says are under way are replayed.
//! 2. What another version of a flow recorded is migrated before anybody sees it, with the flows in its stages, or nothing is.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::Poll;

use serde_json::Value;

use super::desk::Desk;
use super::flow::{Flow, FlowState};
use super::migrate::{Abandoned, Unfit, Written, migrated};
use super::nested::{AnyFlow, all_of};
use super::operations::Operations;
use super::position::Snapshot;
use super::run::{INITIAL, visit_of};
use super::view::View;
use crate::codec::{BoxError, Codec};
use crate::context::{Cancellation, Ground, Park, guiding};
use crate::replay::{self, Alive, Finished, Location, ParkReason, Record};

/// Finds the visits of a history whose code had begun and had not ended.
pub(super) fn alive<S: FlowState>(
    flow: &Flow<S>,
) -> impl Fn(&dyn Codec, &[Record]) -> Vec<Alive> + use<S> {
    let version = flow.version();
    let nests = all_of(&flow.plan().nests).into_iter();
    let versions: BTreeMap<String, u32> = nests
        .map(|flow| (flow.name().to_owned(), flow.version()))
        .collect();
    move |codec, history| {
        // What does not decode is found again, and told of, when the code reads it.
        let mut alive: Vec<_> = guiding::positions_of::<Written>(codec, history)
            .into_iter()
            .map(|(base, Written { position })| {
                // What another version began is over.
                let current = match &position.flow {
                    None => position.version == version,
                    Some(flow) => versions.get(flow) == Some(&position.version),
                };
                let live = position.live.filter(|_| current);
                let at = |stage: &str, number| guiding::visit_location(&base, stage, number);
                let earlier = live.as_ref().map(|live| {
                    let earlier = live.first..live.number;
                    let earlier = earlier.map(|number| at(live.stage.as_str(), number));
                    earlier.collect()
                });
                Alive {
                    visit: live.map(|live| at(live.stage.as_str(), live.number)),
                    earlier: earlier.unwrap_or_default(),
                    base,
                }
            })
            .collect();
        if !alive.iter().any(|alive| alive.base.is_root()) {
            alive.push(Alive {
                base: Location::root(),
                visit: None,
                earlier: Vec::new(),
            });
        }
        alive
    }
}

/// Where a guide stands when it is driven again: as recorded, or as migrated.
pub(super) enum Newest<S> {
    /// Nowhere: it begins with this.
    None(S),
    Recorded(Snapshot<S>),
    /// With the flows in stages of it that were migrated, too, by where they lie.
    Migrated(Snapshot<S>, Vec<(Location, Snapshot<Value>)>),
}

pub(super) fn desk<S: FlowState>(ground: &Ground) -> Result<Arc<Desk<S>>, Park> {
    let desk = ground.desk(|| Arc::new(Desk::<S>::new()));
    let any: Arc<dyn std::any::Any + Send + Sync> = desk;
    any.downcast().map_err(|_| Park {
        location: None,
        reason: ParkReason::Decode,
        detail: "the guide is held by drivers of another flow of the same name".to_owned(),
    })
}

/// Reads where the guide stands. What another version recorded is migrated, as long as whoever opens it waits for that.
pub(super) async fn newest<S: FlowState>(
    ground: &Ground,
    flow: &Flow<S>,
    desk: &Desk<S>,
) -> Result<Newest<S>, Park> {
    let Some(written) = ground.position::<Written>()? else {
        return Ok(Newest::None(ground.input(INITIAL)?));
    };
    let own = written.position.version == flow.version();
    let flows = all_of(&flow.plan().nests);
    let within = ground.positions_within::<Written>();
    let root = (Location::root(), written);
    let around: Vec<_> = within.iter().chain([&root]).cloned().collect();
    let old: Vec<_> = within
        .into_iter()
        // What another version of the flow around began is over, and so is what is in it.
        .filter(|(base, _)| own && is_alive(base, &around))
        .filter_map(|(base, Written { position })| {
            let name = position.flow.as_ref()?;
            let flow = flows.iter().find(|flow| flow.name() == name)?;
            let moves = !position.status.is_final() && flow.version() != position.version;
            moves.then(|| (base, Arc::clone(flow)))
        })
        .collect();
    if own && old.is_empty() {
        return match ground.position()? {
            Some(recorded) => Ok(Newest::Recorded(recorded)),
            None => Ok(Newest::None(ground.input(INITIAL)?)),
        };
    }
    desk.arrive();
    let _up = ground.stay_up();
    ground.before_code(true);
    let token = Abandoned(Cancellation::default());
    let mut migrating = std::pin::pin!(migrate_all(ground, flow, own, old, &token.0));
    let mut awaited = false;
    let migrated = std::future::poll_fn(|task| {
        if let Poll::Ready(migrated) = migrating.as_mut().poll(task) {
            return Poll::Ready(migrated);
        }
        let waits = desk.openers(task) > 0;
        if awaited && !waits {
            return Poll::Ready(Ok(Err(Unfit::GivenUp {
                flow: flow.name().to_owned(),
            })));
        }
        awaited = waits;
        Poll::Pending
    })
    .await?;
    ground.before_code(false);
    migrated.map_err(|unfit| {
        let detail = unfit.to_string();
        desk.refuse(unfit);
        Park {
            location: None,
            reason: ParkReason::Version,
            detail,
        }
    })
}

/// Whether a flow lies in what is under way of all flows around it.
fn is_alive(base: &Location, positions: &[(Location, Written)]) -> bool {
    let mut around = positions
        .iter()
        .filter(|(around, _)| around != base && base.is_under(around));
    around.all(|(around, Written { position })| {
        position.live.as_ref().is_some_and(|live| {
            let visit = guiding::visit_location(around, live.stage.as_str(), live.number);
            base.is_under(&visit)
        })
    })
}

/// Migrates a guide, and the flows that are under way in its stages. Nothing is written before all of them are.
async fn migrate_all<S: FlowState>(
    ground: &Ground,
    flow: &Flow<S>,
    own: bool,
    old: Vec<(Location, Arc<dyn AnyFlow>)>,
    token: &Cancellation,
) -> Result<Result<Newest<S>, Unfit>, Park> {
    let newest = if own {
        ground.position::<Snapshot<S>>()?
    } else if let Some(recorded) = ground.position::<Snapshot<Value>>()? {
        match migrated(flow, recorded, ground.input(INITIAL)?, token).await {
            Ok(newest) => Some(newest),
            Err(unfit) => return Ok(Err(unfit)),
        }
    } else {
        None
    };
    let recorded: BTreeMap<_, _> = ground
        .positions_within::<Snapshot<Value>>()
        .into_iter()
        .collect();
    let mut within = Vec::new();
    for (base, flow) in old {
        let Some(recorded) = recorded.get(&base).cloned() else {
            continue;
        };
        match flow.migrate(recorded, token).await {
            Ok(newest) => within.push((base, newest)),
            Err(unfit) => return Ok(Err(unfit)),
        }
    }
    match newest {
        Some(mut newest) => {
            if own {
                // What it did before is told already.
                newest.position.events.clear();
            }
            Ok(Ok(Newest::Migrated(newest, within)))
        }
        None => Ok(Ok(Newest::None(ground.input(INITIAL)?))),
    }
}

/// What a guide's history shows, when nobody drives it.
pub(super) async fn stored<S: FlowState>(
    flow: &Flow<S>,
    codec: &dyn Codec,
    history: &[Record],
    published: Option<&str>,
) -> Result<Option<Result<View<S>, Unfit>>, BoxError> {
    let written = guiding::position_of::<Written>(codec, history)?;
    let newest = match written.map(|written| written.position) {
        Some(position) if position.version != flow.version() => {
            // It is over: nothing is written of it any more.
            let recorded = guiding::position_of::<Snapshot<Value>>(codec, history)?;
            let Some(recorded) = recorded else {
                return Ok(None);
            };
            let (input, token) = (recorded.state.clone(), Abandoned(Cancellation::default()));
            match migrated(flow, recorded, input, &token.0).await {
                Ok(mut newest) => {
                    newest.position.revision = position.revision;
                    Some(newest)
                }
                Err(unfit) => return Ok(Some(Err(unfit))),
            }
        }
        _ => guiding::position_of::<Snapshot<S>>(codec, history)?,
    };
    let view = newest.map(|newest| {
        let visit = visit_of(&Location::root(), &newest.position).unwrap_or_default();
        let (operations, orphans) = Operations::stored(published, &visit);
        View::of(flow, &newest, false).at_work(operations, orphans)
    });
    let cancelled = matches!(
        history.last().map(|last| &last.body),
        Some(replay::Body::Finished(Finished::Cancelled))
    );
    Ok(view.map(|view| Ok(if cancelled { view.cancelled() } else { view })))
}
