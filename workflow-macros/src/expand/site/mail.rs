//! `recv!` and `send!`.

use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::{Expr, Macro};

use super::at_site;
use crate::diagnostics::Place;
use crate::expand::respan;

/// A `recv!`.
pub(crate) struct Received {
    pub(crate) channels: Vec<Expr>,
    pub(crate) timeout: Option<Expr>,
    /// How many, and whether exactly so many.
    pub(crate) count: Option<(Expr, bool)>,
}

// Input:  recv!(paid, [CASH, CARD], timeout = "15m", count = 3)
// Output: recv!(@site cx SITE; many Some(millis(900000)), 3, false, &[channel(&CASH), channel(&CARD)])
pub(crate) fn recv(
    mac: &mut Macro,
    cx: &Ident,
    site: &TokenStream,
    received: &Received,
    krate: &TokenStream,
) {
    let head = at_site(cx, site);
    // At the channel, so that what is none is told of there, and once.
    let channels = received.channels.iter().map(|channel| {
        let Place { first, last } = Place::of(channel);
        let path = respan(quote!(#krate::__private::channel), first);
        let mut lent = Group::new(Delimiter::Parenthesis, borrowed(channel));
        lent.set_span(last);
        quote!(#path #lent)
    });
    let channels = quote!(&[#(#channels),*]);
    let private = respan(quote!(#krate::__private), Span::mixed_site());
    mac.tokens = match (&received.count, &received.timeout) {
        (None, None) => quote!(#head one #channels),
        (None, Some(timeout)) => quote!(#head within #timeout, #channels),
        (Some((count, exactly)), None) => {
            quote!(#head many #private::None, #count, #exactly, #channels)
        }
        (Some((count, exactly)), Some(timeout)) => {
            quote!(#head many #private::Some(#timeout), #count, #exactly, #channels)
        }
    };
}

// Input:  send!(tell, order_id, PAYMENT, value)
// Output: send!(@site cx SITE; &order_id, &PAYMENT, value)
pub(crate) fn send(
    mac: &mut Macro,
    cx: &Ident,
    site: &TokenStream,
    to: &Expr,
    channel: &Expr,
    value: &Expr,
) {
    let head = at_site(cx, site);
    let (to, channel) = (borrowed(to), borrowed(channel));
    mac.tokens = quote!(#head #to, #channel, #value);
}

/// A channel stands in a `static`, and is lent whether the user wrote `&` or not.
fn borrowed(expr: &Expr) -> TokenStream {
    let inner = match expr {
        Expr::Reference(reference) if reference.mutability.is_none() => &*reference.expr,
        other => other,
    };
    let at = Place::of(inner).first.resolved_at(Span::mixed_site());
    let and = quote_spanned!(at=> &);
    quote!(#and #inner)
}
