//! A guided flow: the enum of its stages, its shape, and the calls that build it.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::{Attribute, Type};

use super::respan;
use crate::diagnostics::{Place, Report};
use crate::model::{Code, Guided, Kept, Stage, Undo};
use crate::syntax::{Body, Function, Impl, Member, Role};

// Input:
//   #[guided(id = "project", version = 2)] impl Project { #[stage(start, to = [done])] fn details() {} .. }
// Output:
//   impl Project { .. }                                          // hooks as written, bodies as `#[fragment]`s
//   pub enum ProjectStage { Details, .. }
//   impl StageKey for ProjectStage { .. }
//   impl Guided for Project { type Stage = ProjectStage; const GRAPH: Graph = ..; fn flow() -> &'static Flow<Self> { .. } }
pub(crate) fn guided(
    attrs: &[Attribute],
    ty: &Type,
    guided: &Guided,
    krate: &TokenStream,
) -> TokenStream {
    let library = quote!(#krate::guided);
    let private = quote!(#krate::__private);
    let members = guided
        .members
        .iter()
        .map(|kept| member(kept, &guided.options.id, krate));
    let key = key(guided, &library, &private);
    let name = &guided.key;
    let graph = graph(guided, &library, &private);
    let flow = if guided.is_faulty {
        quote!(::core::unreachable!("what was reported does not compile"))
    } else {
        flow(guided, ty, &library, &private, krate)
    };
    let sites = guided.stages.iter().filter(|stage| !stage.sites.is_empty());
    let sites = sites.map(|stage| super::workflow::listed(&stage.sites, krate));
    // What the compiler says about the item as a whole, such as that the data cannot be recorded, it says at the type.
    let at = name.span().resolved_at(Span::call_site());
    let trait_ = respan(library.clone(), at);
    let unused = guided.is_faulty.then(|| quote!(#[allow(unused)]));
    let implements = quote! {
        type Stage = #name;
        const GRAPH: #library::Graph = #graph;
        const SITES: &'static [#krate::Site] = &[#(#sites),*];

        fn flow() -> &'static #library::Flow<Self> { #flow }
    };
    let implements = quote_spanned!(at=> impl #trait_::Guided for #ty { #implements });
    quote! {
        #(#attrs)*
        #unused
        // What the flow asks to be `async` may have nothing to await.
        #[allow(clippy::unused_async)]
        impl #ty { #(#members)* }

        #key

        #[allow(clippy::all, clippy::pedantic, clippy::nursery)]
        #implements
    }
}

/// The `impl` without what made a flow of it: so that editors go on completing.
pub(crate) fn unguided(written: Impl, reports: &[Report]) -> TokenStream {
    let Impl {
        attrs,
        generics,
        ty,
        of,
        members,
    } = written;
    let (params, where_clause) = (&generics, &generics.where_clause);
    let of = of.map(|of| quote!(#of for));
    let members = members.into_iter().map(|member| match member {
        Member::Other(tokens) => tokens,
        Member::Function(mut function) => {
            Role::take(&mut function.attrs);
            plain(&function)
        }
    });
    quote! {
        #(#reports)*
        #(#attrs)*
        #[allow(unused, clippy::all)]
        impl #params #of #ty #where_clause { #(#members)* }
    }
}

fn member(kept: &Kept, flow: &str, krate: &TokenStream) -> TokenStream {
    match kept {
        Kept::Other(tokens) => tokens.clone(),
        Kept::Plain(function) => plain(function),
        Kept::Durable(function, at) => {
            let function = plain(function);
            // What is wrong with the attribute itself is said at the one that was written.
            let fragment = respan(quote!(#krate::fragment), *at);
            quote!(#[#fragment(crate = #krate, of = #flow)] #function)
        }
        Kept::Body(function, at) => {
            let function = plain(function);
            let fragment = respan(quote!(#krate::fragment), *at);
            quote!(#[#fragment(crate = #krate, of = #flow, body)] #function)
        }
    }
}

fn plain(function: &Function) -> TokenStream {
    let Function {
        attrs,
        vis,
        sig,
        body,
    } = function;
    let body = match body {
        // As it is while it is being typed: the compiler says what is wrong with it.
        Body::Unreadable { tokens, .. } => tokens.clone(),
        body => body.to_token_stream(),
    };
    quote!(#(#attrs)* #vis #sig #body)
}

/// `pub enum ProjectStage { Details, Region, Create, Done }`
fn key(guided: &Guided, library: &TokenStream, private: &TokenStream) -> TokenStream {
    let key = &guided.key;
    let text = format!(" A stage of the flow `{}`.", guided.options.id);
    let stages = || distinct(&guided.stages);
    let variants = stages().map(|stage| {
        let (variant, docs) = (&stage.variant, &stage.docs);
        let described = format!(" Stage `{}`.", stage.name);
        let docs = if docs.is_empty() {
            quote!(#[doc = #described])
        } else {
            quote!(#(#docs)*)
        };
        quote!(#docs #variant)
    });
    let named: Vec<_> = stages()
        .map(|stage| (&stage.variant, &stage.name))
        .collect();
    let all = named.iter().map(|(variant, _)| variant);
    let to = named
        .iter()
        .map(|(variant, name)| quote!(Self::#variant => #name));
    let from = named
        .iter()
        .map(|(variant, name)| quote!(#name => #private::Some(Self::#variant)));
    // An enum of nothing is matched by value.
    let name_of = if named.is_empty() {
        quote!(match *self {})
    } else {
        quote!(match self { #(#to),* })
    };
    let at = key.span().resolved_at(Span::call_site());
    let trait_ = respan(library.clone(), at);
    quote! {
        #[doc = #text]
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[allow(missing_docs, unreachable_pub, dead_code, clippy::module_name_repetitions)]
        pub enum #key { #(#variants),* }

        #[allow(dead_code, unreachable_pub, clippy::all, clippy::pedantic, clippy::nursery)]
        impl #key {
            /// All of them, as they were written.
            pub const ALL: &'static [Self] = &[#(Self::#all),*];
        }

        #[allow(unreachable_code, clippy::all, clippy::pedantic, clippy::nursery)]
        impl #trait_::StageKey for #key {
            fn of(__workflow_name: &#library::StageName) -> #private::Option<Self> {
                match __workflow_name.as_str() { #(#from,)* _ => #private::None }
            }

            fn name(&self) -> &::core::primitive::str { #name_of }
        }

        #[allow(clippy::all, clippy::pedantic, clippy::nursery)]
        impl ::core::fmt::Display for #key {
            fn fmt(&self, __workflow_f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                __workflow_f.write_str(#trait_::StageKey::name(self))
            }
        }
    }
}

/// Of stages that would be one variant, the first: the others were reported.
fn distinct(stages: &[Stage]) -> impl Iterator<Item = &Stage> {
    let is_first = |at: &usize| {
        let stage = &stages[*at];
        stages[..*at]
            .iter()
            .all(|other| other.variant != stage.variant && other.name != stage.name)
    };
    (0..stages.len()).filter(is_first).map(|at| &stages[at])
}

/// The same shape that [`flow`] builds, as a constant.
fn graph(guided: &Guided, library: &TokenStream, private: &TokenStream) -> TokenStream {
    let option = |text: &Option<String>| {
        text.as_ref().map_or_else(
            || quote!(#private::None),
            |text| quote!(#private::Some(#private::Cow::Borrowed(#text))),
        )
    };
    let nodes = guided.stages.iter().map(|stage| {
        let name = &stage.name;
        let (title, help) = (option(&stage.title), option(&stage.help));
        let (start, terminal, skippable, conditional, stays) = (
            stage.start.is_some(),
            stage.terminal.is_some(),
            stage.skippable.is_some(),
            stage.when.is_some(),
            stage.stays,
        );
        let exits = stage.exits.iter().map(|exit| {
            let (target, guarded) = (stored(guided, &exit.target), exit.guard.is_some());
            quote!(#library::Exit { target: #private::Cow::Borrowed(#target), guarded: #guarded })
        });
        quote!(#library::Node {
            name: #private::Cow::Borrowed(#name),
            title: #title,
            help: #help,
            start: #start,
            terminal: #terminal,
            skippable: #skippable,
            conditional: #conditional,
            stays: #stays,
            exits: #private::Cow::Borrowed({ const EXITS: &[#library::Exit] = &[#(#exits),*]; EXITS }),
        })
    });
    quote!({
        const NODES: &[#library::Node] = &[#(#nodes),*];
        #library::Graph::fixed(NODES)
    })
}

/// Under which name a stage is stored that is called so.
fn stored(guided: &Guided, called: &Ident) -> String {
    let found = guided.stages.iter().find(|stage| stage.function == *called);
    found.map_or_else(|| called.to_string(), |stage| stage.name.clone())
}

// Output:
//   static FLOW: OnceLock<Flow<Project>> = OnceLock::new();
//   described(&FLOW, "project", || Flow::<Project>::builder("project").version(2).stage(stage::<Project>("details").start()..)..)
fn flow(
    guided: &Guided,
    ty: &Type,
    library: &TokenStream,
    private: &TokenStream,
    krate: &TokenStream,
) -> TokenStream {
    let (id, version) = (&guided.options.id, guided.options.version);
    let history = guided.options.history;
    let history = history.map(|stops| quote!(.history(#stops)));
    let nests = &guided.options.nests;
    let hooks_timeout = guided.options.hooks_timeout;
    let hooks_timeout =
        hooks_timeout.map(|millis| quote!(.hooks_timeout(#private::millis(#millis))));
    let reopen = guided.options.reopens.then(|| quote!(.reopen(true)));
    let migrations = guided.options.migrations.iter();
    let migrations = migrations.map(|(from, migrate)| quote!(.migrate(#from, #migrate)));
    let exit_guard = guided.exit_guard.as_ref().map(|guard| {
        let function = &guard.function;
        if guard.is_async {
            return quote!(.exit_guard_async(<#ty>::#function));
        }
        let guard = test(&respan(quote!(<#ty>::#function), function.span()), ty);
        quote!(.exit_guard(#guard))
    });
    let stages = guided
        .stages
        .iter()
        .map(|built| stage(built, guided, ty, library, private, krate));
    quote! {
        static __WORKFLOW_FLOW: #private::OnceLock<#library::Flow<#ty>> = #private::OnceLock::new();
        #private::described(&__WORKFLOW_FLOW, #id, ||
            #library::Flow::<#ty>::builder(#id)
                .version(#version)
                #history
                #hooks_timeout
                #reopen
                #(.nests_described::<#nests>())*
                #(.stage(#stages))*
                #exit_guard
                #(#migrations)*
        )
    }
}

fn stage(
    stage: &Stage,
    guided: &Guided,
    ty: &Type,
    library: &TokenStream,
    private: &TokenStream,
    krate: &TokenStream,
) -> TokenStream {
    let name = &stage.name;
    let given = quote!(#library::Stage<#ty>);
    let mut calls = TokenStream::new();
    let mut call = |tokens: TokenStream| calls.extend(tokens);
    for (is, word) in [
        (stage.start.is_some(), "start"),
        (stage.terminal.is_some(), "terminal"),
        (stage.skippable.is_some(), "skippable"),
        (stage.stays, "stay"),
    ] {
        let word = Ident::new(word, Span::mixed_site());
        call(is.then(|| quote!(.#word())).into_token_stream());
    }
    if let Some(title) = &stage.title {
        call(quote!(.title(#title)));
    }
    if let Some(help) = &stage.help {
        call(quote!(.help(#help)));
    }
    if let Some(when) = &stage.when {
        let when = test(when, ty);
        call(quote!(.when(#when)));
    }
    for exit in &stage.exits {
        let target = stored(guided, &exit.target);
        call(match (&exit.guard, &exit.asks) {
            (None, _) => quote!(.to(#target)),
            (_, Some(asks)) => {
                let asks = code(asks, &given, ty);
                quote!(.to_if_async(#target, #asks))
            }
            (Some(guard), None) => {
                let guard = test(guard, ty);
                quote!(.to_if(#target, #guard))
            }
        });
    }
    for check in &stage.checks {
        let check = respan(quote!(<#ty>::#check), check.span());
        call(quote!(.check({
            let __workflow_check: fn(&#ty, &mut #library::Problems) = #check;
            __workflow_check
        })));
    }
    for ask in &stage.asks {
        let ask = code(ask, &given, ty);
        call(quote!(.check_async(#ask)));
    }
    if let Some(body) = &stage.body {
        let code = code(body, &given, ty);
        call(quote!(.body(#code)));
    }
    if let Some(leave) = &stage.leave {
        let code = code(leave, &given, ty);
        call(quote!(.leave(#code)));
    }
    for Undo { path, handler, .. } in &stage.undos {
        // What does not fit is told of where it was written, in the stage's code.
        let at = Place::of(handler).first.resolved_at(Span::mixed_site());
        let method = Ident::new("undo_site", at);
        call(quote_spanned!(at=> .#method(#path, {
            #[allow(unused_imports)]
            use #private::lookup::*;
            let __workflow_undo = #handler;
            let __workflow_unknown = #private::first_of(&__workflow_undo).unknown();
            (__workflow_undo, __workflow_unknown)
        })));
    }
    if let Some(undo) = &stage.undo {
        let code = code(undo, &quote!(#library::Undone<#ty>), ty);
        let method = Ident::new("undo", undo.returns.first);
        call(quote!(.#method(#code)));
    }
    if stage.undo_unfinished {
        call(quote!(.undo_unfinished()));
    }
    if let Some(revisit) = stage.revisit {
        let revisit = Ident::new(revisit, Span::mixed_site());
        call(quote!(.revisit(#library::Revisit::#revisit)));
    }
    if let Some(interrupt) = stage.on_interrupt {
        let interrupt = Ident::new(interrupt, Span::mixed_site());
        call(quote!(.on_interrupt(#library::Interrupt::#interrupt)));
    }
    if stage.retries.is_some() || stage.backoff.is_some() {
        // As for a step, where it says how long to wait, and not how often.
        let retries = stage.retries.unwrap_or(3);
        let backoff = stage.backoff.clone();
        let backoff = backoff.unwrap_or_else(|| quote!(__private::Backoff::DEFAULT));
        let backoff = super::within(backoff, krate);
        call(quote!(.retries(#retries, #backoff)));
    }
    if let Some(millis) = stage.timeout {
        call(quote!(.timeout(#private::millis(#millis))));
    }
    quote!(#library::stage::<#ty>(#name) #calls)
}

/// A condition, with its type said before the compiler looks at it: so that one that does not fit is underlined itself.
fn test(condition: &impl ToTokens, ty: &Type) -> TokenStream {
    quote!({
        let __workflow_condition: fn(&#ty) -> ::core::primitive::bool = #condition;
        __workflow_condition
    })
}

/// A function of a stage. What it takes is underlined if it is not this, and what it returns if that does not fit.
fn code(code: &Code, given: &TokenStream, ty: &Type) -> TokenStream {
    let Code {
        function,
        takes,
        returns,
    } = code;
    let argument = Ident::new("__workflow_given", takes.resolved_at(Span::mixed_site()));
    let [first, last] = [returns.first, returns.last].map(|at| at.resolved_at(function.span()));
    let called = respan(quote!(<#ty>::#function), first);
    let called = quote_spanned!(last=> #called(#argument));
    quote_spanned!(first=> |#argument: #given| #called)
}
