//! What the engine tells the log and the metrics of what happens to runs.
//!
//! 1. What is told is durable, and is told once, when it has become so: a replay is silent.
//! 2. The names are a promise. The guide's page `telemetry` has them all, and a test compares.
//! 3. A label has few values: a workflow, a state, a step by the path of its site, without what counts iterations.
//! 4. Nothing here can fail or delay a run.

#![cfg_attr(
    not(feature = "metrics"),
    allow(unused_variables, reason = "what is only measured")
)]

use std::time::Duration;

use super::live::Live;
use crate::replay::{
    AttemptState, Body, Ended, Finished, Kind, ParkReason, Record, RunId, RunState, Timestamp,
};
#[cfg(feature = "metrics")]
use crate::store::Committed;

/// Names of spans.
pub(super) const RUN: &str = "workflow.run";
pub(super) const STEP: &str = "workflow.step";

/// Names of events.
pub(super) const RUN_PARKED: &str = "workflow.run.parked";
const RUN_STARTED: &str = "workflow.run.started";
const RUN_LOADED: &str = "workflow.run.loaded";
const RUN_COMPLETED: &str = "workflow.run.completed";
const RUN_FAILED: &str = "workflow.run.failed";
const RUN_CANCELLED: &str = "workflow.run.cancelled";
const STEP_COMPLETED: &str = "workflow.step.completed";
const STEP_RETRIED: &str = "workflow.step.retried";
const STEP_FAILED: &str = "workflow.step.failed";

#[cfg(test)]
const NAMES: &[&str] = &[
    RUN,
    STEP,
    RUN_STARTED,
    RUN_LOADED,
    RUN_COMPLETED,
    RUN_FAILED,
    RUN_CANCELLED,
    RUN_PARKED,
    STEP_COMPLETED,
    STEP_RETRIED,
    STEP_FAILED,
];

/// Does what is written here where metrics are compiled in.
macro_rules! measured {
    ($($what:tt)*) => {
        #[cfg(feature = "metrics")]
        {
            $($what)*
        }
    };
}

/// These records of a run became durable.
pub(super) fn committed(live: &Live, records: &[Record]) {
    for record in records {
        match &record.body {
            Body::Begun(_) => started(&live.id, live.workflow),
            Body::Attempt {
                number,
                state: AttemptState::Failed { failure, wake_at },
            } => {
                let delay = millis(wake_at.since(record.at));
                tracing::info!(
                    name: STEP_RETRIED,
                    run = %live.id,
                    workflow = live.workflow,
                    location = %record.location,
                    attempt = number,
                    kind = %failure.kind(),
                    error = failure.message(),
                    delay_ms = delay,
                    "an attempt failed; the step is tried again"
                );
                measured! {
                    let step = record.location.path();
                    metrics::counter!("workflow_step_retries_total", "workflow" => live.workflow, "step" => step)
                        .increment(1);
                }
            }
            Body::Ended(ended) if ended.kind == Kind::Step => step_ended(live, record, ended),
            Body::Finished(finished) => ended(live, finished),
            _ => {}
        }
    }
}

fn step_ended(live: &Live, record: &Record, ended: &Ended) {
    let took = record.at.since(ended.started_at);
    match &ended.outcome {
        Ok(_) => tracing::debug!(
            name: STEP_COMPLETED,
            run = %live.id,
            workflow = live.workflow,
            location = %record.location,
            attempts = ended.attempts,
            elapsed_ms = millis(took),
            "a step completed"
        ),
        Err(failure) => tracing::info!(
            name: STEP_FAILED,
            run = %live.id,
            workflow = live.workflow,
            location = %record.location,
            attempts = ended.attempts,
            elapsed_ms = millis(took),
            kind = %failure.kind(),
            error = failure.message(),
            "a step failed"
        ),
    }
    measured! {
        let step = record.location.path();
        let outcome = if ended.outcome.is_ok() { "completed" } else { "failed" };
        metrics::histogram!(
            "workflow_step_seconds",
            "workflow" => live.workflow, "step" => step, "outcome" => outcome
        )
        .record(took);
    }
}

/// A run's beginning became durable.
pub(super) fn started(run: &RunId, workflow: &str) {
    tracing::debug!(name: RUN_STARTED, run = %run, workflow, "a run was started");
    measured! {
        metrics::counter!("workflow_runs_started_total", "workflow" => workflow.to_owned())
            .increment(1);
    }
}

fn ended(live: &Live, finished: &Finished) {
    match finished {
        Finished::Completed(_) => {
            tracing::debug!(name: RUN_COMPLETED, run = %live.id, workflow = live.workflow, "a run completed");
            over(live.workflow, RunState::Completed);
        }
        Finished::Failed(failure) => {
            tracing::info!(
                name: RUN_FAILED,
                run = %live.id,
                workflow = live.workflow,
                location = %failure.location(),
                kind = %failure.kind(),
                error = failure.message(),
                "a run failed"
            );
            over(live.workflow, RunState::Failed);
        }
        Finished::Cancelled => cancelled(&live.id, live.workflow),
    }
}

/// A run was cancelled, durably.
pub(super) fn cancelled(run: &RunId, workflow: &str) {
    tracing::info!(name: RUN_CANCELLED, run = %run, workflow, "a run was cancelled");
    over(workflow, RunState::Cancelled);
}

fn over(workflow: &str, state: RunState) {
    measured! {
        metrics::counter!(
            "workflow_runs_ended_total",
            "workflow" => workflow.to_owned(), "state" => state.word()
        )
        .increment(1);
    }
}

/// A run was parked, durably.
pub(super) fn parked(live: &Live, reason: ParkReason, detail: &str) {
    tracing::warn!(
        name: RUN_PARKED,
        run = %live.id,
        workflow = live.workflow,
        reason = %reason,
        "parked: {detail}"
    );
    measured! {
        metrics::counter!(
            "workflow_runs_parked_total",
            "workflow" => live.workflow, "reason" => reason.word()
        )
        .increment(1);
    }
}

/// A run was read from the store, and is replayed.
pub(super) fn loaded(live: &Live, records: usize) {
    tracing::debug!(name: RUN_LOADED, run = %live.id, workflow = live.workflow, records, "a run is replayed");
    measured! {
        metrics::histogram!("workflow_replay_records", "workflow" => live.workflow)
            .record(count(records));
    }
}

/// So many runs are in memory.
pub(super) fn in_memory(runs: usize) {
    measured! {
        metrics::gauge!("workflow_runs_in_memory").set(count(runs));
    }
}

/// A timer fired that was to fire at `deadline`.
pub(super) fn fired(deadline: Timestamp, now: Timestamp) {
    measured! {
        metrics::histogram!("workflow_timer_lag_seconds").record(now.since(deadline));
    }
}

/// A batch of a run that was given to the store is durable.
pub(super) fn appended(records: usize, took: Duration) {
    measured! {
        metrics::histogram!("workflow_commit_records").record(count(records));
        metrics::histogram!("workflow_commit_seconds").record(took);
    }
}

/// The store committed what was queued.
#[cfg(feature = "metrics")]
pub(super) fn store_committed(committed: Committed) {
    metrics::histogram!("workflow_store_commit_batches").record(count(committed.batches));
    metrics::histogram!("workflow_store_commit_seconds").record(committed.took);
}

/// The store failed, and a batch is written again.
pub(super) fn store_failed() {
    measured! {
        metrics::counter!("workflow_store_failures_total").increment(1);
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(feature = "metrics")]
fn count(count: usize) -> f64 {
    u32::try_from(count).unwrap_or(u32::MAX).into()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_name_of_a_span_an_event_and_a_metric_is_on_the_page_and_no_other_is() {
        let page = include_str!("../guide/telemetry.md");
        let named = page.lines().filter_map(|line| {
            let (name, _) = line.strip_prefix("| `")?.split_once('`')?;
            Some(name)
        });
        let named: BTreeSet<_> = named.collect();
        let code = include_str!("telemetry.rs");
        let metrics = ["counter", "gauge", "histogram"]
            .into_iter()
            .flat_map(|kind| {
                let begin = format!("metrics::{kind}!(");
                let calls: Vec<_> = code.split(begin.as_str()).skip(1).collect();
                calls.into_iter().filter_map(|call| {
                    let (name, _) = call.trim_start().strip_prefix('"')?.split_once('"')?;
                    Some(name)
                })
            });
        let mut told: BTreeSet<_> = metrics.collect();
        told.extend(NAMES);
        assert_eq!(named, told);
    }
}
