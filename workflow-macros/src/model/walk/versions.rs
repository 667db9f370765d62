//! `version!` and `removed!`: code that changes under live runs. `rollback!`: what is taken back within one.

use syn::visit_mut::VisitMut;
use syn::{Expr, Lit, LitStr, Macro};

use super::macros::Named;
use super::mail::option;
use super::{Kind, Walk, print};
use crate::diagnostics::{Place, Report};
use crate::messages;
use crate::syntax::{Durable, peel};

impl Walk<'_> {
    pub(super) fn version(
        &mut self,
        mac: &mut Macro,
        Named { name, span }: Named,
        list: Vec<Expr>,
    ) {
        let mut list = list.into_iter();
        let mut latest = match (list.next(), list.next()) {
            (Some(latest), None) => latest,
            (_, extra) => return self.misshapen(mac, Durable::Version, extra.as_ref()),
        };
        let is_none = match peel(&latest) {
            Expr::Lit(literal) => {
                matches!(&literal.lit, Lit::Int(number) if number.base10_digits() == "0")
            }
            Expr::Unary(unary) => matches!(unary.op, syn::UnOp::Neg(_)),
            _ => false,
        };
        if let Expr::Path(path) = peel(&latest)
            && let Some(name) = path.path.get_ident()
            && self.is_bound(name)
        {
            self.errors.push(
                name.span(),
                messages::VERSION_CONST.with(&[&name.to_string()]),
            );
            latest = syn::parse_quote!(1);
        }
        if let Some(text) = quoted(&latest) {
            let number = text.value().trim().parse::<u32>().unwrap_or(2);
            let number = number.to_string();
            self.errors
                .push(text.span(), messages::VERSION_NUMBER.with(&[&number]));
            latest = syn::parse_quote!(1);
        }
        if is_none {
            self.errors
                .push(Place::of(&latest), messages::VERSION_FROM_1);
            latest = syn::parse_quote!(1);
        }
        let site = self.site(name, Kind::Version, span.into());
        let number = match peel(&latest) {
            Expr::Lit(literal) => match &literal.lit {
                Lit::Int(number) => number.base10_parse().ok(),
                _ => None,
            },
            _ => None,
        };
        if let Some(details) = self.scopes.details() {
            details.latest = number;
        }
        self.visit_expr_mut(&mut latest);
        print::version(mac, &self.cx(), &site, &latest);
    }

    pub(super) fn rollback(
        &mut self,
        mac: &mut Macro,
        Named { name, span }: Named,
        list: Vec<Expr>,
    ) {
        let mut list = list.into_iter();
        let (given, extra) = (list.next(), list.next());
        let wrong = given.clone();
        let target = match (given.and_then(option), extra) {
            (Some((word, Expr::Path(path))), None) if word == "to" => {
                path.path.get_ident().cloned()
            }
            _ => None,
        };
        let Some(target) = target else {
            return self.misshapen(mac, Durable::Rollback, wrong.as_ref());
        };
        let wanted = target.to_string();
        let found = self
            .checkpoints
            .iter()
            .rev()
            .find(|(name, _)| *name == wanted);
        let Some((_, of)) = found.cloned() else {
            let text = messages::NO_SUCH_CHECKPOINT.with(&[&wanted]);
            return self.unread(mac, &Report::new(target.span(), text));
        };
        let site = self.site(name, Kind::Rollback, span.into());
        if let Some(details) = self.scopes.details() {
            details.to = Some(wanted.clone());
        }
        print::rollback(mac, &self.cx(), &site, &of, &wanted);
    }

    pub(super) fn removed(
        &mut self,
        mac: &mut Macro,
        Named { name, span }: Named,
        list: Vec<Expr>,
    ) {
        let (mut kind, mut undo) = (None, None);
        for argument in list {
            let place = Place::of(&argument);
            match option(argument) {
                Some((word, Expr::Lit(literal))) if word == "kind" && kind.is_none() => {
                    kind = Some(literal);
                }
                Some((word, handler @ (Expr::Path(_) | Expr::Closure(_))))
                    if word == "undo" && undo.is_none() =>
                {
                    undo = Some(handler);
                }
                _ => return self.misplaced(mac, place),
            }
        }
        let Some(kind) = kind else {
            return self.misshapen(mac, Durable::Removed, None);
        };
        let Lit::Str(text) = &kind.lit else {
            return self.misshapen(mac, Durable::Removed, Some(&Expr::Lit(kind)));
        };
        let known = KINDS.iter().find(|(word, _)| *word == text.value());
        let Some((word, variant)) = known else {
            let all: Vec<_> = KINDS.iter().map(|(word, _)| format!("`{word}`")).collect();
            self.errors.push(
                text.span(),
                messages::REMOVED_KIND.with(&[&text.value(), &all.join(", ")]),
            );
            return print::said(mac);
        };
        if let Some(undo) = undo.filter(|undo| !self.captures(undo)) {
            self.removed_undo(&name, undo);
        }
        let site = self.site(name, Kind::Removed, span.into());
        if let Some(details) = self.scopes.details() {
            details.was = Some(word);
        }
        let cfg = self.cfg.clone();
        let statement = print::removed(&self.cx(), &site, variant, &cfg, self.krate);
        self.scopes.declare(statement);
        print::said(mac);
    }

    /// What stands here is not said of a removed site.
    fn misplaced(&mut self, mac: &mut Macro, place: Place) {
        let text = messages::MACRO_SHAPE.with(&[Durable::Removed.word(), Durable::Removed.shape()]);
        self.unread(mac, &Report::new(place, text));
    }
}

/// A text, where a number is expected.
pub(super) fn quoted(number: &Expr) -> Option<&LitStr> {
    match peel(number) {
        Expr::Lit(literal) => match &literal.lit {
            Lit::Str(text) => Some(text),
            _ => None,
        },
        _ => None,
    }
}

/// What a site may have been, and what the library calls it.
const KINDS: &[(&str, &str)] = &[
    ("step", "Step"),
    ("call", "Call"),
    ("sleep", "Sleep"),
    ("now", "Now"),
    ("recv", "Recv"),
    ("send", "Send"),
    ("reply", "Reply"),
    ("join", "Join"),
    ("race", "Race"),
    ("join_all", "JoinAll"),
    ("loop", "Loop"),
    ("fragment", "Fragment"),
    ("attempt", "Attempt"),
    ("child", "Child"),
    ("version", "Version"),
    ("rollback", "Rollback"),
];
