//! Macros that are not ours, and paths that may not be named.

use proc_macro2::{Ident, Span};
use syn::Macro;

use super::{Walk, name, rules};
use crate::diagnostics::Place;
use crate::messages;
use crate::syntax::{Durable, Seen, seen};

impl Walk<'_> {
    /// A macro that is not ours: its tokens are not known to be expressions, but some things can be seen in them.
    pub(super) fn foreign(&mut self, mac: &Macro) {
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
    pub(super) fn path(&mut self, words: &[Ident]) {
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
