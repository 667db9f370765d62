//! A workflow: the function that calls it, and the type that is registered.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::{Attribute, Block, ReturnType, Signature};

use super::{respan, site};
use crate::diagnostics::Place;
use crate::model::{Parameter, Site, Undo, Walked, Workflow, returns_result};
use crate::syntax::Function;

// Input:
//   #[workflow] pub async fn checkout(order: Order, #[state] stock: Stock) -> Result<Receipt, Failure> { BODY }
// Output:
//   pub struct checkout {}
//   pub fn checkout(order: Order) -> Call<checkout> { call(Input::new().with(&Parameter::<Order>::new("order"), &order)) }
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
    let ident = &sig.ident;
    let private = quote!(#krate::__private);
    let docs: Vec<_> = named(attrs, &["doc", "cfg"]).collect();
    let inputs: Vec<_> = model
        .parameters
        .iter()
        .filter(|parameter| !parameter.is_state)
        .collect();
    let input_names = inputs.iter().map(|parameter| &parameter.name);
    let input_types = inputs.iter().map(|parameter| &parameter.ty);
    let fields = inputs.iter().map(|parameter| {
        let (described, name) = (described(parameter, &private), &parameter.name);
        quote!(.with(&#described, &#name))
    });
    let call = quote!(#private::call(#private::Input::new() #(#fields)*));

    // What the compiler says about the item as a whole, it says at the function's name.
    let at = ident.span().resolved_at(Span::call_site());
    let library = respan(krate.clone(), at);
    let type_ = quote_spanned!(at=> #vis struct #ident {});
    let call = quote_spanned!(at=> #vis fn #ident(#(#input_names: #input_types),*) -> #library::Call<#ident> { #call });
    let name_const =
        quote_spanned!(at=> pub const NAME: &'static str = <Self as #library::Workflow>::NAME;);
    let sites_const = quote_spanned!(at=> pub const SITES: &'static [#library::Site] = <Self as #library::Workflow>::SITES;);

    let graph_const = quote_spanned!(at=> pub const GRAPH: #library::Graph = <Self as #library::Workflow>::GRAPH;);
    let sites = sites(walked, krate);
    let unique = unique(
        walked,
        &quote!(<#ident as #krate::Workflow>::SITES),
        &private,
    );
    let states = model
        .parameters
        .iter()
        .filter(|parameter| parameter.is_state)
        .map(|parameter| {
            let (text, ty) = (text(&parameter.name), &parameter.ty);
            quote!(#private::state_type::<#ty>(#text))
        });
    let (returns, mark) = returns(sig);
    let run = run(function, model, body, walked, krate);
    let undos = undos(walked, &private);

    let outline = crate::lock::outline(walked);
    let implements = quote! {
        const NAME: &'static str = #name;
        const SITES: &'static [#krate::Site] = &[#sites];
        const OUTLINE: &'static str = #outline;
        #undos
        type Mark = #private::#mark;
        type Returns = #returns;

        fn states() -> #private::Vec<#private::StateType> {
            #private::vec![#(#states),*]
        }

        #run
    };
    let implements = quote_spanned!(at=> impl #library::Workflow for #ident { #implements });

    quote! {
        #(#docs)*
        #[allow(non_camel_case_types, missing_debug_implementations, missing_docs, clippy::empty_structs_with_brackets)]
        #type_

        #(#docs)*
        #[allow(missing_docs, clippy::needless_pass_by_value, clippy::must_use_candidate, clippy::too_many_arguments)]
        #call

        #[allow(dead_code)]
        impl #ident {
            /// The workflow's name in a store.
            #name_const
            /// Everything durable it does, in source order.
            #sites_const
            /// How they stand in each other and follow each other: to be drawn.
            #graph_const
        }

        #unique

        #[allow(clippy::all, clippy::pedantic, clippy::nursery)]
        #implements
    }
}

// Output: #[macro_export] macro_rules! two_workflows_of_this_crate_are_named__checkout__give_one_another_name { () => {} }
//
// What is exported by a macro stands at the crate's root, wherever it is written: so two of one name do not compile, and the
// compiler shows both. In a test, code of before and after a deploy may stand side by side.
pub(crate) fn once(function: &Function, name: &str) -> TokenStream {
    let at = function.sig.ident.span().resolved_at(Span::call_site());
    let name = name.replace('-', "__");
    let said = format!("two_workflows_of_this_crate_are_named__{name}__give_one_another_name");
    let said = Ident::new(&said, at);
    let cfg = named(&function.attrs, &["cfg"]);
    let macro_ = quote_spanned!(at=> macro_rules! #said { () => {}; });
    quote! {
        #(#cfg)*
        #[cfg(not(test))]
        #[doc(hidden)]
        #[allow(non_local_definitions)]
        #[macro_export]
        #macro_
    }
}

// Input:  #[step(undo(refund))] on a step at `settle/reserve`
// Output: const UNDOS: &'static [Undo] = &[Undo::new("settle/reserve", { fn undo(args: UndoArgs) -> Undoing { undo(refund, args) } undo })];
fn undos(walked: &Walked, private: &TokenStream) -> Option<TokenStream> {
    if walked.undos.is_empty() {
        return None;
    }
    let (args, shim) = (
        Ident::new("__workflow_args", Span::mixed_site()),
        Ident::new("__workflow_undo", Span::mixed_site()),
    );
    let undos = walked.undos.iter().map(|undo| {
        let Undo { path, handler, cfg } = undo;
        quote!(#(#cfg)* #private::Undo::new(#path, {
            fn #shim(#args: #private::UndoArgs) -> #private::UndoBegun {
                #private::undo(#handler, #args)
            }
            #shim
        }))
    });
    Some(quote!(const UNDOS: &'static [#private::Undo] = &[#(#undos),*];))
}

/// `fn run`: opens the arguments, and calls the function as it was written.
fn run(
    function: &Function,
    model: &Workflow,
    body: &Block,
    walked: &Walked,
    krate: &TokenStream,
) -> TokenStream {
    let Function { attrs, sig, .. } = function;
    let private = quote!(#krate::__private);
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
            if parameter.is_state {
                let text = text(&parameter.name);
                return quote!(let #local = #args.state(#text)?;);
            }
            let described = described(parameter, &private);
            quote!(let #local = #described.read(&#args)?;)
        });
    let parameters = model.parameters.iter().map(|parameter| {
        let (name, ty) = (&parameter.name, &parameter.ty);
        let mutable = parameter.is_mut.then(|| quote!(mut));
        quote!(#mutable #name: #ty)
    });
    let lints = named(attrs, &["allow", "expect", "warn", "deny"]);
    let unused = if walked.is_faulty {
        quote!(unused)
    } else {
        quote!(unused_variables)
    };
    let lent = model.parameters.iter().filter_map(|parameter| {
        let (name, ty) = (&parameter.name, parameter.borrowed.as_ref()?);
        Some(quote!(let #name: #ty = &#name;))
    });
    let (output, statements) = (&sig.output, &body.stmts);
    let (returns, _) = returns(sig);
    let plain = (!returns_result(sig)).then(|| quote!(.plain()));

    // A future that is not `Send` is told of at the function's name; what makes it so is told at its own place.
    let at = sig.ident.span().resolved_at(Span::call_site());
    let library = respan(krate.clone(), at);
    let future = quote_spanned!(at=> #library::__private::fut(
        __workflow_function_as_written(#cx, #(#locals),*)
    ));

    quote! {
        fn run(#args: #private::Args) -> #private::Result<#private::Body, #private::ArgError> {
            #(#lints)*
            #[allow(#unused)]
            async fn __workflow_function_as_written(#cx: #private::Cx, #(#parameters),*) #output {
                let #cx = &#cx;
                #(#lent)*
                #(#statements)*
            }
            #(#opened)*
            #private::Ok(#private::body::<Self>(
                #args,
                {
                    #[allow(unused_imports)]
                    use #private::lookup::*;
                    (&&&&&#private::tag::<#returns>() #plain).via()
                },
                move |#cx| #future,
            ))
        }
    }
}

/// How a parameter's argument is written and read. In both places with the same spans, so that a type that cannot be recorded
/// is one error, at the type.
fn described(parameter: &Parameter, private: &TokenStream) -> TokenStream {
    let (text, ty) = (text(&parameter.name), &parameter.ty);
    let place = Place::of(ty);
    let [first, last] = [place.first, place.last].map(|span| span.resolved_at(Span::mixed_site()));
    let path = respan(quote!(#private::Parameter), first);
    let new = Ident::new("new", last);
    quote!(#path::<#ty>::#new(#text))
}

/// What is returned, and whether it is a `Result` by name.
fn returns(sig: &Signature) -> (TokenStream, Ident) {
    let returns = match &sig.output {
        ReturnType::Default => quote!(()),
        ReturnType::Type(_, ty) => quote!(#ty),
    };
    let mark = if returns_result(sig) {
        "Fallible"
    } else {
        "Infallible"
    };
    (returns, Ident::new(mark, Span::mixed_site()))
}

/// The attributes of these names.
fn named<'a>(attrs: &'a [Attribute], names: &'a [&str]) -> impl Iterator<Item = &'a Attribute> {
    attrs
        .iter()
        .filter(|attr| names.iter().any(|name| attr.path().is_ident(name)))
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
    listed(&walked.sites, krate)
}

pub(super) fn listed(sites: &[Site], krate: &TokenStream) -> TokenStream {
    let list = sites.iter().map(|found| {
        let (cfg, new) = (&found.cfg, site::new(found, krate));
        quote!(#(#cfg)* #new)
    });
    quote!(#(#list),*)
}

fn text(name: &Ident) -> String {
    let text = name.to_string();
    text.strip_prefix("r#").unwrap_or(&text).to_owned()
}
