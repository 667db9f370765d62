//! What can be wrong with a flow before it ever runs.
//!
//! Each rule is a function over the graph, and all are asked, so that whoever wrote the flow sees everything at once. Rules about
//! what can be reached are asked only when every name resolves: one misspelt target would yield a dozen of them.

use std::collections::HashSet;
use std::fmt;

use super::graph::{Graph, Node};

/// Everything that is wrong with a flow. There is at least one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Faults {
    flow: String,
    faults: Vec<Fault>,
}

/// Something that is wrong with a flow.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// A name that locations cannot hold.
    #[error("`{name}` cannot name a stage: letters, digits, `_` and `-`, at least one")]
    BadName {
        /// The name.
        name: String,
    },
    /// Two stages of one name.
    #[error("two stages are named `{name}`")]
    DuplicateName {
        /// The name.
        name: String,
    },
    /// No stage is the start.
    #[error("no stage is marked as the start")]
    NoStart,
    /// Several stages are the start.
    #[error("several stages are marked as the start: {}", list(.stages))]
    SeveralStarts {
        /// They.
        stages: Vec<String>,
    },
    /// No stage is the end.
    #[error("no stage is marked as terminal: the flow would never end")]
    NoTerminal,
    /// An exit leads to a stage that there is not.
    #[error("stage `{stage}` leads to `{target}`, which is no stage{}", hint(.nearest.as_deref()))]
    UnknownTarget {
        /// The stage with the exit.
        stage: String,
        /// What it names.
        target: String,
        /// The stage whose name is nearest to that, if one is near.
        nearest: Option<String>,
    },
    /// An exit behind one that is always open.
    #[error("stage `{stage}` never leads to `{target}`: the exit before it is always open")]
    AfterUnguarded {
        /// The stage.
        stage: String,
        /// Where the exit leads that is never taken.
        target: String,
    },
    /// A terminal stage with exits.
    #[error("stage `{stage}` is terminal and has exits")]
    TerminalWithExits {
        /// The stage.
        stage: String,
    },
    /// A terminal stage that may be passed by.
    #[error(
        "stage `{stage}` is terminal and skippable: the flow would end by not looking at its end"
    )]
    SkippableTerminal {
        /// The stage.
        stage: String,
    },
    /// Every exit is guarded.
    #[error(
        "the flow could get stuck at stage `{stage}`: every exit is guarded\n  \
         ways out: end with an exit that is always open, or say that it stays"
    )]
    MayGetStuck {
        /// The stage.
        stage: String,
    },
    /// A stage that no way leads to.
    #[error("stage `{stage}` cannot be reached from the start `{start}`")]
    Unreachable {
        /// The stage.
        stage: String,
        /// The start.
        start: String,
    },
    /// A stage from which no way leads to an end.
    #[error("no terminal stage can be reached from stage `{stage}`")]
    DeadEnd {
        /// The stage.
        stage: String,
    },
    /// Stages that all may be passed over by their conditions, in a circle.
    #[error("the stages {} lead in a circle, and each may be passed over", list(.stages))]
    SkippableCycle {
        /// They, in the order in which one leads to the next.
        stages: Vec<String>,
    },
    /// A stage that may be passed over has a guard that is durable code, for which there is no visit then.
    #[error(
        "stage `{stage}` may be passed over, and an exit of it asks durable code: when it is passed over, that has no place to run\n  \
         ways out: a condition of the data alone on that exit; or put `when` on the exits that lead to the stage"
    )]
    AskedInPassing {
        /// The stage.
        stage: String,
    },
    /// Flows that may be in stages of each other, in a circle: none of them can be built before the others.
    #[error(
        "the flows {} nest each other in a circle, so none can be built before the others\n  \
         ways out: leave the last one out of `nests(..)`; or go through it as a run of its own, in a `#[workflow]` that the stage calls",
        list(.flows)
    )]
    NestedInCircle {
        /// They, in the order in which one nests the next; the last nests the first.
        flows: Vec<String>,
    },
    /// A migration from an older version leads to one that none leads on from.
    #[error("no migration leads on from version {version}")]
    MigrationGap {
        /// The version.
        version: u32,
    },
    /// A migration that leads beyond the flow's own version.
    #[error("the migration from version {from} leads beyond the flow's version {version}")]
    MigrationBeyond {
        /// The version that it is declared for.
        from: u32,
        /// The flow's.
        version: u32,
    },
}

impl Faults {
    /// What is wrong, if anything is.
    pub(super) fn of(
        flow: &str,
        graph: &Graph,
        version: u32,
        migrations: &[u32],
        asking: &[&str],
        circles: Vec<Vec<String>>,
    ) -> Result<(), Self> {
        let mut faults = check(graph);
        faults.extend(asking.iter().map(|stage| Fault::AskedInPassing {
            stage: (*stage).to_owned(),
        }));
        let circles = circles.into_iter();
        faults.extend(circles.map(|flows| Fault::NestedInCircle { flows }));
        versions(version, migrations, &mut faults);
        if faults.is_empty() {
            return Ok(());
        }
        Err(Self {
            flow: flow.to_owned(),
            faults,
        })
    }

    /// The flow's name.
    pub fn flow(&self) -> &str {
        &self.flow
    }

    /// They, in the order of the stages.
    pub fn faults(&self) -> &[Fault] {
        &self.faults
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the flow `{}` cannot be built", self.flow)?;
        for fault in &self.faults {
            write!(f, "\n- {fault}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Faults {}

/// Everything that is wrong with a graph.
pub(super) fn check(graph: &Graph) -> Vec<Fault> {
    let mut faults = Vec::new();
    names(graph, &mut faults);
    ends(graph, &mut faults);
    for node in graph.nodes() {
        exits(graph, node, &mut faults);
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

/// Migrations lead from the oldest version that is known up to the flow's own. They come in order.
fn versions(version: u32, migrations: &[u32], faults: &mut Vec<Fault>) {
    let Some(&oldest) = migrations.first() else {
        return;
    };
    let missing = (oldest..version).filter(|version| !migrations.contains(version));
    faults.extend(missing.map(|version| Fault::MigrationGap { version }));
    let beyond = migrations.iter().filter(|from| **from >= version);
    faults.extend(beyond.map(|&from| Fault::MigrationBeyond { from, version }));
}

fn names(graph: &Graph, faults: &mut Vec<Fault>) {
    let mut known = HashSet::new();
    for node in graph.nodes() {
        let name = &node.name;
        let fits = |char: char| char.is_ascii_alphanumeric() || char == '_' || char == '-';
        if name.is_empty() || !name.chars().all(fits) {
            faults.push(Fault::BadName {
                name: name.to_string(),
            });
        }
        if !known.insert(name) {
            faults.push(Fault::DuplicateName {
                name: name.to_string(),
            });
        }
    }
}

fn ends(graph: &Graph, faults: &mut Vec<Fault>) {
    let starts: Vec<_> = named(graph, |node| node.start);
    match starts.len() {
        0 => faults.push(Fault::NoStart),
        1 => {}
        _ => faults.push(Fault::SeveralStarts { stages: starts }),
    }
    if !graph.nodes().iter().any(|node| node.terminal) {
        faults.push(Fault::NoTerminal);
    }
}

fn exits(graph: &Graph, node: &Node, faults: &mut Vec<Fault>) {
    let stage = || node.name.to_string();
    if node.terminal && !node.exits.is_empty() {
        faults.push(Fault::TerminalWithExits { stage: stage() });
    }
    if node.terminal && node.skippable {
        faults.push(Fault::SkippableTerminal { stage: stage() });
    }
    for exit in &*node.exits {
        if graph.node(&exit.target).is_none() {
            faults.push(Fault::UnknownTarget {
                stage: stage(),
                target: exit.target.to_string(),
                nearest: nearest(graph, &exit.target),
            });
        }
    }
    let open = node.exits.iter().position(|exit| !exit.guarded);
    if let Some(open) = open {
        for never in &node.exits[open + 1..] {
            faults.push(Fault::AfterUnguarded {
                stage: stage(),
                target: never.target.to_string(),
            });
        }
    } else if !node.exits.is_empty() && !node.stays {
        faults.push(Fault::MayGetStuck { stage: stage() });
    }
}

fn reach(graph: &Graph, faults: &mut Vec<Fault>) {
    let mut starts = graph.nodes().iter().filter(|node| node.start);
    if let (Some(start), None) = (starts.next(), starts.next()) {
        let found = reached(graph, &start.name);
        for node in graph.nodes() {
            if !found.contains(&*node.name) {
                faults.push(Fault::Unreachable {
                    stage: node.name.to_string(),
                    start: start.name.to_string(),
                });
            }
        }
    }
    if graph.nodes().iter().any(|node| node.terminal) {
        for node in graph.nodes() {
            let found = reached(graph, &node.name);
            let ends = |name: &&str| graph.node(name).is_some_and(|node| node.terminal);
            if !found.iter().any(ends) {
                faults.push(Fault::DeadEnd {
                    stage: node.name.to_string(),
                });
            }
        }
    }
}

/// The stages that can be reached from one, itself included.
fn reached<'g>(graph: &'g Graph, from: &'g str) -> HashSet<&'g str> {
    let mut found = HashSet::from([from]);
    let mut at = vec![from];
    while let Some(name) = at.pop() {
        for exit in graph.node(name).into_iter().flat_map(|node| &*node.exits) {
            if found.insert(&exit.target) {
                at.push(&exit.target);
            }
        }
    }
    found
}

/// Circles of stages that may all be passed over: each is told once, from its first stage on.
fn circles(graph: &Graph, faults: &mut Vec<Fault>) {
    let mut told: HashSet<&str> = HashSet::new();
    for node in graph.nodes() {
        if told.contains(&*node.name) {
            continue;
        }
        if let Some(circle) = circle(graph, node) {
            told.extend(&circle);
            faults.push(Fault::SkippableCycle {
                stages: circle.into_iter().map(str::to_owned).collect(),
            });
        }
    }
}

/// The shortest way from a stage back to itself over stages that may be passed over.
fn circle<'g>(graph: &'g Graph, from: &'g Node) -> Option<Vec<&'g str>> {
    if !from.conditional {
        return None;
    }
    let mut ways = vec![vec![&*from.name]];
    let mut seen = HashSet::new();
    let mut next = 0;
    while let Some(way) = ways.get(next).cloned() {
        next += 1;
        let node = way.last().and_then(|name| graph.node(name))?;
        for exit in &*node.exits {
            if exit.target == from.name {
                return Some(way);
            }
            let target = graph.node(&exit.target)?;
            if target.conditional && seen.insert(&*target.name) {
                let mut on = way.clone();
                on.push(&target.name);
                ways.push(on);
            }
        }
    }
    None
}

fn named(graph: &Graph, fits: impl Fn(&Node) -> bool) -> Vec<String> {
    let found = graph.nodes().iter().filter(|node| fits(node));
    found.map(|node| node.name.to_string()).collect()
}

/// The stage whose name is nearest to what was written, if no more than a third of it is wrong.
fn nearest(graph: &Graph, written: &str) -> Option<String> {
    let near = graph
        .nodes()
        .iter()
        .map(|node| (distance(&node.name, written), &node.name));
    let (distance, name) = near.min_by_key(|(distance, _)| *distance)?;
    (distance <= (written.chars().count() / 3).max(1)).then(|| name.to_string())
}

/// How many letters have to be put in, taken out, changed, or exchanged with the next, to make one of the other.
pub(crate) fn distance(one: &str, other: &str) -> usize {
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

fn list(stages: &[String]) -> String {
    let quoted: Vec<_> = stages.iter().map(|stage| format!("`{stage}`")).collect();
    quoted.join(", ")
}

fn hint(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |nearest| {
        format!("; did you mean `{nearest}`?")
    })
}

#[cfg(test)]
mod tests {
    use super::super::graph::Exit;
    use super::*;

    fn node(name: &str, targets: &[&str]) -> Node {
        let exit = |target: &&str| Exit {
            target: target.trim_end_matches('?').to_owned().into(),
            guarded: target.ends_with('?'),
        };
        Node {
            terminal: targets.is_empty(),
            exits: targets.iter().map(exit).collect(),
            ..Node::new(name)
        }
    }

    fn started(nodes: Vec<Node>) -> Graph {
        let mut nodes = nodes;
        nodes[0].start = true;
        Graph::new(nodes)
    }

    #[test]
    fn a_flow_in_order_has_no_faults() {
        let graph = started(vec![
            node("20", &["b?", "c"]),
            node("b", &["20?", "c"]),
            node("c", &[]),
        ]);
        assert_eq!(check(&graph), []);
    }

    // GDE-DEF-11: one misspelt target is one fault, and says nothing of what can be reached.
    #[test]
    fn a_misspelt_target_is_told_with_the_nearest_name() {
        let graph = started(vec![node("details", &["regoin"]), node("region", &[])]);
        let expected = Fault::UnknownTarget {
            stage: "details".into(),
            target: "regoin".into(),
            nearest: Some("region".into()),
        };
        assert_eq!(check(&graph), [expected]);
        let far = started(vec![node("details", &["xyz"]), node("region", &[])]);
        assert!(matches!(
            &check(&far)[..],
            [Fault::UnknownTarget { nearest: None, .. }]
        ));
    }

    // GDE-DEF-11
    #[test]
    fn a_stage_without_a_way_to_it_names_the_start() {
        let graph = started(vec![node("a", &["b"]), node("b", &[]), node("c", &["b"])]);
        let expected = Fault::Unreachable {
            stage: "c".into(),
            start: "a".into(),
        };
        assert_eq!(check(&graph), [expected]);
    }

    // GDE-DEF-11
    #[test]
    fn a_circle_without_an_end_is_a_dead_end() {
        let graph = started(vec![
            node("a", &["b?", "c"]),
            node("b", &["b"]),
            node("c", &[]),
        ]);
        assert_eq!(check(&graph), [Fault::DeadEnd { stage: "b".into() }]);
        let endless = started(vec![node("a", &["a"])]);
        assert_eq!(check(&endless), [Fault::NoTerminal]);
    }

    // GDE-DEF-11
    #[test]
    fn a_stage_whose_exits_are_all_guarded_may_get_stuck_unless_it_says_that_it_stays() {
        let mut nodes = vec![node("a", &["b?"]), node("b", &[])];
        let expected = Fault::MayGetStuck { stage: "a".into() };
        assert_eq!(check(&started(nodes.clone())), [expected]);
        nodes[0].stays = true;
        assert_eq!(check(&started(nodes)), []);
    }

    // GDE-DEF-11
    #[test]
    fn names_and_starts_are_told_apart() {
        let twice = started(vec![node("a", &["b"]), node("b", &[]), node("b", &[])]);
        assert_eq!(check(&twice), [Fault::DuplicateName { name: "b".into() }]);
        let mut none = vec![node("20", &["3"]), node("3", &[])];
        assert_eq!(check(&Graph::new(none.clone())), [Fault::NoStart]);
        none[0].start = true;
        none[1].start = true;
        assert!(matches!(
            &check(&Graph::new(none))[..],
            [Fault::SeveralStarts { stages }] if stages.len() == 2
        ));
    }

    #[test]
    fn stages_that_may_all_be_passed_over_do_not_lead_in_a_circle() {
        let mut nodes = vec![
            node("a", &["b"]),
            node("b", &["c?", "d"]),
            node("c", &["b?", "d"]),
            node("d", &[]),
        ];
        assert_eq!(check(&started(nodes.clone())), []);
        nodes[1].conditional = true;
        nodes[2].conditional = true;
        let expected = Fault::SkippableCycle {
            stages: vec!["b".into(), "c".into()],
        };
        assert_eq!(check(&started(nodes)), [expected]);
    }

    #[test]
    fn an_exit_behind_an_open_one_is_never_taken() {
        let graph = started(vec![
            node("a", &["b", "c"]),
            node("b", &["c"]),
            node("c", &[]),
        ]);
        let expected = Fault::AfterUnguarded {
            stage: "a".into(),
            target: "c".into(),
        };
        assert_eq!(check(&graph), [expected]);
    }

    /// A line of `faults.cases`: `name marks.. -> target target?`.
    fn written(line: &str) -> Node {
        let (head, targets) = line.split_once("->").unwrap_or((line, ""));
        let mut words = head.split_whitespace();
        let name = words.next().unwrap();
        let marks: Vec<_> = words.collect();
        let targets: Vec<_> = targets.split_whitespace().collect();
        Node {
            start: marks.contains(&"start"),
            terminal: marks.contains(&"terminal"),
            skippable: marks.contains(&"skippable"),
            conditional: marks.contains(&"when"),
            stays: marks.contains(&"stay"),
            ..node(name, &targets)
        }
    }

    /// A fault, as `faults.cases` has it.
    fn told(fault: &Fault) -> String {
        match fault {
            Fault::BadName { name } => format!("bad-name {name}"),
            Fault::DuplicateName { name } => format!("duplicate-name {name}"),
            Fault::NoStart => "no-start".to_owned(),
            Fault::SeveralStarts { stages } => format!("several-starts {}", stages.join(" ")),
            Fault::NoTerminal => "no-terminal".to_owned(),
            Fault::UnknownTarget {
                stage,
                target,
                nearest,
            } => {
                let near = nearest.as_deref().unwrap_or("-");
                format!("unknown-target {stage} {target} {near}")
            }
            Fault::AfterUnguarded { stage, target } => format!("after-unguarded {stage} {target}"),
            Fault::TerminalWithExits { stage } => format!("terminal-with-exits {stage}"),
            Fault::SkippableTerminal { stage } => format!("skippable-terminal {stage}"),
            Fault::MayGetStuck { stage } => format!("may-get-stuck {stage}"),
            Fault::Unreachable { stage, start } => format!("unreachable {stage} {start}"),
            Fault::DeadEnd { stage } => format!("dead-end {stage}"),
            Fault::SkippableCycle { stages } => format!("skippable-cycle {}", stages.join(" ")),
            // Not of the graph alone.
            Fault::AskedInPassing { .. }
            | Fault::MigrationGap { .. }
            | Fault::NestedInCircle { .. }
            | Fault::MigrationBeyond { .. } => fault.to_string(),
        }
    }

    // GDE-DEF-11: the macros are held to the same cases.
    #[test]
    fn the_faults_of_each_case_are_told() {
        for case in include_str!("faults.cases").split("\n\n") {
            let lines = || case.lines().filter(|line| !line.starts_with('#'));
            let stages = lines().filter(|line| !line.starts_with('!') && !line.is_empty());
            let graph = Graph::new(stages.map(written).collect());
            let found: Vec<_> = check(&graph).iter().map(told).collect();
            let expected: Vec<_> = lines().filter_map(|line| line.strip_prefix("! ")).collect();
            assert_eq!(found, expected, "{case}");
        }
    }
}
