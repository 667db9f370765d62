//! `join!`, `race!` and `join_all!`.

use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use syn::{Expr, ExprForLoop, Macro};

use super::{at_site, local};
use crate::diagnostics::Place;
use crate::expand::respan;

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
        (Some(TokenTree::Group(group)), None) if group.delimiter() == Delimiter::Brace => {
            let mut inner = Group::new(Delimiter::Brace, group.stream());
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
