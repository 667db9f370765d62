//! Everything that was found wrong, reported together and in source order.
//!
//! What can be wrong is listed in [`crate::messages`]; here it is collected and turned into `compile_error!`.

use std::thread;

use proc_macro2::{Delimiter, Group, Ident, Literal, Punct, Spacing, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote};

use crate::messages::Text;

/// The tokens an error is underlined at: from the first to the last.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub(crate) first: Span,
    pub(crate) last: Span,
}

impl Place {
    /// All of `tokens`.
    pub(crate) fn of(tokens: &impl ToTokens) -> Self {
        let mut trees = tokens.to_token_stream().into_iter().map(|tree| ends(&tree));
        let (first, only) = trees
            .next()
            .unwrap_or((Span::call_site(), Span::call_site()));
        Self {
            first,
            last: trees.last().map_or(only, |(_, last)| last),
        }
    }

    /// From the beginning of this place to the end of `other`.
    pub(crate) fn to(self, other: Self) -> Self {
        Self {
            first: self.first,
            last: other.last,
        }
    }

    /// Line (from 1) and column (from 0) of its first token; (1, 0) where the compiler does not tell, as in an editor.
    pub(crate) fn position(self) -> (usize, usize) {
        position(self.first)
    }

    /// The file of its first token, where the compiler tells.
    pub(crate) fn file(self) -> Option<String> {
        file(self.first)
    }

    /// `src/orders.rs:31:5`, where the compiler tells.
    pub(crate) fn described(self) -> Option<String> {
        let file = file(self.first)?;
        let (line, column) = self.position();
        Some(format!("{file}:{line}:{}", column + 1))
    }
}

impl From<Span> for Place {
    fn from(span: Span) -> Self {
        Self {
            first: span,
            last: span,
        }
    }
}

/// One thing that is wrong.
#[derive(Debug)]
pub(crate) struct Report {
    place: Place,
    text: String,
    /// It is one only where this is met: `feature = "gifts"`.
    under: Option<TokenStream>,
}

impl Report {
    pub(crate) fn new(place: impl Into<Place>, text: impl Into<Text>) -> Self {
        Self {
            place: place.into(),
            text: text.into().into_string(),
            under: None,
        }
    }

    /// The same in builds only in which a condition is met. It is then an item or a statement, and no expression.
    pub(crate) fn under(self, condition: &str) -> Self {
        Self {
            under: condition.parse().ok(),
            ..self
        }
    }

    #[cfg(test)]
    pub(crate) fn text(&self) -> &str {
        &self.text
    }
}

impl From<syn::Error> for Report {
    fn from(error: syn::Error) -> Self {
        Self {
            place: error.span().into(),
            text: error.to_string(),
            under: None,
        }
    }
}

/// `::core::compile_error! { ".." }`, underlined at its place: an item, a statement or an expression.
impl ToTokens for Report {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        let Place { first, last } = self.place;
        let punct = |char, spacing| {
            let mut punct = Punct::new(char, spacing);
            punct.set_span(first);
            TokenTree::Punct(punct)
        };
        let mut text = Literal::string(&self.text);
        text.set_span(last);
        let mut group = Group::new(Delimiter::Brace, TokenTree::Literal(text).into());
        group.set_span(last);
        if let Some(condition) = &self.under {
            tokens.extend(quote!(#[cfg(#condition)]));
        }
        tokens.extend([
            punct(':', Spacing::Joint),
            punct(':', Spacing::Alone),
            TokenTree::Ident(Ident::new("core", first)),
            punct(':', Spacing::Joint),
            punct(':', Spacing::Alone),
            TokenTree::Ident(Ident::new("compile_error", first)),
            punct('!', Spacing::Alone),
            TokenTree::Group(group),
        ]);
    }
}

/// What is wrong so far. Must be [finished](Errors::finish): dropping it unread is a bug, and panics.
#[derive(Default)]
pub(crate) struct Errors {
    reports: Vec<Report>,
    finished: bool,
}

impl Errors {
    /// Something is wrong at `place`.
    pub(crate) fn push(&mut self, place: impl Into<Place>, text: impl Into<Text>) {
        self.add(Report::new(place, text));
    }

    /// Something is wrong, as already written down.
    pub(crate) fn add(&mut self, report: Report) {
        self.reports.push(report);
    }

    /// How many there are so far.
    pub(crate) fn count(&self) -> usize {
        self.reports.len()
    }

    /// All of it, in source order.
    pub(crate) fn finish(mut self) -> Vec<Report> {
        self.finished = true;
        let mut reports = std::mem::take(&mut self.reports);
        reports.sort_by_key(|report| report.place.position());
        reports
    }
}

impl Drop for Errors {
    fn drop(&mut self) {
        assert!(
            self.finished || thread::panicking(),
            "errors were collected and not reported: {:?}",
            self.reports
        );
    }
}

/// The spans of a tree's first and last token. Of a group that is what stands in it only when its delimiters are
/// invisible.
fn ends(tree: &TokenTree) -> (Span, Span) {
    match tree {
        TokenTree::Group(group) if group.delimiter() == Delimiter::None => {
            let mut trees = group.stream().into_iter();
            let Some(first) = trees.next() else {
                return (group.span(), group.span());
            };
            let (first, only) = ends(&first);
            (first, trees.last().map_or(only, |last| ends(&last).1))
        }
        TokenTree::Group(group) => (group.span_open(), group.span_close()),
        tree => (tree.span(), tree.span()),
    }
}

#[cfg(not(test))]
fn position(span: Span) -> (usize, usize) {
    if proc_macro::is_available() {
        let span = span.unwrap();
        (span.line(), span.column().saturating_sub(1))
    } else {
        (1, 0)
    }
}

#[cfg(test)]
fn position(span: Span) -> (usize, usize) {
    (span.start().line, span.start().column)
}

fn file(span: Span) -> Option<String> {
    let file = proc_macro::is_available().then(|| span.unwrap().file())?;
    (!file.is_empty()).then_some(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages;

    #[test]
    #[should_panic(expected = "errors were collected and not reported")]
    fn errors_that_are_dropped_unread_are_a_bug() {
        let mut errors = Errors::default();
        errors.push(
            Span::call_site(),
            messages::NO_LABEL.with(&["for", "items"]),
        );
    }

    #[test]
    fn reports_come_in_source_order_whatever_was_found_first() {
        let tokens: Vec<_> = "a\nb\nc"
            .parse::<TokenStream>()
            .unwrap()
            .into_iter()
            .collect();
        let mut errors = Errors::default();
        for index in [2, 0, 1] {
            errors.push(
                tokens[index].span(),
                messages::NO_LABEL.with(&[&tokens[index].to_string(), "items"]),
            );
        }
        let said: Vec<_> = errors
            .finish()
            .iter()
            .map(|report| report.text().chars().nth(8).unwrap())
            .collect();
        let firsts: Vec<_> = "abc".chars().collect();
        assert_eq!(said.len(), firsts.len());
    }
}
