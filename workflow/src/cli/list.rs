//! `workflow list`.

use crate::arguments::List;
use crate::backend::{Backend, Filter};
use crate::bars;
use crate::fail::Fail;
use crate::out::Out;
use crate::shown::{Run, Runs};
use crate::text::{clean, one_line, table};
use crate::when;

/// So many runs are read at a time.
const PAGE: usize = 1_000;

pub(crate) async fn list(asked: &List, backend: &Backend, out: &mut Out) -> Result<(), Fail> {
    let most = if asked.all {
        usize::MAX
    } else {
        asked.limit as usize
    };
    let mut found = Runs {
        runs: Vec::new(),
        next: asked.after.clone(),
    };
    let bar = bars::counting("runs looked at");
    loop {
        // What is filtered here is not counted: then pages are read until there are enough.
        let limit = match asked.since {
            Some(_) => PAGE,
            None => PAGE.min(most - found.runs.len()),
        };
        let page = backend
            .list(Filter {
                workflow: asked.workflow.as_deref(),
                state: asked.state.as_deref(),
                after: found.next.as_deref(),
                limit,
            })
            .await?;
        bar.inc(page.runs.len() as u64);
        let changed = |run: &Run| asked.since.is_none_or(|since| run.updated_at >= since.0);
        found.runs.extend(page.runs.into_iter().filter(changed));
        found.next = page.next;
        if found.next.is_none() || found.runs.len() >= most {
            break;
        }
    }
    bar.finish_and_clear();
    if out.is_json() {
        return out.value(&found);
    }
    let mut rows = vec![
        ["ID", "WORKFLOW", "STATE", "CHANGED", ""]
            .map(str::to_owned)
            .to_vec(),
    ];
    rows.extend(found.runs.iter().map(row));
    for line in table(&rows, out.width()) {
        out.line(&line)?;
    }
    if let Some(next) = found.next {
        out.note(&format!("there are more: --after {next}"));
    }
    Ok(())
}

fn row(run: &Run) -> Vec<String> {
    vec![
        one_line(&run.id),
        clean(&run.workflow).into_owned(),
        run.state.clone(),
        when::instant(run.updated_at),
        standing(run),
    ]
}

/// What a run waits for, or why it does not go on.
pub(crate) fn standing(run: &Run) -> String {
    if let Some(parked) = &run.parked {
        return format!("{}: {}", parked.reason, one_line(&parked.detail));
    }
    let mut waits = Vec::new();
    if !run.waits_for.is_empty() {
        waits.push(format!("for {}", one_line(&run.waits_for.join(", "))));
    }
    if let Some(at) = run.wake_at {
        waits.push(format!("until {}", when::instant(at)));
    }
    if let Some(queued) = &run.queued {
        let its = match (queued.limit, &queued.rate) {
            (Some(_), Some(_)) => "a slot and its rate",
            (None, Some(_)) => "its rate",
            (_, None) => "a slot",
        };
        let ahead = queued.ahead;
        return match queued.not_before {
            Some(at) => format!("for {its}, {ahead} ahead, until {}", when::instant(at)),
            None => format!("for {its}, {ahead} ahead"),
        };
    }
    waits.join(", or ")
}
