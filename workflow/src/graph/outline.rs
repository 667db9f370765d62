//! The outline of a body, as the macros print it: a line for each site, one space a level.

use crate::replay::{Kind, Site};

/// A part of a body.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Part {
    /// Something durable is done.
    Site(Node),
    /// One of these arms is taken: of an `if`, a `match` or a `let .. else`.
    Choice(Vec<Arm>),
    /// Control leaves what it is in.
    Leaves(Jump),
}

/// How control leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Jump {
    /// By a `return`.
    Return,
    /// To the next iteration of the loop of this name, or of the innermost.
    Continue(Option<&'static str>),
    /// Out of the loop of this name, or of the innermost; out of a block, where no loop around has this name.
    Break(Option<&'static str>),
}

/// An arm of a choice. One without parts does nothing durable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arm {
    /// What is in it.
    pub parts: Vec<Part>,
}

/// A site in its body.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Node {
    /// The site: its name, kind, path and place in the source.
    pub site: &'static Site,
    /// The last word of what is called, where that is not its name.
    pub of: Option<&'static str>,
    /// The channels it takes from or sends to, as they are called in the code.
    pub channels: Vec<&'static str>,
    /// Whether it has an undo.
    pub has_undo: bool,
    /// The locals that a loop carries.
    pub carried: Option<Vec<&'static str>>,
    /// Whether it is a loop that only a jump leaves.
    pub is_endless: bool,
    /// The version that new runs get, where it is written as a number.
    pub latest: Option<u32>,
    /// What it was, if it is only declared to have been.
    pub was: Option<&'static str>,
    /// The checkpoint to which it rolls back.
    pub to: Option<&'static str>,
    /// The bodies in it: one for each branch, or one for a loop, a `join_all!` or an `attempt!`.
    pub bodies: Vec<Body>,
}

/// A body in a site: a scope of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Body {
    /// The branch's name, in a join or race.
    pub branch: Option<&'static str>,
    /// What is in it.
    pub parts: Vec<Part>,
}

/// The lines that are not read yet.
struct Lines {
    rest: Vec<(usize, &'static str)>,
    sites: &'static [Site],
}

/// The parts of an outline. A line that cannot be read is left out: there is none, the macros wrote them.
pub(super) fn read(outline: &'static str, sites: &'static [Site]) -> Vec<Part> {
    let lines = outline.lines().rev();
    let rest = lines.map(|line| (line.len() - line.trim_start().len(), line.trim_start()));
    let mut lines = Lines {
        rest: rest.collect(),
        sites,
    };
    lines.parts(0, "")
}

impl Lines {
    /// The next line, if it stands at this level.
    fn at(&mut self, depth: usize) -> Option<&'static str> {
        self.rest
            .pop_if(|(at, _)| *at == depth)
            .map(|(_, line)| line)
    }

    fn parts(&mut self, depth: usize, prefix: &str) -> Vec<Part> {
        let mut parts = Vec::new();
        while let Some(line) = self.at(depth) {
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            match word {
                "leaves" => parts.extend(jump(rest).map(Part::Leaves)),
                "choice" => {
                    let mut arms = Vec::new();
                    while self.at(depth + 1).is_some() {
                        arms.push(Arm {
                            parts: self.parts(depth + 2, prefix),
                        });
                    }
                    if arms.iter().any(|arm| !arm.parts.is_empty()) {
                        parts.push(Part::Choice(arms));
                    }
                }
                kind => parts.extend(self.site(kind, rest, depth, prefix).map(Part::Site)),
            }
        }
        parts
    }

    /// A site with what is in it. Where this build does not have it, that is read and forgotten.
    fn site(&mut self, kind: &str, rest: &'static str, depth: usize, prefix: &str) -> Option<Node> {
        let endless = rest.strip_suffix(" endless");
        let rest = endless.unwrap_or(rest);
        let rest = rest.split_once(" cfg(").map_or(rest, |(rest, _)| rest);
        let mut words = rest.split(' ');
        let name = words.next().unwrap_or_default();
        let path = format!("{prefix}{name}");
        let mut bodies = Vec::new();
        if matches!(kind, "loop" | "attempt" | "join_all") {
            let below = match kind {
                "attempt" => format!("{path}/"),
                _ => format!("{path}[]/"),
            };
            bodies.push(Body {
                branch: None,
                parts: self.parts(depth + 1, &below),
            });
        } else {
            while let Some(branch) = self.at(depth + 1) {
                let branch = branch.strip_prefix("branch ").unwrap_or(branch);
                let below = format!("{path}/{branch}/");
                bodies.push(Body {
                    branch: Some(branch),
                    parts: self.parts(depth + 2, &below),
                });
            }
        }
        let is_it = |site: &&Site| site.path == path && site.kind.word() == kind;
        let mut node = Node {
            site: self.sites.iter().find(is_it)?,
            of: None,
            channels: Vec::new(),
            has_undo: false,
            carried: None,
            is_endless: endless.is_some(),
            latest: None,
            was: None,
            to: None,
            bodies,
        };
        while let Some(word) = words.next() {
            if word == "undo" {
                node.has_undo = true;
                continue;
            }
            let value = words.next().unwrap_or_default();
            match word {
                "of" => node.of = Some(value),
                "on" => node.channels = value.split(',').collect(),
                "carry" => node.carried = Some(value.split(',').collect()),
                "latest" => node.latest = value.parse().ok(),
                "was" => node.was = Some(value),
                "to" => node.to = Some(value),
                _ => {}
            }
        }
        Some(node)
    }
}

fn jump(text: &'static str) -> Option<Jump> {
    let (word, label) = match text.split_once(' ') {
        Some((word, label)) => (word, Some(label)),
        None => (text, None),
    };
    match word {
        "return" => Some(Jump::Return),
        "continue" => Some(Jump::Continue(label)),
        "break" => Some(Jump::Break(label)),
        _ => None,
    }
}

impl Node {
    /// Whether its body is gone through again and again.
    pub fn repeats(&self) -> bool {
        matches!(self.site.kind, Kind::Loop | Kind::JoinAll)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SITES: &[Site] = &[
        Site::new("reserve", Kind::Step, "reserve", "src/lib.rs", 1),
        Site::new("settle", Kind::Race, "settle", "src/lib.rs", 2),
        Site::new(
            "payment",
            Kind::Recv,
            "settle/paid/payment",
            "src/lib.rs",
            3,
        ),
        Site::new("items", Kind::Loop, "items", "src/lib.rs", 4),
        Site::new("ship", Kind::Call, "items[]/ship", "src/lib.rs", 5),
    ];

    fn names(parts: &[Part]) -> Vec<String> {
        let name = |part: &Part| match part {
            Part::Leaves(jump) => format!("{jump:?}"),
            Part::Choice(arms) => {
                let arms: Vec<_> = arms.iter().map(|arm| names(&arm.parts).join(" ")).collect();
                format!("({})", arms.join(" | "))
            }
            Part::Site(node) => {
                let bodies: Vec<_> = node
                    .bodies
                    .iter()
                    .map(|body| names(&body.parts).join(" "))
                    .collect();
                format!("{}[{}]", node.site.path, bodies.join(" | "))
            }
        };
        parts.iter().map(name).collect()
    }

    #[test]
    fn an_outline_is_read_with_what_is_in_each_site() {
        let outline = "step reserve of hold undo\nchoice\n arm\n  loop items endless\n   call ship\n   leaves break items\n  leaves return\n arm\nrace settle\n branch paid\n  recv payment on PAYMENT,VOUCHER\n branch late\n";
        let parts = read(outline, SITES);
        assert_eq!(
            names(&parts),
            [
                "reserve[]",
                "(items[items[]/ship[] Break(Some(\"items\"))] Return | )",
                "settle[settle/paid/payment[] | ]"
            ]
        );
        let Part::Site(reserve) = &parts[0] else {
            panic!("it is a site")
        };
        assert!(reserve.has_undo && reserve.of == Some("hold"));
        let Part::Site(settle) = &parts[2] else {
            panic!("it is a site")
        };
        let Part::Site(payment) = &settle.bodies[0].parts[0] else {
            panic!("it is a site")
        };
        assert_eq!(payment.channels, ["PAYMENT", "VOUCHER"]);
    }

    #[test]
    fn what_this_build_does_not_have_is_left_out_with_what_is_in_it() {
        let outline = "join both cfg(feature=\"gifts\")\n branch a\n  call ship\nchoice\n arm\n  step gift cfg(feature=\"gifts\")\n arm\nstep reserve\n";
        assert_eq!(names(&read(outline, SITES)), ["reserve[]"]);
    }
}
