//! Statements, and the attributes that may stand on them.

use std::collections::HashMap;

use syn::visit::{self, Visit};
use syn::visit_mut::VisitMut;
use syn::{Attribute, Expr, Lit, Local, Macro, Stmt};

use super::captures::assigned;
use super::{Bound, Given, Walk, name, nested, rules};
use crate::diagnostics::Place;
use crate::messages;
use crate::model::hints::{Generics, Reader};
use crate::syntax::{Durable, Mark, Settings, Value, peel, strip, take};

impl Walk<'_> {
    /// A statement of any kind.
    pub(super) fn statement(&mut self, stmt: &mut Stmt) {
        let around = std::mem::take(&mut self.hash_told);
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
                self.lifting(lifted, |walk| {
                    let Some(attr) = step else {
                        return walk.visit_expr_mut(expr);
                    };
                    walk.assignment(expr);
                    if let Some((left, right)) = assigned(expr) {
                        walk.visit_expr_mut(left);
                        walk.step_in_place(&attr, right, None);
                    }
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
            Stmt::Item(item) => nested::refuse(item),
        }
        self.hash_told = around;
    }

    /// Runs `inside` with `#[nondeterministic]` lifted, if the statement has one.
    pub(super) fn lifting(&mut self, attr: Option<Attribute>, inside: impl FnOnce(&mut Self)) {
        let Some(attr) = attr else {
            return inside(self);
        };
        let settings = Settings::of(&attr);
        let reason = settings.list.iter().any(|setting| {
            let text = matches!(&setting.value, Value::Equals(Expr::Lit(lit)) if matches!(&lit.lit, Lit::Str(text) if !text.value().trim().is_empty()));
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

    pub(super) fn local(&mut self, local: &mut Local) {
        let lifted = take(&mut local.attrs, Mark::Nondeterministic);
        let step = take(&mut local.attrs, Mark::Step);
        let key = take(&mut local.attrs, Mark::Key);
        if let Some(key) = &key {
            self.errors.push(Place::of(key), messages::KEY_NOT_ON_LOOP);
        }
        if let Some(carry) = take(&mut local.attrs, Mark::Carry) {
            // It is the loop's.
            match local.init.as_mut().map(|init| &mut *init.expr) {
                Some(Expr::Loop(of)) => of.attrs.push(carry),
                _ => self
                    .errors
                    .push(Place::of(&carry), messages::CARRY_NOT_ON_LOOP),
            }
        }
        let (gates, decided) = match &local.init {
            // `let new = version!(..).await >= 2;`: what is made of it by a call is no longer a choice.
            Some(init) if is_choice(&init.expr) => {
                (self.gates_in(&init.expr), self.decision(&init.expr))
            }
            _ => (Vec::new(), None),
        };
        let reader = Reader {
            generics: &self.generics,
            bound: &self.bound,
        };
        let mut hints = reader.local(local);
        self.annotated = annotated(local, step.is_some(), &self.generics);
        self.lifting(lifted, |walk| {
            walk.visit_pat_mut(&mut local.pat);
            let Some(init) = &mut local.init else {
                if let Some(step) = &step {
                    walk.errors.push(Place::of(step), messages::STEP_ON_NOTHING);
                }
                return;
            };
            if let Some(step) = &step {
                let pat = local.pat.clone();
                walk.step_in_place(step, &mut init.expr, Some(&pat));
            } else {
                let sorted = usize::from(is_sorted(&local.pat));
                walk.blind += sorted;
                walk.visit_expr_mut(&mut init.expr);
                walk.blind -= sorted;
            }
            if let Some((_, diverge)) = &mut init.diverge {
                let otherwise = walk.arm(|walk| walk.visit_expr_mut(diverge));
                let arms = vec![otherwise, Vec::new()];
                walk.scopes.outline.choice(arms);
            }
        });
        self.annotated = None;
        self.gated(&local.pat, &gates, decided.as_ref());
        let bound = self.bound.len();
        self.shadow(&local.pat);
        for named in &mut self.bound[bound..] {
            // Without a value it cannot be looked at.
            named.has_value = local.init.is_some();
            named.ty = hints.remove(&named.name.to_string());
        }
    }

    /// What this pattern binds is no longer a parameter, until the block ends.
    pub(super) fn shadow(&mut self, pat: &syn::Pat) {
        struct Binds<'a>(&'a mut HashMap<String, Given>, &'a mut Vec<Bound>);
        impl<'ast> Visit<'ast> for Binds<'_> {
            fn visit_pat_ident(&mut self, bound: &'ast syn::PatIdent) {
                self.0.remove(&bound.ident.to_string());
                self.1.push(Bound::new(bound.ident.clone()));
                visit::visit_pat_ident(self, bound);
            }
        }
        Binds(&mut self.given, &mut self.bound).visit_pat(pat);
    }

    /// A macro as a statement of its own, so without `.await`.
    pub(super) fn statement_macro(&mut self, mac: &mut Macro, step: Option<&Attribute>) {
        let Some(durable) = Durable::named(&mac.path) else {
            if let Some(step) = step {
                self.errors.push(Place::of(step), messages::STEP_ON_NOTHING);
            }
            return self.foreign(mac);
        };
        self.unawaited(durable, mac);
    }
}

/// Whether what is bound here has an order of its own, by the type it is given.
fn is_sorted(pat: &syn::Pat) -> bool {
    matches!(pat, syn::Pat::Type(typed) if rules::is_sorted(&typed.ty))
}

/// The type that a `let` gives to the value of a durable operation, as written, if that is all that stands on its right side.
fn annotated(local: &Local, is_step: bool, generics: &Generics) -> Option<String> {
    let syn::Pat::Type(typed) = &local.pat else {
        return None;
    };
    let value = &local.init.as_ref()?.expr;
    let (is_tried, value) = match peel(value) {
        Expr::Try(tried) => (true, peel(&tried.expr)),
        value => (false, value),
    };
    // In a block that is no step, something else may be awaited before.
    if !is_step && !matches!(value, Expr::Await(_)) {
        return None;
    }
    if is_tried {
        return generics.text(&typed.ty);
    }
    generics.written(name::ok_type(&typed.ty)?)
}

/// Whether an expression only looks at what it names.
fn is_choice(expr: &Expr) -> bool {
    match peel(expr) {
        Expr::Await(of) => {
            matches!(peel(&of.base), Expr::Macro(called) if Durable::named(&called.mac.path) == Some(Durable::Version))
        }
        Expr::Binary(of) => is_choice(&of.left) && is_choice(&of.right),
        Expr::Unary(of) => is_choice(&of.expr),
        Expr::Path(_) | Expr::Lit(_) | Expr::Macro(_) => true,
        _ => false,
    }
}
