//! Steps in place.

use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::Expr;

use super::local;
use crate::diagnostics::Place;
use crate::expand::respan;
use crate::model::Options;

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
    let [body, step, via, retry, undo, said] =
        ["body", "step", "via", "retry", "undo", "options"].map(local);
    // With an undo: let undo = refund; let options = OPTIONS.undone_by(SITE, first_of(&undo).unknown());
    let (undone, settings, checked) = match &options.undo {
        None => (None, settings, None),
        Some(handler) if options.undone_by_flow => {
            let at = Place::of(handler).first.resolved_at(Span::mixed_site());
            let undo = Ident::new(&undo.to_string(), at);
            (
                Some(quote_spanned!(at=> let #undo = #handler;)),
                settings,
                Some(quote_spanned!(at=> #step.undoes(&#undo);)),
            )
        }
        Some(handler) => {
            let at = Place::of(handler).first.resolved_at(Span::mixed_site());
            let library = respan(private.clone(), at);
            // What does not fit is told of at the user's words alone.
            let undo = Ident::new(&undo.to_string(), at);
            let check = quote_spanned!(at=> #step.undoes(&#undo););
            (
                Some(quote_spanned! {at=>
                    let #undo = #handler;
                    let #said = #settings.undone_by(#site, #library::first_of(&#undo).unknown());
                }),
                quote!(#said),
                Some(check),
            )
        }
    };
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
            let mut inner = Group::new(Delimiter::Parenthesis, base.to_token_stream());
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
        #undone
        let #body = #closure;
        let #step = #private::in_place(#cx, #site, #settings, &#body) #apply;
        #checked
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
