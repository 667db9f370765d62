//! What a step or a branch captures, it may read and not change: the change would be seen on the first run, and not on a
//! replay.
//!
//! The compiler has the last word, for the closures are `Fn`. What is assigned to in plain sight is told here, better.

use std::collections::HashSet;

use proc_macro2::{Ident, TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{BinOp, Block, Expr, Macro, Pat, PatIdent};

use super::{Frame, Walk, print};
use crate::diagnostics::Place;
use crate::messages;
use crate::syntax::peel;

/// The names that are bound somewhere in a step or a branch, and so are its own. Rather too many than too few.
#[derive(Default)]
pub(in crate::model) struct Own(HashSet<String>);

impl Own {
    pub(super) fn of(body: &Expr) -> Self {
        let mut own = Self::default();
        own.visit_expr(body);
        own
    }

    pub(super) fn of_block(body: &Block) -> Self {
        let mut own = Self::default();
        own.visit_block(body);
        own
    }

    /// The same with what `pat` binds.
    pub(super) fn and(mut self, pat: &Pat) -> Self {
        self.visit_pat(pat);
        self
    }

    /// The same with what an expression binds.
    pub(super) fn and_expr(mut self, expr: &Expr) -> Self {
        self.visit_expr(expr);
        self
    }

    pub(super) fn binds(&self, name: &str) -> bool {
        self.0.contains(name)
    }

    fn words(&mut self, tokens: TokenStream) {
        for tree in tokens {
            match tree {
                TokenTree::Ident(word) => {
                    self.0.insert(word.to_string());
                }
                TokenTree::Group(group) => self.words(group.stream()),
                TokenTree::Punct(_) | TokenTree::Literal(_) => {}
            }
        }
    }
}

impl<'ast> Visit<'ast> for Own {
    fn visit_pat_ident(&mut self, bound: &'ast PatIdent) {
        self.0.insert(bound.ident.to_string());
        visit::visit_pat_ident(self, bound);
    }

    // It may bind what it is given.
    fn visit_macro(&mut self, mac: &'ast Macro) {
        self.words(mac.tokens.clone());
    }
}

/// The names that stand alone in an expression, in source order.
#[derive(Default)]
struct Alone(Vec<Ident>);

impl<'ast> Visit<'ast> for Alone {
    fn visit_expr_path(&mut self, path: &'ast syn::ExprPath) {
        if path.qself.is_none() {
            self.0.extend(path.path.get_ident().cloned());
        }
    }
}

impl Walk<'_> {
    /// The first local that an expression captures.
    pub(super) fn captured(&self, expr: &Expr) -> Option<Ident> {
        let mut own = Own::default();
        own.visit_expr(expr);
        let mut alone = Alone::default();
        alone.visit_expr(expr);
        alone
            .0
            .into_iter()
            .find(|name| self.is_bound(name) && !own.binds(&name.to_string()))
    }

    /// Reports an assignment to what is outside of the step or branch around, and goes on with one that changes nothing.
    pub(super) fn assignment(&mut self, expr: &mut Expr) {
        let Some((left, _)) = assigned(expr) else {
            return;
        };
        if let Some((name, list)) = self.forgotten(left) {
            let text = messages::CHANGE_IN_CARRY.with(&[&name, &list]);
            self.errors.push(Place::of(left), text);
            return print::unchanged(left, self.krate);
        }
        let Some((what, own)) = self.frames.0.iter().rev().find_map(|frame| match frame {
            Frame::Branch(what, own) => Some((*what, own)),
            _ => None,
        }) else {
            return;
        };
        let Some(root) = root(left).filter(|root| !own.0.contains(&root.to_string())) else {
            return;
        };
        let message = if self.in_step() {
            messages::CHANGE_IN_STEP
        } else {
            messages::CHANGE_IN_BRANCH
        };
        self.errors
            .push(Place::of(left), message.with(&[what, &root.to_string()]));
        print::unchanged(left, self.krate);
    }
}

impl Walk<'_> {
    /// The local that an assignment changes in a carried loop that does not carry it, and what it would have to list.
    fn forgotten(&self, left: &Expr) -> Option<(String, String)> {
        let root = root(left)?.to_string();
        self.frames
            .0
            .iter()
            .rev()
            .take_while(|frame| !matches!(frame, Frame::Branch(..)))
            .find_map(|frame| match frame {
                Frame::Carried(names) if names.held.contains(&root) => {
                    let mut list = names.carried.clone();
                    list.push(root.clone());
                    Some((root.clone(), list.join(", ")))
                }
                _ => None,
            })
    }
}

/// The variable that an assignment to this changes.
fn root(expr: &Expr) -> Option<&Ident> {
    match peel(expr) {
        Expr::Path(path) => path.path.get_ident(),
        Expr::Field(field) => root(&field.base),
        Expr::Index(index) => root(&index.expr),
        Expr::Unary(unary) if matches!(unary.op, syn::UnOp::Deref(_)) => root(&unary.expr),
        _ => None,
    }
}

/// The two sides of `a = b` or `a += b`.
pub(super) fn assigned(expr: &mut Expr) -> Option<(&mut Expr, &mut Expr)> {
    match expr {
        Expr::Assign(assign) => Some((&mut assign.left, &mut assign.right)),
        Expr::Binary(binary) => matches!(
            binary.op,
            BinOp::AddAssign(_)
                | BinOp::SubAssign(_)
                | BinOp::MulAssign(_)
                | BinOp::DivAssign(_)
                | BinOp::RemAssign(_)
                | BinOp::BitXorAssign(_)
                | BinOp::BitAndAssign(_)
                | BinOp::BitOrAssign(_)
                | BinOp::ShlAssign(_)
                | BinOp::ShrAssign(_)
        )
        .then_some((&mut binary.left, &mut binary.right)),
        _ => None,
    }
}
