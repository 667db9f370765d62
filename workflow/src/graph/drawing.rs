//! What is drawn, before it is said in anybody's language: nodes, edges, and groups of nodes.
//!
//! 1. Nodes, edges and groups are known by their numbers, which are given in the order of the code: so a picture changes only
//!    where the code does, and no name of the user's can be a word of the language it is printed in.
//! 2. Every way that control can take is one edge. Edges that are no way for control are of another [`Way`].

use super::Graph;
use super::look::Look;
use super::outline::{Jump, Node as Part, Part as Parts};
use super::state::SiteState;
use crate::replay::Kind;

/// A picture.
#[derive(Debug)]
pub(super) struct Drawing {
    pub(super) name: &'static str,
    pub(super) nodes: Vec<Node>,
    pub(super) edges: Vec<Edge>,
    pub(super) groups: Vec<Group>,
}

/// Something with an outline and a text.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) class: Class,
    /// What stands in it.
    pub(super) lines: Vec<String>,
    /// The site, without the bodies in it.
    pub(super) part: Option<Part>,
    /// The innermost group that it stands in.
    pub(super) group: Option<usize>,
    pub(super) look: Look,
    /// How it stands with the site in a run, where one is drawn.
    pub(super) state: Option<SiteState>,
    /// What the run adds to what stands in it.
    pub(super) note: Option<String>,
}

impl Node {
    /// A run has told what a call is.
    pub(super) fn refine(&mut self, kind: Kind) {
        self.class = Class::Site(kind);
        if let Some(what) = self.lines.get_mut(1) {
            *what = what.replacen(Kind::Call.word(), kind.word(), 1);
        }
    }
}

/// What a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    Start,
    End,
    /// A site. One with bodies is where these begin.
    Site(Kind),
    /// Where the bodies of a site of this kind meet.
    After(Kind),
    Choice,
    Channel,
}

/// A line between two nodes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Edge {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) way: Way,
    pub(super) label: Option<String>,
}

/// What a line says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// Control goes on.
    On,
    /// Control goes back, to the next iteration.
    Back,
    /// Control leaves what it is in.
    Leaves,
    /// A failure goes to the edge of its `attempt!`.
    Fails,
    /// A message goes.
    Message,
    /// Effects are undone back to a checkpoint.
    Undoes,
    /// Something stood here.
    Stood,
}

/// A site with bodies, drawn around them.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) kind: Kind,
    pub(super) label: String,
    pub(super) path: &'static str,
    pub(super) parent: Option<usize>,
}

/// Where control comes from, on its way to the next node.
#[derive(Debug, Clone)]
struct Exit {
    from: usize,
    way: Way,
    label: Option<String>,
}

impl Exit {
    fn of(from: usize) -> Self {
        Self {
            from,
            way: Way::On,
            label: None,
        }
    }

    fn labelled(from: usize, label: &str) -> Self {
        Self {
            label: Some(label.to_owned()),
            ..Self::of(from)
        }
    }
}

impl Drawing {
    /// The picture of a workflow's code.
    pub(super) fn of(graph: &Graph) -> Self {
        let mut pen = Pen {
            drawing: Self {
                name: graph.name(),
                nodes: Vec::new(),
                edges: Vec::new(),
                groups: Vec::new(),
            },
            group: None,
            end: 0,
            loops: Vec::new(),
            rollbacks: Vec::new(),
        };
        let start = pen.node(Class::Start, vec![graph.name().to_owned()]);
        let end = pen.node(Class::End, vec!["end".to_owned()]);
        pen.end = end;
        let exits = pen.parts(&graph.parts(), vec![Exit::of(start)]);
        pen.meet(exits, end);
        pen.rollbacks();
        pen.drawing
    }

    /// The text of a node, line by line.
    pub(super) fn text(node: &Node) -> impl Iterator<Item = &str> {
        node.lines.iter().chain(&node.note).map(String::as_str)
    }

    /// The nodes that stand in a group and in none that is within it, with their numbers.
    pub(super) fn in_group(&self, group: Option<usize>) -> impl Iterator<Item = (usize, &Node)> {
        let nodes = self.nodes.iter().enumerate();
        nodes.filter(move |(_, node)| node.group == group)
    }

    /// The groups that stand directly in a group, with their numbers.
    pub(super) fn groups_in(&self, group: Option<usize>) -> impl Iterator<Item = (usize, &Group)> {
        let groups = self.groups.iter().enumerate();
        groups.filter(move |(_, within)| within.parent == group)
    }
}

struct Pen {
    drawing: Drawing,
    /// The group that is being drawn.
    group: Option<usize>,
    end: usize,
    /// The loops around, the innermost last.
    loops: Vec<Loop>,
    /// The rollbacks, each with the path of its site and the name of its checkpoint.
    rollbacks: Vec<(usize, &'static str, &'static str)>,
}

/// A loop that is being drawn.
struct Loop {
    name: &'static str,
    node: usize,
    /// Where control comes from that leaves it.
    breaks: Vec<Exit>,
}

impl Pen {
    fn node(&mut self, class: Class, lines: Vec<String>) -> usize {
        self.drawing.nodes.push(Node {
            class,
            lines,
            part: None,
            group: self.group,
            look: Look::of_class(class),
            state: None,
            note: None,
        });
        self.drawing.nodes.len() - 1
    }

    fn edge(&mut self, exit: Exit, to: usize) {
        let Exit { from, way, label } = exit;
        let edge = Edge {
            from,
            to,
            way,
            label,
        };
        // Two arms that do nothing but leave are one way.
        if !self.drawing.edges.contains(&edge) {
            self.drawing.edges.push(edge);
        }
    }

    /// All of these come to a node.
    fn meet(&mut self, exits: Vec<Exit>, to: usize) {
        for exit in exits {
            self.edge(exit, to);
        }
    }

    /// Parts that follow each other. Gives where control comes out of them.
    fn parts(&mut self, parts: &[Parts], mut exits: Vec<Exit>) -> Vec<Exit> {
        for part in parts {
            exits = match part {
                Parts::Site(part) => self.site(part, exits),
                Parts::Choice(arms) => {
                    let choice = self.node(Class::Choice, Vec::new());
                    self.meet(exits, choice);
                    let mut out: Vec<Exit> = Vec::new();
                    for arm in arms {
                        let passes = arm.parts.is_empty();
                        // Arms that do nothing are one way.
                        if passes && out.iter().any(|exit| exit.from == choice) {
                            continue;
                        }
                        out.extend(self.parts(&arm.parts, vec![Exit::of(choice)]));
                    }
                    out
                }
                Parts::Leaves(jump) => self.leave(*jump, exits),
            };
        }
        exits
    }

    /// Control leaves here. Gives where it goes on all the same.
    fn leave(&mut self, jump: Jump, exits: Vec<Exit>) -> Vec<Exit> {
        let leaving = exits.iter().cloned().map(|exit| Exit {
            way: Way::Leaves,
            ..exit
        });
        let to = match jump {
            Jump::Return => self.end,
            Jump::Continue(label) | Jump::Break(label) => {
                let is_it = |around: &&mut Loop| label.is_none_or(|label| label == around.name);
                let Some(around) = self.loops.iter_mut().rev().find(is_it) else {
                    // It leaves a block, and what stands after that goes on.
                    return exits;
                };
                if let Jump::Break(_) = jump {
                    around.breaks.extend(leaving);
                    return Vec::new();
                }
                around.node
            }
        };
        self.meet(leaving.collect(), to);
        Vec::new()
    }

    fn site(&mut self, part: &Part, exits: Vec<Exit>) -> Vec<Exit> {
        let kind = part.site.kind;
        let around = self.group;
        if is_block(kind) {
            self.drawing.groups.push(Group {
                kind,
                label: format!("{} {}", kind.word(), part.site.name),
                path: part.site.path,
                parent: around,
            });
            self.group = Some(self.drawing.groups.len() - 1);
        }
        let node = self.node(Class::Site(kind), lines(part));
        let detail = Part {
            bodies: Vec::new(),
            ..part.clone()
        };
        self.drawing.nodes[node].part = Some(detail);
        if kind == Kind::Removed {
            // Control passes by it.
            for exit in &exits {
                self.edge(
                    Exit {
                        way: Way::Stood,
                        ..Exit::of(exit.from)
                    },
                    node,
                );
            }
            return exits;
        }
        self.meet(exits, node);
        self.messages(part, node);
        if let Some(to) = part.to {
            self.rollbacks.push((node, part.site.path, to));
        }
        let out = match kind {
            Kind::Join | Kind::Race | Kind::JoinAll => self.branches(part, node),
            Kind::Loop => {
                let body = part.bodies.iter().flat_map(|body| &body.parts);
                let body: Vec<Parts> = body.cloned().collect();
                self.loops.push(Loop {
                    name: part.site.name,
                    node,
                    breaks: Vec::new(),
                });
                let ends = self.parts(&body, vec![Exit::labelled(node, "next")]);
                let breaks = self.loops.pop().map(|drawn| drawn.breaks);
                for end in ends {
                    self.edge(
                        Exit {
                            way: Way::Back,
                            ..end
                        },
                        node,
                    );
                }
                let after = (!part.is_endless).then(|| Exit::labelled(node, "after"));
                after
                    .into_iter()
                    .chain(breaks.into_iter().flatten())
                    .collect()
            }
            Kind::Attempt => {
                let mut ends = vec![Exit::of(node)];
                for body in &part.bodies {
                    ends = self.parts(&body.parts, ends);
                }
                let after = self.after(part, "result");
                self.meet(ends, after);
                let fails = Exit {
                    way: Way::Fails,
                    ..Exit::labelled(node, "a failure")
                };
                self.edge(fails, after);
                vec![Exit::of(after)]
            }
            _ => vec![Exit::of(node)],
        };
        self.group = around;
        out
    }

    /// Bodies that begin together, and where they meet.
    fn branches(&mut self, part: &Part, node: usize) -> Vec<Exit> {
        let mut ends = Vec::new();
        for body in &part.bodies {
            let begins = Exit::labelled(node, body.branch.unwrap_or("for each"));
            ends.extend(self.parts(&body.parts, vec![begins]));
        }
        let text = match part.site.kind {
            Kind::Race => "first",
            _ => "all",
        };
        let after = self.after(part, text);
        self.meet(ends, after);
        vec![Exit::of(after)]
    }

    fn after(&mut self, part: &Part, text: &str) -> usize {
        self.node(Class::After(part.site.kind), vec![text.to_owned()])
    }

    /// The channels of a site, each of them drawn once.
    fn messages(&mut self, part: &Part, node: usize) {
        for channel in &part.channels {
            let is_it = |known: &Node| {
                known.class == Class::Channel && known.lines == [(*channel).to_owned()]
            };
            let known = self.drawing.nodes.iter().position(is_it);
            let channel = known.unwrap_or_else(|| {
                let around = self.group.take();
                let made = self.node(Class::Channel, vec![(*channel).to_owned()]);
                self.group = around;
                made
            });
            let (from, to) = match part.site.kind {
                Kind::Send => (node, channel),
                _ => (channel, node),
            };
            self.edge(
                Exit {
                    way: Way::Message,
                    ..Exit::of(from)
                },
                to,
            );
        }
    }

    /// From each rollback to its checkpoint: the nearest of that name in the scopes around it.
    fn rollbacks(&mut self) {
        for (from, path, to) in std::mem::take(&mut self.rollbacks) {
            let checkpoint = |(at, node): (usize, &Node)| {
                let site = node.part.as_ref()?.site;
                let scope = site.path.strip_suffix(site.name)?;
                let is_it =
                    site.kind == Kind::Checkpoint && site.name == to && path.starts_with(scope);
                is_it.then_some((scope.len(), at))
            };
            let nodes = self.drawing.nodes.iter().enumerate();
            if let Some((_, checkpoint)) = nodes.filter_map(checkpoint).max() {
                let undoes = Exit {
                    way: Way::Undoes,
                    ..Exit::labelled(from, "undoes back to")
                };
                self.edge(undoes, checkpoint);
            }
        }
    }
}

/// Whether it is drawn around what is in it.
fn is_block(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Join | Kind::Race | Kind::JoinAll | Kind::Loop | Kind::Attempt
    )
}

/// What stands in the node of a site: its name, what it is, and what else is to be known of it.
fn lines(part: &Part) -> Vec<String> {
    let kind = part.site.kind.word();
    let what = match (part.of, part.was, part.latest) {
        (Some(of), _, _) => format!("{kind} of {of}"),
        (_, Some(was), _) => format!("{kind} {was}"),
        (_, _, Some(latest)) => format!("{kind} {latest}"),
        _ => kind.to_owned(),
    };
    let mut lines = vec![part.site.name.to_owned(), what];
    if let Some(carried) = &part.carried {
        lines.push(format!("carries {}", carried.join(", ")));
    }
    if part.has_undo {
        lines.push("has an undo".to_owned());
    }
    lines
}
