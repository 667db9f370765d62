//! Durable loops.

use proc_macro2::{Ident, TokenStream};
use quote::quote;
use syn::{Expr, ExprForLoop, ExprWhile, Lifetime};

use super::local;

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
