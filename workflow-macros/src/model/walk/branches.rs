//! `join!`, `race!` and `join_all!`: branches, each a scope and a future of its own.

use proc_macro2::{Ident, TokenStream};
use syn::visit_mut::VisitMut;
use syn::{Expr, Macro};

use super::macros::Named;
use super::{Frame, Kind, Own, Walk, name, print};
use crate::diagnostics::{Place, Report};
use crate::messages;
use crate::syntax::{Durable, peel};

/// `join!` gives a tuple, and tuples end somewhere.
const MOST: usize = 12;

impl Walk<'_> {
    pub(super) fn branches(
        &mut self,
        mac: &mut Macro,
        durable: Durable,
        kind: Kind,
        Named { name, span }: Named,
        list: Vec<Expr>,
    ) {
        let (word, shape) = (durable.word(), durable.shape());
        if list.is_empty() {
            let text = messages::NO_BRANCHES.with(&[word, shape]);
            let report = Report::new(Place::of(&mac.path), text);
            return self.unread(mac, &report);
        }
        if kind == Kind::Join && list.len() > MOST {
            let report = Report::new(Place::of(&list[MOST]), messages::TOO_MANY_BRANCHES);
            return self.unread(mac, &report);
        }
        let prefix = format!("{}/", self.scopes.path(&name));
        let of = self.scopes.next();
        let site = self.site(name.clone(), kind, span.into());
        let mut seen: Vec<(String, Place)> = Vec::new();
        let mut printed = Vec::new();
        for (index, branch) in list.into_iter().enumerate() {
            let (label, right, place) = match branch {
                Expr::Assign(branch) => {
                    let label = match peel(&branch.left) {
                        Expr::Path(path) => path.path.get_ident().cloned(),
                        _ => None,
                    };
                    (label, *branch.right, Place::of(&branch.left))
                }
                branch => {
                    let place = Place::of(&branch);
                    (None, branch, place)
                }
            };
            // Without a name it is a branch all the same, so that nothing follows from it.
            let label = label.unwrap_or_else(|| {
                self.errors
                    .push(place, messages::MACRO_SHAPE.with(&[word, shape]));
                Ident::new(&format!("__workflow_unnamed_{index}"), place.first)
            });
            let text = name::plain(&label.to_string());
            if let Some((_, first)) = seen.iter().find(|(known, _)| *known == text) {
                let at = first
                    .described()
                    .map(|at| format!("; first at {at}"))
                    .unwrap_or_default();
                self.errors.push(
                    first.to(label.span().into()),
                    messages::BRANCH_TWICE.with(&[&name, &text, &at]),
                );
            }
            seen.push((text.clone(), label.span().into()));
            let mut body = right;
            let inner = self.new_cx();
            let frame = Frame::Branch("the branch", Own::of(&body));
            if let Some(site) = self.scopes.sites.get_mut(of) {
                let place = label.span().into();
                site.details.branches.push((text.clone(), place));
            }
            let prefix = format!("{prefix}{text}/");
            let body_of = (of, Some(text.clone()));
            let declared = self.branch(prefix, body_of, inner.clone(), frame, |walk| {
                walk.visit_expr_mut(&mut body);
            });
            print::begin_expr(&mut body, declared);
            printed.push(print::Branch {
                cx: inner,
                name: text,
                place: Place::of(&body),
                body,
            });
        }
        let cx = self.cx();
        print::branches(mac, &cx, &site, &printed, self.krate);
    }

    pub(super) fn join_all(
        &mut self,
        mac: &mut Macro,
        Named { name, span }: Named,
        list: Vec<Expr>,
    ) {
        let shape = Durable::JoinAll.shape();
        let prefix = format!("{}[]/", self.scopes.path(&name));
        let of = self.scopes.next();
        let site = self.site(name, Kind::JoinAll, span.into());
        let (mut limit, mut key, mut items) = (None, None, None);
        for argument in list {
            let place = Place::of(&argument);
            let word = match &argument {
                Expr::Assign(given) => match peel(&given.left) {
                    Expr::Path(path) => path.path.get_ident().map(ToString::to_string),
                    _ => None,
                },
                _ => None,
            };
            match (argument, word.as_deref()) {
                (Expr::Assign(given), Some("limit")) if limit.is_none() => {
                    if let Expr::Lit(literal) = peel(&given.right)
                        && let syn::Lit::Int(number) = &literal.lit
                        && number.base10_digits() == "0"
                    {
                        self.errors.push(number.span(), messages::JOIN_ALL_LIMIT);
                    }
                    limit = Some(*given.right);
                }
                (Expr::Assign(given), Some("key")) if key.is_none() => key = Some(*given.right),
                (Expr::Assign(_), Some(word @ ("limit" | "key"))) => {
                    self.errors
                        .push(place, messages::OPTION_REPEATED.with(&[word]));
                }
                (Expr::ForLoop(each), _) if items.is_none() => items = Some(each),
                _ => self
                    .errors
                    .push(place, messages::MACRO_SHAPE.with(&["join_all", shape])),
            }
        }
        let Some(mut each) = items else {
            let text = messages::NO_BRANCHES.with(&["join_all", shape]);
            let report = Report::new(Place::of(&mac.path), text);
            return self.unread(mac, &report);
        };
        if let Some(limit) = &mut limit {
            self.visit_expr_mut(limit);
        }
        if let Some(key) = &mut key {
            self.visit_expr_mut(key);
        }
        self.visit_pat_mut(&mut each.pat);
        self.in_order(&each.expr);
        self.visit_expr_mut(&mut each.expr);
        if let Some(site) = self.scopes.sites.get_mut(of) {
            site.details.is_keyed = key.is_some();
        }
        let inner = self.new_cx();
        let own = Own::of_block(&each.body).and(&each.pat);
        let frame = Frame::Branch("the item's branch", own);
        let declared = self.branch(prefix, (of, None), inner.clone(), frame, |walk| {
            walk.visit_block_mut(&mut each.body);
        });
        print::begin(&mut each.body, declared);
        let outer = self.cx();
        let all = print::All {
            outer,
            inner,
            site,
            limit,
            key,
            each,
        };
        print::join_all(mac, &all, self.krate);
    }

    /// Walks a branch of the site `of`; gives the statements for its beginning.
    pub(super) fn branch(
        &mut self,
        prefix: String,
        of: (usize, Option<String>),
        cx: Ident,
        frame: Frame,
        inside: impl FnOnce(&mut Self),
    ) -> Vec<TokenStream> {
        self.scopes.enter(prefix);
        self.cx.push(cx);
        self.frames.0.push(frame);
        // A state may be given to a site in the branch, and read nowhere else: as outside.
        let in_site = std::mem::take(&mut self.in_site);
        let checkpoints = self.checkpoints.len();
        inside(self);
        self.checkpoints.truncate(checkpoints);
        self.in_site = in_site;
        self.frames.0.pop();
        self.cx.pop();
        self.scopes.leave(of.0, of.1)
    }
}
