//! What a program is.

use std::fmt;
use std::sync::Arc;

use workflow::Kind;

/// A workflow's body.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Program(pub Arc<Vec<Node>>);

/// One statement.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Node {
    /// A step. `caught`: its failure is data, the `?` is left off.
    Step {
        /// Its name.
        name: &'static str,
        /// How its body behaves.
        how: How,
        /// Whether the `?` is left off.
        caught: bool,
    },
    /// `now!`.
    Now(&'static str),
    /// `uuid!`.
    Uuid(&'static str),
    /// `sleep!` for so many milliseconds.
    Sleep(&'static str, u64),
    /// `join!`.
    Join {
        /// Its name.
        name: &'static str,
        /// One to four of them.
        branches: Vec<Branch>,
        /// Whether the `?` is left off.
        caught: bool,
    },
    /// `race!`.
    Race {
        /// Its name.
        name: &'static str,
        /// One to four of them.
        branches: Vec<Branch>,
        /// Whether the `?` is left off.
        caught: bool,
    },
    /// `join_all!`.
    JoinAll {
        /// Its name.
        name: &'static str,
        /// How many items.
        items: u64,
        /// How many at once.
        limit: Option<usize>,
        /// Whether its branches are named by key.
        keyed: bool,
        /// What each does.
        body: Vec<Node>,
        /// Whether the `?` is left off.
        caught: bool,
    },
    /// A labelled loop.
    For {
        /// Its label.
        name: &'static str,
        /// How many iterations.
        times: u64,
        /// Whether its iterations are named by key.
        keyed: bool,
        /// What each does.
        body: Vec<Node>,
    },
    /// A fragment.
    Fragment {
        /// Its name.
        name: &'static str,
        /// What it does.
        body: Vec<Node>,
        /// Whether the `?` is left off.
        caught: bool,
    },
    /// `recv!`, from channels of numbers.
    Recv(&'static str, Wants),
    /// `recv!` of one request, and the reply to it.
    Serve(&'static str),
    /// `send!` of what was computed so far.
    Send {
        /// Its name.
        name: &'static str,
        /// On which channel.
        channel: &'static str,
        /// Whether to the run itself; else to one that is never started.
        own: bool,
    },
    /// A child run.
    Child {
        /// Its name.
        name: &'static str,
        /// Whether nobody waits for it.
        detached: bool,
        /// Whether the `?` is left off.
        caught: bool,
    },
    /// A loop that is started again from what it carries.
    Carry {
        /// Its label.
        name: &'static str,
        /// How it goes and what it keeps.
        carried: Carried,
        /// What each iteration does.
        body: Vec<Node>,
    },
    /// A block at whose edge failures stop.
    Attempt(&'static str, Vec<Node>),
    /// A version gate, and a choice by what it gives.
    Version {
        /// Its name.
        name: &'static str,
        /// The newest version.
        latest: u32,
        /// What version 1 does.
        old: Vec<Node>,
        /// What later ones do.
        new: Vec<Node>,
    },
    /// `removed!`.
    Removed(&'static str, Kind),
    /// A choice between two blocks by what was computed so far.
    If {
        /// The one.
        then: Vec<Node>,
        /// The other.
        other: Vec<Node>,
    },
    /// Appends the last value to what all branches share.
    Push,
}

/// What a receive asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Wants {
    /// From which channels.
    pub from: &'static [&'static str],
    /// For how many milliseconds; for ever when absent.
    pub within: Option<u64>,
    /// How many at most.
    pub count: u32,
    /// Not before there are so many.
    pub exactly: bool,
}

impl Wants {
    /// How many messages have to be there.
    pub fn least(&self) -> usize {
        if self.exactly { self.count as usize } else { 1 }
    }
}

/// How a carried loop goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Carried {
    /// How many iterations.
    pub times: u64,
    /// After how many boundaries they are made durable.
    pub every: u64,
    /// How many iterations are kept; as many as `every` when absent.
    pub keep: Option<u64>,
    /// Which locals it carries.
    pub locals: &'static [&'static str],
    /// Whether it is a `while`, whose condition belongs to the iteration; else a `for`.
    pub whilst: bool,
    /// Whether it may end early, by what was computed.
    pub breaks: bool,
}

impl Carried {
    /// How many iterations before the next one are kept.
    pub fn kept(&self) -> u64 {
        self.keep.unwrap_or(self.every).max(1)
    }
}

/// A branch of a join or race.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Branch {
    /// Its name.
    pub name: &'static str,
    /// What it does.
    pub body: Vec<Node>,
}

/// How a step's body behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum How {
    /// It takes a while and succeeds.
    Succeeds,
    /// It succeeds when it is first polled.
    AtOnce,
    /// It fails for good.
    Fails,
    /// So many attempts fail, the next succeeds.
    FailsFirst(u32),
    /// Every attempt fails; so many are made.
    Exhausts(u32),
    /// It is dropped when its time is up.
    TimesOut,
    /// It succeeds, and its outcome rides.
    Ephemeral,
    /// It fails for good, and that rides.
    EphemeralFails,
    /// Its beginning is recorded, and it succeeds.
    AtMostOnce,
}

impl How {
    /// Whether its outcome rides.
    pub fn rides(self) -> bool {
        matches!(self, Self::Ephemeral | Self::EphemeralFails)
    }
}

impl Node {
    /// The name, of what has one.
    pub fn name(&self) -> Option<&'static str> {
        match self {
            Self::Step { name, .. }
            | Self::Now(name)
            | Self::Uuid(name)
            | Self::Sleep(name, _)
            | Self::Join { name, .. }
            | Self::Race { name, .. }
            | Self::JoinAll { name, .. }
            | Self::For { name, .. }
            | Self::Fragment { name, .. }
            | Self::Recv(name, _)
            | Self::Serve(name)
            | Self::Send { name, .. }
            | Self::Child { name, .. }
            | Self::Carry { name, .. }
            | Self::Attempt(name, _)
            | Self::Version { name, .. }
            | Self::Removed(name, _) => Some(name),
            Self::If { .. } | Self::Push => None,
        }
    }

    /// What it is recorded as.
    pub fn kind(&self) -> Option<Kind> {
        Some(match self {
            Self::Step { .. } => Kind::Step,
            Self::Now(_) => Kind::Now,
            Self::Sleep(..) => Kind::Sleep,
            Self::Join { .. } => Kind::Join,
            Self::Race { .. } => Kind::Race,
            Self::JoinAll { .. } => Kind::JoinAll,
            Self::For { .. } | Self::Carry { .. } => Kind::Loop,
            Self::Fragment { .. } => Kind::Fragment,
            Self::Recv(..) => Kind::Recv,
            Self::Send { .. } => Kind::Send,
            Self::Child { .. } => Kind::Child,
            Self::Attempt(..) => Kind::Attempt,
            Self::Version { .. } => Kind::Version,
            // The reply to it would be left over.
            Self::Serve(_) | Self::Uuid(_) | Self::Removed(..) | Self::If { .. } | Self::Push => {
                return None;
            }
        })
    }

    /// Its name, to be changed.
    pub fn name_mut(&mut self) -> Option<&mut &'static str> {
        match self {
            Self::Step { name, .. }
            | Self::Now(name)
            | Self::Uuid(name)
            | Self::Sleep(name, _)
            | Self::Join { name, .. }
            | Self::Race { name, .. }
            | Self::JoinAll { name, .. }
            | Self::For { name, .. }
            | Self::Fragment { name, .. }
            | Self::Recv(name, _)
            | Self::Serve(name)
            | Self::Send { name, .. }
            | Self::Child { name, .. }
            | Self::Carry { name, .. }
            | Self::Attempt(name, _)
            | Self::Version { name, .. }
            | Self::Removed(name, _) => Some(name),
            Self::If { .. } | Self::Push => None,
        }
    }

    /// The blocks in it.
    pub fn blocks(&self) -> Vec<&Vec<Node>> {
        match self {
            Self::Join { branches, .. } | Self::Race { branches, .. } => {
                branches.iter().map(|branch| &branch.body).collect()
            }
            Self::JoinAll { body, .. }
            | Self::For { body, .. }
            | Self::Fragment { body, .. }
            | Self::Carry { body, .. }
            | Self::Attempt(_, body) => vec![body],
            Self::If { then, other } => vec![then, other],
            Self::Version { old, new, .. } => vec![old, new],
            _ => Vec::new(),
        }
    }

    /// The blocks in it, to be changed.
    pub fn blocks_mut(&mut self) -> Vec<&mut Vec<Node>> {
        match self {
            Self::Join { branches, .. } | Self::Race { branches, .. } => {
                branches.iter_mut().map(|branch| &mut branch.body).collect()
            }
            Self::JoinAll { body, .. }
            | Self::For { body, .. }
            | Self::Fragment { body, .. }
            | Self::Carry { body, .. }
            | Self::Attempt(_, body) => vec![body],
            Self::If { then, other } => vec![then, other],
            Self::Version { old, new, .. } => vec![old, new],
            _ => Vec::new(),
        }
    }
}

impl Program {
    /// A program of these statements.
    pub fn new(nodes: Vec<Node>) -> Self {
        Self(Arc::new(nodes))
    }

    /// Every statement, those in blocks included.
    pub fn nodes(&self) -> Vec<&Node> {
        let mut all: Vec<&Node> = self.0.iter().collect();
        let mut at = 0;
        while at < all.len() {
            let below = all[at].blocks();
            all.extend(below.into_iter().flatten());
            at += 1;
        }
        all
    }

    /// How many statements it has.
    pub fn size(&self) -> usize {
        self.nodes().len()
    }

    /// Whether a statement is like this.
    pub fn has(&self, like: impl Fn(&Node) -> bool) -> bool {
        self.nodes().into_iter().any(like)
    }

    /// Whether what it computes may change after a crash, because an outcome was not durable: by the user's wish.
    pub fn is_fickle(&self) -> bool {
        self.has(|node| matches!(node, Node::Step { how, .. } if how.rides()))
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        block(&self.0, 1, f)
    }
}

fn block(nodes: &[Node], depth: usize, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let pad = "  ".repeat(depth);
    for node in nodes {
        let q = |caught: &bool| if *caught { "" } else { "?" };
        match node {
            Node::Step { name, how, caught } => {
                writeln!(f, "{pad}step {name} {how:?}{}", q(caught))?;
            }
            Node::Now(name) => writeln!(f, "{pad}now {name}")?,
            Node::Uuid(name) => writeln!(f, "{pad}uuid {name}")?,
            Node::Sleep(name, millis) => writeln!(f, "{pad}sleep {name} {millis}ms")?,
            Node::Join {
                name,
                branches,
                caught,
            }
            | Node::Race {
                name,
                branches,
                caught,
            } => {
                let word = if matches!(node, Node::Join { .. }) {
                    "join"
                } else {
                    "race"
                };
                writeln!(f, "{pad}{word} {name}{}", q(caught))?;
                for branch in branches {
                    writeln!(f, "{pad} {}:", branch.name)?;
                    block(&branch.body, depth + 1, f)?;
                }
            }
            Node::JoinAll {
                name,
                items,
                limit,
                keyed,
                body,
                caught,
            } => {
                let keyed = if *keyed { " keyed" } else { "" };
                writeln!(
                    f,
                    "{pad}join_all {name} x{items} limit {limit:?}{keyed}{}",
                    q(caught)
                )?;
                block(body, depth + 1, f)?;
            }
            Node::For {
                name,
                times,
                keyed,
                body,
            } => {
                let keyed = if *keyed { " keyed" } else { "" };
                writeln!(f, "{pad}for {name} x{times}{keyed}")?;
                block(body, depth + 1, f)?;
            }
            Node::Fragment { name, body, caught } => {
                writeln!(f, "{pad}fragment {name}{}", q(caught))?;
                block(body, depth + 1, f)?;
            }
            Node::If { then, other } => {
                writeln!(f, "{pad}if")?;
                block(then, depth + 1, f)?;
                writeln!(f, "{pad}else")?;
                block(other, depth + 1, f)?;
            }
            Node::Recv(name, wants) => writeln!(f, "{pad}recv {name} {wants:?}")?,
            Node::Serve(name) => writeln!(f, "{pad}serve {name}")?,
            Node::Send { name, channel, own } => {
                let to = if *own { "itself" } else { "another" };
                writeln!(f, "{pad}send {name} {channel} to {to}")?;
            }
            Node::Child {
                name,
                detached,
                caught,
            } => {
                let detached = if *detached { " detached" } else { "" };
                writeln!(f, "{pad}child {name}{detached}{}", q(caught))?;
            }
            Node::Carry {
                name,
                carried,
                body,
            } => {
                writeln!(f, "{pad}carry {name} {carried:?}")?;
                block(body, depth + 1, f)?;
            }
            Node::Attempt(name, body) => {
                writeln!(f, "{pad}attempt {name}")?;
                block(body, depth + 1, f)?;
            }
            Node::Version {
                name,
                latest,
                old,
                new,
            } => {
                writeln!(f, "{pad}version {name} {latest}: old")?;
                block(old, depth + 1, f)?;
                writeln!(f, "{pad}new")?;
                block(new, depth + 1, f)?;
            }
            Node::Removed(name, kind) => writeln!(f, "{pad}removed {name} {kind:?}")?,
            Node::Push => writeln!(f, "{pad}push")?,
        }
    }
    Ok(())
}
