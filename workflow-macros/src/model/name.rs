//! Names: what the user wrote, never a number.

use proc_macro2::{Delimiter, Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::{Expr, ExprMethodCall, GenericArgument, Pat, PathArguments, Type};

use crate::syntax::peel;

/// A letter or `_`, then letters, digits, `_` and `-`; ASCII.
pub(crate) fn is_name(text: &str) -> bool {
    let mut chars = text.chars();
    chars
        .next()
        .is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && chars.all(|char| char.is_ascii_alphanumeric() || matches!(char, '_' | '-'))
}

/// A name that is like this text.
pub(crate) fn like(text: &str) -> String {
    let mut name: String = text
        .chars()
        .map(|char| {
            if char.is_ascii_alphanumeric() {
                char
            } else {
                '_'
            }
        })
        .collect();
    if !name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_') {
        name.insert(0, '_');
    }
    name
}

/// The name of what is called: the last segment of a path, or the method.
pub(crate) fn callee(expr: &Expr) -> Option<(String, Span)> {
    match peel(expr) {
        Expr::Call(call) => match peel(&call.func) {
            Expr::Path(path) => {
                let last = path.path.segments.last()?;
                Some((plain(&last.ident.to_string()), last.ident.span()))
            }
            _ => None,
        },
        // What a call of a workflow is told of how to run says nothing of what is called.
        Expr::MethodCall(call)
            if matches!(peel(&call.receiver), Expr::Call(_) | Expr::MethodCall(_))
                && (is_detach(call) || is_term(call)) =>
        {
            callee(&call.receiver)
        }
        Expr::MethodCall(call) => Some((plain(&call.method.to_string()), call.method.span())),
        Expr::Await(awaited) => callee(&awaited.base),
        Expr::Try(tried) => callee(&tried.expr),
        Expr::Reference(reference) => callee(&reference.expr),
        _ => None,
    }
}

/// The name without `r#`.
pub(crate) fn plain(name: &str) -> String {
    name.strip_prefix("r#").unwrap_or(name).to_owned()
}

/// A name that could be given to what has none.
pub(crate) fn suggestion(pattern: Option<&Pat>) -> String {
    match pattern {
        Some(Pat::Ident(ident)) => plain(&ident.ident.to_string()),
        Some(Pat::Type(typed)) => suggestion(Some(&typed.pat)),
        _ => "my_step".to_owned(),
    }
}

/// A label for a loop over this.
pub(crate) fn label_for(iterated: Option<&Expr>) -> String {
    let name = iterated.map(peel).and_then(|expr| match expr {
        Expr::Path(path) => path
            .path
            .segments
            .last()
            .map(|last| plain(&last.ident.to_string())),
        Expr::Reference(reference) => match peel(&reference.expr) {
            Expr::Path(path) => path
                .path
                .segments
                .last()
                .map(|last| plain(&last.ident.to_string())),
            _ => None,
        },
        Expr::MethodCall(call) => match peel(&call.receiver) {
            Expr::Path(path) => path
                .path
                .segments
                .last()
                .map(|last| plain(&last.ident.to_string())),
            _ => None,
        },
        _ => None,
    });
    name.unwrap_or_else(|| if iterated.is_some() { "items" } else { "again" }.to_owned())
}

/// The path of what is called: `stock::reserve`, `.charge`.
pub(crate) fn called(expr: &Expr) -> Option<String> {
    match peel(expr) {
        Expr::Call(call) => path(&call.func),
        Expr::MethodCall(call)
            if call.method == "detach" || call.method == "reply" || is_term(call) =>
        {
            called(&call.receiver)
        }
        Expr::MethodCall(call) => Some(format!(".{}", plain(&call.method.to_string()))),
        Expr::Await(awaited) => called(&awaited.base),
        Expr::Try(tried) => called(&tried.expr),
        _ => None,
    }
}

/// Whether a method says of a call of a workflow that its run is not waited for.
fn is_detach(call: &ExprMethodCall) -> bool {
    call.method == "detach" && call.args.is_empty()
}

/// Whether a method says of a call of a workflow how its run is begun, and no more.
pub(crate) fn is_term(call: &ExprMethodCall) -> bool {
    const TERMS: [&str; 3] = ["delay", "not_before", "priority"];
    // A step may have such a name, too; what it is a method of is not a call most often.
    let of_call = matches!(peel(&call.receiver), Expr::Call(_) | Expr::MethodCall(_));
    let is_term = of_call && TERMS.iter().any(|term| call.method == term);
    call.args.len() == 1 && (call.method == "id" || is_term)
}

/// Whether a call is one of a child run that is not waited for.
pub(crate) fn is_detached(expr: &Expr) -> bool {
    match peel(expr) {
        Expr::MethodCall(call) => is_detach(call) || is_term(call) && is_detached(&call.receiver),
        _ => false,
    }
}

/// A path as text, without what stands in `<>`.
pub(crate) fn path(expr: &Expr) -> Option<String> {
    let expr = match peel(expr) {
        Expr::Reference(reference) => peel(&reference.expr),
        expr => expr,
    };
    let Expr::Path(path) = expr else { return None };
    let words = path.path.segments.iter();
    let words: Vec<_> = words
        .map(|segment| plain(&segment.ident.to_string()))
        .collect();
    Some(words.join("::"))
}

/// A type as text, in one spelling whatever the spaces in it.
pub(crate) fn type_text(ty: &impl ToTokens) -> String {
    spelled(ty.to_token_stream())
}

/// Tokens as text: words apart, and nothing else.
fn spelled(tokens: TokenStream) -> String {
    let mut text = String::new();
    for tree in tokens {
        let (open, close) = match &tree {
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::None => ("", ""),
                };
                (format!("{open}{}", spelled(group.stream())), close)
            }
            tree => (tree.to_string(), ""),
        };
        let is_word =
            |char: Option<char>| char.is_some_and(|char| char.is_alphanumeric() || char == '_');
        let after_comma = text.ends_with([',', ';']);
        if after_comma || is_word(text.chars().last()) && is_word(open.chars().next()) {
            text.push(' ');
        }
        text.push_str(&open);
        text.push_str(close);
    }
    // A comma after the last of a list says nothing.
    text.replace(",>", ">").replace(", >", ">")
}

/// The `T` of a type that is named `..Result<T>`; none if it is not.
pub(crate) fn ok_type(ty: &Type) -> Option<String> {
    let Type::Path(path) = ty else { return None };
    let last = path.path.segments.last()?;
    if !last.ident.to_string().ends_with("Result") {
        return None;
    }
    let PathArguments::AngleBracketed(given) = &last.arguments else {
        return None;
    };
    match given.args.first()? {
        GenericArgument::Type(ty) => Some(type_text(ty)),
        _ => None,
    }
}
