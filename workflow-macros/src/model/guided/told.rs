//! What is wrong with the graph of a flow, said where it was written.

use proc_macro2::Ident;

use super::Stage;
use super::rules::{self, Edge, Fault, Node};
use crate::diagnostics::{Errors, Place};
use crate::messages;
use crate::model::name;

/// The stages as the rules see them.
pub(super) fn graph(stages: &[Stage]) -> Vec<Node> {
    let node = |stage: &Stage| Node {
        name: stage.name.clone(),
        called: called(&stage.function),
        start: stage.start.is_some(),
        terminal: stage.terminal.is_some(),
        skippable: stage.skippable.is_some(),
        conditional: stage.when.is_some(),
        stays: stage.stays,
        exits: stage.exits.iter().map(edge).collect(),
    };
    stages.iter().map(node).collect()
}

fn edge(exit: &super::Exit) -> Edge {
    Edge {
        target: called(&exit.target),
        guarded: exit.guard.is_some(),
    }
}

/// Checks the stages together.
pub(super) fn check(stages: &[Stage], flow: &Ident, errors: &mut Errors) {
    let graph = graph(stages);
    let names = |list: &[usize]| {
        let names = list
            .iter()
            .map(|stage| format!("`{}`", graph[*stage].called));
        names.collect::<Vec<_>>().join(", ")
    };
    for fault in rules::check(&graph) {
        let called = |stage: usize| &*graph[stage].called;
        let place = |stage: usize| stages[stage].place;
        let exit = |stage: usize, exit: usize| {
            let target = &stages[stage].exits[exit].target;
            (
                Place::from(target.span()),
                &*graph[stage].exits[exit].target,
            )
        };
        match fault {
            Fault::BadName { stage } => {
                let name = &graph[stage].name;
                let words = [name, &name::like(name)];
                errors.push(
                    place(stage),
                    messages::STAGE_NAME.with(&words.map(|word| &**word)),
                );
            }
            Fault::DuplicateName { first, stage } => {
                let words = [&*graph[stage].name, called(first)];
                errors.push(place(stage), messages::STAGE_NAME_TWICE.with(&words));
            }
            Fault::NoStart => errors.push(
                flow.span(),
                messages::FLOW_NO_START
                    .with(&[graph.first().map_or("details", |node| &*node.called)]),
            ),
            Fault::SeveralStarts { stages: starts } => {
                for stage in &starts[1..] {
                    let at = stages[*stage].start.unwrap_or(place(*stage));
                    let words = [called(*stage), called(starts[0])];
                    errors.push(at, messages::FLOW_STARTS_TWICE.with(&words));
                }
            }
            Fault::NoTerminal => errors.push(
                flow.span(),
                messages::FLOW_NO_END.with(&[graph.last().map_or("done", |node| &*node.called)]),
            ),
            Fault::UnknownTarget { stage, exit: at } => {
                let (place, target) = exit(stage, at);
                let near = meant(&graph, target);
                errors.push(
                    place,
                    messages::STAGE_UNKNOWN.with(&[called(stage), target, &near]),
                );
            }
            Fault::AfterUnguarded { stage, exit: at } => {
                let (place, target) = exit(stage, at);
                let open = graph[stage].exits.iter().find(|edge| !edge.guarded);
                let open = open.map_or("", |edge| &*edge.target);
                let words = [called(stage), target, open];
                errors.push(place, messages::STAGE_DEAD_EXIT.with(&words));
            }
            Fault::TerminalWithExits { stage } => {
                let (place, _) = exit(stage, 0);
                errors.push(place, messages::STAGE_END_WITH_EXITS.with(&[called(stage)]));
            }
            Fault::SkippableTerminal { stage } => {
                let at = stages[stage].skippable.unwrap_or(place(stage));
                errors.push(at, messages::STAGE_END_SKIPPED.with(&[called(stage)]));
            }
            Fault::MayGetStuck { stage } => {
                errors.push(place(stage), messages::STAGE_STUCK.with(&[called(stage)]));
            }
            Fault::Unreachable { stage, start } => {
                let words = [called(stage), called(start)];
                errors.push(place(stage), messages::STAGE_UNREACHABLE.with(&words));
            }
            Fault::DeadEnd { stage } => {
                errors.push(
                    place(stage),
                    messages::STAGE_DEAD_END.with(&[called(stage)]),
                );
            }
            Fault::SkippableCycle { stages: circle } => {
                let words = [&*names(&circle)];
                errors.push(place(circle[0]), messages::STAGE_CIRCLE.with(&words));
            }
        }
    }
}

/// The stage that was probably meant, or all there are.
pub(super) fn meant(graph: &[Node], written: &str) -> String {
    if let Some(near) = rules::nearest(graph, written) {
        return format!("did you mean `{near}`?");
    }
    let all = graph.iter().map(|node| format!("`{}`", node.called));
    format!("the stages are {}", all.collect::<Vec<_>>().join(", "))
}

fn called(ident: &Ident) -> String {
    name::plain(&ident.to_string())
}
