//! What an operator does to a run.

use std::io::Read;

use serde_json::value::RawValue;

use crate::arguments::{Fork, Rewind, Send, SkipUndo};
use crate::backend::Backend;
use crate::fail::Fail;
use crate::history::describe;
use crate::out::Out;
use crate::shown::Back;
use crate::text::{clean, count, cut, one_line, table};

pub(crate) async fn send(asked: &Send, backend: &Backend, out: &mut Out) -> Result<(), Fail> {
    let mut text = asked.value.clone();
    if text == "-" {
        text.clear();
        let read = std::io::stdin().read_to_string(&mut text);
        read.map_err(|error| Fail::Usage(format!("the message cannot be read: {error}")))?;
    }
    let value = serde_json::from_str::<Box<RawValue>>(&text).map_err(|error| {
        Fail::Usage(format!(
            "the message is not JSON: {error}; a text is '\"in quotes\"'"
        ))
    })?;
    let Send {
        run, channel, key, ..
    } = asked;
    backend.send(run, channel, key.as_deref(), value).await?;
    if out.is_json() {
        return out.value(&serde_json::json!({"run": run, "channel": channel}));
    }
    out.line(&clean(&format!("sent to `{run}` on `{channel}`")))
}

pub(crate) async fn cancel(
    id: &str,
    undo: bool,
    backend: &Backend,
    out: &mut Out,
) -> Result<(), Fail> {
    backend.cancel(id, undo).await?;
    as_it_is("cancelled", id, backend, out).await
}

pub(crate) async fn recover(id: &str, backend: &Backend, out: &mut Out) -> Result<(), Fail> {
    backend.recover(id).await?;
    as_it_is("recovered", id, backend, out).await
}

pub(crate) async fn resume(id: &str, backend: &Backend, out: &mut Out) -> Result<(), Fail> {
    let before = backend.run(id).await?;
    if before.parked.is_none() {
        let state = before.state;
        return Err(Fail::Refused(format!(
            "run `{id}` is {state}, and not parked: there is nothing to resume"
        )));
    }
    backend.resume(id).await?;
    as_it_is("resumed", id, backend, out).await
}

pub(crate) async fn skip_undo(
    asked: &SkipUndo,
    backend: &Backend,
    out: &mut Out,
) -> Result<(), Fail> {
    let SkipUndo { run, entry, reason } = asked;
    backend.skip_undo(run, *entry, reason).await?;
    as_it_is("skipped an undo of", run, backend, out).await
}

pub(crate) async fn fork(asked: &Fork, backend: &Backend, out: &mut Out) -> Result<(), Fail> {
    let Fork { run, new, at } = asked;
    backend.fork(run, new, at.as_deref()).await?;
    as_it_is("forked", new, backend, out).await
}

/// Tells what was done, and how the run is now.
async fn as_it_is(done: &str, id: &str, backend: &Backend, out: &mut Out) -> Result<(), Fail> {
    let run = backend.run(id).await?;
    if out.is_json() {
        return out.value(&run);
    }
    let rest = if run.finished_at.is_some() {
        ""
    } else {
        backend.goes_on()
    };
    let line = format!("{done} `{id}`: {}{rest}", run.state);
    out.line(&clean(&line))
}

pub(crate) async fn rewind(asked: &Rewind, backend: &Backend, out: &mut Out) -> Result<(), Fail> {
    let Rewind {
        run,
        location,
        dry_run,
    } = asked;
    let back = backend.rewind(run, location, *dry_run).await?;
    if out.is_json() {
        return out.value(&back);
    }
    for line in told(run, &back, backend, out.width()) {
        out.line(&line)?;
    }
    Ok(())
}

fn told(run: &str, back: &Back, backend: &Backend, width: Option<usize>) -> Vec<String> {
    let to = match &*back.to {
        "" => "its beginning".to_owned(),
        to => format!("`{to}`"),
    };
    let removed = count(back.removed.len() as u64, "record");
    let head = if back.dry_run {
        format!("would rewind `{run}` to {to}, and delete {removed}; nothing was done")
    } else {
        format!(
            "rewound `{run}` to {to}: {removed} deleted{}",
            backend.goes_on()
        )
    };
    let mut lines = vec![clean(&head).into_owned()];
    let rows: Vec<_> = back
        .removed
        .iter()
        .map(|record| {
            vec![
                format!("  {}", record.seq),
                one_line(&record.location.to_string()),
                one_line(&describe(&record.body)),
            ]
        })
        .collect();
    lines.extend(table(&rows, width));
    for message in &back.returned {
        let line = format!("  back into the inbox: a message on `{}`", message.channel);
        lines.push(cut(&one_line(&line), width).into_owned());
    }
    for child in &back.cancelled {
        let line = format!("  cancelled, if it has not ended: child `{child}`");
        lines.push(cut(&one_line(&line), width).into_owned());
    }
    lines
}
