//! Many cases, and the smallest program that fails.

use std::env;

use super::ast::Program;
use super::generate::{Features, generate};
use super::random::Random;
use super::world::Broken;

/// How many cases to try: `WORKFLOW_CASES`, or this many.
pub fn cases(usual: u64) -> u64 {
    let given = env::var("WORKFLOW_CASES").ok();
    given.and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// The first seed: `WORKFLOW_SEED`, or 1.
pub fn seed() -> u64 {
    let given = env::var("WORKFLOW_SEED").ok();
    given.and_then(|text| text.parse().ok()).unwrap_or(1)
}

/// Tries a claim about random programs, and tells of the smallest one for which it does not hold. A claim gets a
/// program and the seed of its schedule; it gives what happened on the way, too.
///
/// # Panics
/// When the claim does not hold for a program.
pub fn check(
    features: &Features,
    cases: u64,
    depth: u32,
    claim: impl Fn(&Program, u64) -> Result<(), (Broken, String)>,
) {
    for case in seed()..seed() + cases {
        let program = generate(&mut Random::new(case), features, depth);
        let Err(first) = claim(&program, case) else {
            continue;
        };
        let (program, schedule, (broken, told)) = shrink(program, case, first, &claim);
        panic!(
            "{} (features \"{}\", WORKFLOW_SEED={case}; shrunk, with schedule {schedule}):\n{program}\n{told}\n{broken}",
            broken, features.title
        );
    }
}

/// A law that was broken, and what happened on the way.
type Failed = (Broken, String);

fn shrink(
    mut program: Program,
    mut schedule: u64,
    mut failed: Failed,
    claim: &impl Fn(&Program, u64) -> Result<(), Failed>,
) -> (Program, u64, Failed) {
    // A smaller program has other instants, so other schedules are tried on it.
    let fails = |program: &Program, schedule: u64, law| {
        (0..40)
            .map(|more| schedule.wrapping_add(more * 1_000_003))
            .find_map(|schedule| {
                let failed = claim(program, schedule).err()?;
                (failed.0.law == law).then_some((schedule, failed))
            })
    };
    'smaller: loop {
        for smaller in smaller(&program) {
            if let Some((with, how)) = fails(&smaller, schedule, failed.0.law) {
                (program, schedule, failed) = (smaller, with, how);
                continue 'smaller;
            }
        }
        return (program, schedule, failed);
    }
}

/// Programs that are one step smaller.
fn smaller(program: &Program) -> Vec<Program> {
    blocks(&program.0).into_iter().map(Program::new).collect()
}

fn blocks(nodes: &[super::Node]) -> Vec<Vec<super::Node>> {
    use super::ast::{How, Node};
    let mut all = Vec::new();
    for (at, node) in nodes.iter().enumerate() {
        let with = |instead: Vec<Node>| {
            let mut nodes = nodes.to_vec();
            nodes.splice(at..=at, instead);
            nodes
        };
        all.push(with(Vec::new()));
        for block in node.blocks() {
            all.push(with(block.clone()));
        }
        let mut simple = node.clone();
        match &mut simple {
            Node::Step { how, caught, .. } => {
                if *how != How::Succeeds {
                    let mut plain = node.clone();
                    if let Node::Step { how, .. } = &mut plain {
                        *how = How::Succeeds;
                    }
                    all.push(with(vec![plain]));
                }
                *caught = false;
            }
            Node::Join { branches, .. } | Node::Race { branches, .. } if branches.len() > 1 => {
                for index in 0..branches.len() {
                    let mut fewer = node.clone();
                    if let Node::Join { branches, .. } | Node::Race { branches, .. } = &mut fewer {
                        branches.remove(index);
                    }
                    all.push(with(vec![fewer]));
                }
            }
            Node::JoinAll {
                items,
                limit,
                keyed,
                ..
            } => {
                *items = items.saturating_sub(1);
                *keyed = false;
                if *items == 1 {
                    *limit = None;
                }
            }
            Node::For { times, keyed, .. } => {
                *times = times.saturating_sub(1);
                *keyed = false;
            }
            _ => {}
        }
        if simple != *node {
            all.push(with(vec![simple]));
        }
        for index in 0..node.blocks().len() {
            for block in blocks(node.blocks()[index]) {
                let mut inner = node.clone();
                *inner.blocks_mut()[index] = block;
                all.push(with(vec![inner]));
            }
        }
    }
    all
}
