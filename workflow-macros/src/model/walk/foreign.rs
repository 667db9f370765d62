//! Macros that are not ours, and paths that may not be named.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::visit_mut::{self, VisitMut};
use syn::{Expr, ExprPath, Macro, Path};

use super::{Apart, Given, Walk, name, rules};
use crate::diagnostics::Place;
use crate::messages;
use crate::syntax::{Durable, Seen, peel, seen};

impl Walk<'_> {
    /// A macro that is not ours. What it does with its input is not known, so nothing durable may stand there.
    pub(super) fn foreign(&mut self, mac: &mut Macro) {
        let path = words(&mac.path);
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
        if self.lifted == 0
            && let Some(message) = rules::refused_macro(&path)
        {
            self.errors
                .push(Place::of(&mac.path), message.with(&[&format!("{shown}!")]));
        }
        match bracketed(&mac.tokens) {
            Some(mut list) => {
                let before = self.errors.count();
                self.apart(Apart::Macro(shown), |walk| walk.foreign_list(&mut list));
                // Otherwise the tokens stay the user's, whatever the macro looks at in them.
                if self.errors.count() > before {
                    mac.tokens = unbracketed(&list);
                }
            }
            None => self.foreign_tokens(&mac.tokens, &shown),
        }
    }

    /// Its input is a list of expressions, as most are: the rules hold in them.
    fn foreign_list(&mut self, list: &mut Expr) {
        let Expr::Array(list) = list else {
            return visit_mut::visit_expr_mut(self, list);
        };
        for expr in &mut list.elems {
            match expr {
                // `println!("{n}", n = 1)`: `n` is no place.
                Expr::Assign(named) => self.visit_expr_mut(&mut named.right),
                expr => self.visit_expr_mut(expr),
            }
        }
    }

    /// Its input is something else, in which some things can be seen all the same.
    fn foreign_tokens(&mut self, tokens: &TokenStream, shown: &str) {
        for seen in seen(tokens.clone()) {
            match seen {
                Seen::Await(span) => self
                    .errors
                    .push(span, messages::IN_FOREIGN_MACRO.with(&[shown])),
                Seen::Macro(words) => {
                    let spelled: Vec<String> = words.iter().map(ToString::to_string).collect();
                    if Durable::spelled(&spelled).is_some() {
                        self.errors
                            .push(place_of(&words), messages::IN_FOREIGN_MACRO.with(&[shown]));
                    } else {
                        self.path(&words);
                    }
                }
                Seen::Path(words) => self.path(&words),
            }
        }
    }

    /// A path, or a plain word, is named in the body.
    pub(super) fn path(&mut self, words: &[Ident]) {
        if self.in_step() {
            return;
        }
        if let [word] = words
            && self.in_site == 0
            && self.given.get(&word.to_string()) == Some(&Given::State)
        {
            return self.errors.push(
                word.span(),
                messages::STATE_READ.with(&[&name::plain(&word.to_string())]),
            );
        }
        if self.lifted == 0
            && let Some((message, shown)) = rules::refused(words)
            && !(message.is(messages::HASH_ORDER) && std::mem::replace(&mut self.hash_told, true))
        {
            self.errors.push(place_of(words), message.with(&[&shown]));
        }
    }

    /// An expression that is a path: of a value, or of a function with what is given to it.
    pub(super) fn named(&mut self, path: &mut ExprPath) {
        match &mut path.qself {
            Some(of) => self.visit_qself_mut(of),
            None => self.path(&words(&path.path)),
        }
        for segment in &mut path.path.segments {
            self.visit_path_arguments_mut(&mut segment.arguments);
        }
    }

    /// A method of something that is there by name: of a `static`, or of a parameter that has no order.
    pub(super) fn method_call(&mut self, expr: &mut Expr) {
        let Expr::MethodCall(call) = &*expr else {
            return;
        };
        if let Expr::Path(owner) = peel(&call.receiver)
            && self.lifted == 0
            && !self.in_step()
        {
            if rules::is_of_a_static(&owner.path, &call.method) {
                let (owner, method) = (words(&owner.path), &call.method);
                let shown: Vec<_> = owner.iter().map(ToString::to_string).collect();
                let shown = format!("{}.{method}", shown.join("::"));
                self.errors.push(
                    place_of(&owner).to(method.span().into()),
                    messages::SHARED.with(&[&shown]),
                );
            }
            if rules::is_in_order(&call.method) {
                self.in_order(&call.receiver);
            }
        }
        let blind = usize::from(rules::is_blind_to_order(call));
        self.blind += blind;
        visit_mut::visit_expr_mut(self, expr);
        self.blind -= blind;
    }

    /// The order of this is seen: it is iterated over.
    pub(super) fn in_order(&mut self, expr: &Expr) {
        let mut expr = peel(expr);
        while let Expr::Reference(lent) = expr {
            expr = peel(&lent.expr);
        }
        if self.lifted == 0
            && self.blind == 0
            && !self.in_step()
            && let Expr::Path(path) = expr
            && let Some(name) = path.path.get_ident()
            && let Some(Given::Unordered(ty)) = self.given.get(&name.to_string())
        {
            let ordered = if ty.ends_with("Set") {
                "BTreeSet"
            } else {
                "BTreeMap"
            };
            self.errors.push(
                name.span(),
                messages::HASH_PARAMETER.with(&[&name::plain(&name.to_string()), ty, ordered]),
            );
        }
    }

    /// A type is written in the body, not behind a reference: so a value of it is made here.
    pub(super) fn owned_type(&mut self, path: &Path) {
        if self.in_step() || self.lifted > 0 {
            return;
        }
        if let Some(name) = rules::unordered(path)
            && !std::mem::replace(&mut self.hash_told, true)
        {
            self.errors
                .push(Place::of(path), messages::HASH_ORDER.with(&[name]));
        }
    }
}

/// A macro's input, `a, b` or `a; n`, as the `[a, b]` or `[a; n]` that it would be in brackets.
fn bracketed(tokens: &TokenStream) -> Option<Expr> {
    let list = syn::parse2(quote!([#tokens])).ok()?;
    matches!(list, Expr::Array(_) | Expr::Repeat(_)).then_some(list)
}

fn unbracketed(list: &Expr) -> TokenStream {
    match list.to_token_stream().into_iter().next() {
        Some(TokenTree::Group(inside)) => inside.stream(),
        _ => TokenStream::new(),
    }
}

/// The words of a path, without what is given to them.
pub(super) fn words(path: &Path) -> Vec<Ident> {
    path.segments
        .iter()
        .map(|segment| segment.ident.clone())
        .collect()
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
