//! Which edits live runs survive: the law of the lock.
//!
//! A run stands somewhere in a scope, with what it passed recorded. It goes on if the code still comes by the recorded sites
//! in an order in which they can have been recorded, and by no other site before one of them. So what is compared is which
//! site *can follow* which, not the order of lines: sites in exclusive arms are in no order, and a `return` is the end of it.
//!
//! The end of the body is the one place where a site may be added freely: a run that is past it is final. The end of a
//! branch, of an iteration, of an `attempt!` or of a fragment is not: the run comes by there again.

use std::collections::HashMap;

use super::flow::{
    Choice, Entry, alike, all, around, below, flat, is_head, is_in, neighbours, scope_of, standing,
};
use super::tree::{Body, Carried, Input, Item, Origin, Part, Section, Site};
use super::types::{Tables, is_option};
use crate::diagnostics::Place;
use crate::messages::{self, Text};

/// An edit that some live run does not survive.
pub(crate) struct Break {
    /// The path of the site, in the lock where it is gone, else in the code.
    pub(crate) path: String,
    /// Where it is told: at the site, or at the function's name where there is none.
    pub(crate) place: Place,
    pub(crate) text: Text,
    /// It is one only in builds in which this condition is met.
    pub(crate) under: Option<String>,
}

/// What of `found` breaks a run that stands on `locked`.
pub(crate) fn compare(
    locked: &Section,
    found: &Section,
    name: Place,
    tables: &Tables<'_>,
) -> Vec<Break> {
    let mut compare = Compare {
        tables,
        function: &locked.name,
        name,
        gates: grown(locked, found),
        moved: Vec::new(),
        breaks: Vec::new(),
    };
    compare.inputs(locked, found);
    let scope = match found.item {
        Item::Workflow => Scope::Root,
        Item::Fragment | Item::Guided => Scope::Again("the fragment", &locked.origin),
    };
    compare.moved(&locked.parts, &found.parts);
    compare.scope(&flat(&locked.parts), &flat(&found.parts), scope, "");
    compare.breaks
}

#[derive(Clone, Copy)]
enum Scope<'a> {
    /// A workflow's own body: who is past its end is final.
    Root,
    /// Where a run comes by again after it was past the end: as it is called in messages, and its line.
    Again(&'static str, &'a Origin),
}

/// A `version!` under which a new site may stand: it is new itself, or its number grew.
struct Grown {
    path: String,
    /// The highest number that live runs may have got; none if that is not known.
    before: Option<u32>,
}

fn grown(locked: &Section, found: &Section) -> Vec<Grown> {
    fn versions(parts: &[Part], prefix: &str, into: &mut HashMap<String, Option<u32>>) {
        for Entry { site, .. } in flat(parts) {
            let path = format!("{prefix}{}", site.name);
            for Body { branch, parts, .. } in &site.bodies {
                versions(parts, &below(site, &path, branch.as_deref()), into);
            }
            if site.kind == "version" {
                into.insert(path, site.latest);
            }
        }
    }
    let (mut old, mut new) = (HashMap::new(), HashMap::new());
    versions(&locked.parts, "", &mut old);
    versions(&found.parts, "", &mut new);
    let grown = new.into_iter().filter_map(|(path, latest)| {
        let before = match (old.get(&path), latest) {
            // A run that is past it gets 1.
            (None, _) => Some(1),
            (Some(Some(before)), Some(latest)) if latest > *before => Some(*before),
            (Some(Some(_)), Some(_)) => return None,
            // A constant: what it was is not known.
            _ => None,
        };
        Some(Grown { path, before })
    });
    grown.collect()
}

struct Compare<'a> {
    tables: &'a Tables<'a>,
    function: &'a str,
    name: Place,
    /// The versions under which a new site may stand anywhere.
    gates: Vec<Grown>,
    /// The paths of what stands in another scope now: where it was, and where it is.
    moved: Vec<(String, String)>,
    breaks: Vec<Break>,
}

impl Compare<'_> {
    fn push(&mut self, path: &str, place: Option<Place>, text: impl Into<Text>) {
        let accept = format!(
            "or accept it, if no live run is touched: `WORKFLOW_LOCK=write:{}/{path} cargo test`",
            self.function
        );
        self.breaks.push(Break {
            path: path.to_owned(),
            place: place.unwrap_or(self.name),
            text: text.into().or(&accept),
            under: None,
        });
    }

    fn inputs(&mut self, locked: &Section, found: &Section) {
        for input in &found.inputs {
            let same = locked.inputs.iter().find(|old| old.name == input.name);
            let text = match (same, self.renamed_input(locked, found, &input.ty)) {
                (Some(before), _) => {
                    let Some(why) = self.tables.broken(&before.ty, &input.ty) else {
                        continue;
                    };
                    let words = [&*input.name, &*why, &*before.origin.quoted()];
                    messages::LOCK_INPUT_TYPE.with(&words)
                }
                (None, Some(before)) => {
                    let words = [&*input.name, &*before.name, &*before.origin.quoted()];
                    messages::LOCK_INPUT_RENAMED.with(&words)
                }
                (None, None) if is_option(&input.ty) => continue,
                (None, None) => {
                    let at = locked.origin.quoted();
                    messages::LOCK_INPUT_NEW.with(&[&input.name, &at, &input.ty])
                }
            };
            self.push(&input.name, input.origin.place(), text);
        }
    }

    /// The recorded input that a new one of this type may be: it is gone, and can be read as that.
    fn renamed_input<'a>(
        &self,
        locked: &'a Section,
        found: &Section,
        ty: &str,
    ) -> Option<&'a Input> {
        let is_gone = |input: &&Input| found.inputs.iter().all(|now| now.name != input.name);
        let mut gone = locked.inputs.iter().filter(is_gone);
        gone.find(|input| self.tables.broken(&input.ty, ty).is_none())
    }

    /// Sites that stand in another scope now: each is told once, where it is, and not as gone and new.
    fn moved(&mut self, old: &[Part], new: &[Part]) {
        let (old, new) = (all(old), all(new));
        let is_known = |site: &Site| is_head(site) || site.kind == "derived";
        for (from, site) in old.iter().filter(|(_, site)| is_known(site)) {
            let is_elsewhere = |(to, now): &&(String, &Site)| {
                now.name == site.name
                    && alike(&site.kind, &now.kind)
                    && old.iter().all(|(path, _)| path != to)
                    && self.moved.iter().all(|(_, taken)| taken != to)
            };
            if new.iter().any(|(path, _)| path == from) {
                continue;
            }
            let Some((to, now)) = new.iter().find(is_elsewhere) else {
                continue;
            };
            // What stands around it has another name: that is told, and this went along.
            if let (Some((was, around)), Some((is, now))) = (around(from, &old), around(to, &new))
                && old.iter().all(|(path, _)| path != is)
                && new.iter().all(|(path, _)| path != was)
                && around.kind == now.kind
            {
                continue;
            }
            self.moved.push((from.clone(), to.clone()));
            if site.kind == "derived" {
                let text = messages::LOCK_DERIVED.with(&[to, from, &site.origin.quoted()]);
                self.push(to, now.origin.place(), text);
                continue;
            }
            let text = messages::LOCK_MOVED.with(&[
                &site.name,
                &scope_of(from, &site.name),
                &scope_of(to, &site.name),
                &site.origin.quoted(),
                &site.kind,
                &word(&site.name),
            ]);
            self.push(to, now.origin.place(), text);
        }
    }

    /// Whether it was moved out of here, or what stood in it was.
    fn is_moved_from(&self, path: &str) -> bool {
        self.moved.iter().any(|(from, _)| is_in(from, path))
    }

    fn is_moved_to(&self, path: &str) -> bool {
        self.moved.iter().any(|(_, to)| is_in(to, path))
    }

    fn is_gated(&self, entry: &Entry<'_>) -> bool {
        let keeps_out = |choice: &Choice<'_>, grown: &Grown| match (&choice.condition, grown.before)
        {
            (Some(condition), Some(before)) => !condition.lets_in(&grown.path, before),
            _ => true,
        };
        entry.choices.iter().any(|choice| {
            let mut decide = self
                .gates
                .iter()
                .filter(|grown| choice.gates.contains(&grown.path));
            decide.any(|grown| keeps_out(choice, grown))
        })
    }

    fn scope(&mut self, old: &[Entry<'_>], new: &[Entry<'_>], scope: Scope<'_>, prefix: &str) {
        let mut gone: Vec<&Entry<'_>> = Vec::new();
        for entry in old {
            if let Some(now) = standing(new, entry.site) {
                self.pair(entry.site, now.site, new, prefix);
                continue;
            }
            let path = format!("{prefix}{}", entry.site.name);
            if !self.is_moved_from(&path) && self.is_missed(entry, new, prefix) {
                gone.push(entry);
            }
        }
        for entry in old.iter().filter(|entry| entry.site.kind == "derived") {
            self.derived(entry, old, new, prefix);
        }
        // Those that stand where one of the same kind is gone: they were renamed, most likely.
        let mut renamed: Vec<&str> = Vec::new();
        for entry in gone {
            let site = entry.site;
            let path = format!("{prefix}{}", site.name);
            let candidate = new.iter().find(|now| {
                is_new(now, old)
                    && alike(&site.kind, &now.site.kind)
                    && !self.is_gated(now)
                    && !renamed.contains(&now.site.name.as_str())
                    && neighbours(old, entry.order) == neighbours(new, now.order)
            });
            let quoted = site.origin.quoted();
            if let Some(now) = candidate {
                let (name, back) = (&now.site.name, way_back(now.site, &site.name));
                let words = [
                    name,
                    &site.name,
                    &*quoted,
                    &*back,
                    &*site.kind,
                    &*word(&site.name),
                ];
                let text = messages::LOCK_RENAMED.with(&words);
                self.push(&path, now.site.origin.place(), text);
                renamed.push(name);
            } else {
                let text =
                    messages::LOCK_GONE.with(&[&path, &quoted, &word(&site.name), &site.kind]);
                self.push(&path, None, text);
            }
        }
        for entry in new {
            let path = format!("{prefix}{}", entry.site.name);
            let is_told = renamed.contains(&entry.site.name.as_str()) || self.is_moved_to(&path);
            if is_new(entry, old) && !is_told && !self.is_gated(entry) {
                self.added(entry, old, new, scope, &path);
            }
        }
        self.order(old, new, prefix);
    }

    /// A value that is made from its name and scope, which has another now.
    fn derived(&mut self, entry: &Entry<'_>, old: &[Entry<'_>], new: &[Entry<'_>], prefix: &str) {
        let is_unknown = |now: &&Entry<'_>| {
            now.site.kind == "derived" && old.iter().all(|old| old.site.name != now.site.name)
        };
        let from = format!("{prefix}{}", entry.site.name);
        if standing(new, entry.site).is_some() || self.is_moved_from(&from) {
            return;
        }
        let mut instead = new.iter().filter(is_unknown);
        let Some(now) =
            instead.find(|now| neighbours(old, entry.order) == neighbours(new, now.order))
        else {
            return;
        };
        let [path, before] = [now, entry].map(|entry| format!("{prefix}{}", entry.site.name));
        let words = [&*path, &*before, &*entry.site.origin.quoted()];
        let text = messages::LOCK_DERIVED.with(&words);
        self.push(&path, now.site.origin.place(), text);
    }

    /// A new site, which no version keeps from live runs.
    fn added(
        &mut self,
        entry: &Entry<'_>,
        old: &[Entry<'_>],
        new: &[Entry<'_>],
        scope: Scope<'_>,
        path: &str,
    ) {
        let (name, place) = (&entry.site.name, entry.site.origin.place());
        let locked = |later: &Entry<'_>| {
            let mut old = old.iter();
            old.find(|old| is_head(old.site) && old.site.name == later.site.name)
        };
        let mut later = new.iter().filter(|later| entry.can_be_followed_by(later));
        let text = match (later.find_map(locked), scope) {
            (Some(next), _) => {
                let (next, quoted) = (&next.site.name, next.site.origin.quoted());
                messages::LOCK_NEW_BEFORE.with(&[name, next, &quoted, &gate_name(name)])
            }
            (None, Scope::Again(what, line)) => {
                let around = &line.quoted();
                messages::LOCK_NEW_AT_END.with(&[name, what, around, &gate_name(name)])
            }
            (None, Scope::Root) => return,
        };
        let turned = entry.choices.iter().find_map(|choice| {
            let mut grown = self.gates.iter();
            grown.find(|grown| choice.gates.contains(&grown.path))
        });
        let text = match turned {
            Some(Grown {
                path,
                before: Some(before),
            }) => {
                let version = path.rsplit('/').next().unwrap_or_default();
                let numbers = match before {
                    1 => "1".to_owned(),
                    before => format!("1 to {before}"),
                };
                text.or(&format!(
                    "or turn the condition round: `{version}` is {numbers} in live runs, and they come by here"
                ))
            }
            _ => text,
        };
        self.push(path, place, text);
    }

    /// Whether runs would miss a locked site that does not stand here any more.
    fn is_missed(&mut self, entry: &Entry<'_>, new: &[Entry<'_>], prefix: &str) -> bool {
        let site = entry.site;
        if site.cfg.is_some() || !is_head(site) && site.kind != "version" {
            return false;
        }
        let declared = new
            .iter()
            .find(|now| now.site.kind == "removed" && now.site.name == site.name);
        let Some(declared) = declared else {
            return true;
        };
        let was = declared.site.was.as_deref().unwrap_or_default();
        if !alike(&site.kind, was) {
            let path = format!("{prefix}{}", site.name);
            let text = messages::LOCK_REMOVED_KIND.with(&[
                &site.name,
                &site.kind,
                was,
                &site.origin.quoted(),
                &word(&site.name),
            ]);
            self.push(&path, declared.site.origin.place(), text);
        } else if site.has_undo && !declared.site.has_undo {
            let path = format!("{prefix}{}", site.name);
            let quoted = site.origin.quoted();
            let text = messages::LOCK_REMOVED_UNDO.with(&[
                &site.name,
                &quoted,
                &site.kind,
                &word(&site.name),
            ]);
            self.push(&path, declared.site.origin.place(), text);
        }
        false
    }

    /// A site that is there still.
    fn pair(&mut self, old: &Site, new: &Site, all: &[Entry<'_>], prefix: &str) {
        let path = format!("{prefix}{}", new.name);
        let (place, quoted) = (new.origin.place(), old.origin.quoted());
        if old.kind == "removed" {
            let text = messages::LOCK_REUSED.with(&[&new.name, &quoted, &new.kind]);
            return self.push(&path, place, text);
        }
        if !alike(&old.kind, &new.kind) {
            let name = word(&new.name);
            let words = [&*new.name, &*new.kind, &*old.kind, &*quoted, &*name];
            let text = if is_head(old) || old.kind == "version" {
                messages::LOCK_KIND.with(&words)
            } else {
                messages::LOCK_KIND_OF_NONE.with(&words)
            };
            return self.push(&path, place, text);
        }
        if old.cfg.is_none()
            && let Some(under) = left_out(&new.name, all)
        {
            let text = messages::LOCK_CFG.with(&[&new.name, &quoted, &new.kind, &word(&new.name)]);
            self.push(&path, place, text);
            if let Some(told) = self.breaks.last_mut() {
                told.under = Some(under);
            }
        }
        if old.has_undo && !new.has_undo {
            self.push(
                &path,
                place,
                messages::LOCK_UNDO.with(&[&new.name, &quoted]),
            );
        }
        if old.is_keyed != new.is_keyed {
            let (now, before, way) = match (new.is_keyed, new.kind.as_str()) {
                (true, "loop") => ("a key", "a number", "take `#[key]` off"),
                (true, _) => ("a key", "a number", "take `key` off"),
                (false, "loop") => ("a number", "a key", "put `#[key(..)]` back"),
                (false, _) => ("a number", "a key", "put `key = ..` back"),
            };
            let words = [&*new.name, now, before, &*quoted, way, &*new.kind];
            self.push(&path, place, messages::LOCK_KEY.with(&words));
        }
        match (&old.carried, &new.carried) {
            (Some(old), None) => {
                let text = messages::LOCK_CARRY_GONE.with(&[&new.name, &names(old), &quoted]);
                self.push(&path, place, text);
            }
            (Some(old), Some(now)) if names(old) != names(now) => {
                let text =
                    messages::LOCK_CARRY.with(&[&new.name, &names(old), &names(now), &quoted]);
                self.push(&path, place, text);
            }
            (Some(old), Some(now)) => {
                for (old, now) in old.iter().zip(now) {
                    if let (Some(before), Some(ty)) = (&old.ty, &now.ty)
                        && let Some(why) = self.tables.broken(before, ty)
                    {
                        let words = [&*now.name, &*new.name, &*why, &*quoted];
                        let text = messages::LOCK_CARRY_TYPE.with(&words);
                        self.push(&path, now.origin.place(), text);
                    }
                }
            }
            (None, _) => {}
        }
        if let (Some(before), Some(latest)) = (old.latest, new.latest)
            && latest < before
        {
            let (latest, before) = (latest.to_string(), before.to_string());
            let text = messages::LOCK_VERSION_LESS.with(&[&new.name, &latest, &before, &quoted]);
            self.push(&path, place, text);
        }
        if let (Some(before), Some(gives)) = (&old.gives, &new.gives)
            && let Some(why) = self.tables.broken(before, gives)
        {
            let text = messages::LOCK_TYPE.with(&[&new.name, &why, &quoted]);
            self.push(&path, place, text);
        }
        self.bodies(old, new, &path);
    }

    fn bodies(&mut self, old: &Site, new: &Site, path: &str) {
        for body in &old.bodies {
            let now = new.bodies.iter().find(|now| now.branch == body.branch);
            let Some(now) = now else {
                let branch = body.branch.as_deref().unwrap_or_default();
                let path = format!("{path}/{branch}");
                let text = messages::LOCK_BRANCH_GONE.with(&[
                    &new.name,
                    branch,
                    &body.origin.quoted(),
                    &new.kind,
                ]);
                self.push(&path, new.origin.place(), text);
                continue;
            };
            let what = match (new.kind.as_str(), &now.branch) {
                ("loop", _) => "the iteration",
                ("attempt", _) => "the block",
                _ => "the branch",
            };
            let scope = Scope::Again(what, &body.origin);
            let prefix = below(new, path, now.branch.as_deref());
            self.scope(&flat(&body.parts), &flat(&now.parts), scope, &prefix);
        }
        for body in &new.bodies {
            if old.bodies.iter().all(|before| before.branch != body.branch) {
                let branch = body.branch.as_deref().unwrap_or_default();
                let quoted = old.origin.quoted();
                let text = messages::LOCK_BRANCH_NEW.with(&[&new.name, branch, &quoted, &new.kind]);
                self.push(&format!("{path}/{branch}"), body.origin.place(), text);
            }
        }
    }

    /// Sites that could be recorded in an order in which the code does not come by them any more.
    fn order(&mut self, old: &[Entry<'_>], new: &[Entry<'_>], prefix: &str) {
        let both: Vec<(&Entry<'_>, &Entry<'_>)> = old
            .iter()
            .filter(|entry| is_head(entry.site))
            .filter_map(|entry| Some((entry, standing(new, entry.site)?)))
            .collect();
        let mut wrong: Vec<(usize, usize)> = Vec::new();
        for (first, (old_first, new_first)) in both.iter().enumerate() {
            for (second, (old_second, new_second)) in both.iter().enumerate() {
                let could = old_first.can_be_followed_by(old_second);
                let never = !could && !old_second.can_be_followed_by(old_first);
                if could && !new_first.can_be_followed_by(new_second)
                    || never && first != second && new_first.is_always_before(new_second)
                {
                    wrong.push((first, second));
                }
            }
        }
        // The one that stands in most of these pairs is the one that was moved.
        while let Some(&(first, second)) = wrong.first() {
            let in_pairs = |of: usize| wrong.iter().filter(|(a, b)| *a == of || *b == of).count();
            let all = wrong.iter().flat_map(|(a, b)| [*a, *b]);
            let moved = all.max_by_key(|of| in_pairs(*of)).unwrap_or(second);
            let other = if moved == first { second } else { first };
            let (before, now) = both[moved];
            let beside = both[other].0;
            let path = format!("{prefix}{}", now.site.name);
            let relation = if before.can_be_followed_by(beside) {
                "before"
            } else if beside.can_be_followed_by(before) {
                "after"
            } else {
                "in another arm than"
            };
            let text = messages::LOCK_ORDER.with(&[
                &now.site.name,
                relation,
                &beside.site.name,
                &before.site.origin.quoted(),
            ]);
            self.push(&path, now.site.origin.place(), text);
            wrong.retain(|(a, b)| *a != moved && *b != moved);
        }
    }
}

/// Whether an entry leaves a record, and no locked one has its name.
fn is_new(entry: &Entry<'_>, old: &[Entry<'_>]) -> bool {
    is_head(entry.site) && old.iter().all(|old| old.site.name != entry.site.name)
}

/// The condition under which nothing of this name stands in a scope; none if something always does.
fn left_out(name: &str, entries: &[Entry<'_>]) -> Option<String> {
    let named = entries.iter().filter(|entry| entry.site.name == name);
    let conditions: Option<Vec<String>> = named
        .map(|entry| Some(format!("all({})", entry.site.cfg.as_deref()?)))
        .collect();
    Some(format!("not(any({}))", conditions?.join(", ")))
}

/// The locals that are carried, as messages list them.
fn names(carried: &[Carried]) -> String {
    let names: Vec<&str> = carried.iter().map(|local| local.name.as_str()).collect();
    names.join(", ")
}

/// A name as it is written in `removed!`.
fn word(name: &str) -> String {
    if syn::parse_str::<syn::Ident>(name).is_ok() {
        return name.to_owned();
    }
    let raw = format!("r#{name}");
    match syn::parse_str::<syn::Ident>(&raw) {
        Ok(_) => raw,
        Err(_) => format!("\"{name}\""),
    }
}

/// How a site gets its old name back.
fn way_back(site: &Site, name: &str) -> String {
    match site.kind.as_str() {
        "call" | "step" | "fragment" | "child" => {
            format!("`#[step(name = \"{name}\")]` on the statement")
        }
        "loop" => format!("the label `'{name}`"),
        kind => format!("`{kind}!({}, ..)`", word(name)),
    }
}

/// A name for a `version!` that lets a new site in.
fn gate_name(site: &str) -> String {
    format!("with_{}", site.replace('-', "_"))
}
