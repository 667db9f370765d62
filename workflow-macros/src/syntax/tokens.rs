//! What can be seen in tokens that are no expressions yet: the input of a macro that is not ours.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};

/// Something seen in tokens.
#[derive(Debug)]
pub(crate) enum Seen {
    /// `.await`
    Await(Span),
    /// `path!(..)`, by the words of its path.
    Macro(Vec<Ident>),
    /// A path or a plain word.
    Path(Vec<Ident>),
}

/// All that can be seen, in source order.
pub(crate) fn seen(tokens: TokenStream) -> Vec<Seen> {
    let mut found = Vec::new();
    look(tokens, &mut found);
    found
}

fn look(tokens: TokenStream, found: &mut Vec<Seen>) {
    let trees: Vec<_> = tokens.into_iter().collect();
    let mut at = 0;
    while at < trees.len() {
        match &trees[at] {
            TokenTree::Group(group) => look(group.stream(), found),
            TokenTree::Ident(word) if is_member(&trees, at) => {
                if *word == "await" {
                    found.push(Seen::Await(word.span()));
                }
            }
            TokenTree::Ident(word) => {
                let mut path = vec![word.clone()];
                at = follow(&trees, at + 1, &mut path);
                let is_macro = is_punct(&trees, at, '!')
                    && matches!(trees.get(at + 1), Some(TokenTree::Group(_)));
                found.push(if is_macro {
                    Seen::Macro(path)
                } else {
                    Seen::Path(path)
                });
                continue;
            }
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
        at += 1;
    }
}

/// Reads on after the first word of a path: `::word` and `::<..>`. Gives where it ends.
fn follow(trees: &[TokenTree], mut at: usize, path: &mut Vec<Ident>) -> usize {
    while is_punct(trees, at, ':') && is_punct(trees, at + 1, ':') {
        if let Some(TokenTree::Ident(word)) = trees.get(at + 2) {
            path.push(word.clone());
            at += 3;
        } else if is_punct(trees, at + 2, '<') {
            let mut depth = 1;
            at += 3;
            while depth > 0 && at < trees.len() {
                depth += i32::from(is_punct(trees, at, '<')) - i32::from(is_punct(trees, at, '>'));
                at += 1;
            }
        } else {
            break;
        }
    }
    at
}

/// Whether the word at `at` follows a single dot.
fn is_member(trees: &[TokenTree], at: usize) -> bool {
    at > 0 && is_punct(trees, at - 1, '.') && !(at > 1 && is_punct(trees, at - 2, '.'))
}

fn is_punct(trees: &[TokenTree], at: usize, char: char) -> bool {
    matches!(trees.get(at), Some(TokenTree::Punct(punct)) if punct.as_char() == char)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(source: &str) -> Vec<String> {
        let words = |path: Vec<Ident>| {
            path.iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join("::")
        };
        seen(source.parse().unwrap())
            .into_iter()
            .map(|seen| match seen {
                Seen::Await(_) => ".await".into(),
                Seen::Macro(path) => words(path) + "!",
                Seen::Path(path) => words(path),
            })
            .collect()
    }

    #[test]
    fn awaits_macros_and_paths_are_seen_in_tokens() {
        assert_eq!(
            shown(r#""{}", a::b::<Vec<u8>>::c(x.y).await"#),
            ["a::b::c", "x", ".await"]
        );
        assert_eq!(
            shown("[sleep!(w, t), a != b, 0..await_it]"),
            ["sleep!", "w", "t", "a", "b", "await_it"]
        );
    }
}
