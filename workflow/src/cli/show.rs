//! `workflow show`.

use serde::Serialize;
use serde_json::value::RawValue;
use workflow::replay::{Body, Finished, Waiting};
use workflow::{Failure, History};

use crate::backend::Backend;
use crate::fail::Fail;
use crate::list::standing;
use crate::out::Out;
use crate::shown::{self, Failed, Run};
use crate::text::{clean, cut, one_line};
use crate::{ways, when};

/// A run, with what its history says of it.
#[derive(Serialize)]
struct Shown<'a> {
    run: Run,
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<Failed>,
    #[serde(skip_serializing_if = "Option::is_none")]
    forked_from: Option<String>,
    children: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    ways_out: Vec<String>,
    #[serde(skip)]
    history: &'a History,
}

pub(crate) async fn show(id: &str, backend: &Backend, out: &mut Out) -> Result<(), Fail> {
    let run = backend.run(id).await?;
    let history = backend.export(id).await?;
    let shown = Shown::of(run, &history);
    if out.is_json() {
        return out.value(&shown);
    }
    for (name, text) in shown.lines() {
        for (number, line) in text.lines().enumerate() {
            let name = if number == 0 { name } else { "" };
            let line = format!("{name:<10}  {}", clean(line));
            // A report is read whole; a value may be of any length.
            let width = out.width().filter(|_| name != "parked" && !name.is_empty());
            out.line(&cut(&line, width))?;
        }
    }
    Ok(())
}

impl<'a> Shown<'a> {
    fn of(run: Run, history: &'a History) -> Self {
        let (value, failure) = match history.finished() {
            Some(Finished::Completed(value)) => (shown::plain(value), None),
            Some(Finished::Failed(failure)) => (None, Some(Failed::from(failure))),
            _ => (None, None),
        };
        let children = history
            .records()
            .iter()
            .filter_map(|record| match &record.body {
                Body::Waiting(Waiting::Child { id, .. }) => Some(id.to_string()),
                _ => None,
            });
        let forked_from = match history.records().first().map(|record| &record.body) {
            Some(Body::Begun(begun)) => begun.forked_from.as_ref().map(ToString::to_string),
            _ => None,
        };
        let ways_out = run.parked.as_ref();
        let ways_out = ways_out.map(|parked| ways::out_of(&parked.reason, &run.id));
        Self {
            input: shown::plain(history.input()),
            value,
            failure,
            forked_from,
            children: children.collect(),
            ways_out: ways_out.unwrap_or_default(),
            run,
            history,
        }
    }

    fn lines(&self) -> Vec<(&'static str, String)> {
        let run = &self.run;
        let mut lines = vec![
            ("run", one_line(&run.id)),
            ("workflow", run.workflow.clone()),
            ("state", run.state.clone()),
        ];
        if let Some(parked) = &run.parked {
            lines.push(("parked", format!("{}: {}", parked.reason, parked.detail)));
            lines.push(("ways out", self.ways_out.join("\n")));
        } else if !standing(run).is_empty() {
            lines.push(("waits", standing(run)));
        }
        lines.push(("input", one_line(&shown::payload(self.history.input()))));
        if let Some(progress) = &run.progress {
            lines.push(("progress", one_line(progress.get())));
        }
        match self.history.finished() {
            Some(Finished::Completed(value)) => {
                lines.push(("value", one_line(&shown::payload(value))));
            }
            Some(Finished::Failed(failure)) => lines.push(("failure", failed(failure))),
            _ => {}
        }
        if let Some(parent) = &run.parent {
            lines.push((
                "parent",
                format!("{} at {}", one_line(&parent.id), parent.location),
            ));
        }
        if let Some(from) = &self.forked_from {
            lines.push(("fork of", one_line(from)));
        }
        if !self.children.is_empty() {
            lines.push(("children", self.children.join("\n")));
        }
        lines.push(("started", when::instant(run.created_at)));
        if let Some(at) = run.not_before {
            lines.push(("not before", when::instant(at)));
        }
        if run.priority != 0 {
            lines.push(("priority", run.priority.to_string()));
        }
        lines.push(("changed", when::instant(run.updated_at)));
        if let Some(at) = run.finished_at {
            lines.push(("ended", when::instant(at)));
        }
        lines.push(("records", run.records.to_string()));
        if run.generation > 0 {
            lines.push(("generation", run.generation.to_string()));
        }
        lines
    }
}

fn failed(failure: &Failure) -> String {
    let text = one_line(&shown::failure(failure));
    if failure.location().is_root() {
        return text;
    }
    format!("{}: {text}", failure.location())
}
