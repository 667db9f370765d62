//! What the lock says of one function: an indented tree, one site a line.

use syn::Attribute;

use super::types::DETACHED;
use crate::diagnostics::Place;
use crate::model::{self, Condition, Details, Hint, Jump, Kind, Walked, has_site, name};

/// A function that is locked.
#[derive(Debug)]
pub(crate) struct Section {
    pub(crate) item: Item,
    /// A workflow's name in the store, or the fragment's own.
    pub(crate) name: String,
    pub(crate) inputs: Vec<Input>,
    pub(crate) parts: Vec<Part>,
    pub(crate) origin: Origin,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Item {
    Workflow,
    Fragment,
    /// A flow that a person is led through: its stages are its parts, and its data is its input.
    Guided,
}

impl Item {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Workflow => "workflow",
            Self::Fragment => "fragment",
            Self::Guided => "guided",
        }
    }
}

/// A parameter that is recorded.
#[derive(Debug)]
pub(crate) struct Input {
    pub(crate) name: String,
    pub(crate) ty: String,
    pub(crate) origin: Origin,
}

/// A part of a body, as [`model::Part`], but whole.
#[derive(Debug)]
pub(crate) enum Part {
    Site(Box<Site>),
    Choice {
        gates: Vec<String>,
        arms: Vec<Vec<Part>>,
        /// When each arm is taken, in the code.
        conditions: Vec<Condition>,
    },
    Leaves,
}

#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) kind: String,
    pub(crate) name: String,
    /// The type of what is recorded, where that can be read.
    pub(crate) gives: Option<String>,
    /// What is called, where that is not its name.
    pub(crate) of: Option<String>,
    pub(crate) channels: Vec<String>,
    pub(crate) has_undo: bool,
    /// Its iterations or items are known by keys, and not by numbers.
    pub(crate) is_keyed: bool,
    pub(crate) carried: Option<Vec<Carried>>,
    pub(crate) latest: Option<u32>,
    pub(crate) was: Option<String>,
    pub(crate) to: Option<String>,
    pub(crate) cfg: Option<String>,
    pub(crate) bodies: Vec<Body>,
    pub(crate) origin: Origin,
}

/// A local that a loop carries.
#[derive(Debug)]
pub(crate) struct Carried {
    pub(crate) name: String,
    /// Where that can be read.
    pub(crate) ty: Option<String>,
    pub(crate) origin: Origin,
}

#[derive(Debug)]
pub(crate) struct Body {
    pub(crate) branch: Option<String>,
    pub(crate) parts: Vec<Part>,
    pub(crate) origin: Origin,
}

/// Where something is written.
#[derive(Debug, Clone)]
pub(crate) enum Origin {
    /// In the code that is being compiled.
    Code(Place),
    /// In a line of the lock, from 1, and its text.
    Lock(usize, String),
}

impl Origin {
    pub(crate) fn place(&self) -> Option<Place> {
        match self {
            Self::Code(place) => Some(*place),
            Self::Lock(..) => None,
        }
    }

    /// As messages quote it: `` workflow.lock:12: `step reserve -> Hold` ``.
    pub(crate) fn quoted(&self) -> String {
        match self {
            Self::Code(place) => place.described().unwrap_or_default(),
            Self::Lock(line, text) => format!("{}:{line}: `{}`", super::FILE, text.trim()),
        }
    }
}

/// What only another file tells of types.
pub(crate) trait Types {
    /// The type that a call of this path gives.
    fn of_call(&self, path: &str) -> Option<String>;
    /// What a call of this path is: `step`, `fragment` or `child`.
    fn kind_of_call(&self, path: &str) -> Option<&'static str>;
    /// The type of this channel's messages.
    fn of_channel(&self, path: &str) -> Option<String>;
    /// The type that a function returns: `start`, `Cursor::new`; or the `T` of the `Result<T>` that it does.
    fn of_function(&self, path: &str, is_tried: bool) -> Option<String>;
    /// The type that is made by this path: a struct, or the enum of a variant.
    fn of_made(&self, path: &str) -> Option<String>;
}

/// No other file is looked at.
pub(crate) struct Unseen;

impl Types for Unseen {
    fn of_call(&self, _: &str) -> Option<String> {
        None
    }

    fn kind_of_call(&self, _: &str) -> Option<&'static str> {
        None
    }

    fn of_channel(&self, _: &str) -> Option<String> {
        None
    }

    fn of_function(&self, _: &str, _: bool) -> Option<String> {
        None
    }

    fn of_made(&self, _: &str) -> Option<String> {
        None
    }
}

/// The type that a hint leads to.
fn hinted(hint: &Hint, types: &dyn Types) -> Option<String> {
    match hint {
        Hint::Type(text) => Some(text.clone()),
        Hint::Call(path) => types.of_call(path),
        Hint::Function { path, is_tried } => types.of_function(path, *is_tried),
        Hint::Made(path) => types.of_made(path),
        Hint::Of(head, list) => {
            let list: Option<Vec<_>> = list.iter().map(|hint| hinted(hint, types)).collect();
            let list = list?.join(", ");
            Some(match *head {
                "()" => format!("({list})"),
                head => format!("{head}<{list}>"),
            })
        }
    }
}

/// The body of a function that was walked.
pub(crate) fn parts(walked: &Walked, outline: &[model::Part], types: &dyn Types) -> Vec<Part> {
    parts_in(walked, outline, types, &mut Vec::new())
}

/// The same, within these loops.
fn parts_in(
    walked: &Walked,
    outline: &[model::Part],
    types: &dyn Types,
    loops: &mut Vec<String>,
) -> Vec<Part> {
    let mut part = |part: &model::Part| match part {
        // It may leave a block, and what stands after that goes on.
        model::Part::Leaves(Jump::Break(Some(label))) if !loops.contains(label) => None,
        model::Part::Leaves(_) => Some(Part::Leaves),
        // What is recorded does not tell which arm was taken, where none records anything; a version does.
        model::Part::Choice { arms, gates, .. }
            if gates.is_empty() && !arms.iter().any(|arm| has_site(arm)) =>
        {
            None
        }
        model::Part::Choice {
            gates,
            arms,
            conditions,
        } => {
            let arms = arms.iter();
            let arms = arms.map(|arm| parts_in(walked, arm, types, loops));
            Some(Part::Choice {
                gates: gates.clone(),
                arms: arms.collect(),
                conditions: conditions.clone(),
            })
        }
        model::Part::Site { index, bodies } => {
            let site = site(walked, *index, bodies, types, loops);
            Some(Part::Site(Box::new(site)))
        }
    };
    outline.iter().filter_map(&mut part).collect()
}

pub(super) fn site(
    walked: &Walked,
    index: usize,
    bodies: &[model::Body],
    types: &dyn Types,
    loops: &mut Vec<String>,
) -> Site {
    let found = &walked.sites[index];
    let Details {
        calls,
        gives,
        channels,
        carried,
        is_keyed,
        is_detached,
        is_endless: _,
        latest,
        was,
        to,
        branches,
    } = &found.details;
    let gives = gives.clone().or_else(|| match (found.kind, calls) {
        _ if *is_detached => Some(DETACHED.to_owned()),
        (Kind::Call | Kind::Step, Some(path)) => types.of_call(path),
        (Kind::Recv, _) => types.of_channel(channels.first()?),
        _ => None,
    });
    let of = calls.as_ref().and_then(|path| {
        let last = path.rsplit([':', '.']).next()?;
        (last != found.name).then(|| last.to_owned())
    });
    if found.kind == Kind::Loop {
        loops.push(found.name.clone());
    }
    let bodies = bodies.iter().map(|body| {
        let named = branches
            .iter()
            .find(|(name, _)| Some(name) == body.branch.as_ref());
        Body {
            branch: body.branch.clone(),
            parts: parts_in(walked, &body.parts, types, loops),
            origin: Origin::Code(named.map_or(found.place, |(_, place)| *place)),
        }
    });
    let kind = match (found.kind, calls) {
        (Kind::Call, Some(path)) => types.kind_of_call(path),
        // What is only given another name by `#[step(name = ..)]` is what it was. A method may be another of that name.
        (Kind::Step, Some(path)) => match types.kind_of_call(path) {
            Some("fragment" | "child") if path.starts_with('.') => Some("call"),
            kind => kind,
        },
        _ => None,
    };
    let bodies: Vec<Body> = bodies.collect();
    if found.kind == Kind::Loop {
        loops.pop();
    }
    Site {
        kind: kind.unwrap_or(found.kind.word()).to_owned(),
        name: found.name.clone(),
        gives,
        of,
        channels: channels.clone(),
        has_undo: walked.undos.iter().any(|undo| undo.path == found.path),
        is_keyed: *is_keyed,
        carried: carried.as_ref().map(|carried| {
            let carried = carried.iter().map(|local| Carried {
                name: local.name.clone(),
                ty: local.ty.as_ref().and_then(|hint| hinted(hint, types)),
                origin: Origin::Code(local.place),
            });
            carried.collect()
        }),
        latest: *latest,
        was: was.map(str::to_owned),
        to: to.clone(),
        cfg: condition(&found.cfg),
        bodies,
        origin: Origin::Code(found.place),
    }
}

/// The conditions of a site as text: `feature="gifts"`.
fn condition(cfg: &[Attribute]) -> Option<String> {
    let texts: Vec<String> = cfg
        .iter()
        .filter_map(|attr| match &attr.meta {
            syn::Meta::List(list) => Some(name::type_text(&list.tokens)),
            _ => None,
        })
        .collect();
    (!texts.is_empty()).then(|| texts.join(", "))
}
