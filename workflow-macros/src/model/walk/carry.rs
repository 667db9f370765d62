//! `#[carry(..)]`: a loop that is started again from its locals.

use std::collections::HashSet;

use proc_macro2::{Span, TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, Block, Expr, Label, Lifetime, Macro};

use super::{Own, Walk, name, print};
use crate::diagnostics::Place;
use crate::messages;
use crate::model::Carried;
use crate::syntax::{Settings, Value, peel};

impl Walk<'_> {
    /// What `#[carry]` on a loop says.
    pub(super) fn carried(&mut self, attr: &Attribute, expr: &Expr) -> Option<print::Carried> {
        let settings = Settings::of(attr);
        let mut carried = print::Carried {
            locals: Vec::new(),
            every: None,
            keep: None,
            held: Vec::new(),
            at: list(attr),
            ends: false,
        };
        for setting in settings.list {
            let place = setting.place();
            let word = setting.name.to_string();
            match (word.as_str(), setting.value) {
                ("every" | "keep", Value::Equals(value)) if is_zero(&value) => {
                    let written = format!("{word} = 20");
                    self.errors
                        .push(place, messages::OPTION_VALUE.with(&[&word, &written]));
                }
                ("every", Value::Equals(value)) if carried.every.is_none() => {
                    carried.every = Some(value);
                }
                ("keep", Value::Equals(value)) if carried.keep.is_none() => {
                    carried.keep = Some(value);
                }
                (_, Value::Nothing) if !carried.locals.contains(&setting.name) => {
                    carried.locals.push(setting.name);
                }
                (_, Value::Nothing) | ("every" | "keep", Value::Equals(_)) => self
                    .errors
                    .push(place, messages::OPTION_REPEATED.with(&[&word])),
                _ => self.errors.push(place, messages::CARRY_LIST),
            }
        }
        if let Some(broken) = settings.broken {
            self.errors.push(broken.span(), messages::CARRY_LIST);
            return None;
        }
        if carried.locals.is_empty() {
            self.errors.push(Place::of(attr), messages::CARRY_LIST);
            return None;
        }
        let mut body = Body::default();
        let own = match expr {
            Expr::ForLoop(of) => {
                body.of(&of.body, of.label.as_ref());
                Own::of_block(&of.body).and(&of.pat)
            }
            Expr::While(of) => {
                body.visit_expr(&of.cond);
                body.of(&of.body, of.label.as_ref());
                Own::of_block(&of.body).and_expr(&of.cond)
            }
            Expr::Loop(of) => {
                body.of(&of.body, of.label.as_ref());
                Own::of_block(&of.body)
            }
            _ => return None,
        };
        carried.ends = body.ends || !matches!(expr, Expr::Loop(_));
        let mut seen = HashSet::new();
        for local in self.bound.iter().rev().filter(|local| local.has_value) {
            let name = local.name.to_string();
            let is_constant = name.starts_with(char::is_uppercase);
            let is_carried = carried.locals.iter().any(|carried| *carried == name);
            if body.words.contains(&name)
                && !is_constant
                && !is_carried
                && !own.binds(&name)
                && seen.insert(name)
            {
                carried.held.push(local.name.clone());
            }
        }
        Some(carried)
    }

    /// What the loop that was just found carries, for the lock and the graph.
    pub(super) fn locals(&self, carried: &print::Carried) -> Vec<Carried> {
        let locals = carried.locals.iter().map(|local| {
            let mut bound = self.bound.iter().rev();
            let bound = bound.find(|bound| bound.name == *local);
            Carried {
                name: name::plain(&local.to_string()),
                place: local.span().into(),
                ty: bound.and_then(|bound| bound.ty.clone()),
            }
        });
        locals.collect()
    }
}

fn is_zero(value: &Expr) -> bool {
    match peel(value) {
        Expr::Lit(literal) => {
            matches!(&literal.lit, syn::Lit::Int(number) if number.base10_digits() == "0")
        }
        _ => false,
    }
}

/// Where the list stands, as a whole.
fn list(attr: &Attribute) -> Span {
    match &attr.meta {
        syn::Meta::List(list) => list.delimiter.span().join(),
        _ => Place::of(attr).first,
    }
}

/// What stands in a loop's body: the words that may be locals, and whether something leaves it by `break`.
#[derive(Default)]
struct Body {
    words: HashSet<String>,
    label: Option<Lifetime>,
    /// How many loops are around, within it.
    depth: usize,
    ends: bool,
}

impl Body {
    fn of(&mut self, block: &Block, label: Option<&Label>) {
        self.label = label.map(|label| label.name.clone());
        self.visit_block(block);
    }

    fn tokens(&mut self, tokens: TokenStream) {
        for tree in tokens {
            match tree {
                TokenTree::Ident(word) => {
                    self.words.insert(word.to_string());
                }
                TokenTree::Group(group) => self.tokens(group.stream()),
                TokenTree::Punct(_) | TokenTree::Literal(_) => {}
            }
        }
    }

    fn inner(&mut self, inside: impl FnOnce(&mut Self)) {
        self.depth += 1;
        inside(self);
        self.depth -= 1;
    }
}

impl<'ast> Visit<'ast> for Body {
    fn visit_expr_path(&mut self, path: &'ast syn::ExprPath) {
        if let Some(word) = path.path.get_ident() {
            self.words.insert(word.to_string());
        }
    }

    fn visit_macro(&mut self, mac: &'ast Macro) {
        self.tokens(mac.tokens.clone());
    }

    fn visit_expr_break(&mut self, of: &'ast syn::ExprBreak) {
        self.ends |= match &of.label {
            Some(label) => self
                .label
                .as_ref()
                .is_some_and(|own| own.ident == label.ident),
            None => self.depth == 0,
        };
        visit::visit_expr_break(self, of);
    }

    fn visit_expr_for_loop(&mut self, of: &'ast syn::ExprForLoop) {
        self.inner(|body| visit::visit_expr_for_loop(body, of));
    }

    fn visit_expr_while(&mut self, of: &'ast syn::ExprWhile) {
        self.inner(|body| visit::visit_expr_while(body, of));
    }

    fn visit_expr_loop(&mut self, of: &'ast syn::ExprLoop) {
        self.inner(|body| visit::visit_expr_loop(body, of));
    }
}
