//! Single edits of a program, as a deploy under live runs makes them.

use super::ast::{Branch, How, Node, Program};
use super::generate::LOCALS;
use super::random::Random;
use super::sites;

/// What was done to a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Edit {
    /// A step was inserted.
    Insert,
    /// A step was appended to a block.
    Append,
    /// A container that records nothing by itself was inserted, with a step in it.
    InsertScope,
    /// A statement was deleted.
    Delete,
    /// Two neighbours were exchanged.
    Swap,
    /// A site got another name.
    Rename,
    /// A site became one of another kind.
    Kind,
    /// A branch was added.
    AddBranch,
    /// A branch was removed.
    RemoveBranch,
    /// A branch got another name.
    RenameBranch,
    /// Two branches were exchanged.
    SwapBranches,
    /// A loop or fan-out got more or fewer members.
    Count,
    /// A loop's or fan-out's members got keys, or lost them.
    Key,
    /// A version gate was put around a statement.
    AddGate,
    /// A version gate is gone, with what older versions did.
    RemoveGate,
    /// A statement is declared removed.
    Remove,
    /// A loop carries other locals, begins to carry, or no longer does.
    Carry,
}

const EDITS: [Edit; 17] = [
    Edit::Insert,
    Edit::Append,
    Edit::InsertScope,
    Edit::Delete,
    Edit::Swap,
    Edit::Rename,
    Edit::Kind,
    Edit::AddBranch,
    Edit::RemoveBranch,
    Edit::RenameBranch,
    Edit::SwapBranches,
    Edit::Count,
    Edit::Key,
    Edit::AddGate,
    Edit::RemoveGate,
    Edit::Remove,
    Edit::Carry,
];

/// The program after one random edit, and which.
///
/// # Panics
/// When a program cannot be edited at all, which none is: a step can always be appended.
pub fn edited(program: &Program, random: &mut Random) -> (Edit, Program) {
    loop {
        let edit = *random.pick(&EDITS);
        let mut nodes = program.0.to_vec();
        let blocks = count(&nodes);
        let chosen = random.index(blocks);
        let block = nth(&mut nodes, chosen).expect("there are so many blocks");
        if apply(edit, block, random) {
            return (edit, Program::new(nodes));
        }
    }
}

fn new_step(random: &mut Random) -> Node {
    Node::Step {
        name: "new",
        how: *random.pick(&[How::Succeeds, How::AtOnce]),
        caught: true,
    }
}

/// Edits a block; false when it has nothing to be edited so.
fn apply(edit: Edit, block: &mut Vec<Node>, random: &mut Random) -> bool {
    match edit {
        Edit::Append => block.push(new_step(random)),
        Edit::Insert => {
            let at = random.index(block.len() + 1);
            block.insert(at, new_step(random));
        }
        Edit::InsertScope => {
            let at = random.index(block.len() + 1);
            let body = vec![new_step(random)];
            let name = "scope";
            let node = if random.percent(30) {
                // Decided at once, with nothing issued in it.
                let name = sites::name("b0");
                let body = Vec::new();
                Node::Race {
                    name: "scope",
                    branches: vec![Branch { name, body }],
                    caught: true,
                }
            } else if random.percent(50) {
                Node::Fragment {
                    name,
                    body,
                    caught: true,
                }
            } else {
                Node::For {
                    name,
                    times: 1,
                    keyed: false,
                    body,
                }
            };
            block.insert(at, node);
        }
        _ if block.is_empty() => return false,
        Edit::RemoveGate => {
            let is_gate = |node: &Node| matches!(node, Node::Version { .. });
            let Some(at) = block.iter().position(is_gate) else {
                return false;
            };
            let Node::Version { new, .. } = block.remove(at) else {
                return false;
            };
            block.splice(at..at, new);
        }
        Edit::Delete => {
            block.remove(random.index(block.len()));
        }
        Edit::Swap => {
            if block.len() < 2 {
                return false;
            }
            let at = random.index(block.len() - 1);
            if block[at] == block[at + 1] {
                return false;
            }
            block.swap(at, at + 1);
        }
        _ => {
            let at = random.index(block.len());
            return change(edit, &mut block[at], random);
        }
    }
    true
}

fn change(edit: Edit, node: &mut Node, random: &mut Random) -> bool {
    match (edit, node) {
        (Edit::Rename, node) => {
            let Some(name) = node.name_mut() else {
                return false;
            };
            *name = "renamed";
        }
        (Edit::Kind, node) => {
            let changed = match node {
                Node::Step { name, .. } => match random.below(3) {
                    0 => Node::Sleep(name, 1),
                    1 => Node::Now(name),
                    _ => Node::Fragment {
                        name,
                        body: vec![new_step(random)],
                        caught: true,
                    },
                },
                Node::Now(name) | Node::Sleep(name, _) => Node::Step {
                    name,
                    how: How::Succeeds,
                    caught: true,
                },
                Node::Join {
                    name,
                    branches,
                    caught,
                } if !shares(branches) => Node::Race {
                    name,
                    branches: branches.clone(),
                    caught: *caught,
                },
                Node::Race {
                    name,
                    branches,
                    caught,
                } => Node::Join {
                    name,
                    branches: branches.clone(),
                    caught: *caught,
                },
                Node::For { name, body, .. } => Node::Fragment {
                    name,
                    body: body.clone(),
                    caught: false,
                },
                Node::Fragment { name, body, .. } => Node::For {
                    name,
                    times: 1,
                    keyed: false,
                    body: body.clone(),
                },
                _ => return false,
            };
            *node = changed;
        }
        (
            Edit::AddBranch | Edit::RemoveBranch | Edit::RenameBranch | Edit::SwapBranches,
            Node::Join { branches, .. } | Node::Race { branches, .. },
        ) => return change_branches(edit, branches, random),
        (Edit::Count, Node::JoinAll { items: count, .. } | Node::For { times: count, .. }) => {
            if *count > 0 && random.percent(50) {
                *count -= 1;
            } else {
                *count += 1;
            }
        }
        (Edit::AddGate, node) => {
            let old = vec![node.clone()];
            *node = Node::Version {
                name: "gate",
                latest: 2,
                old,
                new: vec![new_step(random)],
            };
        }
        (Edit::Remove, node) => {
            let (Some(name), Some(kind)) = (node.name(), node.kind()) else {
                return false;
            };
            *node = Node::Removed(name, kind);
        }
        (Edit::Carry, node) => {
            let Node::Carry {
                name,
                carried,
                body,
            } = node
            else {
                return false;
            };
            if random.percent(30) {
                *node = Node::For {
                    name,
                    times: carried.times,
                    keyed: false,
                    body: std::mem::take(body),
                };
            } else {
                let mut all = LOCALS.into_iter();
                let other = all.find(|locals| *locals != carried.locals);
                carried.locals = other.unwrap_or_default();
            }
        }
        (Edit::Key, Node::JoinAll { keyed, .. } | Node::For { keyed, .. }) => *keyed = !*keyed,
        _ => return false,
    }
    true
}

/// Whether branches change what is shared, which a loser must not.
fn shares(branches: &[Branch]) -> bool {
    let bodies = branches.iter().map(|branch| branch.body.clone());
    Program::new(bodies.flatten().collect()).has(|node| *node == Node::Push)
}

fn change_branches(edit: Edit, branches: &mut Vec<Branch>, random: &mut Random) -> bool {
    let at = random.index(branches.len());
    match edit {
        Edit::AddBranch if branches.len() < 4 => branches.insert(
            at,
            Branch {
                name: sites::name("added"),
                body: vec![new_step(random)],
            },
        ),
        Edit::RemoveBranch if branches.len() > 1 => {
            branches.remove(at);
        }
        Edit::RenameBranch => branches[at].name = sites::name("other"),
        Edit::SwapBranches if branches.len() > 1 && at > 0 => branches.swap(at - 1, at),
        _ => return false,
    }
    true
}

fn count(nodes: &[Node]) -> usize {
    let below = nodes.iter().flat_map(Node::blocks);
    1 + below.map(|block| count(block)).sum::<usize>()
}

fn nth(nodes: &mut Vec<Node>, mut wanted: usize) -> Option<&mut Vec<Node>> {
    if wanted == 0 {
        return Some(nodes);
    }
    wanted -= 1;
    for block in nodes.iter_mut().flat_map(Node::blocks_mut) {
        let inside = count(block);
        if wanted < inside {
            return nth(block, wanted);
        }
        wanted -= inside;
    }
    None
}
