//! From one version of a flow to another: what an older version recorded is changed step by step, and the guide goes on with it.
//!
//! 1. A guide of another version is changed before anything else is done with it, and whole: its data, and what it began with. What
//!    comes of it is durable before anybody sees the guide.
//! 2. A version that no migration leads from, a migration that fails, and data that does not read afterwards: the guide is refused, and
//!    all that is recorded of it stays as it was.
//! 3. The code of a stage that was under way belongs to the version that began it: it is over, as one that was cut off is. What it had
//!    done is kept by a retry.

use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::{Context, Poll};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::flow::{Flow, FlowState};
use super::position::{Event, Failing, FailingKind, Position, Snapshot, Status};
use super::run::said;
use crate::codec::BoxError;
use crate::context::{BoxFut, Cancellation};

/// One step: from the version that it is declared for to the next.
pub(super) type Migration =
    Arc<dyn Fn(Value, Cancellation) -> BoxFut<'static, Result<Value, BoxError>> + Send + Sync>;

/// The steps that a flow knows, by the versions that they lead from.
pub(super) type Migrations = BTreeMap<u32, Migration>;

/// A recorded position, whatever the data beside it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Written {
    pub(super) position: Position,
}

/// Why a guide cannot go on with this version of its flow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Unfit {
    /// It is of a version that this code does not come from.
    Needs { flow: String, from: u32, to: u32 },
    /// A migration from this version failed.
    Failed {
        flow: String,
        from: u32,
        detail: String,
    },
    /// Whoever opened it went before it was migrated.
    GivenUp { flow: String },
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Needs { flow, from, to } => f.write_str(&needs(flow, *from, *to)),
            Self::Failed { flow, from, detail } => f.write_str(&failed(flow, *from, detail)),
            Self::GivenUp { flow } => {
                write!(f, "nobody waits for the flow `{flow}` to be migrated")
            }
        }
    }
}

/// What there is to say of a version that this code does not come from.
pub(super) fn needs(flow: &str, from: u32, to: u32) -> String {
    let way = if from < to {
        format!(
            "declare how its data becomes that of version {to} (`.migrate({from}, ..)`), or deploy code of version {from}"
        )
    } else {
        format!("deploy code of version {from} or later")
    };
    format!(
        "it was recorded by version {from} of the flow `{flow}`, and this is version {to}\n  ways out: {way}"
    )
}

/// What there is to say of a migration that failed.
pub(super) fn failed(flow: &str, from: u32, detail: &str) -> String {
    format!("the migration of the flow `{flow}` from version {from} failed: {detail}")
}

/// Fires when it is dropped: what is migrated by then is of no use to anybody.
pub(super) struct Abandoned(pub(super) Cancellation);

impl Drop for Abandoned {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// What another version recorded, as this version has it. `input` is what the guide was begun with.
pub(super) async fn migrated<S: FlowState>(
    flow: &Flow<S>,
    recorded: Snapshot<Value>,
    input: Value,
    token: &Cancellation,
) -> Result<Snapshot<S>, Unfit> {
    let Snapshot {
        position,
        state,
        initial,
        ..
    } = recorded;
    let from = position.version;
    let state = chain(flow, from, state, token).await?;
    let initial = chain(flow, from, initial.unwrap_or(input), token).await?;
    Ok(Snapshot {
        position: carried_over(position, flow),
        state,
        began: None,
        initial: Some(initial),
    })
}

/// Every step from a version to the flow's own.
async fn chain<S: DeserializeOwned>(
    flow: &Flow<impl FlowState>,
    from: u32,
    mut data: Value,
    token: &Cancellation,
) -> Result<S, Unfit> {
    let to = flow.version();
    let needs = || Unfit::Needs {
        flow: flow.name().to_owned(),
        from,
        to,
    };
    let failed = |from, detail| Unfit::Failed {
        flow: flow.name().to_owned(),
        from,
        detail,
    };
    let steps: Option<Vec<_>> = (from..to)
        .map(|version| flow.plan().migrations.get(&version).map(|it| (version, it)))
        .collect();
    let steps = steps.filter(|_| from < to).ok_or_else(needs)?;
    for (version, step) in steps {
        let stepped = step_over(step, data, token).await;
        data = stepped.map_err(|error| failed(version, error.to_string()))?;
    }
    serde_json::from_value(data).map_err(|error| {
        failed(
            to - 1,
            format!("what it gives does not read as version {to}: {error}"),
        )
    })
}

/// One step. A panic in it is a failure.
async fn step_over(step: &Migration, data: Value, token: &Cancellation) -> Result<Value, BoxError> {
    let begun = catch_unwind(AssertUnwindSafe(|| step(data, token.clone())));
    let mut step = begun.map_err(|panic| said(&*panic))?;
    std::future::poll_fn(|task: &mut Context<'_>| {
        let polled = catch_unwind(AssertUnwindSafe(|| step.as_mut().poll(task)));
        polled.unwrap_or_else(|panic| Poll::Ready(Err(said(&*panic).into())))
    })
    .await
}

/// Where the guide stands, as a position of this version.
fn carried_over<S>(position: Position, flow: &Flow<S>) -> Position {
    let from = position.version;
    let mut next = position;
    next.events.clear();
    next.version = flow.version();
    next.fingerprint = flow.plan().fingerprint;
    if let Some(live) = next.live.take() {
        next.fail(Failing {
            kind: FailingKind::Interrupted,
            text: format!(
                "the stage `{}` was under way when the flow was of version {from}",
                live.stage
            ),
            at: Vec::new(),
        });
        next.say(Event::Failed(live.stage));
    }
    if next.status == Status::RollingBack {
        // It goes on by itself.
        next.failure = None;
    }
    next.say(Event::Migrated {
        from,
        to: next.version,
    });
    next
}
