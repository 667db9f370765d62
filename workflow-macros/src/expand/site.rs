//! One site.

use proc_macro2::{Group, Ident, Literal, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use syn::{Expr, ExprForLoop, ExprWhile, Lifetime, Macro};

use super::respan;
use crate::diagnostics::{Place, Report};
use crate::model::{Options, Site};

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
    quote!(#krate::Site::new(#name, #krate::Kind::#kind, #path, ::core::file!(), #line))
}

/// An expression of the type `&'static Site`.
pub(crate) fn reference(site: &Site, krate: &TokenStream) -> TokenStream {
    let new = new(site, krate);
    respan(quote!(&const { #new }), Span::mixed_site())
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

fn pass(expr: &mut Expr, path: TokenStream, function: &str, cx: &Ident, site: &TokenStream) {
    let Place { first, last } = Place::of(expr);
    let path = respan(path, first);
    let run = Ident::new(function, last);
    let mut arguments = Group::new(
        proc_macro2::Delimiter::Parenthesis,
        quote!(#expr, #cx, #site),
    );
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

pub(crate) fn sleep(mac: &mut Macro, cx: &Ident, site: &TokenStream, argument: &Expr, until: bool) {
    let head = at_site(cx, site);
    mac.tokens = if until {
        quote!(#head until = #argument)
    } else {
        quote!(#head #argument)
    };
}

/// A duration that was read at compile time.
pub(crate) fn millis(millis: u64, span: Span, krate: &TokenStream) -> Expr {
    Expr::Verbatim(respan(
        quote!(#krate::__private::millis(#millis)),
        span.resolved_at(Span::mixed_site()),
    ))
}

// ===== steps in place =====

// Input:  #[step(retries = 2)] smtp.send(&hold).await
// Output: {
//     use __private::lookup::*;
//     let body = || fut(async { Awaited(smtp.send(&hold)).go(cx, SITE, OPTIONS).await });
//     let step = in_place(cx, SITE, OPTIONS, &body);
//     let via = (&&&&&step.tag()).via();
//     step.run(via).await
// }
pub(crate) fn in_place(
    expr: &mut Expr,
    options: &Options,
    cx: &Ident,
    site: &TokenStream,
    krate: &TokenStream,
) {
    let private = quote!(#krate::__private);
    let settings = options.tokens(krate);
    let [body, step, via, retry] = ["body", "step", "via", "retry"].map(local);
    let (define, apply) = match &options.retry_if {
        None => (None, None),
        Some(closure) => (
            Some(quote!(let #retry = #closure;)),
            Some(quote!(.retry_if(&#retry))),
        ),
    };
    let code = match &*expr {
        Expr::Await(awaited) => {
            let base = &awaited.base;
            let Place { first, last } = Place::of(base);
            let wrap = respan(
                quote!(#private::Awaited),
                first.resolved_at(Span::mixed_site()),
            );
            let mut inner = Group::new(proc_macro2::Delimiter::Parenthesis, base.to_token_stream());
            inner.set_span(last);
            // A fragment has no options, only a name.
            let go = Ident::new(
                if options.is_bare() { "named" } else { "go" },
                first.resolved_at(Span::mixed_site()),
            );
            quote!(#wrap #inner #apply.#go(#cx, #site, #settings).await)
        }
        Expr::Block(block) => {
            let statements = &block.block.stmts;
            quote!(#(#statements)*)
        }
        other => other.to_token_stream(),
    };
    // What the compiler says about the expression as a whole, it says at its first token.
    let at = Place::of(expr).first.resolved_at(Span::mixed_site());
    let closure = quote_spanned!(at=> || #private::fut(async { #code }));
    let [begun, found] = [&step, &via].map(|local| Ident::new(&local.to_string(), at));
    let run = quote_spanned!(at=> #begun.run(#found));
    *expr = Expr::Verbatim(quote! {{
        #[allow(unused_imports)]
        use #private::lookup::*;
        #define
        let #body = #closure;
        let #step = #private::in_place(#cx, #site, #settings, &#body) #apply;
        let #via = (&&&&&#step.tag()).via();
        #run.await
    }});
}

// Input:  Ok(value)
// Output: ::workflow::__private::Ok::<_, ::workflow::__private::Thrown>(value)
pub(crate) fn catch_all(tail: &mut Expr, krate: &TokenStream) {
    if let Expr::Call(call) = tail
        && let Expr::Path(path) = &*call.func
        && path.path.is_ident("Ok")
    {
        let span = syn::spanned::Spanned::span(&call.func);
        let func = respan(
            quote!(#krate::__private::Ok::<_, #krate::__private::Thrown>),
            span,
        );
        *call.func = Expr::Verbatim(func);
    }
}

// ===== branches =====

/// A branch of a `join!` or `race!`.
pub(crate) struct Branch {
    pub(crate) cx: Ident,
    pub(crate) name: String,
    pub(crate) place: Place,
    pub(crate) body: Expr,
}

// Input:  join!(both, a = first().await?, b = { .. })
// Output: join!(@site cx SITE; cx_1 "a", cx_2 "b"; arm(|| fut(async { Ok::<_, Thrown>(first().await?) })), arm(..))
pub(crate) fn branches(
    mac: &mut Macro,
    cx: &Ident,
    site: &TokenStream,
    branches: &[Branch],
    krate: &TokenStream,
) {
    let head = at_site(cx, site);
    let labels = branches
        .iter()
        .map(|Branch { cx, name, .. }| quote!(#cx #name));
    let arms = branches.iter().map(|branch| arm(branch, krate));
    mac.tokens = quote!(#head #(#labels),*; #(#arms),*);
}

fn arm(branch: &Branch, krate: &TokenStream) -> TokenStream {
    let Branch { place, body, .. } = branch;
    let at = place.first.resolved_at(Span::mixed_site());
    let private = respan(quote!(#krate::__private), at);
    let body = unbraced(body);
    let code = local("branch");
    // In a `let`, so that the compiler finds out by itself whether the closure changes something, and says where.
    quote_spanned!(at=> #private::arm({
        let #code = || #private::fut(async { #private::Ok::<_, #private::Thrown>(#body) });
        #code
    }))
}

/// A block in argument position has braces that the compiler finds unneeded; with the macro's span it does not look.
fn unbraced(body: &Expr) -> TokenStream {
    let tokens = body.to_token_stream();
    let mut trees = tokens.clone().into_iter();
    match (trees.next(), trees.next()) {
        (Some(TokenTree::Group(group)), None)
            if group.delimiter() == proc_macro2::Delimiter::Brace =>
        {
            let mut inner = Group::new(proc_macro2::Delimiter::Brace, group.stream());
            inner.set_span(Span::mixed_site());
            TokenTree::Group(inner).into()
        }
        _ => tokens,
    }
}

/// A `join_all!`.
pub(crate) struct All {
    pub(crate) outer: Ident,
    pub(crate) inner: Ident,
    pub(crate) site: TokenStream,
    pub(crate) limit: Option<Expr>,
    pub(crate) key: Option<Expr>,
    pub(crate) each: ExprForLoop,
}

// Input:  join_all!(all, limit = 8, key = item.id, for item in items { ship(item).await? })
// Output: join_all!(@site cx SITE; limit = Some(8), items = items, key = [|item| key(&(item.id))], slot => item(|| fut(async {
//     let (cx_1, item) = slot.open();
//     let cx_1 = &cx_1;
//     Ok::<_, Thrown>({ ship(item).await? })
// })))
pub(crate) fn join_all(mac: &mut Macro, all: &All, krate: &TokenStream) {
    let All {
        outer,
        inner,
        site,
        limit,
        key,
        each,
    } = all;
    let at = Span::mixed_site();
    let private = respan(quote!(#krate::__private), at);
    let head = at_site(outer, site);
    let (pat, items, body) = (&each.pat, &each.expr, &each.body);
    let limit = match limit {
        None => quote!(#private::None),
        Some(limit) => quote!(#private::Some(#limit)),
    };
    let key = key
        .as_ref()
        .map(|key| quote!(|#pat| #private::key(&(#key))));
    let (slot, code) = (local("slot"), local("branch"));
    let statements = &body.stmts;
    let future = quote_spanned!(at=> async {
        let (#inner, #pat) = #slot.open();
        let #inner = &#inner;
        #private::Ok::<_, #private::Thrown>({ #(#statements)* })
    });
    let place = Place::of(body).first.resolved_at(at);
    let closure = quote_spanned!(place=> || #private::fut(#future));
    // In a `let` for the same reason as an `arm`.
    mac.tokens = quote_spanned!(at=> #head limit = #limit, items = #items, key = [#key], #slot => #private::item({
        let #code = #closure;
        #code
    }));
}

// ===== loops =====

/// A durable loop.
pub(crate) struct Entered {
    pub(crate) label: Lifetime,
    pub(crate) outer: Ident,
    pub(crate) inner: Ident,
    pub(crate) site: TokenStream,
    pub(crate) key: Option<Expr>,
}

// Input:  'items: for item in items { BODY }
// Output: {
//     let mut entered = enter_loop(cx, SITE).await;
//     'items: for item in items {
//         let cx_1 = &entered.iteration();
//         if entered.never() { continue 'items; }
//         BODY
//     }
// }
pub(crate) fn any_loop(expr: &mut Expr, entered: &Entered, krate: &TokenStream) {
    let Entered {
        label,
        outer,
        inner,
        site,
        key,
    } = entered;
    let state = local("loop");
    let iteration = match key {
        None => quote!(iteration()),
        Some(key) => quote!(keyed(&(#key))),
    };
    // The label is used, so that the compiler does not find it unused.
    let head = quote! {
        let #inner = &#state.#iteration;
        if #state.never() { continue #label; }
    };
    let (attrs, looped) = match &mut *expr {
        Expr::ForLoop(ExprForLoop {
            attrs,
            pat,
            expr: items,
            body,
            ..
        }) => {
            let statements = &body.stmts;
            (
                std::mem::take(attrs),
                quote!(#label: for #pat in #items { #head #(#statements)* }),
            )
        }
        Expr::While(ExprWhile {
            attrs, cond, body, ..
        }) => {
            // As the compiler itself takes it apart: the condition belongs to the iteration that it guards.
            (
                std::mem::take(attrs),
                quote!(#label: loop { #head if #cond #body else { break } }),
            )
        }
        Expr::Loop(of) => {
            let statements = &of.body.stmts;
            (
                std::mem::take(&mut of.attrs),
                quote!(#label: loop { #head #(#statements)* }),
            )
        }
        _ => return,
    };
    let enter = quote!(#krate::__private::enter_loop(#outer, #site).await);
    *expr = Expr::Verbatim(quote!(#(#attrs)* {
        let mut #state = #enter;
        #looped
    }));
}
