//! A workflow: the function that calls it, and the type that is registered.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::{Block, ReturnType, Signature};

use super::{respan, site};
use crate::model::{Walked, Workflow, returns_result};
use crate::syntax::Function;

// Input:
//   #[workflow] pub async fn checkout(order: Order, #[state] stock: Stock) -> Result<Receipt, Failure> { BODY }
// Output:
//   pub struct checkout {}
//   pub fn checkout(order: Order) -> Call<checkout> { call(Input::new().field("order", &order)) }
//   impl checkout { pub const NAME; pub const SITES; }
//   impl Workflow for checkout { .. fn run(args) { async fn body(cx, order: Order, stock: Stock) -> .. { BODY } .. } }
pub(crate) fn workflow(
    function: &Function,
    model: &Workflow,
    name: &str,
    body: &Block,
    walked: &Walked,
    krate: &TokenStream,
) -> TokenStream {
    let Function {
        attrs, vis, sig, ..
    } = function;
    let Signature { ident, .. } = sig;
    let private = quote!(#krate::__private);
    let returns = match &sig.output {
        ReturnType::Default => quote!(()),
        ReturnType::Type(_, ty) => quote!(#ty),
    };
    let mark = Ident::new(
        if returns_result(sig) {
            "Fallible"
        } else {
            "Infallible"
        },
        Span::mixed_site(),
    );
    let plain = (!returns_result(sig)).then(|| quote!(.plain()));
    let docs = attrs
        .iter()
        .filter(|attr| attr.path().is_ident("doc") || attr.path().is_ident("cfg"));
    let docs: Vec<_> = docs.collect();

    let inputs: Vec<_> = model
        .parameters
        .iter()
        .filter(|parameter| !parameter.is_state)
        .collect();
    let input_names: Vec<_> = inputs.iter().map(|parameter| &parameter.name).collect();
    let input_types: Vec<_> = inputs.iter().map(|parameter| &parameter.ty).collect();
    let input_texts: Vec<_> = input_names.iter().map(|name| text(name)).collect();
    let states = model
        .parameters
        .iter()
        .filter(|parameter| parameter.is_state)
        .map(|parameter| {
            let (text, ty) = (text(&parameter.name), &parameter.ty);
            quote!(#private::state_type::<#ty>(#text))
        });

    let args = Ident::new("__workflow_args", Span::mixed_site());
    let cx = site::cx(0);
    let locals: Vec<_> = (0..model.parameters.len())
        .map(|index| Ident::new(&format!("__workflow_a{index}"), Span::mixed_site()))
        .collect();
    let opened = model
        .parameters
        .iter()
        .zip(&locals)
        .map(|(parameter, local)| {
            let text = text(&parameter.name);
            let from = Ident::new(
                if parameter.is_state { "state" } else { "input" },
                Span::mixed_site(),
            );
            quote!(let #local = #args.#from(#text)?;)
        });
    let parameters = model.parameters.iter().map(|parameter| {
        let (name, ty) = (&parameter.name, &parameter.ty);
        let mutable = parameter.is_mut.then(|| quote!(mut));
        quote!(#mutable #name: #ty)
    });
    let output = &sig.output;
    let sites = sites(walked, krate);
    let unique = unique(
        walked,
        &quote!(<#ident as #krate::Workflow>::SITES),
        &private,
    );
    let statements = &body.stmts;
    let lints = attrs.iter().filter(|attr| {
        ["allow", "expect", "warn", "deny"]
            .iter()
            .any(|lint| attr.path().is_ident(lint))
    });
    let lints: Vec<_> = lints.collect();

    quote! {
        #(#docs)*
        #[allow(non_camel_case_types, missing_debug_implementations, missing_docs, clippy::empty_structs_with_brackets)]
        #vis struct #ident {}

        #(#docs)*
        #[allow(missing_docs, clippy::needless_pass_by_value, clippy::must_use_candidate, clippy::too_many_arguments)]
        #vis fn #ident(#(#input_names: #input_types),*) -> #krate::Call<#ident> {
            #private::call(#private::Input::new() #(.field(#input_texts, &#input_names))*)
        }

        #[allow(dead_code)]
        impl #ident {
            /// The workflow's name in a store.
            pub const NAME: &'static str = <Self as #krate::Workflow>::NAME;
            /// Everything durable it does, in source order.
            pub const SITES: &'static [#krate::Site] = <Self as #krate::Workflow>::SITES;
        }

        #unique

        #[allow(clippy::all, clippy::pedantic, clippy::nursery)]
        impl #krate::Workflow for #ident {
            const NAME: &'static str = #name;
            const SITES: &'static [#krate::Site] = &[#sites];
            type Mark = #private::#mark;
            type Returns = #returns;

            fn states() -> #private::Vec<#private::StateType> {
                #private::vec![#(#states),*]
            }

            fn run(#args: #private::Args) -> #private::Result<#private::Body, #private::ArgError> {
                #(#lints)*
                #[allow(unused_variables)]
                async fn __workflow_function_as_written(#cx: &#private::Cx, #(#parameters),*) #output {
                    #(#statements)*
                }
                #(#opened)*
                #private::Ok(#private::body::<Self>(
                    #args,
                    {
                        #[allow(unused_imports)]
                        use #private::lookup::*;
                        (&&&&&#private::tag::<<Self as #krate::Workflow>::Returns>() #plain).via()
                    },
                    move |#cx| #private::fut(async move { __workflow_function_as_written(&#cx, #(#locals),*).await }),
                ))
            }
        }
    }
}

/// Asks the compiler whether two sites of one name are both there, where only it can tell. It says so at the second.
pub(super) fn unique(
    walked: &Walked,
    sites: &TokenStream,
    private: &TokenStream,
) -> Option<TokenStream> {
    let at = walked.shared_name?.first.resolved_at(Span::mixed_site());
    let private = respan(private.clone(), at);
    let assert = quote_spanned!(at=> #private::assert_unique);
    let arguments = quote_spanned!(at=> (#sites));
    Some(quote!(const _: () = #assert #arguments;))
}

/// The list of sites, each under its conditions.
pub(super) fn sites(walked: &Walked, krate: &TokenStream) -> TokenStream {
    let list = walked.sites.iter().map(|found| {
        let (cfg, new) = (&found.cfg, site::new(found, krate));
        quote!(#(#cfg)* #new)
    });
    quote!(#(#list),*)
}

fn text(name: &Ident) -> String {
    let text = name.to_string();
    text.strip_prefix("r#").unwrap_or(&text).to_owned()
}
