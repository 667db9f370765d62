//! Random programs.

use super::ast::{Branch, Carried, How, Node, Program, Wants};
use super::{Random, sites};

/// What may stand in a program.
#[derive(Debug, Clone, Copy)]
pub struct Features {
    /// What to call it.
    pub title: &'static str,
    /// One letter per kind of leaf, as often as it is wanted: `s`tep, `a`t once, `f`ails, fails f`i`rst, e`x`hausts,
    /// `t`imes out, `e`phemeral, ephemeral that fails `E`, at most `o`nce, `n`ow, `u`uid, `z` sleep, `r`ecv, se`q`uest, sen`d`, `c`hild.
    pub leaves: &'static str,
    /// `j`oin, `r`ace, join_`a`ll, `l`oop, `f`ragment, `i`f, carried loop `k`, at`t`empt, `v`ersion gate.
    pub containers: &'static str,
    /// How often in a hundred a leaf is followed by a change to what the branches share.
    pub pushes: u64,
    /// Whether a crash-free run gives the same answer whatever the schedule.
    pub steady: bool,
}

impl Features {
    /// The mixtures, as the model has them.
    pub const ALL: [Self; 10] = [
        Self {
            title: "everything but what is fickle",
            leaves: "sssaffixtonnuzz",
            containers: "jrralfi",
            pushes: 0,
            steady: false,
        },
        Self {
            title: "choices before effects",
            leaves: "ssnnzu",
            containers: "jrai",
            pushes: 0,
            steady: false,
        },
        Self {
            title: "ephemeral steps",
            leaves: "sseeEnzo",
            containers: "jralfi",
            pushes: 0,
            steady: false,
        },
        Self {
            title: "locals that accumulate",
            leaves: "sssazni",
            containers: "jalfi",
            pushes: 50,
            steady: false,
        },
        Self {
            title: "locals that accumulate, beside races",
            leaves: "sssazni",
            containers: "jralfi",
            pushes: 50,
            steady: false,
        },
        Self {
            title: "what is determined by the outcomes",
            leaves: "sssafixtzu",
            containers: "jalfi",
            pushes: 0,
            steady: true,
        },
        Self {
            title: "the whole language",
            leaves: "sssaffixtonnuzzrrrrrqddcc",
            containers: "jrraltfikkv",
            pushes: 0,
            steady: false,
        },
        Self {
            title: "messages, taken in races",
            leaves: "srrrrrqdz",
            containers: "jrrrrat",
            pushes: 0,
            steady: false,
        },
        Self {
            title: "carried loops",
            leaves: "saafzrrdn",
            containers: "kkkkjrt",
            pushes: 0,
            steady: false,
        },
        Self {
            title: "children and version gates",
            leaves: "scccdzrn",
            containers: "jrkvvvt",
            pushes: 0,
            steady: false,
        },
    ];
}

/// The channels of numbers that programs receive from.
pub(super) const CHANNELS: [&str; 3] = ["a", "b", "c"];

/// What a loop may carry.
pub(super) const LOCALS: [&[&str]; 2] = [&["total"], &["total", "count"]];

/// A program with these features.
pub fn generate(random: &mut Random, features: &Features, depth: u32) -> Program {
    let mut generator = Generator {
        random,
        features,
        next: 0,
    };
    Program::new(generator.block(depth, false, 1))
}

struct Generator<'g> {
    random: &'g mut Random,
    features: &'g Features,
    next: u32,
}

impl Generator<'_> {
    fn name(&mut self) -> &'static str {
        self.next += 1;
        sites::name(&format!("n{}", self.next))
    }

    /// Losers' changes to what is shared are lost, so nothing is shared inside of a race.
    fn block(&mut self, depth: u32, raced: bool, least: u64) -> Vec<Node> {
        let mut nodes = Vec::new();
        for _ in 0..self.random.within(least, 3) {
            if depth == 0 || self.random.percent(45) {
                nodes.push(self.leaf());
                if !raced && self.random.percent(self.features.pushes) {
                    nodes.push(Node::Push);
                }
            } else {
                nodes.push(self.container(depth - 1, raced));
            }
        }
        nodes
    }

    fn inner(&mut self, depth: u32, raced: bool) -> Vec<Node> {
        let least = u64::from(!self.random.percent(12));
        self.block(depth, raced, least)
    }

    fn leaf(&mut self) -> Node {
        let name = self.name();
        let letter = *self.random.pick(self.features.leaves.as_bytes());
        let how = match letter {
            b'n' => return Node::Now(name),
            b'u' => return Node::Uuid(name),
            b'z' => return Node::Sleep(name, *self.random.pick(&[0, 2, 5, 9, 3_000])),
            b'r' => return Node::Recv(name, self.wants()),
            b'q' => return Node::Serve(name),
            b'd' => {
                return Node::Send {
                    name,
                    channel: CHANNELS[self.random.index(CHANNELS.len())],
                    own: self.random.percent(70),
                };
            }
            b'c' => {
                return Node::Child {
                    name,
                    detached: self.random.percent(25),
                    caught: self.random.percent(50),
                };
            }
            b'a' => How::AtOnce,
            b'f' => How::Fails,
            b'i' => How::FailsFirst(u32::try_from(self.random.within(1, 2)).unwrap_or(1)),
            b'x' => How::Exhausts(2),
            b't' => How::TimesOut,
            b'e' => How::Ephemeral,
            b'E' => How::EphemeralFails,
            b'o' => How::AtMostOnce,
            _ => How::Succeeds,
        };
        let caught = self.random.percent(60);
        Node::Step { name, how, caught }
    }

    fn wants(&mut self) -> Wants {
        let from: &[&[&str]] = &[&["a"], &["a"], &["b"], &["a", "b"], &["b", "a", "c"]];
        let within = [None, None, None, Some(0), Some(3), Some(9), Some(2_000)];
        Wants {
            from: sites::names(self.random.pick(from).to_vec()),
            within: *self.random.pick(&within),
            count: *self.random.pick(&[1, 1, 1, 1, 2, 3]),
            exactly: self.random.percent(30),
        }
    }

    fn container(&mut self, depth: u32, raced: bool) -> Node {
        let name = self.name();
        let caught = self.random.percent(50);
        match *self.random.pick(self.features.containers.as_bytes()) {
            b'j' => Node::Join {
                name,
                branches: self.branches(depth, raced),
                caught,
            },
            b'r' => Node::Race {
                name,
                branches: self.branches(depth, true),
                caught,
            },
            b'a' => Node::JoinAll {
                name,
                items: self.random.within(0, 4),
                limit: *self.random.pick(&[None, None, Some(1), Some(2)]),
                keyed: self.random.percent(40),
                body: self.inner(depth, raced),
                caught,
            },
            b'l' => Node::For {
                name,
                times: self.random.within(0, 3),
                keyed: self.random.percent(30),
                body: self.inner(depth, raced),
            },
            b'f' => Node::Fragment {
                name,
                body: self.inner(depth, raced),
                caught,
            },
            b't' => Node::Attempt(name, self.inner(depth, raced)),
            b'v' => Node::Version {
                name,
                latest: 2,
                old: self.inner(depth, raced),
                new: self.inner(depth, raced),
            },
            b'k' => Node::Carry {
                name,
                carried: Carried {
                    times: self.random.within(0, 5),
                    every: self.random.within(1, 4),
                    keep: *self.random.pick(&[None, Some(1), Some(1), Some(2)]),
                    locals: LOCALS[self.random.index(LOCALS.len())],
                    whilst: self.random.percent(50),
                    breaks: self.random.percent(30),
                },
                // What a pruned iteration did to what is shared is lost.
                body: self.inner(depth, true),
            },
            _ => Node::If {
                then: self.inner(depth, raced),
                other: self.inner(depth, raced),
            },
        }
    }

    fn branches(&mut self, depth: u32, raced: bool) -> Vec<Branch> {
        let count = *self.random.pick(&[1, 2, 2, 2, 3, 3, 4]);
        (0..count)
            .map(|index| Branch {
                name: sites::name(&format!("b{index}")),
                body: self.inner(depth, raced),
            })
            .collect()
    }
}
