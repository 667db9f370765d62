//! Scopes: in each, every name is used once.

use proc_macro2::{Span, TokenStream};
use syn::Attribute;

use super::outline::Outline;
use super::walk::Own;
use super::{Details, Kind, Site};
use crate::diagnostics::{Errors, Place, Report};
use crate::messages;

/// The scopes around the place that is being looked at, the innermost last, and the sites found so far.
pub(super) struct Scopes {
    open: Vec<Scope>,
    pub(super) sites: Vec<Site>,
    pub(super) outline: Outline,
    /// Where two sites under different conditions share a name: the compiler has to check that only one is there.
    shared: Option<Place>,
    /// A name was reported as used twice, so that check would only follow.
    twice: bool,
}

#[derive(Default)]
struct Scope {
    prefix: String,
    /// Indexes into the sites.
    named: Vec<usize>,
    /// What it says is removed: statements for its beginning.
    removed: Vec<TokenStream>,
}

impl Scopes {
    pub(super) fn new() -> Self {
        Self {
            open: vec![Scope::default()],
            sites: Vec::new(),
            outline: Outline::new(),
            shared: None,
            twice: false,
        }
    }

    pub(super) fn enter(&mut self, prefix: String) {
        self.outline.open();
        self.open.push(Scope {
            prefix,
            ..Scope::default()
        });
    }

    /// Leaves the innermost scope, which is a body of the site at `of`; gives the statements for its beginning.
    pub(super) fn leave(&mut self, of: usize, branch: Option<String>) -> Vec<TokenStream> {
        let parts = self.outline.close();
        self.outline.body(of, branch, parts);
        self.open
            .pop()
            .map(|scope| scope.removed)
            .unwrap_or_default()
    }

    /// Leaves the outermost scope; gives the statements for its beginning.
    pub(super) fn end(&mut self) -> Vec<TokenStream> {
        self.open
            .pop()
            .map(|scope| scope.removed)
            .unwrap_or_default()
    }

    /// The site that the next one will be.
    pub(super) fn next(&self) -> usize {
        self.sites.len()
    }

    /// The site that was found last.
    pub(super) fn details(&mut self) -> Option<&mut Details> {
        self.sites.last_mut().map(|site| &mut site.details)
    }

    /// Says something at the beginning of the innermost scope.
    pub(super) fn declare(&mut self, statement: TokenStream) {
        if let Some(scope) = self.open.last_mut() {
            scope.removed.push(statement);
        }
    }

    /// Where two sites share a name, if only the compiler can tell whether both are there.
    pub(super) fn unsettled(&self) -> Option<Place> {
        self.shared.filter(|_| !self.twice)
    }

    /// The path of a name in the innermost scope.
    pub(super) fn path(&self, name: &str) -> String {
        let prefix = self.open.last().map_or("", |scope| scope.prefix.as_str());
        format!("{prefix}{name}")
    }

    /// A site with this name stands here. Its index.
    pub(super) fn add(
        &mut self,
        name: String,
        kind: Kind,
        place: Place,
        cfg: &[Attribute],
        errors: &mut Errors,
    ) -> usize {
        let path = self.path(&name);
        let index = self.sites.len();
        self.check_unused(&name, kind, place, cfg, errors);
        self.sites.push(Site {
            name,
            kind,
            path,
            place,
            cfg: cfg.to_vec(),
            details: Details::default(),
        });
        self.outline.site(index);
        if let Some(scope) = self.open.last_mut() {
            scope.named.push(index);
        }
        index
    }

    /// In one scope every name is used once.
    fn check_unused(
        &mut self,
        name: &str,
        kind: Kind,
        place: Place,
        cfg: &[Attribute],
        errors: &mut Errors,
    ) {
        let named = self.open.last().into_iter().flat_map(|scope| &scope.named);
        let same: Vec<&Site> = named
            .map(|&at| &self.sites[at])
            .filter(|site| site.name == name)
            .collect();
        let Some(first) = same.iter().find(|site| !tell_apart(&site.cfg, cfg)) else {
            if !same.is_empty() {
                self.shared = Some(place);
            }
            return;
        };
        let at = first.place.described();
        let at = at.map(|at| format!("; first at {at}")).unwrap_or_default();
        let text = messages::NAME_TWICE.with(&[name, &at, &way_out(name, first.kind, kind)]);
        errors.push(first.place.to(place), text);
        self.twice = true;
    }
}

/// How to give one of two sites another name.
fn way_out(name: &str, first: Kind, second: Kind) -> String {
    match (first, second) {
        (Kind::Loop, Kind::Loop) => "give each loop its own label".to_owned(),
        (_, Kind::Call | Kind::Step) | (Kind::Call | Kind::Step, _) => format!(
            "give one of them a name of its own: `#[step(name = \"{name}_again\")]` on the statement"
        ),
        _ => format!("begin one of them with another word, such as `{name}_again`"),
    }
}

/// Whether two sites may both be written because at most one of them is compiled: each stands under a condition, and
/// not under the same one. The expansion asserts the rest.
fn tell_apart(first: &[Attribute], second: &[Attribute]) -> bool {
    let shown = |cfg: &[Attribute]| {
        cfg.iter()
            .map(|attr| quote::quote!(#attr).to_string())
            .collect::<Vec<_>>()
    };
    !first.is_empty() && !second.is_empty() && shown(first) != shown(second)
}

/// What a `break` or `return` has to get through.
pub(super) enum Frame {
    /// A loop or a labelled block.
    Loop(Option<String>),
    /// A branch or a step: a future of its own. As it is called in messages, and what is bound in it.
    Branch(&'static str, Own),
    /// An `attempt!`: a future of its own too, but one that may change what is outside.
    Attempt,
    /// A carried loop: the locals that it uses, and carries or not.
    Carried(Names),
    /// A closure or an async block: `return` and `break` end there.
    Apart,
}

/// The locals of a carried loop.
pub(crate) struct Names {
    /// As they are listed.
    pub(crate) carried: Vec<String>,
    /// Those that it uses beside them.
    pub(crate) held: Vec<String>,
}

/// The frames around the place that is being looked at.
#[derive(Default)]
pub(super) struct Frames(pub(super) Vec<Frame>);

impl Frames {
    /// What is wrong with a `return` here.
    pub(super) fn check_return(&self, place: Span) -> Option<Report> {
        for frame in self.0.iter().rev() {
            match frame {
                Frame::Loop(_) | Frame::Carried(_) => {}
                Frame::Branch(what, _) => {
                    return Some(Report::new(place, messages::RETURN_IN_BRANCH.with(&[what])));
                }
                Frame::Attempt => return Some(Report::new(place, messages::RETURN_IN_ATTEMPT)),
                Frame::Apart => return None,
            }
        }
        None
    }

    /// What is wrong with a `break` or `continue` here.
    pub(super) fn check_break(
        &self,
        word: &str,
        label: Option<&str>,
        place: Place,
    ) -> Option<Report> {
        for frame in self.0.iter().rev() {
            match frame {
                Frame::Loop(of) if label.is_none() || of.as_deref() == label => return None,
                Frame::Loop(_) | Frame::Carried(_) => {}
                Frame::Branch(what, _) => {
                    let text = messages::BREAK_IN_BRANCH.with(&[what, word]);
                    return Some(Report::new(place, text));
                }
                Frame::Attempt => {
                    return Some(Report::new(place, messages::BREAK_IN_ATTEMPT.with(&[word])));
                }
                Frame::Apart => return None,
            }
        }
        None
    }
}
