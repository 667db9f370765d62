//! A fragment: durable code that is run in place, in a scope of its own.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::{Block, Lifetime, ReturnType, Type, parse_quote};

use super::{respan, site, step};
use crate::model::Walked;
use crate::syntax::Function;

// Input:
//   #[fragment] async fn ship(order: &Order) -> Result<X, Failure> { BODY }
// Output:
//   fn ship<'f>(order: &'f Order) -> Fragment<'f, Result<X, Failure>> {
//       fragment(move |cx: Cx| fut(async move { let cx = &cx; BODY }))
//   }
pub(crate) fn fragment(
    function: &Function,
    body: &Block,
    walked: &Walked,
    krate: &TokenStream,
    watched: &TokenStream,
) -> TokenStream {
    let Function {
        attrs, vis, sig, ..
    } = function;
    let private = quote!(#krate::__private);
    let returns: Type = match &sig.output {
        ReturnType::Default => parse_quote!(()),
        ReturnType::Type(_, ty) => (**ty).clone(),
    };
    let lifetime = Lifetime::new("'__workflow", Span::mixed_site());
    let signature = step::signature(
        sig,
        &lifetime,
        false,
        &parse_quote!(#krate::Fragment<#lifetime, #returns>),
    );
    // What is `mut` in the body is `mut` in it only.
    let mutable = sig.inputs.iter().filter_map(|input| match input {
        syn::FnArg::Typed(typed) => match &*typed.pat {
            syn::Pat::Ident(ident) if ident.mutability.is_some() => Some(&ident.ident),
            _ => None,
        },
        syn::FnArg::Receiver(_) => None,
    });
    let mutable: Vec<_> = mutable.collect();
    let cx = site::cx(0);
    let statements = &body.stmts;
    let sites = super::workflow::sites(walked, krate);
    let unique = super::workflow::unique(walked, &quote!(&[#sites]), &private);
    let unused = walked.is_faulty.then(|| quote!(#[allow(unused)]));
    let body = quote! {
        let #cx = &#cx;
        #(let mut #mutable = #mutable;)*
        #(#statements)*
    };
    // A future that is not `Send` is told of at the function's name.
    let at = sig.ident.span().resolved_at(Span::call_site());
    let library = respan(krate.clone(), at);
    let future = quote_spanned!(at=> #library::__private::fut::<#returns>(async move { #body }));
    quote! {
        #(#attrs)*
        #unused
        #[allow(single_use_lifetimes, clippy::needless_lifetimes, clippy::extra_unused_lifetimes, clippy::must_use_candidate)]
        #[allow(clippy::needless_pass_by_value, clippy::too_many_arguments, clippy::type_complexity)]
        #vis #signature {
            #unique
            #watched
            #private::fragment(move |#cx: #private::Cx| #future)
        }
    }
}
