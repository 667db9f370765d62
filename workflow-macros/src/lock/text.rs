//! The text of a lock, written and read.
//!
//! One thing a line, so that two people's additions merge; two spaces a level. What follows a site's kind and name is said
//! by words in a fixed order, and `->` begins the type, which goes to the end of its line.

use std::fmt::Write;

use super::tree::{Body, Carried, Input, Item, Origin, Part, Section, Site};
use super::types::{Member, Shape, TypeDef};

/// What this writes. A lock that says a higher number was written by a later version of this library.
const VERSION: u32 = 1;

const HEAD: &str = "\
# What live runs may stand on. `#[workflow]` compares it with the code whenever it is compiled.
# Written by `WORKFLOW_LOCK=write cargo test`, from `workflow::lock!()` in a test; commit it.
";

/// A lock file.
#[derive(Debug, Default)]
pub(crate) struct Lock {
    /// The directories and files that were read, from the package's.
    pub(crate) roots: Vec<String>,
    pub(crate) sections: Vec<Section>,
    pub(crate) types: Vec<TypeDef>,
}

/// A line of a lock that cannot be read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unreadable {
    /// From 1.
    pub(crate) line: usize,
    pub(crate) why: String,
}

impl Lock {
    pub(crate) fn section(&self, item: Item, name: &str) -> Option<&Section> {
        let mut sections = self.sections.iter();
        sections.find(|section| section.item == item && section.name == name)
    }

    pub(crate) fn print(&self) -> String {
        let mut text = format!("{HEAD}version {VERSION}\n");
        for root in &self.roots {
            let _ = writeln!(text, "source {root}");
        }
        for section in &self.sections {
            let _ = write!(text, "\n{} {}\n", section.item.word(), section.name);
            for input in &section.inputs {
                let _ = writeln!(text, "  input {}: {}", input.name, input.ty);
            }
            print_parts(&section.parts, 1, &mut text);
        }
        for defined in &self.types {
            let _ = write!(text, "\ntype {}", defined.name);
            if !defined.serde.is_empty() {
                let _ = write!(text, " serde({})", defined.serde.join(", "));
            }
            match &defined.shape {
                Shape::Alias(target) => {
                    let _ = writeln!(text, " = {target}");
                }
                Shape::Struct(members) => {
                    text.push('\n');
                    for member in members {
                        let _ = writeln!(text, "  {}", member.print());
                    }
                }
                Shape::Tuple(types) => {
                    let _ = writeln!(text, "({})", types.join(", "));
                }
                Shape::Unit => text.push_str("()\n"),
                Shape::Enum(variants) => {
                    text.push('\n');
                    for variant in variants {
                        let _ = writeln!(text, "  | {}", variant.print());
                    }
                }
            }
        }
        text
    }
}

fn print_parts(parts: &[Part], depth: usize, text: &mut String) {
    let pad = |depth: usize| "  ".repeat(depth);
    for part in parts {
        match part {
            Part::Leaves => {
                let _ = writeln!(text, "{}leaves", pad(depth));
            }
            Part::Choice { gates, arms, .. } => {
                let _ = write!(text, "{}choice", pad(depth));
                if !gates.is_empty() {
                    let _ = write!(text, " by {}", gates.join(", "));
                }
                text.push('\n');
                for arm in arms {
                    let _ = writeln!(text, "{}arm", pad(depth + 1));
                    print_parts(arm, depth + 2, text);
                }
            }
            Part::Site(site) => {
                let _ = write!(text, "{}", pad(depth));
                print_site(site, text);
                let carries = site.carried.as_deref().and_then(carried_types);
                if let Some(gives) = site.gives.as_ref().or(carries.as_ref()) {
                    let _ = write!(text, " -> {gives}");
                }
                text.push('\n');
                for body in &site.bodies {
                    let Some(branch) = &body.branch else {
                        print_parts(&body.parts, depth + 1, text);
                        continue;
                    };
                    let _ = writeln!(text, "{}branch {branch}", pad(depth + 1));
                    print_parts(&body.parts, depth + 2, text);
                }
            }
        }
    }
}

/// The type of what a loop carries, `_` where it is not known; nothing where nothing is.
fn carried_types(carried: &[Carried]) -> Option<String> {
    carried.iter().find(|local| local.ty.is_some())?;
    let types = carried.iter();
    let types: Vec<&str> = types
        .map(|local| local.ty.as_deref().unwrap_or("_"))
        .collect();
    Some(match types.as_slice() {
        [only] => (*only).to_owned(),
        types => format!("({})", types.join(", ")),
    })
}

/// A site in its line, without its type.
pub(super) fn print_site(site: &Site, text: &mut String) {
    let _ = write!(text, "{} {}", site.kind, site.name);
    let mut say = |word: &str, value: &Option<String>| {
        if let Some(value) = value {
            let _ = write!(text, " {word} {value}");
        }
    };
    say("of", &site.of);
    let channels = (!site.channels.is_empty()).then(|| site.channels.join(","));
    say("on", &channels);
    say("carry", &site.carried.as_deref().map(names));
    say("latest", &site.latest.map(|latest| latest.to_string()));
    say("was", &site.was);
    say("to", &site.to);
    if site.has_undo {
        text.push_str(" undo");
    }
    if site.is_keyed {
        text.push_str(" keyed");
    }
    if let Some(cfg) = &site.cfg {
        let _ = write!(text, " cfg({cfg})");
    }
}

fn names(carried: &[Carried]) -> String {
    let names: Vec<&str> = carried.iter().map(|local| local.name.as_str()).collect();
    names.join(",")
}

/// A line with what is indented under it.
struct Line<'a> {
    number: usize,
    text: &'a str,
    under: Vec<Line<'a>>,
}

impl Line<'_> {
    fn wrong(&self, why: impl Into<String>) -> Unreadable {
        Unreadable {
            line: self.number,
            why: why.into(),
        }
    }

    fn origin(&self) -> Origin {
        Origin::Lock(self.number, self.text.to_owned())
    }
}

impl Lock {
    /// # Errors
    /// With the first line that cannot be read.
    pub(crate) fn parse(text: &str) -> Result<Self, Unreadable> {
        // An editor may have put a mark at its beginning.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut lines = nested(text)?.into_iter();
        let first = lines.next().ok_or(Unreadable {
            line: 1,
            why: "it is empty".to_owned(),
        })?;
        let version = first.text.strip_prefix("version ");
        match version.and_then(|number| number.trim().parse::<u32>().ok()) {
            None => return Err(first.wrong("it does not begin with `version 1`")),
            Some(version) if version > VERSION => {
                return Err(first.wrong("it was written by a later version of `workflow`"));
            }
            Some(_) => {}
        }
        let mut lock = Self::default();
        for line in lines {
            let (word, rest) = line.text.split_once(' ').unwrap_or((line.text, ""));
            let item = match word {
                "source" => {
                    lock.roots.push(rest.to_owned());
                    continue;
                }
                "workflow" => Item::Workflow,
                "fragment" => Item::Fragment,
                "guided" => Item::Guided,
                "type" => {
                    let defined = read_type(&line, rest)?;
                    let mut types = lock.types.iter();
                    if let Some(before) = types.find(|before| before.name == defined.name) {
                        let (name, first) = (&defined.name, before.line);
                        return Err(
                            line.wrong(format!("`{name}` has a section already, in line {first}"))
                        );
                    }
                    lock.types.push(defined);
                    continue;
                }
                _ => {
                    return Err(line.wrong(
                        "a section begins with `workflow`, `fragment`, `guided` or `type`",
                    ));
                }
            };
            if rest.is_empty() {
                return Err(line.wrong("a name is missing"));
            }
            if let Some(before) = lock.section(item, rest) {
                let Origin::Lock(first, _) = &before.origin else {
                    continue;
                };
                return Err(line.wrong(format!("`{rest}` has a section already, in line {first}")));
            }
            let mut inputs = Vec::new();
            let mut body = Vec::new();
            for under in &line.under {
                match under.text.strip_prefix("input ") {
                    Some(input) => {
                        let (name, ty) = input
                            .split_once(": ")
                            .ok_or_else(|| under.wrong("an input is `input name: Type`"))?;
                        inputs.push(Input {
                            name: name.to_owned(),
                            ty: ty.to_owned(),
                            origin: under.origin(),
                        });
                    }
                    None => body.push(under),
                }
            }
            lock.sections.push(Section {
                item,
                name: rest.to_owned(),
                inputs,
                parts: read_parts(body.into_iter())?,
                origin: line.origin(),
            });
        }
        Ok(lock)
    }
}

/// Ends the lines that stand open at this level and below.
fn close<'a>(open: &mut Vec<Line<'a>>, ended: &mut Vec<Line<'a>>, to: usize) {
    while open.len() > to {
        let Some(line) = open.pop() else { break };
        match open.last_mut() {
            Some(around) => around.under.push(line),
            None => ended.push(line),
        }
    }
}

/// How deep types may stand in each other: they are read by going into them.
const DEEP: usize = 100;

/// How many brackets are open at most.
fn deepest(text: &str) -> usize {
    let (mut open, mut deepest) = (0_usize, 0);
    for char in text.chars() {
        match char {
            '(' | '[' | '<' | '{' => open += 1,
            ')' | ']' | '>' | '}' => open = open.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(open);
    }
    deepest
}

/// The lines that say something, each with those that are indented under it.
fn nested(text: &str) -> Result<Vec<Line<'_>>, Unreadable> {
    // The line that stands open at each level, and all that ended at level 0.
    let mut open: Vec<Line<'_>> = Vec::new();
    let mut ended = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        let said = line.trim();
        if ["<<<<<<<", "|||||||", "=======", ">>>>>>>"]
            .iter()
            .any(|mark| said.starts_with(mark))
        {
            let why = "a merge was not finished here".to_owned();
            return Err(Unreadable { line: number, why });
        }
        if said.is_empty() || said.starts_with('#') {
            continue;
        }
        let spaces = line.len() - line.trim_start().len();
        let depth = spaces / 2;
        if spaces % 2 != 0
            || line.trim_start().len() != line.trim_start_matches(' ').len()
            || depth > open.len()
            || depth > 2 * DEEP
        {
            let why = "two spaces indent by a level".to_owned();
            return Err(Unreadable { line: number, why });
        }
        if deepest(said) > DEEP {
            let why = "nothing is nested as deep as this".to_owned();
            return Err(Unreadable { line: number, why });
        }
        close(&mut open, &mut ended, depth);
        open.push(Line {
            number,
            text: said,
            under: Vec::new(),
        });
    }
    close(&mut open, &mut ended, 0);
    Ok(ended)
}

fn read_parts<'a>(lines: impl Iterator<Item = &'a Line<'a>>) -> Result<Vec<Part>, Unreadable> {
    let mut parts = Vec::new();
    for line in lines {
        let (word, rest) = line.text.split_once(' ').unwrap_or((line.text, ""));
        parts.push(match word {
            "leaves" => Part::Leaves,
            "choice" => {
                let gates = rest.strip_prefix("by ").unwrap_or_default();
                let mut arms = Vec::new();
                for arm in &line.under {
                    if arm.text != "arm" {
                        return Err(arm.wrong("under a `choice` stand only `arm`s"));
                    }
                    arms.push(read_parts(arm.under.iter())?);
                }
                Part::Choice {
                    gates: list(gates),
                    arms,
                    conditions: Vec::new(),
                }
            }
            _ => Part::Site(Box::new(read_site(line, word, rest)?)),
        });
    }
    Ok(parts)
}

fn list(text: &str) -> Vec<String> {
    text.split(',')
        .map(|word| word.trim().to_owned())
        .filter(|word| !word.is_empty())
        .collect()
}

fn read_site(line: &Line<'_>, kind: &str, rest: &str) -> Result<Site, Unreadable> {
    if !super::KINDS.contains(&kind) {
        return Err(line.wrong(format!("`{kind}` is no kind of site")));
    }
    let (rest, gives) = match rest.split_once(" -> ") {
        Some((rest, gives)) => (rest, Some(gives.to_owned())),
        None => (rest, None),
    };
    let (rest, cfg) = match rest.split_once(" cfg(") {
        Some((rest, cfg)) => {
            let cfg = cfg.strip_suffix(')');
            let cfg = cfg.ok_or_else(|| line.wrong("a `)` is missing after `cfg(`"))?;
            (rest, Some(cfg.to_owned()))
        }
        None => (rest, None),
    };
    let mut words = rest.split(' ').filter(|word| !word.is_empty());
    let name = words
        .next()
        .ok_or_else(|| line.wrong("a name is missing"))?
        .to_owned();
    let mut site = Site {
        kind: kind.to_owned(),
        name,
        gives,
        of: None,
        channels: Vec::new(),
        has_undo: false,
        is_keyed: false,
        carried: None,
        latest: None,
        was: None,
        to: None,
        cfg,
        bodies: Vec::new(),
        origin: line.origin(),
    };
    while let Some(word) = words.next() {
        if word == "undo" {
            site.has_undo = true;
            continue;
        }
        if word == "keyed" {
            site.is_keyed = true;
            continue;
        }
        let value = words
            .next()
            .ok_or_else(|| line.wrong(format!("nothing follows `{word}`")))?;
        match word {
            "of" => site.of = Some(value.to_owned()),
            "on" => site.channels = list(value),
            "carry" => site.carried = Some(read_carried(line, value, site.gives.take())?),
            "latest" => {
                let latest = value.parse();
                site.latest = Some(latest.map_err(|_| line.wrong("`latest` is a number"))?);
            }
            "was" => site.was = Some(value.to_owned()),
            "to" => site.to = Some(value.to_owned()),
            _ => return Err(line.wrong(format!("`{word}` is not said of a site"))),
        }
    }
    let is_branch = |line: &&Line<'_>| line.text.starts_with("branch ");
    for branch in line.under.iter().filter(is_branch) {
        site.bodies.push(Body {
            branch: branch.text.strip_prefix("branch ").map(str::to_owned),
            parts: read_parts(branch.under.iter())?,
            origin: branch.origin(),
        });
    }
    if matches!(kind, "loop" | "attempt" | "join_all") {
        site.bodies.push(Body {
            branch: None,
            parts: read_parts(line.under.iter())?,
            origin: line.origin(),
        });
    } else if let Some(stray) = line.under.iter().find(|line| !is_branch(line)) {
        return Err(stray.wrong(format!("under a `{kind}` stand only `branch`es")));
    }
    Ok(site)
}

fn read_carried(
    line: &Line<'_>,
    names: &str,
    types: Option<String>,
) -> Result<Vec<Carried>, Unreadable> {
    let names = list(names);
    let types = match (types, names.len()) {
        (None, many) => vec!["_".to_owned(); many],
        (Some(only), 1) => vec![only],
        (Some(types), _) => {
            let inner = types
                .strip_prefix('(')
                .and_then(|types| types.strip_suffix(')'));
            super::types::split(inner.unwrap_or_default())
        }
    };
    if types.len() != names.len() {
        return Err(line.wrong("there is not one type for each local that is carried"));
    }
    let both = names.into_iter().zip(types);
    Ok(both
        .map(|(name, ty)| Carried {
            name,
            ty: (ty != "_").then_some(ty),
            origin: line.origin(),
        })
        .collect())
}

fn read_type(line: &Line<'_>, rest: &str) -> Result<TypeDef, Unreadable> {
    let (rest, target) = match rest.split_once(" = ") {
        Some((rest, target)) => (rest, Some(target)),
        None => (rest, None),
    };
    let (name, after) = match rest.find([' ', '(']) {
        Some(at) => rest.split_at(at),
        None => (rest, ""),
    };
    let (serde, after) = match after.trim_start().strip_prefix("serde(") {
        Some(after) => {
            let end = super::types::closing(after)
                .ok_or_else(|| line.wrong("a `)` is missing after `serde(`"))?;
            (super::types::split(&after[..end]), &after[end + 1..])
        }
        None => (Vec::new(), after),
    };
    let read = |under: &Line<'_>, text: &str| {
        Member::read(text).ok_or_else(|| under.wrong("a member is `name: Type`"))
    };
    let shape = if let Some(target) = target {
        Shape::Alias(target.to_owned())
    } else if let Some(types) = after.trim().strip_prefix('(') {
        let types = types.strip_suffix(')');
        let types = types.ok_or_else(|| line.wrong("a `)` is missing"))?;
        if types.is_empty() {
            Shape::Unit
        } else {
            Shape::Tuple(super::types::split(types))
        }
    } else if line.under.iter().any(|under| under.text.starts_with("| ")) {
        let variants = line.under.iter().map(|under| {
            let text = under.text.strip_prefix("| ");
            let text = text.ok_or_else(|| under.wrong("a variant begins with `|`"))?;
            super::types::Variant::read(text).ok_or_else(|| under.wrong("this is no variant"))
        });
        Shape::Enum(variants.collect::<Result<_, _>>()?)
    } else {
        let members = line.under.iter().map(|under| read(under, under.text));
        Shape::Struct(members.collect::<Result<_, _>>()?)
    };
    Ok(TypeDef {
        name: name.to_owned(),
        serde,
        shape,
        line: line.number,
    })
}
