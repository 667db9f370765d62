//! A scope as a run goes through it: which sites there are, in which arms, and which can follow which.

use super::tree::{Body, Part, Site};
use crate::model::Condition;

/// A site in its scope, with the arms around it.
pub(super) struct Entry<'a> {
    pub(super) site: &'a Site,
    /// The choice and the arm, from the outermost.
    pub(super) arms: Vec<(usize, usize)>,
    /// How many of these arms still hold what can follow: none if it is not cut.
    cut: Option<usize>,
    /// The choices by `version!`s that it stands in.
    pub(super) choices: Vec<Choice<'a>>,
    pub(super) order: usize,
}

/// An arm of a choice by `version!`s.
#[derive(Clone)]
pub(super) struct Choice<'a> {
    pub(super) gates: &'a [String],
    /// When it is taken, where that can be read.
    pub(super) condition: Option<Condition>,
}

impl Entry<'_> {
    pub(super) fn can_be_followed_by(&self, later: &Self) -> bool {
        let is_exclusive = self
            .arms
            .iter()
            .zip(&later.arms)
            .find(|(one, other)| one != other)
            .is_some_and(|(one, other)| one.0 == other.0);
        let is_cut = self
            .cut
            .is_some_and(|cut| later.arms.len() < cut || later.arms[..cut] != self.arms[..cut]);
        self.order < later.order && !is_exclusive && !is_cut
    }

    /// Whether whoever comes to `later` was here.
    pub(super) fn is_always_before(&self, later: &Self) -> bool {
        self.can_be_followed_by(later) && later.arms.starts_with(&self.arms)
    }
}

/// The sites of one scope, in source order.
pub(super) fn flat(parts: &[Part]) -> Vec<Entry<'_>> {
    let mut entries = Vec::new();
    flatten(
        parts,
        &mut Vec::new(),
        &mut Vec::new(),
        &mut 0,
        &mut entries,
    );
    entries
}

fn flatten<'a>(
    parts: &'a [Part],
    arms: &mut Vec<(usize, usize)>,
    around: &mut Vec<Choice<'a>>,
    choices: &mut usize,
    entries: &mut Vec<Entry<'a>>,
) {
    let outside = around.len();
    for part in parts {
        match part {
            Part::Site(site) => entries.push(Entry {
                site,
                arms: arms.clone(),
                cut: None,
                choices: around.clone(),
                order: entries.len(),
            }),
            Part::Choice {
                gates,
                arms: list,
                conditions,
            } => {
                let choice = *choices;
                *choices += 1;
                for (index, arm) in list.iter().enumerate() {
                    arms.push((choice, index));
                    around.push(Choice {
                        gates,
                        condition: conditions.get(index).cloned(),
                    });
                    flatten(arm, arms, around, choices, entries);
                    around.pop();
                    arms.pop();
                }
                // `if version!(..).await < 2 { return .. }`: what follows is in the other arm.
                let leaves = |arm: &[Part]| arm.iter().any(|part| matches!(part, Part::Leaves));
                if list.iter().any(|arm| leaves(arm)) {
                    let staying = list.iter().zip(conditions).filter(|(arm, _)| !leaves(arm));
                    let staying: Vec<_> = staying.map(|(_, when)| when.clone()).collect();
                    around.push(Choice {
                        gates,
                        condition: (!conditions.is_empty()).then_some(Condition::Any(staying)),
                    });
                }
            }
            // All that stands in this sequence so far is followed by nothing outside of it.
            Part::Leaves => {
                for entry in entries
                    .iter_mut()
                    .filter(|entry| entry.arms.starts_with(arms))
                {
                    entry.cut.get_or_insert(arms.len());
                }
            }
        }
    }
    around.truncate(outside);
}

/// The prefix of what stands in a body of a site.
pub(super) fn below(site: &Site, path: &str, branch: Option<&str>) -> String {
    match branch {
        Some(branch) => format!("{path}/{branch}/"),
        None if site.kind == "attempt" => format!("{path}/"),
        None => format!("{path}[]/"),
    }
}

/// Whether a site leaves a record that the next must come after.
pub(super) fn is_head(site: &Site) -> bool {
    !matches!(
        site.kind.as_str(),
        "version" | "removed" | "checkpoint" | "settle" | "derived"
    )
}

/// Whether what one kind recorded may be of the other: of a call only its type tells what it is.
pub(super) fn alike(locked: &str, found: &str) -> bool {
    let called = |kind| matches!(kind, "call" | "step" | "fragment" | "child");
    locked == found || (locked == "call" && called(found)) || (found == "call" && called(locked))
}

/// The site of that name, if it is not only declared to have been.
///
/// Of two under different conditions it is the one under the same.
pub(super) fn standing<'a, 'b>(entries: &'a [Entry<'b>], of: &Site) -> Option<&'a Entry<'b>> {
    let named = || {
        entries
            .iter()
            .filter(|entry| entry.site.name == of.name && entry.site.kind != "removed")
    };
    let same = named().find(|entry| entry.site.cfg == of.cfg);
    same.or_else(|| named().next())
}

/// All sites of a body and of what is in it, by their paths.
pub(super) fn all(parts: &[Part]) -> Vec<(String, &Site)> {
    fn gather<'a>(parts: &'a [Part], prefix: &str, into: &mut Vec<(String, &'a Site)>) {
        for Entry { site, .. } in flat(parts) {
            let path = format!("{prefix}{}", site.name);
            for Body { branch, parts, .. } in &site.bodies {
                gather(parts, &below(site, &path, branch.as_deref()), into);
            }
            into.push((path, site));
        }
    }
    let mut sites = Vec::new();
    gather(parts, "", &mut sites);
    sites
}

/// The innermost site in which a path stands.
pub(super) fn around<'a, 'b>(
    path: &str,
    sites: &'a [(String, &'b Site)],
) -> Option<&'a (String, &'b Site)> {
    let around = sites
        .iter()
        .filter(|(around, _)| around != path && is_in(path, around));
    around.max_by_key(|(around, _)| around.len())
}

/// Whether `path` is `around`, or stands in it.
pub(super) fn is_in(path: &str, around: &str) -> bool {
    let rest = path.strip_prefix(around);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '[']))
}

/// The scope of a path, as messages call it.
pub(super) fn scope_of(path: &str, name: &str) -> String {
    let around = path.strip_suffix(name).unwrap_or(path);
    match around.trim_end_matches('/') {
        "" => "the body".to_owned(),
        around => format!("`{around}`"),
    }
}

/// The names of the heads right before and after.
pub(super) fn neighbours<'a>(
    entries: &'a [Entry<'_>],
    order: usize,
) -> (Option<&'a str>, Option<&'a str>) {
    let name = |entry: &'a Entry<'_>| entry.site.name.as_str();
    let heads = || entries.iter().filter(|entry| is_head(entry.site));
    (
        heads().rfind(|entry| entry.order < order).map(name),
        heads().find(|entry| entry.order > order).map(name),
    )
}
