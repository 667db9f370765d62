//! `workflow history`: records, each as a line of text.

use workflow::Record;
use workflow::replay::{AttemptState, Body, Control, Finished, Opened, Waiting};

use crate::arguments;
use crate::backend::Backend;
use crate::fail::Fail;
use crate::out::Out;
use crate::shown::{self, Excerpt};
use crate::text::{one_line, table};
use crate::when;

pub(crate) async fn history(
    asked: &arguments::History,
    backend: &Backend,
    out: &mut Out,
) -> Result<(), Fail> {
    let history = backend.export(&asked.run).await?;
    let mut records: Vec<_> = history.records().to_vec();
    records.retain(|record| record.seq > asked.after && is_at(record, asked.at.as_deref()));
    let mut next = None;
    if let Some(limit) = asked.limit
        && records.len() > limit as usize
    {
        records.truncate(limit as usize);
        next = records.last().map(|record| record.seq);
    }
    if out.is_json() {
        let id = history.id().to_string();
        return out.value(&Excerpt { id, records, next });
    }
    let rows: Vec<_> = records.iter().map(row).collect();
    for line in table(&rows, out.width()) {
        out.line(&line)?;
    }
    if let Some(next) = next {
        out.note(&format!("there are more: --after {next}"));
    }
    Ok(())
}

/// Whether a record is at this location, or under it.
fn is_at(record: &Record, at: Option<&str>) -> bool {
    let Some(at) = at else { return true };
    let here = record.location.to_string();
    here.strip_prefix(at)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '[']))
}

/// A record in cells: its number, when, where, what.
pub(crate) fn row(record: &Record) -> Vec<String> {
    vec![
        record.seq.to_string(),
        when::instant(record.at),
        one_line(&record.location.to_string()),
        one_line(&describe(&record.body)),
    ]
}

/// What a record says, in a few words.
pub(crate) fn describe(body: &Body) -> String {
    let failure = shown::failure;
    match body {
        Body::Begun(begun) => format!("begun: {} {}", begun.workflow, shown::payload(&begun.input)),
        Body::Opened(opened) => match opened {
            Opened::Join(branches) => format!("join of {}", branches.join(", ")),
            Opened::Race(branches) => format!("race of {}", branches.join(", ")),
            Opened::JoinAll(items) => format!("join_all of {items}"),
            Opened::Carry(locals) => format!("loop that carries {}", locals.join(", ")),
            Opened::Stage { visit, .. } => format!("stage, visit {visit}"),
        },
        Body::Waiting(waiting) => match waiting {
            Waiting::Sleep { until } => format!("sleeps until {}", when::instant(*until)),
            Waiting::Recv {
                channels, until, ..
            } => {
                let channels = channels.as_ref().map(|channels| channels.join(", "));
                let channels = channels.unwrap_or_else(|| "any channel".to_owned());
                match until {
                    Some(until) => format!("waits for {channels}, until {}", when::instant(*until)),
                    None => format!("waits for {channels}"),
                }
            }
            Waiting::Child { id, detached } => {
                let how = if *detached { ", detached" } else { "" };
                format!("child {id}{how}")
            }
            Waiting::Body => "was under way when the run left memory".to_owned(),
        },
        Body::Attempt { number, state } => match state {
            AttemptState::Started => format!("attempt {number} begins"),
            AttemptState::Failed {
                failure: why,
                wake_at,
            } => format!(
                "attempt {number} failed: {}; again at {}",
                failure(why),
                when::instant(*wake_at)
            ),
        },
        Body::Ended(ended) => match &ended.outcome {
            Ok(value) => format!("{}: {}", ended.kind, shown::payload(value)),
            Err(why) => format!("{} failed: {}", ended.kind, failure(why)),
        },
        Body::Taken(messages) if messages.is_empty() => "took nothing".to_owned(),
        Body::Taken(messages) => {
            let messages = messages.iter();
            let messages = messages
                .map(|message| format!("{} {}", message.channel, shown::payload(&message.payload)));
            format!("took {}", messages.collect::<Vec<_>>().join(", "))
        }
        Body::Decided { branch } => format!("won by {branch}"),
        Body::Carried { next, state } => {
            format!("iteration {next} next, with {}", shown::payload(state))
        }
        Body::Closed(value) => format!("closed: {}", shown::payload(value)),
        Body::Pin { value, latest } => format!("version {value} of {latest}"),
        Body::Removed { kind } => format!("removed {kind}"),
        Body::Checkpoint => "checkpoint".to_owned(),
        Body::Armed {
            number, location, ..
        } => format!("undo {number} armed for {location}"),
        Body::Unwinding { cause: Some(cause) } => format!("rolls back: {}", failure(cause)),
        Body::Unwinding { cause: None } => "rolls back: cancelled".to_owned(),
        Body::Settled { up_to } => format!("settled up to undo {up_to}"),
        Body::State {
            revision, payload, ..
        } => {
            format!("revision {revision}: {}", shown::payload(payload))
        }
        Body::Undone {
            undoes,
            attempt,
            outcome,
            skipped,
        } => match (skipped, outcome) {
            (Some(why), _) => format!("undo {undoes} skipped: {why}"),
            (None, Ok(())) => format!("undo {undoes} done, attempt {attempt}"),
            (None, Err(why)) => {
                format!("undo {undoes} failed, attempt {attempt}: {}", failure(why))
            }
        },
        Body::Control(control) => match control {
            Control::Cancel { undo: true } => "asked to cancel and undo".to_owned(),
            Control::Cancel { undo: false } => "asked to cancel".to_owned(),
            Control::Evicted => "evicted".to_owned(),
            Control::Recovered => "recovered".to_owned(),
            Control::Rewound {
                to,
                generation,
                removed,
            } => {
                let to = if to.is_root() {
                    "the beginning".to_owned()
                } else {
                    to.to_string()
                };
                format!("rewound to {to}: {removed} records removed, generation {generation}")
            }
            Control::Forked { .. } => "forked: what is before this is a copy".to_owned(),
            Control::Skipped { reason } => format!("skipped: {reason}"),
        },
        Body::Finished(Finished::Completed(value)) => {
            format!("completed: {}", shown::payload(value))
        }
        Body::Finished(Finished::Failed(why)) => format!("failed: {}", failure(why)),
        Body::Finished(Finished::Cancelled) => "cancelled".to_owned(),
        // Of a newer version of the library; the JSON has it whole.
        _ => "something that this program does not know".to_owned(),
    }
}
