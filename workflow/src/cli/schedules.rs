//! `workflow schedules`.

use workflow::Timestamp;

use crate::arguments::Schedules;
use crate::backend::Backend;
use crate::fail::Fail;
use crate::out::Out;
use crate::shown::Schedule;
use crate::text::{clean, count, one_line, table};
use crate::when;

pub(crate) async fn schedules(
    asked: Option<&Schedules>,
    backend: &Backend,
    out: &mut Out,
) -> Result<(), Fail> {
    match asked {
        None => list(backend, out).await,
        Some(Schedules::Pause { schedule, reason }) => {
            backend.pause(schedule, reason).await?;
            as_it_is("paused", schedule, backend, out).await
        }
        Some(Schedules::Resume { schedule }) => {
            backend.resume_schedule(schedule).await?;
            as_it_is("resumed", schedule, backend, out).await
        }
        Some(Schedules::Trigger { schedule }) => {
            let run = backend.trigger(schedule).await?;
            let run = backend.run(&run).await?;
            if out.is_json() {
                return out.value(&run);
            }
            out.line(&clean(&format!("started `{}`: {}", run.id, run.state)))
        }
        Some(Schedules::Backfill { schedule, from, to }) => {
            let done = backend.backfill(schedule, from.0, to.0).await?;
            if out.is_json() {
                return out.value(&done);
            }
            let (started, existing) = (count(done.started, "run"), done.existing);
            let line = format!("backfilled `{schedule}`: {started} started, {existing} were there");
            out.line(&clean(&line))
        }
    }
}

async fn list(backend: &Backend, out: &mut Out) -> Result<(), Fail> {
    let found = backend.schedules().await?;
    if out.is_json() {
        return out.value(&found);
    }
    let mut rows = vec![
        ["NAME", "CRON", "ZONE", "NEXT", "LAST", ""]
            .map(str::to_owned)
            .to_vec(),
    ];
    rows.extend(found.schedules.iter().map(row));
    for line in table(&rows, out.width()) {
        out.line(&line)?;
    }
    Ok(())
}

fn row(schedule: &Schedule) -> Vec<String> {
    let last = schedule.last.as_ref().map(|last| last.at);
    vec![
        one_line(&schedule.name),
        one_line(&schedule.cron),
        one_line(&schedule.zone),
        instant(schedule.next),
        instant(last),
        standing(schedule),
    ]
}

fn instant(at: Option<Timestamp>) -> String {
    at.map_or_else(|| "-".to_owned(), when::instant)
}

/// Why it starts nothing, if it does not.
fn standing(schedule: &Schedule) -> String {
    if let Some(paused) = &schedule.paused {
        let since = when::instant(paused.at);
        return match one_line(&paused.reason) {
            reason if reason.is_empty() => format!("paused since {since}"),
            reason => format!("paused since {since}: {reason}"),
        };
    }
    schedule
        .trouble
        .as_deref()
        .map(one_line)
        .unwrap_or_default()
}

/// Tells what was done, and how the schedule is now.
async fn as_it_is(done: &str, name: &str, backend: &Backend, out: &mut Out) -> Result<(), Fail> {
    let found = backend.schedules().await?.schedules.into_iter();
    let schedule = found.into_iter().find(|schedule| schedule.name == name);
    if out.is_json() {
        return out.value(&schedule);
    }
    let next = schedule.and_then(|schedule| schedule.next);
    let next = next.map_or_else(String::new, |next| {
        format!("; it fires next at {}", when::instant(next))
    });
    out.line(&clean(&format!("{done} `{name}`{next}")))
}
