//! Loops: one that does something durable has a label, and each of its iterations is a scope.

use proc_macro2::Span;
use syn::visit::Visit;
use syn::visit_mut::VisitMut;
use syn::{Attribute, Expr, Label, Lifetime};

use super::{Frame, Kind, Walk, name, print};
use crate::diagnostics::Place;
use crate::messages;
use crate::model::{Jump, Part, options};
use crate::syntax::{Durable, Mark, take};

impl Walk<'_> {
    pub(super) fn any_loop(&mut self, expr: &mut Expr) {
        let attrs = match expr {
            Expr::ForLoop(of) => &mut of.attrs,
            Expr::While(of) => &mut of.attrs,
            Expr::Loop(of) => &mut of.attrs,
            _ => return,
        };
        let (key, carry) = (take(attrs, Mark::Key), take(attrs, Mark::Carry));
        let (given, bound) = (self.given.clone(), self.bound.len());
        if self.apart.is_empty() && is_durable(expr) {
            self.durable_loop(expr, key.as_ref(), carry.as_ref());
        } else {
            if let Some(key) = &key {
                self.errors.push(Place::of(key), messages::KEY_NOT_ON_LOOP);
            }
            if let Some(carry) = &carry {
                self.errors
                    .push(Place::of(carry), messages::CARRY_NOT_ON_LOOP);
            }
            self.plain_loop(expr);
        }
        self.given = given;
        self.bound.truncate(bound);
    }

    fn plain_loop(&mut self, expr: &mut Expr) {
        let label = match expr {
            Expr::ForLoop(of) => {
                self.visit_pat_mut(&mut of.pat);
                self.in_order(&of.expr);
                self.visit_expr_mut(&mut of.expr);
                self.shadow(&of.pat);
                of.label.clone()
            }
            Expr::While(of) => of.label.clone(),
            Expr::Loop(of) => of.label.clone(),
            _ => None,
        };
        let label = label.map(|label| label.name.ident.to_string());
        // Nothing durable stands in it. What jumps out of what is around it is one of its ways.
        self.scopes.outline.open();
        self.frames.0.push(Frame::Loop(label.clone()));
        match expr {
            Expr::ForLoop(of) => self.visit_block_mut(&mut of.body),
            Expr::While(of) => {
                self.visit_expr_mut(&mut of.cond);
                self.visit_block_mut(&mut of.body);
            }
            Expr::Loop(of) => self.visit_block_mut(&mut of.body),
            _ => {}
        }
        self.frames.0.pop();
        let mut ways = vec![Vec::new()];
        let own = label.as_deref().map(name::plain);
        outward(self.scopes.outline.close(), own.as_deref(), &mut ways);
        self.scopes.outline.choice(ways);
    }

    fn durable_loop(
        &mut self,
        expr: &mut Expr,
        key: Option<&Attribute>,
        carry: Option<&Attribute>,
    ) {
        let (word, place, label, iterated) = match expr {
            Expr::ForLoop(of) => (
                "for",
                Place::from(of.for_token.span),
                &mut of.label,
                Some(&*of.expr),
            ),
            Expr::While(of) => ("while", of.while_token.span.into(), &mut of.label, None),
            Expr::Loop(of) => ("loop", of.loop_token.span.into(), &mut of.label, None),
            _ => return,
        };
        let suggested = name::label_for(iterated);
        // Reported below, and then named as no other is, so that nothing follows from it.
        let missing = format!("__workflow_unlabelled_{}", self.scopes.sites.len());
        let label = label.get_or_insert_with(|| {
            self.errors
                .push(place, messages::NO_LABEL.with(&[word, &suggested]));
            Label {
                name: Lifetime::new(&format!("'{missing}"), Span::mixed_site()),
                colon_token: syn::token::Colon(place.first),
            }
        });
        let label = label.name.clone();
        let text = name::plain(&label.ident.to_string());
        if !name::is_name(&text) {
            self.errors.push(
                label.span(),
                messages::NAME_SHAPE.with(&[&text, &name::like(&text)]),
            );
        }
        let mut key = key.and_then(|attr| self.key(attr, word));
        if let Some(carry) = carry
            && key.take().is_some()
        {
            self.errors.push(Place::of(carry), messages::CARRY_AND_KEY);
        }
        let carried = carry.and_then(|attr| self.carried(attr, expr));
        let locals = carried.as_ref().map(|carried| self.locals(carried));

        // What is iterated over belongs to the scope around.
        if let Expr::ForLoop(of) = expr {
            self.visit_pat_mut(&mut of.pat);
            self.in_order(&of.expr);
            self.visit_expr_mut(&mut of.expr);
            self.shadow(&of.pat);
        }
        let prefix = format!("{}[]/", self.scopes.path(&text));
        let of = self.scopes.next();
        let site = self.site(text, Kind::Loop, label.span().into());
        if let Some(details) = self.scopes.details() {
            details.carried = locals;
            details.is_keyed = key.is_some();
            details.is_endless = word == "loop";
        }
        let outer = self.cx();
        let inner = self.new_cx();
        self.scopes.enter(prefix);
        self.cx.push(inner.clone());
        let around = self.frames.0.len();
        if let Some(carried) = &carried {
            self.frames.0.push(Frame::Carried(carried.names()));
        }
        self.frames
            .0
            .push(Frame::Loop(Some(label.ident.to_string())));
        match expr {
            Expr::ForLoop(of) => self.visit_block_mut(&mut of.body),
            Expr::While(of) => {
                // The condition belongs to the iteration that it guards.
                self.visit_expr_mut(&mut of.cond);
                self.visit_block_mut(&mut of.body);
            }
            Expr::Loop(of) => self.visit_block_mut(&mut of.body),
            _ => {}
        }
        self.frames.0.truncate(around);
        self.cx.pop();
        let declared = self.scopes.leave(of, None);
        print::any_loop(
            expr,
            &print::Entered {
                label,
                outer,
                inner,
                site,
                key,
                carried,
                declared,
            },
            self.krate,
        );
    }

    fn key(&mut self, attr: &Attribute, word: &str) -> Option<Expr> {
        if word != "for" {
            self.errors.push(Place::of(attr), messages::KEY_NOT_ON_LOOP);
            return None;
        }
        let key = match &attr.meta {
            syn::Meta::List(list) => options::key(list.tokens.clone()),
            _ => None,
        };
        if key.is_none() {
            self.errors.push(Place::of(attr), messages::KEY_VALUE);
        }
        key
    }
}

/// The jumps in a loop of this label that leave more than it, each once.
fn outward(parts: Vec<Part>, own: Option<&str>, ways: &mut Vec<Vec<Part>>) {
    for part in parts {
        match part {
            Part::Leaves(jump) => {
                let is_outward = match &jump {
                    Jump::Return => true,
                    Jump::Continue(label) | Jump::Break(label) => {
                        label.is_some() && label.as_deref() != own
                    }
                };
                let known = |way: &Vec<Part>| matches!(way[..], [Part::Leaves(ref known)] if *known == jump);
                if is_outward && !ways.iter().any(known) {
                    ways.push(vec![Part::Leaves(jump)]);
                }
            }
            Part::Choice { arms, .. } => {
                for arm in arms {
                    outward(arm, own, ways);
                }
            }
            Part::Site { .. } => {}
        }
    }
}

/// Whether something durable stands in a loop's condition or body.
fn is_durable(expr: &Expr) -> bool {
    let mut finder = Finder(false);
    match expr {
        Expr::ForLoop(of) => finder.visit_block(&of.body),
        Expr::While(of) => {
            finder.visit_expr(&of.cond);
            finder.visit_block(&of.body);
        }
        Expr::Loop(of) => finder.visit_block(&of.body),
        _ => {}
    }
    finder.0
}

struct Finder(bool);

impl<'ast> Visit<'ast> for Finder {
    fn visit_attribute(&mut self, attr: &'ast Attribute) {
        self.0 |= attr
            .path()
            .segments
            .last()
            .is_some_and(|last| last.ident == "step");
    }

    fn visit_expr_await(&mut self, _: &'ast syn::ExprAwait) {
        self.0 = true;
    }

    fn visit_macro(&mut self, mac: &'ast syn::Macro) {
        self.0 |= Durable::named(&mac.path).is_some();
    }

    // What stands in these is refused where it stands, and that is told once.
    fn visit_expr_closure(&mut self, _: &'ast syn::ExprClosure) {}

    fn visit_expr_async(&mut self, _: &'ast syn::ExprAsync) {}

    fn visit_item(&mut self, _: &'ast syn::Item) {}
}
