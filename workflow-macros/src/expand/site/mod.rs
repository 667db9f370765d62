//! One site: what stands in its place.

mod blocks;
mod branches;
mod in_place;
mod loops;
mod mail;

use proc_macro2::{Delimiter, Group, Ident, Literal, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::{Expr, Macro};

pub(crate) use self::blocks::{attempt, begin, begin_expr, removed, rollback, said, version};
pub(crate) use self::branches::{All, Branch, branches, join_all};
pub(crate) use self::in_place::{catch_all, in_place};
pub(crate) use self::loops::{Carried, Entered, any_loop};
pub(crate) use self::mail::{Received, recv, send};

use super::respan;
use crate::diagnostics::{Place, Report};
use crate::model::Site;

/// The context of the so-manieth scope that has one; 0 is the body's.
///
/// Hygiene keeps it from the user's locals, its spelling from the user's constants and unit structs.
pub(crate) fn cx(index: usize) -> Ident {
    let name = if index == 0 {
        "__workflow_cx".to_owned()
    } else {
        format!("__workflow_cx_{index}")
    };
    Ident::new(&name, Span::mixed_site())
}

fn local(name: &str) -> Ident {
    Ident::new(&format!("__workflow_{name}"), Span::mixed_site())
}

/// `Site::new(..)`, as the list of sites and the site itself have it.
pub(crate) fn new(site: &Site, krate: &TokenStream) -> TokenStream {
    let Site { name, path, .. } = site;
    let kind = Ident::new(&site.kind.variant(), Span::mixed_site());
    let line = Literal::u32_unsuffixed(u32::try_from(site.place.position().0).unwrap_or(0));
    quote!(#krate::Site { name: #name, kind: #krate::Kind::#kind, path: #path, file: ::core::file!(), line: #line })
}

/// An expression of the type `&'static Site`.
pub(crate) fn reference(site: &Site, krate: &TokenStream) -> TokenStream {
    let new = new(site, krate);
    respan(quote!(&#new), Span::mixed_site())
}

// Input:  EXPR
// Output: ::workflow::__private::Durable::run(EXPR, __workflow_cx, SITE)
//
// The path has the span of the expression's first token, `run` and the parentheses that of its last, so that what is
// wrong with the expression's type is one error, at the user's expression.
pub(crate) fn gate(expr: &mut Expr, cx: &Ident, site: &TokenStream, krate: &TokenStream) {
    pass(expr, quote!(#krate::__private::Durable::), "run", cx, site);
}

// Input:  #[step(name = "other")] settle(&mut total).await
// Output: ::workflow::__private::run_lent(settle(&mut total), __workflow_cx, SITE).await
pub(crate) fn lent(expr: &mut Expr, cx: &Ident, site: &TokenStream, krate: &TokenStream) {
    pass(expr, quote!(#krate::__private::), "run_lent", cx, site);
}

// Input:  #[step(name = "second")] request.reply(answer).await
// Output: ::workflow::__private::run_once(request.reply(answer), __workflow_cx, SITE).await
pub(crate) fn once(expr: &mut Expr, cx: &Ident, site: &TokenStream, krate: &TokenStream) {
    pass(expr, quote!(#krate::__private::), "run_once", cx, site);
}

fn pass(expr: &mut Expr, path: TokenStream, function: &str, cx: &Ident, site: &TokenStream) {
    let Place { first, last } = Place::of(expr);
    let path = respan(path, first);
    let run = Ident::new(function, last);
    let mut arguments = Group::new(Delimiter::Parenthesis, quote!(#expr, #cx, #site));
    arguments.set_span(last);
    *expr = Expr::Verbatim(quote!(#path #run #arguments));
}

/// What is left of a call that cannot be read: what is wrong with it, in its place.
///
/// To the compiler its type is then unknown and fits everywhere, so nothing follows from it; and the user's import is used.
pub(crate) fn unread(mac: &mut Macro, report: &Report) {
    mac.tokens = quote_spanned!(Span::mixed_site()=> @unread #report);
}

/// What is wrong with an expression, in its place. As with [`unread`], nothing follows from it.
pub(crate) fn refused(report: &Report) -> Expr {
    Expr::Verbatim(report.to_token_stream())
}

/// What stands in place of a jump that was reported, and goes on as little.
pub(crate) fn no_jump() -> Expr {
    Expr::Verbatim(quote!(loop {}))
}

/// The argument of a `#[step]` that stands for itself only, and leaves nothing.
pub(crate) const IMPORTED: &str = "__workflow_is_imported";

// Input:  the `step` of a `#[step]` in the body
// Output: #[step(__workflow_is_imported)] const _: () = ();
//
// All of it has the attribute's own span: where `step` is not imported, the compiler says so there, and what to import.
pub(crate) fn imported(path: &syn::Path, at: Span) -> TokenStream {
    let word = Ident::new(IMPORTED, at);
    respan(quote!(#[#path(#word)] const _: () = ();), at)
}

// Input:  total.sum
// Output: *::workflow::__private::unchanged(&total.sum)
pub(crate) fn unchanged(place: &mut Expr, krate: &TokenStream) {
    *place = Expr::Verbatim(quote!(*#krate::__private::unchanged(&#place)));
}

fn at_site(cx: &Ident, site: &TokenStream) -> TokenStream {
    let at = Span::mixed_site();
    quote_spanned!(at=> @site #cx #site;)
}

pub(crate) fn bare(mac: &mut Macro, cx: &Ident, site: &TokenStream) {
    mac.tokens = at_site(cx, site);
}

// Input:  progress!(VALUE)
// Output: progress!(@site __workflow_cx; VALUE)
pub(crate) fn progress(mac: &mut Macro, cx: &Ident, value: &Expr) {
    let head = quote_spanned!(Span::mixed_site()=> @site #cx;);
    mac.tokens = quote!(#head #value);
}

pub(crate) fn sleep(mac: &mut Macro, cx: &Ident, site: &TokenStream, argument: &Expr, until: bool) {
    let head = at_site(cx, site);
    mac.tokens = if until {
        quote!(#head until = #argument)
    } else {
        quote!(#head #argument)
    };
}

pub(crate) fn guide(
    mac: &mut Macro,
    cx: &Ident,
    site: &TokenStream,
    initial: &Expr,
    flow: Option<&Expr>,
) {
    let head = at_site(cx, site);
    let flow = flow.map(|flow| quote!(, flow = #flow));
    mac.tokens = quote!(#head #initial #flow);
}

/// A duration that was read at compile time.
pub(crate) fn millis(millis: u64, span: Span, krate: &TokenStream) -> Expr {
    Expr::Verbatim(respan(
        quote!(#krate::__private::millis(#millis)),
        span.resolved_at(Span::mixed_site()),
    ))
}
