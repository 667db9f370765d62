//! `if`, `match` and `let .. else`: arms of which one is taken, and which of them a `version!` decides.

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::visit::Visit;
use syn::visit_mut::VisitMut;
use syn::{Expr, ExprIf, ExprMatch, Pat};

use super::{Walk, name};
use crate::model::condition::{Condition, Decided, Reader};
use crate::syntax::{Durable, peel};

impl Walk<'_> {
    pub(super) fn conditional(&mut self, of: &mut ExprIf) {
        let gates = self.gates_in(&of.cond);
        let condition = self.condition(&of.cond);
        self.visit_expr_mut(&mut of.cond);
        let then = self.arm(|walk| walk.visit_block_mut(&mut of.then_branch));
        let otherwise = self.arm(|walk| {
            if let Some((_, otherwise)) = &mut of.else_branch {
                walk.visit_expr_mut(otherwise);
            }
        });
        let conditions = vec![condition.clone(), condition.not()];
        let arms = vec![then, otherwise];
        self.scopes.outline.gated_choice(gates, conditions, arms);
    }

    pub(super) fn matched(&mut self, of: &mut ExprMatch) {
        let gates = self.gates_in(&of.expr);
        let conditions = self.reading(|reader| reader.arms(of));
        self.visit_expr_mut(&mut of.expr);
        let arms = of
            .arms
            .iter_mut()
            .map(|arm| self.arm(|walk| walk.visit_arm_mut(arm)))
            .collect();
        self.scopes.outline.gated_choice(gates, conditions, arms);
    }

    /// Runs `inside` in a sequence of its own, which it gives.
    pub(super) fn arm(
        &mut self,
        inside: impl FnOnce(&mut Self),
    ) -> Vec<crate::model::outline::Part> {
        self.scopes.outline.open();
        let bound = self.scopes.outline.bound();
        inside(self);
        self.scopes.outline.unbind(bound);
        self.scopes.outline.close()
    }

    fn condition(&self, expr: &Expr) -> Condition {
        self.reading(|reader| reader.condition(expr))
    }

    fn reading<T>(&self, read: impl FnOnce(&Reader<'_>) -> T) -> T {
        read(&Reader {
            decided: &|expr| self.decided(expr),
            looks: &|expr| !self.gates_in(expr).is_empty(),
        })
    }

    /// What an expression is, if a `version!` decided it: the number, or something that was made of it before.
    fn decided(&self, expr: &Expr) -> Option<Decided> {
        match expr {
            Expr::Await(of) => match peel(&of.base) {
                Expr::Macro(called)
                    if Durable::named(&called.mac.path) == Some(Durable::Version) =>
                {
                    match called.mac.tokens.clone().into_iter().next()? {
                        TokenTree::Ident(name) => {
                            let name = name::plain(&name.to_string());
                            Some(Decided::Number(self.scopes.path(&name)))
                        }
                        _ => None,
                    }
                }
                _ => None,
            },
            Expr::Path(path) => {
                let name = path.path.get_ident()?.to_string();
                self.scopes.outline.decided(&name).cloned()
            }
            _ => None,
        }
    }

    /// The same, or a condition on such numbers.
    pub(super) fn decision(&self, expr: &Expr) -> Option<Decided> {
        let expr = peel(expr);
        self.decided(expr).or_else(|| match self.condition(expr) {
            Condition::Free | Condition::Unread => None,
            condition => Some(Decided::Truth(condition)),
        })
    }

    /// The paths of the `version!`s that decide an expression: those in it, and those of what it looks at.
    pub(super) fn gates_in(&self, expr: &Expr) -> Vec<String> {
        let mut gates = Vec::new();
        self.gates_among(expr.to_token_stream(), &mut gates);
        gates.sort();
        gates.dedup();
        gates
    }

    fn gates_among(&self, tokens: TokenStream, gates: &mut Vec<String>) {
        let mut before: Option<String> = None;
        let mut is_version = false;
        for tree in tokens {
            match &tree {
                TokenTree::Ident(word) => {
                    let word = word.to_string();
                    gates.extend_from_slice(self.scopes.outline.gates_of(&word));
                    before = Some(word);
                    is_version = false;
                }
                TokenTree::Punct(punct) => {
                    let called = before.take().filter(|_| punct.as_char() == '!');
                    is_version = called.is_some_and(|word| word == Durable::Version.word());
                }
                TokenTree::Group(group) => {
                    if is_version
                        && let Some(TokenTree::Ident(name)) = group.stream().into_iter().next()
                    {
                        gates.push(self.scopes.path(&name::plain(&name.to_string())));
                    }
                    self.gates_among(group.stream(), gates);
                    (before, is_version) = (None, false);
                }
                TokenTree::Literal(_) => (before, is_version) = (None, false),
            }
        }
    }

    /// What `pat` binds is bound to what these `version!`s decided.
    pub(super) fn gated(&mut self, pat: &Pat, gates: &[String], decided: Option<&Decided>) {
        struct Names(Vec<String>);
        impl<'ast> Visit<'ast> for Names {
            fn visit_pat_ident(&mut self, bound: &'ast syn::PatIdent) {
                self.0.push(bound.ident.to_string());
            }
        }
        let mut names = Names(Vec::new());
        names.visit_pat(pat);
        // Of what is taken apart it is not known which is which.
        let decided = decided.filter(|_| matches!(pat, Pat::Ident(_) | Pat::Type(_)));
        for name in names.0 {
            self.scopes
                .outline
                .bind(name, gates.to_vec(), decided.cloned());
        }
    }
}
