//! Prints. What comes here is in order, so nothing here can fail.

mod cron;
mod fragment;
mod guided;
mod path;
pub(crate) mod site;
mod step;
mod workflow;

use proc_macro2::{Group, Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::{Block, Expr, Stmt, parse_quote};

pub(crate) use self::cron::cron;
pub(crate) use self::fragment::fragment;
pub(crate) use self::guided::{guided, unguided};
pub(crate) use self::path::krate;
pub(crate) use self::step::step;
pub(crate) use self::workflow::{once, workflow};

use crate::diagnostics::{Place, Report};
use crate::syntax::{Body, Function};

/// Takes away a body that the compiler would only add errors about. Editors see it still, and go on completing.
pub(crate) fn stub(function: &mut Function) {
    let body = &function.body;
    if matches!(body, Body::Missing(_)) {
        return;
    }
    let nothing = quote! {
        #[cfg(not(rust_analyzer))]
        loop {}
        #[cfg(rust_analyzer)]
        { #body }
    };
    let statement = Stmt::Expr(Expr::Verbatim(nothing), None);
    function
        .attrs
        .push(parse_quote!(#[allow(unexpected_cfgs, unused, clippy::all)]));
    function.body = Body::Block(Block {
        brace_token: syn::token::Brace::default(),
        stmts: vec![statement],
    });
}

/// The same for a body that is no block yet, as while it is being typed. The rest of the item stands.
pub(crate) fn stub_unreadable(function: &mut Function) {
    if matches!(function.body, Body::Unreadable { .. }) {
        stub(function);
    }
}

/// What a workflow whose signature is no signature yet is called elsewhere in the file. Only editors get that far.
pub(crate) fn unread_type(name: &Ident) -> TokenStream {
    quote! {
        #[allow(unexpected_cfgs)]
        #[cfg(rust_analyzer)]
        #[allow(non_camel_case_types)]
        pub struct #name {}
    }
}

/// The item as written, and what is wrong with it: so that editors go on completing.
///
/// The compiler sees the errors only: a body that would be checked as written adds errors of its own.
pub(crate) fn fallback(function: &Function, reports: &[Report]) -> TokenStream {
    let Function {
        attrs,
        vis,
        sig,
        body,
    } = function;
    let body = match body {
        Body::Missing(semicolon) => semicolon.to_token_stream(),
        body => quote!({
            #[cfg(not(rust_analyzer))]
            loop {}
            #[cfg(rust_analyzer)]
            { #body }
        }),
    };
    quote! {
        #(#reports)*
        #(#attrs)*
        #[allow(unexpected_cfgs, unused, clippy::all)]
        #vis #sig #body
    }
}

/// `__private` is written without the crate in front of it where the crate is not known yet; here it is put there.
pub(crate) fn within(tokens: TokenStream, krate: &impl ToTokens) -> TokenStream {
    let mut out = TokenStream::new();
    for tree in tokens {
        match tree {
            TokenTree::Ident(word) if word == "__private" => {
                krate.to_tokens(&mut out);
                out.extend(quote!(::#word));
            }
            TokenTree::Group(group) => {
                let mut inner = Group::new(group.delimiter(), within(group.stream(), krate));
                inner.set_span(group.span());
                out.extend([TokenTree::Group(inner)]);
            }
            tree => out.extend([tree]),
        }
    }
    out
}

/// `path` and `function`, as one path that the compiler underlines at `place`, when what is called with it does not fit.
pub(crate) fn called(path: TokenStream, function: &str, place: Place) -> TokenStream {
    let (first, last) = (
        place.first.resolved_at(Span::mixed_site()),
        place.last.resolved_at(Span::mixed_site()),
    );
    let (path, function) = (respan(path, first), Ident::new(function, last));
    quote!(#path #function)
}

/// The same tokens, all with this span.
pub(crate) fn respan(tokens: TokenStream, span: Span) -> TokenStream {
    tokens
        .into_iter()
        .map(|tree| match tree {
            TokenTree::Group(group) => {
                let mut inner = Group::new(group.delimiter(), respan(group.stream(), span));
                inner.set_span(span);
                TokenTree::Group(inner)
            }
            mut tree => {
                // What `$crate` means is known by its own span only.
                let is_dollar_crate = matches!(&tree, TokenTree::Ident(word) if word == "$crate");
                tree.set_span(if is_dollar_crate {
                    tree.span().located_at(span)
                } else {
                    span
                });
                tree
            }
        })
        .collect()
}
