//! `attempt!`, `version!`, `removed!`, and what stands at the beginning of a scope.

use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};
use quote::{quote, quote_spanned};
use syn::{Attribute, Block, Expr, Macro, Stmt};

use super::at_site;
use crate::diagnostics::Place;
use crate::expand::respan;

// Input:  attempt!(book, { reserve(x).await? })
// Output: attempt!(@site cx SITE; cx_1, async { Ok::<_, Failure>({ reserve(x).await? }) })
pub(crate) fn attempt(
    mac: &mut Macro,
    cx: &Ident,
    site: &TokenStream,
    inner: &Ident,
    block: &Block,
    krate: &TokenStream,
) {
    let head = at_site(cx, site);
    let at = Place::of(block).first.resolved_at(Span::mixed_site());
    let private = respan(quote!(#krate::__private), at);
    let statements = &block.stmts;
    let mut body = Group::new(Delimiter::Brace, quote!(#(#statements)*));
    body.set_span(Span::mixed_site());
    let body = TokenTree::Group(body);
    let code = quote_spanned!(at=> async { #private::Ok::<_, #private::Failure>(#body) });
    mac.tokens = quote!(#head #inner, #code);
}

// Input:  version!(new_prices, 2)
// Output: version!(@site cx SITE; 2)
pub(crate) fn version(mac: &mut Macro, cx: &Ident, site: &TokenStream, latest: &Expr) {
    let head = at_site(cx, site);
    mac.tokens = quote!(#head #latest);
}

// Input:  rollback!(back, to = begun)
// Output: rollback!(@site cx SITE; cx_of_the_checkpoint, "begun")
pub(crate) fn rollback(
    mac: &mut Macro,
    cx: &Ident,
    site: &TokenStream,
    of: &Ident,
    checkpoint: &str,
) {
    let head = at_site(cx, site);
    mac.tokens = quote!(#head #of, #checkpoint);
}

/// What a declaration leaves where it stands. It is made where its scope begins.
pub(crate) fn said(mac: &mut Macro) {
    mac.tokens = quote_spanned!(Span::mixed_site()=> @site);
}

// Input:  removed!(old_step, kind = "step")
// Output, where the scope begins: removed(cx, SITE, Kind::Step);
pub(crate) fn removed(
    cx: &Ident,
    site: &TokenStream,
    kind: &str,
    cfg: &[Attribute],
    krate: &TokenStream,
) -> TokenStream {
    let kind = Ident::new(kind, Span::mixed_site());
    quote!(#(#cfg)* #krate::__private::removed(#cx, #site, #krate::__private::Kind::#kind);)
}

/// Puts statements at the beginning of a scope.
pub(crate) fn begin(block: &mut Block, statements: Vec<TokenStream>) {
    for statement in statements.into_iter().rev() {
        let statement = Stmt::Expr(Expr::Verbatim(statement), None);
        block.stmts.insert(0, statement);
    }
}

/// The same for a scope that is an expression.
pub(crate) fn begin_expr(body: &mut Expr, statements: Vec<TokenStream>) {
    if !statements.is_empty() {
        *body = Expr::Verbatim(quote!({ #(#statements)* #body }));
    }
}
