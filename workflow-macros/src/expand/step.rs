//! A step function: gives a named, boxed `Step`.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};

use syn::visit_mut::{self, VisitMut};
use syn::{
    FnArg, GenericParam, Lifetime, Pat, ReturnType, Signature, Type, TypeParamBound, parse_quote,
};

use super::{called, respan};
use crate::diagnostics::Place;
use crate::model::{Options, Step, returns_result};
use crate::syntax::{Body, Function};

// Input:
//   #[step(retries = 5)] async fn reserve(stock: &Stock, n: u32) -> Result<Hold, StockError> { BODY }
// Output:
//   fn reserve<'s>(stock: &'s Stock, n: u32) -> Step<'s, Result<Hold, StockError>, Fallible> {
//       step(StepOptions::new().retries(5), VIA, Box::new(move || { let n = Clone::clone(&n); fut(async move { BODY }) }))
//   }
pub(crate) fn step(
    function: &Function,
    model: &Step,
    options: &Options,
    krate: &TokenStream,
) -> TokenStream {
    let Function {
        attrs,
        vis,
        sig,
        body,
    } = function;
    let private = quote!(#krate::__private);
    let returns: Type = match &sig.output {
        ReturnType::Default => parse_quote!(()),
        ReturnType::Type(_, ty) => (**ty).clone(),
    };
    let is_result = returns_result(sig) && !options.infallible;
    let mark = Ident::new(
        if is_result { "Fallible" } else { "Infallible" },
        Span::mixed_site(),
    );
    let plain = (!is_result && !options.infallible).then(|| {
        let span = Place::of(&returns).first.resolved_at(Span::mixed_site());
        quote_spanned!(span=> .plain())
    });
    let lifetime = if options.blocking {
        parse_quote!('static)
    } else {
        Lifetime::new("'__workflow", Span::mixed_site())
    };
    let signature = signature(
        sig,
        &lifetime,
        options.blocking,
        &given(
            sig,
            &returns,
            &quote!(#lifetime),
            &quote!(#private::#mark),
            krate,
        ),
    );
    let lints = quote! {
        #[allow(single_use_lifetimes, clippy::needless_lifetimes, clippy::extra_unused_lifetimes, clippy::must_use_candidate)]
        #[allow(clippy::needless_pass_by_value, clippy::too_many_arguments, clippy::type_complexity)]
    };
    let block = match body {
        Body::Missing(semicolon) => return quote!(#(#attrs)* #lints #vis #signature #semicolon),
        Body::Block(block) => block,
        Body::Unreadable { .. } => return quote!(#(#attrs)* #vis #sig #body),
    };
    let settings = options.tokens(krate);
    let clones = model
        .parameters
        .iter()
        .filter(|parameter| !matches!(parameter.ty, Type::Reference(_)))
        .map(|parameter| {
            let name = &parameter.name;
            let mutable = parameter.is_mut.then(|| quote!(mut));
            quote!(let #mutable #name = #private::Clone::clone(&#name);)
        });
    let statements = &block.stmts;
    let via = quote!({
        #[allow(unused_imports)]
        use #private::lookup::*;
        (&&&&&#private::tag::<#returns>() #plain).via()
    });
    let retry = options
        .retry_if
        .as_ref()
        .map(|closure| quote!(.retry_if(#closure)));
    let place = of_returns(sig);
    let last = place.last.resolved_at(Span::mixed_site());
    let (open, mark) = (
        respan(quote!(::<), last),
        respan(quote!(, #private::#mark>), last),
    );
    let typed = quote!(#open #returns #mark);
    let made = if options.blocking {
        let blocking_step = called(quote!(#private::), "blocking_step", place);
        quote! {
            #blocking_step #typed (
                #settings,
                #via,
                #private::Arc::new(move || { #(#clones)* (move || -> #returns { #(#statements)* })() }),
            ) #retry
        }
    } else {
        let step = called(quote!(#private::), "step", place);
        let body = quote! {
            // Tells the compiler the type before it looks at the body, so that what does not fit is underlined there.
            #[allow(unreachable_code, clippy::all, clippy::pedantic, clippy::nursery, clippy::restriction)]
            if false {
                let __workflow_returned: #returns = loop {};
                return __workflow_returned;
            }
            #(#statements)*
        };
        // A future that is not `Send` is told of at the function's name.
        let at = sig.ident.span().resolved_at(Span::call_site());
        let library = respan(krate.clone(), at);
        let future =
            quote_spanned!(at=> #library::__private::fut::<#returns>(async move { #body }));
        quote! {
            #step #typed (
                #settings,
                #via,
                #private::Box::new(move || { #(#clones)* #future }),
            ) #retry
        }
    };
    quote! {
        #(#attrs)*
        #lints
        #vis #signature {
            #made
        }
    }
}

/// Where the compiler says what it says about the result's type: at the type.
fn of_returns(sig: &Signature) -> Place {
    match &sig.output {
        ReturnType::Default => Place::from(sig.ident.span()),
        ReturnType::Type(_, ty) => Place::of(ty),
    }
}

/// `Step<'s, R, MARK>`: with the span of `R`.
fn given(
    sig: &Signature,
    returns: &Type,
    lifetime: &TokenStream,
    mark: &TokenStream,
    krate: &TokenStream,
) -> Type {
    let place = of_returns(sig);
    let [first, last] = [place.first, place.last].map(|span| span.resolved_at(Span::mixed_site()));
    let open = respan(quote!(#krate::Step<), first);
    let close = respan(quote!(>), last);
    parse_quote!(#open #lifetime, #returns, #mark #close)
}

/// The signature of the function that gives the step: what it borrows, it borrows for one lifetime.
pub(super) fn signature(
    sig: &Signature,
    lifetime: &Lifetime,
    blocking: bool,
    returns: &Type,
) -> Signature {
    let mut sig = sig.clone();
    sig.asyncness = None;
    sig.output = parse_quote!(-> #returns);
    for input in &mut sig.inputs {
        match input {
            FnArg::Receiver(receiver) => name_receiver(receiver, lifetime),
            FnArg::Typed(typed) => {
                if let Pat::Ident(ident) = &mut *typed.pat {
                    // The clone for each attempt is `mut`; the argument itself need not be.
                    ident.mutability = None;
                }
                Elided(lifetime).visit_type_mut(&mut typed.ty);
            }
        }
    }
    let outlives: Vec<_> = sig
        .generics
        .lifetimes()
        .map(|named| named.lifetime.clone())
        .collect();
    let types: Vec<_> = sig
        .generics
        .type_params()
        .map(|named| named.ident.clone())
        .collect();
    if blocking {
        let clause = sig.generics.make_where_clause();
        clause.predicates.extend(
            types
                .iter()
                .map(|ty| -> syn::WherePredicate { parse_quote!(#ty: 'static) }),
        );
        return sig;
    }
    sig.generics
        .params
        .insert(0, GenericParam::Lifetime(parse_quote!(#lifetime)));
    if !outlives.is_empty() || !types.is_empty() {
        let clause = sig.generics.make_where_clause();
        clause.predicates.extend(
            outlives
                .iter()
                .map(|named| -> syn::WherePredicate { parse_quote!(#named: #lifetime) }),
        );
        clause.predicates.extend(
            types
                .iter()
                .map(|ty| -> syn::WherePredicate { parse_quote!(#ty: #lifetime) }),
        );
    }
    sig
}

fn name_receiver(receiver: &mut syn::Receiver, lifetime: &Lifetime) {
    if let syn::ReceiverKind::Reference(_, named, _) = &mut receiver.kind {
        named.get_or_insert_with(|| lifetime.clone());
    }
}

/// Names the lifetimes that are left out, and binds `impl Trait` to it.
struct Elided<'a>(&'a Lifetime);

impl VisitMut for Elided<'_> {
    fn visit_type_reference_mut(&mut self, reference: &mut syn::TypeReference) {
        reference.lifetime.get_or_insert_with(|| self.0.clone());
        visit_mut::visit_type_reference_mut(self, reference);
    }

    fn visit_lifetime_mut(&mut self, lifetime: &mut Lifetime) {
        if lifetime.ident == "_" {
            *lifetime = self.0.clone();
        }
    }

    fn visit_type_impl_trait_mut(&mut self, ty: &mut syn::TypeImplTrait) {
        visit_mut::visit_type_impl_trait_mut(self, ty);
        ty.bounds.push(TypeParamBound::Lifetime(self.0.clone()));
    }

    // What `fn(&str)` and `Fn(&str)` borrow, they borrow when they are called.
    fn visit_type_fn_ptr_mut(&mut self, _: &mut syn::TypeFnPtr) {}

    fn visit_parenthesized_generic_arguments_mut(
        &mut self,
        _: &mut syn::ParenthesizedGenericArguments,
    ) {
    }
}
