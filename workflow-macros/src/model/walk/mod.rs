//! Walks a body once: finds its sites, checks the rules, and puts in place of each site what it expands to.

mod arms;
mod attempt;
mod awaits;
mod branches;
mod captures;
mod carry;
mod foreign;
mod jumps;
mod loops;
mod macros;
mod mail;
mod nested;
mod statements;
mod steps;
mod versions;

use std::collections::HashMap;

use proc_macro2::{Ident, TokenStream};
use syn::visit_mut::{self, VisitMut};
use syn::{Attribute, Block, Expr, Item, Macro, Signature, Stmt};

pub(super) use self::captures::Own;
use self::foreign::words;
use super::hints::{self, Bound, Generics};
use super::scope::{Frame, Frames, Scopes};
use super::{Kind, Part, Site, duration, name, rules};
use crate::diagnostics::{Errors, Place};
use crate::expand::site as print;
use crate::messages::{self, Text};
use crate::syntax::{Durable, Mark, attributes, strip, ungroup};

/// What came of a walk, beside the body that was rewritten in place.
pub(crate) struct Walked {
    pub(crate) sites: Vec<Site>,
    /// How they stand in each other and follow each other.
    pub(crate) outline: Vec<Part>,
    pub(crate) undos: Vec<Undo>,
    /// Where two of them share a path under different conditions.
    pub(crate) shared_name: Option<Place>,
    /// Something was reported, so what the compiler finds unused may be so because of that.
    pub(crate) is_faulty: bool,
}

/// The undo of a step.
pub(crate) struct Undo {
    /// The path of its site.
    pub(crate) path: String,
    pub(crate) handler: Expr,
    pub(crate) cfg: Vec<Attribute>,
}

/// Whose the undos of a body's steps are.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Undos {
    /// The workflow's own.
    Own,
    /// The guided flow's whose stage it is.
    OfFlow,
    /// Nobody's: they may not stand there, and why.
    Refused(messages::Message),
}

/// What is particular about a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Given {
    /// The engine gives it: it may be used only where something durable is done.
    State,
    /// It is a `&mut`: whoever it is passed on to changes what is outside.
    Lent,
    /// It is a map or set of this type, which has another order on every replay.
    Unordered(&'static str),
}

/// Walks the body of a function. `given` are the parameters about which something is particular; `krate` is the path of the library.
pub(crate) fn walk(
    body: &mut Block,
    sig: &Signature,
    given: Vec<(Ident, Given)>,
    undone: Undos,
    krate: &TokenStream,
    errors: &mut Errors,
) -> Walked {
    let mut walk = Walk {
        krate,
        errors,
        scopes: Scopes::new(),
        frames: Frames::default(),
        apart: Vec::new(),
        cx: vec![print::cx(0)],
        made: 0,
        given: given
            .into_iter()
            .map(|(name, given)| (name.to_string(), given))
            .collect(),
        in_site: 0,
        blind: 0,
        lifted: 0,
        hash_told: false,
        cfg: Vec::new(),
        checkpoints: Vec::new(),
        undone,
        undos: Vec::new(),
        bound: hints::parameters(sig),
        generics: Generics::of(&sig.generics),
        annotated: None,
        step_path: None,
        is_told_in_place: false,
    };
    walk.visit_block_mut(body);
    let declared = walk.scopes.end();
    print::begin(body, declared);
    if let Some(path) = &walk.step_path {
        // `#[step]` was taken away: without this its import would look unused, and a missing one would not be missed.
        let at = syn::spanned::Spanned::span(path);
        body.stmts
            .insert(0, Stmt::Item(Item::Verbatim(print::imported(path, at))));
    }
    Walked {
        shared_name: walk.scopes.unsettled(),
        is_faulty: walk.is_told_in_place || walk.errors.count() > 0,
        sites: walk.scopes.sites,
        outline: walk.scopes.outline.finish(),
        undos: walk.undos,
    }
}

/// Where nothing durable can be done.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Apart {
    Closure,
    AsyncBlock,
    Step,
    /// The input of a macro that is not ours, by its path.
    Macro(String),
}

impl Apart {
    /// Why not.
    fn text(&self) -> Text {
        match self {
            Self::Closure => messages::IN_CLOSURE.into(),
            Self::AsyncBlock => messages::IN_ASYNC_BLOCK.into(),
            Self::Step => messages::IN_STEP.into(),
            Self::Macro(path) => messages::IN_FOREIGN_MACRO.with(&[path]),
        }
    }
}

struct Walk<'a> {
    krate: &'a TokenStream,
    errors: &'a mut Errors,
    scopes: Scopes,
    frames: Frames,
    apart: Vec<Apart>,
    /// The contexts around, the innermost last.
    cx: Vec<Ident>,
    /// How many contexts were made.
    made: usize,
    /// The parameters that are not shadowed here.
    given: HashMap<String, Given>,
    /// How many sites' own expressions are around.
    in_site: usize,
    /// How many calls are around that give the same in any order.
    blind: usize,
    /// How many `#[nondeterministic]` statements are around.
    lifted: usize,
    /// This statement's `HashMap` was reported: once is enough for its type and its constructor.
    hash_told: bool,
    cfg: Vec<Attribute>,
    /// The checkpoints that stand before this place, in blocks around it, each with the context of its scope.
    checkpoints: Vec<(String, Ident)>,
    undone: Undos,
    undos: Vec<Undo>,
    /// The locals and parameters that are bound here.
    bound: Vec<Bound>,
    generics: Generics,
    /// The type that a `let` gives to the value of the durable operation that is its whole right side.
    annotated: Option<String>,
    /// Something wrong was put where it stands.
    is_told_in_place: bool,
    /// How `#[step]` was written on something in this body.
    step_path: Option<syn::Path>,
}

impl Walk<'_> {
    fn cx(&self) -> Ident {
        self.cx.last().cloned().unwrap_or_else(|| print::cx(0))
    }

    fn new_cx(&mut self) -> Ident {
        self.made += 1;
        print::cx(self.made)
    }

    /// A site stands here. What tells the library which.
    fn site(&mut self, name: String, kind: Kind, place: Place) -> TokenStream {
        let index = self.scopes.add(name, kind, place, &self.cfg, self.errors);
        print::reference(&self.scopes.sites[index], self.krate)
    }

    /// A site without a name, which was reported: under one that no other has, so that nothing follows from it.
    fn unnamed(&mut self, kind: Kind, place: Place) -> TokenStream {
        let name = format!("unnamed {}", self.scopes.sites.len());
        self.site(name, kind, place)
    }

    /// Whether a local or parameter of this name can be looked at here.
    fn is_bound(&self, name: &Ident) -> bool {
        let mut bound = self.bound.iter();
        bound.any(|local| local.has_value && local.name == *name)
    }

    fn in_step(&self) -> bool {
        self.apart.contains(&Apart::Step)
    }

    /// Runs `inside` with the conditions of these attributes.
    fn under(&mut self, attrs: &[Attribute], inside: impl FnOnce(&mut Self)) {
        let before = self.cfg.len();
        self.cfg.extend(
            attrs
                .iter()
                .filter(|attr| attr.path().is_ident("cfg"))
                .cloned(),
        );
        inside(self);
        self.cfg.truncate(before);
    }

    fn apart(&mut self, what: Apart, inside: impl FnOnce(&mut Self)) {
        self.apart.push(what);
        self.frames.0.push(Frame::Apart);
        inside(self);
        self.frames.0.pop();
        self.apart.pop();
    }
}

impl VisitMut for Walk<'_> {
    fn visit_stmt_mut(&mut self, stmt: &mut Stmt) {
        self.statement(stmt);
    }

    fn visit_item_mut(&mut self, _: &mut Item) {}

    fn visit_block_mut(&mut self, block: &mut Block) {
        let (given, bound) = (self.given.clone(), self.bound.len());
        // It holds to the end of its block.
        let checkpoints = self.checkpoints.len();
        let gates = self.scopes.outline.bound();
        visit_mut::visit_block_mut(self, block);
        self.scopes.outline.unbind(gates);
        self.checkpoints.truncate(checkpoints);
        self.given = given;
        self.bound.truncate(bound);
    }

    fn visit_arm_mut(&mut self, arm: &mut syn::Arm) {
        let attrs = arm.attrs.clone();
        let (given, bound) = (self.given.clone(), self.bound.len());
        self.shadow(&arm.pat);
        let checkpoints = self.checkpoints.len();
        self.under(&attrs, |walk| visit_mut::visit_arm_mut(walk, arm));
        self.checkpoints.truncate(checkpoints);
        self.given = given;
        self.bound.truncate(bound);
    }

    fn visit_expr_mut(&mut self, expr: &mut Expr) {
        ungroup(expr);
        if let Some(attr) = strip(expr, Mark::Step) {
            return self.step_in_place(&attr, expr, None);
        }
        let cfg = attributes(expr).cloned().unwrap_or_default();
        self.under(&cfg, |walk| walk.expr(expr));
    }

    fn visit_macro_mut(&mut self, mac: &mut Macro) {
        self.foreign(mac);
    }

    fn visit_type_path_mut(&mut self, ty: &mut syn::TypePath) {
        self.owned_type(&ty.path);
        visit_mut::visit_type_path_mut(self, ty);
    }

    // What is only borrowed was made elsewhere.
    fn visit_type_reference_mut(&mut self, _: &mut syn::TypeReference) {}

    fn visit_type_ptr_mut(&mut self, _: &mut syn::TypePtr) {}

    fn visit_type_fn_ptr_mut(&mut self, _: &mut syn::TypeFnPtr) {}

    fn visit_path_mut(&mut self, path: &mut syn::Path) {
        let words = words(path);
        if path.leading_colon.is_some() || words.len() > 1 {
            self.path(&words);
        }
        visit_mut::visit_path_mut(self, path);
    }
}

impl Walk<'_> {
    fn expr(&mut self, expr: &mut Expr) {
        match expr {
            Expr::Await(_) => self.awaited(expr),
            Expr::Macro(called) => match Durable::named(&called.mac.path) {
                Some(durable) => self.unawaited(durable, &mut called.mac),
                None => self.foreign(&mut called.mac),
            },
            Expr::Closure(_) => {
                let (given, bound) = (self.given.clone(), self.bound.len());
                if let Expr::Closure(closure) = &*expr {
                    closure.inputs.iter().for_each(|pat| self.shadow(pat));
                }
                self.apart(Apart::Closure, |walk| visit_mut::visit_expr_mut(walk, expr));
                self.given = given;
                self.bound.truncate(bound);
            }
            Expr::Async(_) => self.apart(Apart::AsyncBlock, |walk| {
                visit_mut::visit_expr_mut(walk, expr);
            }),
            Expr::ForLoop(_) | Expr::While(_) | Expr::Loop(_) => self.any_loop(expr),
            Expr::Block(block) if block.label.is_some() => self.labelled_block(expr),
            Expr::Return(_) | Expr::Break(_) | Expr::Continue(_) => self.jump(expr),
            Expr::If(of) => self.conditional(of),
            Expr::Match(of) => self.matched(of),
            Expr::Path(path) => self.named(path),
            Expr::MethodCall(_) => self.method_call(expr),
            Expr::Assign(_) | Expr::Binary(_) => {
                self.assignment(expr);
                visit_mut::visit_expr_mut(self, expr);
            }
            _ => visit_mut::visit_expr_mut(self, expr),
        }
    }
}
