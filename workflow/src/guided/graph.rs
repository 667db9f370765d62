//! The shape of a flow: names and edges, without the code behind them.

use std::borrow::Cow;
use std::hash::{Hash, Hasher};

use siphasher::sip::SipHasher13;

/// The stages of a flow and the ways between them, in the order in which they were written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Graph {
    nodes: Cow<'static, [Node]>,
}

/// A stage, as the graph has it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent marks, as they are written at the stage"
)]
pub struct Node {
    /// Its name.
    pub name: Cow<'static, str>,
    /// What a person reads above it; its name when absent.
    pub title: Option<Cow<'static, str>>,
    /// What helps a person to fill it in.
    pub help: Option<Cow<'static, str>>,
    /// The flow begins here.
    pub start: bool,
    /// The flow ends with `next` from here.
    pub terminal: bool,
    /// A person may pass it by.
    pub skippable: bool,
    /// It is entered only while a condition holds.
    pub conditional: bool,
    /// Where to go on from it: the first exit that is open.
    pub exits: Cow<'static, [Exit]>,
    /// When no exit is open, the flow stays here.
    pub stays: bool,
}

/// A way from one stage to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exit {
    /// Where it leads.
    pub target: Cow<'static, str>,
    /// It is open only while a condition holds.
    pub guarded: bool,
}

impl Node {
    /// A stage of that name, with nothing else said of it.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: Cow::Owned(name.into()),
            ..Self::default()
        }
    }
}

impl Graph {
    /// A graph of these stages.
    pub fn new(nodes: Vec<Node>) -> Self {
        Self {
            nodes: Cow::Owned(nodes),
        }
    }

    /// A graph that is known at compile time.
    pub const fn fixed(nodes: &'static [Node]) -> Self {
        Self {
            nodes: Cow::Borrowed(nodes),
        }
    }

    /// The stages, in the order in which they were written.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The stage of that name.
    pub fn node(&self, name: &str) -> Option<&Node> {
        self.nodes.iter().find(|node| node.name == name)
    }

    /// Where the flow begins. Of a flow that was built there is one.
    pub fn start(&self) -> Option<&Node> {
        self.nodes.iter().find(|node| node.start)
    }

    /// A number that another graph does not have. What only a person reads does not count.
    pub fn fingerprint(&self) -> u64 {
        // Stable across builds and machines, unlike the standard library's.
        let mut hasher = SipHasher13::new_with_keys(0x6775_6964, 0x6564_0001);
        for node in self.nodes() {
            node.name.hash(&mut hasher);
            [
                node.start,
                node.terminal,
                node.skippable,
                node.conditional,
                node.stays,
            ]
            .hash(&mut hasher);
            for exit in &*node.exits {
                (&exit.target, exit.guarded).hash(&mut hasher);
            }
            node.exits.len().hash(&mut hasher);
        }
        hasher.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two() -> Graph {
        let mut first = Node::new("a");
        first.exits.to_mut().push(Exit {
            target: "b".into(),
            guarded: false,
        });
        Graph::new(vec![first, Node::new("b")])
    }

    #[test]
    fn a_title_does_not_change_the_fingerprint_and_a_guard_does() {
        let mut titled = two();
        titled.nodes.to_mut()[0].title = Some("First".into());
        assert_eq!(titled.fingerprint(), two().fingerprint());
        let mut guarded = two();
        guarded.nodes.to_mut()[0].exits.to_mut()[0].guarded = true;
        assert_ne!(guarded.fingerprint(), two().fingerprint());
    }
}
