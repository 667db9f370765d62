//! `workflow graph`: what a run did, as the tree of its locations.

use serde::Serialize;

use crate::arguments::Graph;
use crate::backend::Backend;
use crate::fail::Fail;
use crate::out::Out;
use crate::spans::{Span, Spans};
use crate::text::{one_line, table};
use crate::when;

/// A location and what lies under it.
#[derive(Serialize)]
struct Node {
    name: String,
    location: String,
    #[serde(skip_serializing_if = "str::is_empty")]
    kind: &'static str,
    #[serde(skip_serializing_if = "str::is_empty")]
    state: &'static str,
    #[serde(skip_serializing_if = "is_zero")]
    attempts: u32,
    #[serde(skip_serializing_if = "String::is_empty")]
    note: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    under: Vec<Node>,
}

#[derive(Serialize)]
struct Tree {
    id: String,
    workflow: String,
    locations: Vec<Node>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives it so")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

pub(crate) async fn graph(asked: &Graph, backend: &Backend, out: &mut Out) -> Result<(), Fail> {
    let history = backend.export(&asked.run).await?;
    let spans = Spans::of(&history);
    if out.is_json() {
        return out.value(&Tree {
            id: history.id().to_string(),
            workflow: history.workflow().to_owned(),
            locations: nodes(&spans, &spans.roots, asked.depth),
        });
    }
    let mut rows = vec![vec![history.workflow().to_owned(), String::new()]];
    for span in spans.walk(asked.depth) {
        let name = format!(
            "{:indent$}{}",
            "",
            one_line(&span.name),
            indent = 2 * (span.depth + 1)
        );
        rows.push(vec![name, said(span)]);
    }
    for line in table(&rows, out.width()) {
        out.line(&line)?;
    }
    Ok(())
}

/// What there is to say of a location: its kind, how it went, how long it took.
pub(crate) fn said(span: &Span) -> String {
    let mut words = Vec::new();
    words.extend([span.kind, span.state.word()].map(str::to_owned));
    if span.attempts > 1 {
        words.push(format!("after {} attempts", span.attempts));
    }
    if !span.took().is_zero() {
        words.push(when::span(span.took()));
    }
    words.push(one_line(&span.note));
    words.retain(|word| !word.is_empty());
    words.join(" ")
}

fn nodes(spans: &Spans, at: &[usize], depth: Option<u32>) -> Vec<Node> {
    let deeper = depth.map(|depth| depth - 1);
    let node = |at: &usize| {
        let span = spans.all.get(*at)?;
        Some(Node {
            name: span.name.clone(),
            location: span.location.to_string(),
            kind: span.kind,
            state: span.state.word(),
            attempts: span.attempts,
            note: span.note.clone(),
            under: match deeper {
                Some(0) => Vec::new(),
                deeper => nodes(spans, &span.under, deeper),
            },
        })
    };
    at.iter().filter_map(node).collect()
}
