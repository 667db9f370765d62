//! Walks a body once: finds its sites, checks the rules, and puts in place of each site what it expands to.

mod branches;
mod loops;
mod steps;

use std::collections::HashSet;

use proc_macro2::{Ident, Span, TokenStream};
use syn::visit::{self, Visit};
use syn::visit_mut::{self, VisitMut};
use syn::{Attribute, Block, Expr, Item, Lit, Local, Macro, Stmt};

use super::scope::{Frame, Frames, Scopes};
use super::{Kind, Site, duration, name, rules};
use crate::diagnostics::{Errors, Place, Report};
use crate::expand::site as print;
use crate::messages::{self, Message};
use crate::syntax::{Durable, Mark, Seen, Settings, arguments, peel, seen, strip, take, ungroup};

/// What came of a walk, beside the body that was rewritten in place.
pub(crate) struct Walked {
    pub(crate) sites: Vec<Site>,
    /// Two of them share a path under different conditions.
    pub(crate) shares_names: bool,
}

/// Walks a body. `states` are the parameters that the engine gives; `krate` is the path of the library.
pub(crate) fn walk(
    body: &mut Block,
    states: &[Ident],
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
        states: states.iter().map(ToString::to_string).collect(),
        in_site: 0,
        lifted: 0,
        cfg: Vec::new(),
        step_path: None,
    };
    walk.visit_block_mut(body);
    if let Some(path) = &walk.step_path {
        // `#[step]` was taken away: without this its import would look unused. All of it has the attribute's own span, so that
        // a missing import is told of there.
        let at = syn::spanned::Spanned::span(path);
        let uses =
            crate::expand::respan(quote::quote!(#[allow(unused_imports)] use #path as _;), at);
        body.stmts.insert(0, Stmt::Item(Item::Verbatim(uses)));
    }
    Walked {
        sites: walk.scopes.sites,
        shares_names: walk.scopes.shares_names,
    }
}

/// Where nothing durable can be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Apart {
    Closure,
    AsyncBlock,
    Step,
}

impl Apart {
    fn message(self) -> Message {
        match self {
            Self::Closure => messages::IN_CLOSURE,
            Self::AsyncBlock => messages::IN_ASYNC_BLOCK,
            Self::Step => messages::IN_STEP,
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
    states: HashSet<String>,
    /// How many sites' own expressions are around.
    in_site: usize,
    /// How many `#[nondeterministic]` statements are around.
    lifted: usize,
    cfg: Vec<Attribute>,
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

    /// Runs `inside` with `#[nondeterministic]` lifted, if the statement has one.
    fn lifting(&mut self, attr: Option<Attribute>, inside: impl FnOnce(&mut Self)) {
        let Some(attr) = attr else {
            return inside(self);
        };
        let settings = Settings::of(&attr);
        let reason = settings.list.iter().any(|setting| {
            let text = matches!(&setting.value, crate::syntax::Value::Equals(Expr::Lit(lit)) if matches!(&lit.lit, Lit::Str(text) if !text.value().trim().is_empty()));
            setting.name == "reason" && text
        });
        if !reason || settings.list.len() != 1 {
            self.errors
                .push(Place::of(&attr), messages::NONDETERMINISTIC_REASON);
        }
        self.lifted += 1;
        inside(self);
        self.lifted -= 1;
    }

    // ===== awaits =====

    fn awaited(&mut self, expr: &mut Expr) {
        let Expr::Await(awaited) = expr else { return };
        ungroup(&mut awaited.base);
        if let Expr::Macro(called) = peel(&awaited.base)
            && let Some(durable) = Durable::named(&called.mac.path)
        {
            let mut mac = called.mac.clone();
            if let Some(apart) = self.apart.last() {
                let report = Report::new(Place::of(&mac.path), apart.message());
                print::unread(&mut mac, &report);
                *expr = Expr::Macro(syn::ExprMacro {
                    attrs: Vec::new(),
                    mac,
                });
                return;
            }
            if durable.is_derived() {
                let place = Place::of(&mac.path).to(awaited.await_token.span.into());
                self.errors
                    .push(place, messages::NOT_A_FUTURE.with(&[durable.word()]));
            }
            let attrs = std::mem::take(&mut awaited.attrs);
            self.durable(durable, &mut mac);
            *expr = Expr::Macro(syn::ExprMacro { attrs, mac });
            return;
        }
        let place = Place::of(&awaited.base);
        match self.apart.last() {
            // A step's body awaits what it likes.
            Some(Apart::Step) => return self.visit_expr_mut(&mut awaited.base),
            Some(apart) => {
                self.errors
                    .push(place.to(awaited.await_token.span.into()), apart.message());
                return self.visit_expr_mut(&mut awaited.base);
            }
            None => {}
        }
        self.in_site += 1;
        self.visit_expr_mut(&mut awaited.base);
        self.in_site -= 1;
        let Some((name, span)) = name::callee(&awaited.base) else {
            // Its type says whether it is durable at all; without a call there is nothing to read a name from.
            self.errors.push(
                place.to(awaited.await_token.span.into()),
                messages::NAME_UNREADABLE.with(&["my_step"]),
            );
            let site = self.unnamed(Kind::Call, place);
            let cx = self.cx();
            return print::gate(&mut awaited.base, &cx, &site, self.krate);
        };
        let site = self.site(name, Kind::Call, span.into());
        let cx = self.cx();
        print::gate(&mut awaited.base, &cx, &site, self.krate);
    }

    // ===== macros =====

    /// A macro of ours: its name and arguments, rewritten to the form that names its site.
    fn durable(&mut self, durable: Durable, mac: &mut Macro) {
        let place = Place::of(&mac.path);
        let shape = durable.shape();
        let list = match arguments(mac.tokens.clone()) {
            Ok(list) => list,
            Err(wrong) => {
                let text = messages::MACRO_INPUT.with(&[durable.word(), &wrong.to_string(), shape]);
                let at = if mac.tokens.is_empty() {
                    place
                } else {
                    wrong.span().into()
                };
                return print::unread(mac, &Report::new(at, text));
            }
        };
        let mut list = list.into_iter();
        let word = list.next().and_then(|first| match peel(&first) {
            Expr::Path(path) if path.qself.is_none() => path.path.get_ident().cloned(),
            _ => None,
        });
        let Some(word) = word else {
            let at = if mac.tokens.is_empty() {
                place
            } else {
                Place::of(&mac.tokens)
            };
            let text = messages::MACRO_NAME.with(&[durable.word(), shape]);
            return print::unread(mac, &Report::new(at, text));
        };
        let text = name::plain(&word.to_string());
        if !name::is_name(&text) {
            self.errors.push(
                word.span(),
                messages::NAME_SHAPE.with(&[&text, &name::like(&text)]),
            );
        }
        let list: Vec<Expr> = list.collect();
        match durable {
            Durable::Sleep => self.sleep(mac, (text, word.span()), list),
            Durable::Now => self.bare(mac, durable, Kind::Now, (text, word.span()), &list),
            Durable::Uuid | Durable::Random => {
                self.bare(mac, durable, Kind::Derived, (text, word.span()), &list);
            }
            Durable::Join => self.branches(mac, durable, Kind::Join, (text, word.span()), list),
            Durable::Race => self.branches(mac, durable, Kind::Race, (text, word.span()), list),
            Durable::JoinAll => self.join_all(mac, (text, word.span()), list),
        }
    }

    fn sleep(&mut self, mac: &mut Macro, (name, span): (String, Span), mut list: Vec<Expr>) {
        let shape = Durable::Sleep.shape();
        let argument = match (list.len(), list.pop()) {
            (1, Some(argument)) => argument,
            (_, extra) => {
                let at = extra.map_or_else(|| Place::of(&mac.path), |extra| Place::of(&extra));
                let text = messages::MACRO_SHAPE.with(&["sleep", shape]);
                return print::unread(mac, &Report::new(at, text));
            }
        };
        let site = self.site(name, Kind::Sleep, span.into());
        let cx = self.cx();
        self.in_site += 1;
        match argument {
            Expr::Assign(mut until) if matches!(peel(&until.left), Expr::Path(path) if path.path.is_ident("until")) =>
            {
                self.visit_expr_mut(&mut until.right);
                print::sleep(mac, &cx, &site, &until.right, true);
            }
            mut duration => {
                if let Expr::Lit(literal) = peel(&duration)
                    && let Lit::Str(text) = &literal.lit
                {
                    match duration::parse(&text.value()) {
                        Ok(millis) => duration = print::millis(millis, text.span(), self.krate),
                        Err(wrong) => {
                            self.errors
                                .push(text.span(), wrong.message().with(&[&text.value()]));
                            duration = print::millis(0, text.span(), self.krate);
                        }
                    }
                } else {
                    self.visit_expr_mut(&mut duration);
                }
                print::sleep(mac, &cx, &site, &duration, false);
            }
        }
        self.in_site -= 1;
    }

    fn bare(
        &mut self,
        mac: &mut Macro,
        durable: Durable,
        kind: Kind,
        (name, span): (String, Span),
        extra: &[Expr],
    ) {
        if let Some(extra) = extra.first() {
            self.errors.push(
                Place::of(extra),
                messages::MACRO_SHAPE.with(&[durable.word(), durable.shape()]),
            );
        }
        let site = self.site(name, kind, span.into());
        print::bare(mac, &self.cx(), &site);
    }

    /// A macro that is not ours: its tokens are not known to be expressions, but some things can be seen in them.
    fn foreign(&mut self, mac: &Macro) {
        let path: Vec<Ident> = mac
            .path
            .segments
            .iter()
            .map(|segment| segment.ident.clone())
            .collect();
        let shown = path
            .iter()
            .map(|word| name::plain(&word.to_string()))
            .collect::<Vec<_>>()
            .join("::");
        if self.in_step() {
            return;
        }
        if rules::awaits_by_itself(&path) {
            return self.errors.push(
                Place::of(&mac.path),
                messages::FOREIGN_CONCURRENCY.with(&[&shown]),
            );
        }
        for seen in seen(mac.tokens.clone()) {
            match seen {
                Seen::Await(span) => self
                    .errors
                    .push(span, messages::IN_FOREIGN_MACRO.with(&[&shown])),
                Seen::Macro(words) => {
                    let spelled: Vec<String> = words.iter().map(ToString::to_string).collect();
                    if Durable::spelled(&spelled).is_some() {
                        self.errors
                            .push(place_of(&words), messages::IN_FOREIGN_MACRO.with(&[&shown]));
                    } else {
                        self.path(&words);
                    }
                }
                Seen::Path(words) => self.path(&words),
            }
        }
    }

    /// A path, or a plain word, is named in the body.
    fn path(&mut self, words: &[Ident]) {
        if self.in_step() {
            return;
        }
        if let [word] = words
            && self.in_site == 0
            && self.states.contains(&word.to_string())
        {
            return self.errors.push(
                word.span(),
                messages::STATE_READ.with(&[&name::plain(&word.to_string())]),
            );
        }
        if self.lifted == 0
            && let Some((message, shown)) = rules::refused(words)
        {
            self.errors.push(place_of(words), message.with(&[&shown]));
        }
    }

    fn apart(&mut self, what: Apart, inside: impl FnOnce(&mut Self)) {
        self.apart.push(what);
        self.frames.0.push(Frame::Apart);
        inside(self);
        self.frames.0.pop();
        self.apart.pop();
    }
}

fn place_of(words: &[Ident]) -> Place {
    let first: Place = words
        .first()
        .map_or_else(Span::call_site, Ident::span)
        .into();
    first.to(words
        .last()
        .map_or_else(Span::call_site, Ident::span)
        .into())
}

impl VisitMut for Walk<'_> {
    fn visit_stmt_mut(&mut self, stmt: &mut Stmt) {
        match stmt {
            Stmt::Local(local) => {
                let attrs = local.attrs.clone();
                self.under(&attrs, |walk| walk.local(local));
            }
            Stmt::Expr(expr, _) => {
                // The compiler gives the attributes of `a = b` and `a += b` to `a`; `b` is what is meant.
                let (lifted, step) = match assigned(expr) {
                    Some((left, _)) => {
                        (strip(left, Mark::Nondeterministic), strip(left, Mark::Step))
                    }
                    None => (strip(expr, Mark::Nondeterministic), None),
                };
                self.lifting(lifted, |walk| match (step, assigned(expr)) {
                    (Some(attr), Some((left, right))) => {
                        walk.visit_expr_mut(left);
                        walk.step_in_place(&attr, right, None);
                    }
                    _ => walk.visit_expr_mut(expr),
                });
            }
            Stmt::Macro(stmt) => {
                let attrs = stmt.attrs.clone();
                let lifted = take(&mut stmt.attrs, Mark::Nondeterministic);
                let step = take(&mut stmt.attrs, Mark::Step);
                self.under(&attrs, |walk| {
                    walk.lifting(lifted, |walk| {
                        walk.statement_macro(&mut stmt.mac, step.as_ref());
                    });
                });
            }
            // An item is not part of the body: what is awaited in it is none of the workflow's.
            Stmt::Item(_) => {}
        }
    }

    fn visit_item_mut(&mut self, _: &mut Item) {}

    fn visit_block_mut(&mut self, block: &mut Block) {
        let states = self.states.clone();
        visit_mut::visit_block_mut(self, block);
        self.states = states;
    }

    fn visit_arm_mut(&mut self, arm: &mut syn::Arm) {
        let attrs = arm.attrs.clone();
        let states = self.states.clone();
        self.shadow(&arm.pat);
        self.under(&attrs, |walk| visit_mut::visit_arm_mut(walk, arm));
        self.states = states;
    }

    fn visit_expr_mut(&mut self, expr: &mut Expr) {
        ungroup(expr);
        if let Some(attr) = strip(expr, Mark::Step) {
            return self.step_in_place(&attr, expr, None);
        }
        let cfg = expr_attrs(expr);
        self.under(&cfg, |walk| walk.expr(expr));
    }

    fn visit_macro_mut(&mut self, mac: &mut Macro) {
        self.foreign(mac);
    }

    fn visit_path_mut(&mut self, path: &mut syn::Path) {
        let words: Vec<Ident> = path
            .segments
            .iter()
            .map(|segment| segment.ident.clone())
            .collect();
        if path.leading_colon.is_some() || words.len() > 1 {
            self.path(&words);
        }
        visit_mut::visit_path_mut(self, path);
    }
}

impl Walk<'_> {
    fn local(&mut self, local: &mut Local) {
        let lifted = take(&mut local.attrs, Mark::Nondeterministic);
        let step = take(&mut local.attrs, Mark::Step);
        let key = take(&mut local.attrs, Mark::Key);
        if let Some(key) = &key {
            self.errors.push(Place::of(key), messages::KEY_NOT_ON_LOOP);
        }
        self.lifting(lifted, |walk| {
            walk.visit_pat_mut(&mut local.pat);
            let Some(init) = &mut local.init else {
                if let Some(step) = &step {
                    walk.errors.push(Place::of(step), messages::STEP_ON_NOTHING);
                }
                return;
            };
            match &step {
                Some(step) => {
                    let pat = local.pat.clone();
                    walk.step_in_place(step, &mut init.expr, Some(&pat));
                }
                None => walk.visit_expr_mut(&mut init.expr),
            }
            if let Some((_, diverge)) = &mut init.diverge {
                walk.visit_expr_mut(diverge);
            }
        });
        self.shadow(&local.pat);
    }

    /// What this pattern binds is no longer a state, until the block ends.
    fn shadow(&mut self, pat: &syn::Pat) {
        struct Bound<'a>(&'a mut HashSet<String>);
        impl<'ast> Visit<'ast> for Bound<'_> {
            fn visit_pat_ident(&mut self, bound: &'ast syn::PatIdent) {
                self.0.remove(&bound.ident.to_string());
                visit::visit_pat_ident(self, bound);
            }
        }
        Bound(&mut self.states).visit_pat(pat);
    }

    /// A macro as a statement of its own, so without `.await`.
    fn statement_macro(&mut self, mac: &mut Macro, step: Option<&Attribute>) {
        let Some(durable) = Durable::named(&mac.path) else {
            if let Some(step) = step {
                self.errors.push(Place::of(step), messages::STEP_ON_NOTHING);
            }
            return self.foreign(mac);
        };
        self.unawaited(durable, mac);
    }

    fn unawaited(&mut self, durable: Durable, mac: &mut Macro) {
        if let Some(apart) = self.apart.last() {
            let report = Report::new(Place::of(&mac.path), apart.message());
            return print::unread(mac, &report);
        }
        if !durable.is_derived() {
            self.errors.push(
                Place::of(&mac.path),
                messages::NOT_AWAITED.with(&[durable.word()]),
            );
        }
        self.durable(durable, mac);
    }

    fn expr(&mut self, expr: &mut Expr) {
        match expr {
            Expr::Await(_) => self.awaited(expr),
            Expr::Macro(called) => match Durable::named(&called.mac.path) {
                Some(durable) => self.unawaited(durable, &mut called.mac),
                None => self.foreign(&called.mac),
            },
            Expr::Closure(_) => {
                let states = self.states.clone();
                if let Expr::Closure(closure) = &*expr {
                    closure.inputs.iter().for_each(|pat| self.shadow(pat));
                }
                self.apart(Apart::Closure, |walk| visit_mut::visit_expr_mut(walk, expr));
                self.states = states;
            }
            Expr::Async(_) => self.apart(Apart::AsyncBlock, |walk| {
                visit_mut::visit_expr_mut(walk, expr);
            }),
            Expr::ForLoop(_) | Expr::While(_) | Expr::Loop(_) => self.any_loop(expr),
            Expr::Block(block) if block.label.is_some() => {
                let label = block
                    .label
                    .as_ref()
                    .map(|label| label.name.ident.to_string());
                self.frames.0.push(Frame::Loop(label));
                visit_mut::visit_expr_mut(self, expr);
                self.frames.0.pop();
            }
            Expr::Return(returned) => match self.frames.check_return(returned.return_token.span) {
                Some(report) => *expr = print::refused(&report),
                None => visit_mut::visit_expr_mut(self, expr),
            },
            Expr::Break(broken) => {
                let label = broken.label.as_ref().map(|label| label.ident.to_string());
                let place: Place = broken.break_token.span.into();
                match self.frames.check_break("break", label.as_deref(), place) {
                    Some(report) => *expr = print::refused(&report),
                    None => visit_mut::visit_expr_mut(self, expr),
                }
            }
            Expr::Continue(continued) => {
                let label = continued
                    .label
                    .as_ref()
                    .map(|label| label.ident.to_string());
                let place: Place = continued.continue_token.span.into();
                if let Some(report) = self.frames.check_break("continue", label.as_deref(), place) {
                    *expr = print::refused(&report);
                }
            }
            Expr::Path(path) if path.qself.is_none() => {
                let words: Vec<Ident> = path
                    .path
                    .segments
                    .iter()
                    .map(|segment| segment.ident.clone())
                    .collect();
                self.path(&words);
            }
            _ => visit_mut::visit_expr_mut(self, expr),
        }
    }
}

/// The attributes of an expression that stands by itself, such as `#[cfg(..)] if ..`.
fn expr_attrs(expr: &Expr) -> Vec<Attribute> {
    match expr {
        Expr::If(expr) => expr.attrs.clone(),
        Expr::Block(expr) => expr.attrs.clone(),
        Expr::Match(expr) => expr.attrs.clone(),
        Expr::ForLoop(expr) => expr.attrs.clone(),
        Expr::While(expr) => expr.attrs.clone(),
        Expr::Loop(expr) => expr.attrs.clone(),
        Expr::Call(expr) => expr.attrs.clone(),
        Expr::MethodCall(expr) => expr.attrs.clone(),
        Expr::Macro(expr) => expr.attrs.clone(),
        Expr::Try(expr) => expr.attrs.clone(),
        Expr::Await(expr) => expr.attrs.clone(),
        Expr::Assign(expr) => expr.attrs.clone(),
        _ => Vec::new(),
    }
}

/// The two sides of `a = b` or `a += b`.
fn assigned(expr: &mut Expr) -> Option<(&mut Expr, &mut Expr)> {
    use syn::BinOp::{
        AddAssign, BitAndAssign, BitOrAssign, BitXorAssign, DivAssign, MulAssign, RemAssign,
        ShlAssign, ShrAssign, SubAssign,
    };
    match expr {
        Expr::Assign(assign) => Some((&mut assign.left, &mut assign.right)),
        Expr::Binary(binary) => matches!(
            binary.op,
            AddAssign(_)
                | SubAssign(_)
                | MulAssign(_)
                | DivAssign(_)
                | RemAssign(_)
                | BitXorAssign(_)
                | BitAndAssign(_)
                | BitOrAssign(_)
                | ShlAssign(_)
                | ShrAssign(_)
        )
        .then_some((&mut binary.left, &mut binary.right)),
        _ => None,
    }
}
