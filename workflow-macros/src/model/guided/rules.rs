//! What can be wrong with the graph of a flow: the rules of the library's `guided::faults`, in its order.
//!
//! The library checks flows that are built at run time and this the ones that are written down, so each rule is there twice. Both
//! are held to `workflow/src/guided/faults.cases` by a test.

use std::collections::HashSet;

/// A stage as the rules see it.
#[derive(Debug, Clone, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent marks, as they are written at the stage"
)]
pub(crate) struct Node {
    /// Under which it is stored.
    pub(crate) name: String,
    /// What it is called in the source.
    pub(crate) called: String,
    pub(crate) start: bool,
    pub(crate) terminal: bool,
    pub(crate) skippable: bool,
    pub(crate) conditional: bool,
    pub(crate) stays: bool,
    pub(crate) exits: Vec<Edge>,
}

/// A way to another stage.
#[derive(Debug, Clone)]
pub(crate) struct Edge {
    /// As it is called in the source.
    pub(crate) target: String,
    pub(crate) guarded: bool,
}

/// Something that is wrong. Stages and exits by their places in the source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fault {
    BadName { stage: usize },
    DuplicateName { first: usize, stage: usize },
    NoStart,
    SeveralStarts { stages: Vec<usize> },
    NoTerminal,
    UnknownTarget { stage: usize, exit: usize },
    AfterUnguarded { stage: usize, exit: usize },
    TerminalWithExits { stage: usize },
    SkippableTerminal { stage: usize },
    MayGetStuck { stage: usize },
    Unreachable { stage: usize, start: usize },
    DeadEnd { stage: usize },
    SkippableCycle { stages: Vec<usize> },
}

/// Everything that is wrong with a graph.
pub(crate) fn check(graph: &[Node]) -> Vec<Fault> {
    let mut faults = Vec::new();
    names(graph, &mut faults);
    ends(graph, &mut faults);
    for stage in 0..graph.len() {
        exits(graph, stage, &mut faults);
    }
    let resolves = !faults.iter().any(|fault| {
        matches!(
            fault,
            Fault::UnknownTarget { .. } | Fault::DuplicateName { .. }
        )
    });
    if resolves {
        reach(graph, &mut faults);
        circles(graph, &mut faults);
    }
    faults
}

fn names(graph: &[Node], faults: &mut Vec<Fault>) {
    for (stage, node) in graph.iter().enumerate() {
        let fits = |char: char| char.is_ascii_alphanumeric() || char == '_' || char == '-';
        if node.name.is_empty() || !node.name.chars().all(fits) {
            faults.push(Fault::BadName { stage });
        }
        let first = graph[..stage]
            .iter()
            .position(|other| other.name == node.name);
        faults.extend(first.map(|first| Fault::DuplicateName { first, stage }));
    }
}

fn ends(graph: &[Node], faults: &mut Vec<Fault>) {
    let starts = (0..graph.len()).filter(|stage| graph[*stage].start);
    let stages: Vec<_> = starts.collect();
    match stages.len() {
        0 => faults.push(Fault::NoStart),
        1 => {}
        _ => faults.push(Fault::SeveralStarts { stages }),
    }
    if !graph.iter().any(|node| node.terminal) {
        faults.push(Fault::NoTerminal);
    }
}

fn exits(graph: &[Node], stage: usize, faults: &mut Vec<Fault>) {
    let node = &graph[stage];
    if node.terminal && !node.exits.is_empty() {
        faults.push(Fault::TerminalWithExits { stage });
    }
    if node.terminal && node.skippable {
        faults.push(Fault::SkippableTerminal { stage });
    }
    for (exit, edge) in node.exits.iter().enumerate() {
        if find(graph, &edge.target).is_none() {
            faults.push(Fault::UnknownTarget { stage, exit });
        }
    }
    if let Some(open) = node.exits.iter().position(|edge| !edge.guarded) {
        let never = open + 1..node.exits.len();
        faults.extend(never.map(|exit| Fault::AfterUnguarded { stage, exit }));
    } else if !node.exits.is_empty() && !node.stays {
        faults.push(Fault::MayGetStuck { stage });
    }
}

fn reach(graph: &[Node], faults: &mut Vec<Fault>) {
    let mut starts = (0..graph.len()).filter(|stage| graph[*stage].start);
    if let (Some(start), None) = (starts.next(), starts.next()) {
        let found = reached(graph, start);
        let missed = (0..graph.len()).filter(|stage| !found.contains(stage));
        faults.extend(missed.map(|stage| Fault::Unreachable { stage, start }));
    }
    if graph.iter().any(|node| node.terminal) {
        for stage in 0..graph.len() {
            let found = reached(graph, stage);
            if !found.iter().any(|found| graph[*found].terminal) {
                faults.push(Fault::DeadEnd { stage });
            }
        }
    }
}

/// The stages that can be reached from one, itself included.
fn reached(graph: &[Node], from: usize) -> HashSet<usize> {
    let mut found = HashSet::from([from]);
    let mut at = vec![from];
    while let Some(stage) = at.pop() {
        for target in targets(graph, stage) {
            if found.insert(target) {
                at.push(target);
            }
        }
    }
    found
}

/// Circles of stages that may all be passed over: each is told once, from its first stage on.
fn circles(graph: &[Node], faults: &mut Vec<Fault>) {
    let mut told: HashSet<usize> = HashSet::new();
    for stage in 0..graph.len() {
        if told.contains(&stage) {
            continue;
        }
        if let Some(stages) = circle(graph, stage) {
            told.extend(&stages);
            faults.push(Fault::SkippableCycle { stages });
        }
    }
}

/// The shortest way from a stage back to itself over stages that may be passed over.
fn circle(graph: &[Node], from: usize) -> Option<Vec<usize>> {
    if !graph[from].conditional {
        return None;
    }
    let mut ways = vec![vec![from]];
    let mut seen = HashSet::new();
    let mut next = 0;
    while let Some(way) = ways.get(next).cloned() {
        next += 1;
        for target in targets(graph, *way.last()?) {
            if target == from {
                return Some(way);
            }
            if graph[target].conditional && seen.insert(target) {
                let mut on = way.clone();
                on.push(target);
                ways.push(on);
            }
        }
    }
    None
}

fn targets(graph: &[Node], stage: usize) -> impl Iterator<Item = usize> {
    let exits = graph[stage].exits.iter();
    exits.filter_map(|edge| find(graph, &edge.target))
}

/// The stage that is called so.
pub(crate) fn find(graph: &[Node], called: &str) -> Option<usize> {
    graph.iter().position(|node| node.called == called)
}

/// What is called most like what was written, if no more than a third of that is wrong.
pub(crate) fn nearest<'g>(graph: &'g [Node], written: &str) -> Option<&'g str> {
    let near = graph
        .iter()
        .map(|node| (distance(&node.called, written), &node.called));
    let (distance, called) = near.min_by_key(|(distance, _)| *distance)?;
    (distance <= (written.chars().count() / 3).max(1)).then_some(&**called)
}

/// How many letters have to be put in, taken out, changed, or exchanged with the next, to make one of the other.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut rows: Vec<Vec<usize>> = vec![(0..=other.len()).collect()];
    let mut before = None;
    for (line, letter) in one.chars().enumerate() {
        let mut row = vec![line + 1];
        for (column, against) in other.iter().enumerate() {
            let above = &rows[line];
            let changed = above[column] + usize::from(letter != *against);
            let mut least = changed.min(above[column + 1] + 1).min(row[column] + 1);
            let exchanged = column > 0 && before == Some(*against) && letter == other[column - 1];
            if exchanged {
                least = least.min(rows[line - 1][column - 1] + 1);
            }
            row.push(least);
        }
        before = Some(letter);
        rows.push(row);
    }
    rows[rows.len() - 1][other.len()]
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A line of `faults.cases`: `name marks.. -> target target?`.
    fn node(line: &str) -> Node {
        let (head, targets) = line.split_once("->").unwrap_or((line, ""));
        let mut words = head.split_whitespace();
        let name = words.next().unwrap().trim_matches('"').to_owned();
        let marks: Vec<_> = words.collect();
        let edge = |target: &str| Edge {
            target: target.trim_end_matches('?').to_owned(),
            guarded: target.ends_with('?'),
        };
        Node {
            called: name.clone(),
            name,
            start: marks.contains(&"start"),
            terminal: marks.contains(&"terminal"),
            skippable: marks.contains(&"skippable"),
            conditional: marks.contains(&"when"),
            stays: marks.contains(&"stay"),
            exits: targets.split_whitespace().map(edge).collect(),
        }
    }

    /// A fault, as `faults.cases` has it.
    fn told(graph: &[Node], fault: &Fault) -> String {
        let name = |stage: &usize| graph[*stage].name.clone();
        let names = |stages: &[usize]| stages.iter().map(name).collect::<Vec<_>>().join(" ");
        let target = |stage: usize, exit: usize| graph[stage].exits[exit].target.clone();
        match fault {
            Fault::BadName { stage } => format!("bad-name {}", name(stage)),
            Fault::DuplicateName { stage, .. } => format!("duplicate-name {}", name(stage)),
            Fault::NoStart => "no-start".to_owned(),
            Fault::SeveralStarts { stages } => format!("several-starts {}", names(stages)),
            Fault::NoTerminal => "no-terminal".to_owned(),
            Fault::UnknownTarget { stage, exit } => {
                let target = target(*stage, *exit);
                let near = nearest(graph, &target).unwrap_or("-");
                format!("unknown-target {} {target} {near}", name(stage))
            }
            Fault::AfterUnguarded { stage, exit } => {
                format!("after-unguarded {} {}", name(stage), target(*stage, *exit))
            }
            Fault::TerminalWithExits { stage } => format!("terminal-with-exits {}", name(stage)),
            Fault::SkippableTerminal { stage } => format!("skippable-terminal {}", name(stage)),
            Fault::MayGetStuck { stage } => format!("may-get-stuck {}", name(stage)),
            Fault::Unreachable { stage, start } => {
                format!("unreachable {} {}", name(stage), name(start))
            }
            Fault::DeadEnd { stage } => format!("dead-end {}", name(stage)),
            Fault::SkippableCycle { stages } => format!("skippable-cycle {}", names(stages)),
        }
    }

    #[test]
    fn the_rules_are_those_of_the_library() {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../workflow/src/guided/faults.cases"
        );
        let cases = fs::read_to_string(path).expect("the repository is whole");
        for case in cases.split("\n\n") {
            let lines = || case.lines().filter(|line| !line.starts_with('#'));
            let stages = lines().filter(|line| !line.starts_with('!') && !line.is_empty());
            let graph: Vec<_> = stages.map(node).collect();
            let faults = check(&graph);
            let found: Vec<_> = faults.iter().map(|fault| told(&graph, fault)).collect();
            let expected: Vec<_> = lines().filter_map(|line| line.strip_prefix("! ")).collect();
            assert_eq!(found, expected, "{case}");
        }
    }
}
