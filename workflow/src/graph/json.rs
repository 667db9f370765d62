//! A drawing as data. [`Graph::json`](super::Graph::json) says what is in it; what is added to it later is fields, and the number of the
//! format changes when one of them changes its meaning.

use serde::Serialize;

use super::drawing::{Class, Drawing, Edge, Group, Node, Way};
use super::run::RunGraph;
use super::state::{SiteState, State};
use crate::replay::{Kind, RunState, Site};

const FORMAT: u32 = 1;

#[derive(Serialize)]
struct Document<'a> {
    format: u32,
    workflow: &'a str,
    nodes: Vec<NodeOut<'a>>,
    edges: Vec<EdgeOut<'a>>,
    groups: Vec<GroupOut<'a>>,
    sites: Vec<SiteOut<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<RunOut<'a>>,
}

#[derive(Serialize)]
struct NodeOut<'a> {
    id: String,
    kind: &'static str,
    label: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    site: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    calls: Option<&'a str>,
    #[serde(skip_serializing_if = "<[&str]>::is_empty")]
    channels: &'a [&'static str],
    #[serde(skip_serializing_if = "<[&str]>::is_empty")]
    carries: &'a [&'static str],
    #[serde(skip_serializing_if = "Option::is_none")]
    latest: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    was: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<&'a str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    undo: bool,
}

#[derive(Serialize)]
struct EdgeOut<'a> {
    from: String,
    to: String,
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<&'a str>,
}

#[derive(Serialize)]
struct GroupOut<'a> {
    id: String,
    kind: &'static str,
    label: &'a str,
    site: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<String>,
}

#[derive(Serialize)]
struct SiteOut<'a> {
    path: &'a str,
    name: &'a str,
    kind: &'static str,
    file: &'a str,
    line: u32,
    /// Absent for a site that is not drawn.
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<StateOut>,
}

#[derive(Serialize)]
struct StateOut {
    state: &'static str,
    /// What it turned out to be, of a call.
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    attempt: Option<u32>,
    times: u64,
    failures: u64,
    places: Vec<PlaceOut>,
}

#[derive(Serialize)]
struct PlaceOut {
    location: String,
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    attempt: Option<u32>,
}

#[derive(Serialize)]
struct RunOut<'a> {
    /// `completed`, `failed`, `cancelled` or `rolling_back`; absent while it is none of these.
    #[serde(skip_serializing_if = "Option::is_none")]
    ended: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<FailureOut>,
    unknown: Vec<UnknownOut<'a>>,
}

#[derive(Serialize)]
struct FailureOut {
    location: String,
    kind: &'static str,
}

#[derive(Serialize)]
struct UnknownOut<'a> {
    location: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    recorded: Option<&'static str>,
    /// The path of the site that the code has there.
    #[serde(skip_serializing_if = "Option::is_none")]
    found: Option<&'a str>,
}

/// The text of a drawing of these sites, with the run that was laid over it.
pub(super) fn print(drawing: &Drawing, sites: &[Site], run: Option<&RunGraph>) -> String {
    let document = Document {
        format: FORMAT,
        workflow: drawing.name,
        nodes: drawing.nodes.iter().enumerate().map(node).collect(),
        edges: drawing.edges.iter().map(edge).collect(),
        groups: drawing.groups.iter().enumerate().map(group).collect(),
        sites: sites.iter().map(|of| site(of, drawing, run)).collect(),
        run: run.map(over),
    };
    // Texts and numbers only: nothing in it can fail.
    serde_json::to_string_pretty(&document).unwrap_or_default()
}

fn node((number, node): (usize, &Node)) -> NodeOut<'_> {
    let part = node.part.as_ref();
    NodeOut {
        id: node_id(number),
        kind: match node.class {
            Class::Start => "start",
            Class::End => "end",
            Class::Site(kind) => kind.word(),
            Class::After(_) => "after",
            Class::Choice => "choice",
            Class::Channel => "channel",
        },
        label: Drawing::text(node).collect::<Vec<_>>().join("\n"),
        group: node.group.map(group_id),
        site: part.map(|part| part.site.path),
        calls: part.and_then(|part| part.of),
        channels: part.map_or(&[], |part| &part.channels),
        carries: part.and_then(|part| part.carried.as_deref()).unwrap_or(&[]),
        latest: part.and_then(|part| part.latest),
        was: part.and_then(|part| part.was),
        to: part.and_then(|part| part.to),
        undo: part.is_some_and(|part| part.has_undo),
    }
}

fn edge(edge: &Edge) -> EdgeOut<'_> {
    EdgeOut {
        from: node_id(edge.from),
        to: node_id(edge.to),
        kind: match edge.way {
            Way::On => "on",
            Way::Back => "back",
            Way::Leaves => "leaves",
            Way::Fails => "fails",
            Way::Message => "message",
            Way::Undoes => "undoes",
            Way::Stood => "stood",
        },
        label: edge.label.as_deref(),
    }
}

fn group((number, group): (usize, &Group)) -> GroupOut<'_> {
    GroupOut {
        id: group_id(number),
        kind: group.kind.word(),
        label: &group.label,
        site: group.path,
        parent: group.parent.map(group_id),
    }
}

fn site<'a>(site: &'a Site, drawing: &Drawing, run: Option<&RunGraph>) -> SiteOut<'a> {
    let is_it = |node: &Node| node.part.as_ref().is_some_and(|part| part.site == site);
    SiteOut {
        path: site.path,
        name: site.name,
        kind: site.kind.word(),
        file: site.file,
        line: site.line,
        node: drawing.nodes.iter().position(is_it).map(node_id),
        state: run.and_then(|run| run.site(site.path)).map(state),
    }
}

fn state(of: &SiteState) -> StateOut {
    let places = of.places.iter().map(|(location, state)| PlaceOut {
        location: location.to_string(),
        state: state.word(),
        attempt: attempt(*state),
    });
    StateOut {
        state: of.state.word(),
        kind: of.kind.word(),
        attempt: attempt(of.state),
        times: of.times,
        failures: of.failures,
        places: places.collect(),
    }
}

fn attempt(state: State) -> Option<u32> {
    match state {
        State::Retrying { attempt } | State::Undoing { attempt } => Some(attempt),
        _ => None,
    }
}

fn over(run: &RunGraph) -> RunOut<'_> {
    let unknown = run.unknown().iter().map(|unknown| UnknownOut {
        location: unknown.location.to_string(),
        recorded: unknown.recorded.map(Kind::word),
        found: unknown.found.map(|site| site.path),
    });
    RunOut {
        ended: run.ended().map(RunState::word),
        // Its message may be anybody's: it stands in the history, and is opened by the codec.
        failure: run.failure().map(|failure| FailureOut {
            location: failure.location().to_string(),
            kind: failure.kind().word(),
        }),
        unknown: unknown.collect(),
    }
}

fn node_id(number: usize) -> String {
    format!("n{number}")
}

fn group_id(number: usize) -> String {
    format!("g{number}")
}
