//! Random programs.

use super::ast::{Branch, How, Node, Program};
use super::{Random, sites};

/// What may stand in a program.
#[derive(Debug, Clone, Copy)]
pub struct Features {
    /// What to call it.
    pub title: &'static str,
    /// One letter per kind of leaf, as often as it is wanted: `s`tep, `a`t once, `f`ails, fails f`i`rst, e`x`hausts,
    /// `t`imes out, `e`phemeral, ephemeral that fails `E`, at most `o`nce, `n`ow, `u`uid, `z` sleep.
    pub leaves: &'static str,
    /// `j`oin, `r`ace, join_`a`ll, `l`oop, `f`ragment, `i`f.
    pub containers: &'static str,
    /// How often in a hundred a leaf is followed by a change to what the branches share.
    pub pushes: u64,
    /// Whether a crash-free run gives the same answer whatever the schedule.
    pub steady: bool,
}

impl Features {
    /// The mixtures, as the model has them.
    pub const ALL: [Self; 6] = [
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
    ];
}

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
