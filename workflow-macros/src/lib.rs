//! The attribute macros of `workflow`. Use them through that crate, which documents them and holds what they expand to.
//!
//! `syntax` (what was written) -> `model` (what it means, and whether it may) -> `expand` (prints; cannot fail).

#[cfg(test)]
mod corpus;
#[cfg(test)]
mod cost;
mod diagnostics;
mod expand;
mod lock;
mod messages;
mod model;
#[cfg(test)]
mod snapshots;
mod syntax;

use std::panic::{AssertUnwindSafe, catch_unwind};

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::{ToTokens, quote};

use crate::diagnostics::{Errors, Place, Report};
use crate::model::{At, FlowOptions, ItemOptions, Options};
use crate::syntax::{Body, Function, Impl, Settings};

/// Makes an async function durable: a workflow.
///
/// The function keeps its name and arguments, and gives a `Call` of itself: for `Engine::run` and `Engine::start`. Beside it
/// stands a type of the same name, which is what `Engine::builder().workflow(checkout)` and `Engine::attach::<checkout>` take.
///
/// Arguments are the run's input, and recorded: owned, `Serialize + DeserializeOwned`. Those marked `#[state]` come from the
/// engine by their type: `Clone + Send + Sync + 'static`. They may be used only in the expression of a durable operation.
///
/// In the body, every `.await` is a durable operation with a name: a call of a `#[step]` or `#[fragment]` function, or one of
/// the library's macros. `#[step]` on a statement, a `let` or an expression makes any other expression a step in place. A
/// loop that contains a durable operation has a label, and may have `#[key(expr)]`.
///
/// Options: `name = ".."` (under which it is stored; the function's name if not said), `shared_name` (another workflow of the
/// crate has that name, too, and no engine takes both; without it a second one does not compile, but in tests), `crate = path`.
#[proc_macro_attribute]
pub fn workflow(
    args: proc_macro::TokenStream,
    item: proc_macro::TokenStream,
) -> proc_macro::TokenStream {
    guarded(args, item, expand_workflow)
}

/// Makes an async function, a method, or an expression in a workflow a step: an effect whose outcome is recorded.
///
/// On a function or method: it gives a `Step`, which a workflow awaits, and which anybody else may await, too, to run it once.
/// Arguments may be borrowed; owned ones are cloned for each attempt. The result, `T` or `Result<T, E>`, is recorded: `T` is
/// `Serialize + DeserializeOwned`, `E` is any error. The workflow gets `Result<T, Failure>`.
///
/// On a statement, a `let` or an expression in a workflow: that expression becomes a step. It may borrow locals, and cannot
/// change them. A trailing `?` belongs to the workflow. On a call of a step it renames and reconfigures that step; on that of
/// a fragment it takes a name, and nothing else.
///
/// Options, in both places; those at the site go before those of the definition:
///
/// | option | default | |
/// |---|---|---|
/// | `name = ".."` | what is called | the site's name (only at the site) |
/// | `retries = n` | 3 | attempts after the first |
/// | `backoff(exponential, initial = "..", factor = f, max = "..", jitter = f)` | 200 ms, x2, 30 s, none | the wait before the next |
/// | `backoff(fixed, wait = "..", jitter = f)` | | the same wait every time |
/// | `timeout = ".."` | 30 s | per attempt; `"none"` for none |
/// | `retry_on_timeout` | no | a timeout is final otherwise |
/// | `retry_if(\|e: &E\| ..)` | always | which errors are worth another attempt |
/// | `ephemeral` | no | rides on the next commit; may run again, with another value, after a crash |
/// | `at_most_once` | no | no retries; after a crash in the body: `Interrupted` |
/// | `blocking` | no | runs on a thread that may block; on a definition only |
/// | `infallible` | no | a `..Result` that is no `Result` is a value; on a definition only |
#[proc_macro_attribute]
pub fn step(
    args: proc_macro::TokenStream,
    item: proc_macro::TokenStream,
) -> proc_macro::TokenStream {
    guarded(args, item, expand_step)
}

/// Makes an async function durable code that workflows share: it runs in place, in a scope of its own name.
///
/// It may take references, also `&mut`, and be generic. Its body follows the rules of a workflow's.
#[proc_macro_attribute]
pub fn fragment(
    args: proc_macro::TokenStream,
    item: proc_macro::TokenStream,
) -> proc_macro::TokenStream {
    guarded(args, item, expand_fragment)
}

/// Describes a guided flow on an `impl` of the data that it collects.
///
/// Each function with `#[stage(..)]` is a stage. One that is not `async` and does nothing only asks: `fn details() {}`. The
/// code of any other is durable, and runs when the stage is entered: `async fn create(stage: Stage<Self>) -> Result<(), E>`. Its doc
/// comment is the help that a person is shown.
///
/// Beside the `impl` there is an enum of the stages, `ProjectStage` for `Project`, and `Project` is
/// `guided::Guided`: `Engine::builder().guide::<Project>()`, `engine.guide::<Project>("acme")`.
///
/// | on a function | it is | its shape |
/// |---|---|---|
/// | `#[check(details)]` | asked before the stage is left by `next` | `fn details_ok(&self, problems: &mut Problems)` |
/// | | the same, durable | `async fn is_free(stage: Stage<Self>) -> Result<Problems, E>` |
/// | `#[guard]` | a condition of exits that is durable: `to = [a if Self::allowed, b]` | `async fn allowed(stage: Stage<Self>) -> Result<bool, E>` |
/// | `#[leave(details)]` | run when the stage is left by `next`; durable | `async fn leave(stage: Stage<Self>) -> Result<(), E>` |
/// | `#[undo(create)]`, `#[undo(create, unfinished)]` | what takes a visit of the stage back | `async fn undo(undone: Undone<Self>) -> Result<(), E>` |
/// | `#[exit_guard]` | asked before a guide is cancelled | `fn may_leave(&self) -> bool`, `async fn may_leave(self) -> bool` |
///
/// | option of `#[stage]` | |
/// |---|---|
/// | `start`, `terminal` | where the flow begins, where it ends with `next` |
/// | `to = [region if Self::wants_cloud, create]` | where to go on: the first exit that is open |
/// | `otherwise = stay` | `next` is refused while no exit is open; else the last one has no condition |
/// | `when = Self::wants_cloud` | passed over while it does not hold |
/// | `skippable` | a person may pass it by |
/// | `title = ".."` | what stands above it |
/// | `name = ".."` | under which it is stored; the function's name if not said |
/// | `timeout = "30s"` | how long its code may take |
/// | `retries = n`, `backoff(..)` | how often its code is tried again by itself, and how long it waits before that: as for a step; never if not said |
/// | `revisit = keep`, `fresh` | what entering it again does with what succeeded before |
/// | `on_interrupt = ask`, `rerun` | what becomes of its code when the process ended in it |
///
/// | option of `#[guided]` | |
/// |---|---|
/// | `id = ".."` | under which its guides are stored |
/// | `version = 2`, `migrate(1 => Self::from_v1)` | what makes of the data of one version that of the next |
/// | `history = 100` | how many stops of the way are kept |
/// | `nests(Billing, ..)` | the flows that its stages go through with `guide!`; not in a circle |
/// | `hooks_timeout = "30s"` | how long checks, guards, the exit guard and what is done on leaving may take |
/// | `reopen` | `back` takes up a guide that was completed |
/// | `crate = path` | where the library is, if it is not found |
#[proc_macro_attribute]
pub fn guided(
    args: proc_macro::TokenStream,
    item: proc_macro::TokenStream,
) -> proc_macro::TokenStream {
    guarded(args, item, expand_guided)
}

/// Writes `workflow.lock` or compares it, in a test of the package whose workflows it locks.
///
/// The lock stands beside the package's `Cargo.toml`, is committed, and lists every site of its workflows and fragments with
/// the types of what is recorded. While it is there, an edit that a live run would not survive does not compile, and the
/// error quotes the lock's line and says the ways out. Without it nothing is checked.
///
/// ```ignore
/// #[test]
/// fn live_runs_survive_this_code() {
///     workflow::lock!();
/// }
/// ```
///
/// | `cargo test` with | |
/// |---|---|
/// | nothing | passes when every live run survives; says on stderr what the lock does not list yet |
/// | `WORKFLOW_LOCK=check` | fails when the lock is not what would be written: for the pipeline that deploys |
/// | `WORKFLOW_LOCK=write` | writes the lock; whatever was edited is accepted |
/// | `WORKFLOW_LOCK=write:checkout/mail,refund` | the same, but only edits at these sites, or in these workflows, are accepted |
///
/// Reads `src`; `lock!("src", "examples/shop.rs")` reads these, from the directory of `Cargo.toml`. What stands under
/// `#[cfg(test)]` is no part of it; what stands under another condition is, with the condition.
#[proc_macro]
pub fn lock(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    lock::write(input.into()).into()
}

/// What `workflow::cron!` is made of: where the library is, in parentheses, and the expression.
#[doc(hidden)]
#[proc_macro]
pub fn cron(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    expand_cron(input.into()).into()
}

/// A panic in here is a bug of ours: the item stays, so that only one error is seen, and it says so.
fn guarded(
    args: proc_macro::TokenStream,
    item: proc_macro::TokenStream,
    expand: fn(TokenStream, TokenStream) -> TokenStream,
) -> proc_macro::TokenStream {
    let (args, item) = (TokenStream::from(args), TokenStream::from(item));
    match catch_unwind(AssertUnwindSafe(|| expand(args, item.clone()))) {
        Ok(expanded) => expanded.into(),
        Err(panic) => {
            let said = panic.downcast_ref::<String>().cloned();
            let said = said
                .or_else(|| panic.downcast_ref::<&str>().map(|said| (*said).to_owned()))
                .unwrap_or_default();
            let report = Report::new(Span::call_site(), messages::PANICKED.with(&[&said]));
            quote!(#report #item).into()
        }
    }
}

fn expand_workflow(args: TokenStream, item: TokenStream) -> TokenStream {
    let written = item.clone();
    let mut function = match parse(item, "workflow") {
        Ok(function) => function,
        Err(refused) => return refused,
    };
    let mut errors = Errors::default();
    let options = ItemOptions::check(&Settings::read(args), "workflow", &mut errors);
    let krate = expand::krate(options.krate.as_ref());
    let shares_name = options.shares_name;
    let name = options
        .name
        .unwrap_or_else(|| model::workflow_name(&function.sig));
    let model = model::check_workflow(&mut function, &mut errors);
    expand::stub_unreadable(&mut function);
    let (Some(model), Body::Block(block)) = (model, &function.body) else {
        let item = expand::fallback(&function, &errors.finish());
        let is_method = function.sig.receiver().is_some();
        let named = (!is_method).then(|| expand::unread_type(&function.sig.ident));
        return quote!(#item #named);
    };
    let mut block = block.clone();
    let walked = model::walk(
        &mut block,
        &function.sig,
        model.given(),
        model::Undos::Own,
        &krate,
        &mut errors,
    );
    let watched = lock::check(
        &lock::Expanded {
            item: lock::Item::Workflow,
            name: &name,
            ident: &function.sig.ident,
            parameters: &model.parameters,
            walked: &walked,
            written: &written,
        },
        &mut errors,
    );
    let expanded = expand::workflow(&function, &model, &name, &block, &walked, &krate);
    let once = (!shares_name).then(|| expand::once(&function, &name));
    with(errors, quote!(#expanded #once #watched))
}

fn expand_step(args: TokenStream, item: TokenStream) -> TokenStream {
    if args.to_string() == expand::site::IMPORTED {
        return TokenStream::new();
    }
    let mut function = match parse(item, "step") {
        Ok(function) => function,
        Err(refused) => return refused,
    };
    let mut errors = Errors::default();
    let settings = Settings::read(args);
    let options = Options::check(&settings, At::Definition, &mut errors);
    let krate = expand::krate(options.krate.as_ref());
    let model = model::check_step(&mut function, &settings, &mut errors);
    if !model.has_body {
        expand::stub(&mut function);
    }
    let expanded = expand::step(&function, &model, &options, &krate);
    with(errors, expanded)
}

fn expand_fragment(args: TokenStream, item: TokenStream) -> TokenStream {
    let written = item.clone();
    let mut function = match parse(item, "fragment") {
        Ok(function) => function,
        Err(refused) => return refused,
    };
    let mut errors = Errors::default();
    let options = ItemOptions::check(&Settings::read(args), "fragment", &mut errors);
    let krate = expand::krate(options.krate.as_ref());
    let fine = model::check_fragment(&function, &mut errors);
    expand::stub_unreadable(&mut function);
    let (true, Body::Block(block)) = (fine, &function.body) else {
        return expand::fallback(&function, &errors.finish());
    };
    let name = model::workflow_name(&function.sig);
    let undone = match (options.is_body, &options.flow) {
        (true, _) => model::Undos::OfFlow,
        (false, Some(_)) => model::Undos::OfHook,
        (false, None) => model::Undos::Refused(messages::UNDO_IN_FRAGMENT),
    };
    let name = match options.flow {
        Some(flow) => format!("{flow}/{name}"),
        None => name,
    };
    let mut block = block.clone();
    let walked = model::walk(
        &mut block,
        &function.sig,
        model::lent(&function.sig),
        undone,
        &krate,
        &mut errors,
    );
    let watched = lock::check(
        &lock::Expanded {
            item: lock::Item::Fragment,
            name: &name,
            ident: &function.sig.ident,
            parameters: &[],
            walked: &walked,
            written: &written,
        },
        &mut errors,
    );
    let expanded = expand::fragment(&function, &block, &walked, &krate, &watched);
    with(errors, expanded)
}

fn expand_guided(args: TokenStream, item: TokenStream) -> TokenStream {
    let written = match syn::parse2::<Impl>(item.clone()) {
        Ok(written) => written,
        Err(why) => {
            let is_impl = item
                .clone()
                .into_iter()
                .any(|tree| matches!(tree, TokenTree::Ident(word) if word == "impl"));
            let report = if is_impl {
                let text = messages::GUIDED_UNREADABLE.with(&[&why.to_string()]);
                Report::new(why.span(), text)
            } else {
                Report::new(Span::call_site(), messages::GUIDED_NOT_AN_IMPL)
            };
            return quote!(#report #item);
        }
    };
    let mut errors = Errors::default();
    let type_name = model::type_name(&written.ty);
    let options = FlowOptions::check(&Settings::read(args), type_name.as_ref(), &mut errors);
    let krate = expand::krate(options.krate.as_ref());
    let one_type = written.of.is_none() && written.generics.params.is_empty();
    let (Some(name), true) = (type_name, one_type) else {
        let name =
            model::type_name(&written.ty).map_or("Project".to_owned(), |name| name.to_string());
        errors.push(
            Place::of(&written.ty),
            messages::GUIDED_ONE_TYPE.with(&[&name]),
        );
        return expand::unguided(written, &errors.finish());
    };
    let (attrs, ty) = (written.attrs.clone(), written.ty.clone());
    let mut guided = model::check_guided(written, &name, options, &mut errors);
    model::look_into_code(&mut guided, &krate);
    let watched = lock::check_guided(&guided, &name, &mut errors);
    let expanded = expand::guided(&attrs, &ty, &guided, &krate);
    with(errors, quote!(#expanded #watched))
}

fn expand_cron(input: TokenStream) -> TokenStream {
    let mut input = input.into_iter();
    let krate = if let Some(TokenTree::Group(group)) = input.next() {
        group.stream()
    } else {
        quote!(::workflow)
    };
    let expression: TokenStream = input.collect();
    let Ok(literal) = syn::parse2::<syn::LitStr>(expression.clone()) else {
        let place = Place::of(&expression);
        return Report::new(place, messages::CRON_NO_TEXT).into_token_stream();
    };
    let written = literal.value();
    match model::cron::parse(&written) {
        Ok(fields) => expand::cron(&written, &fields, &krate),
        Err(model::cron::Wrong { at, text }) => {
            // After the quote, where it is one that was written without escapes. Compilers that do not point into a text point at
            // all of it.
            let token = literal.token();
            let plain = token.to_string() == format!("\"{written}\"");
            let part = if plain && !at.is_empty() {
                token.subspan((at.start + 1)..=at.end)
            } else {
                None
            };
            Report::new(part.unwrap_or_else(|| literal.span()), text).into_token_stream()
        }
    }
}

fn parse(item: TokenStream, name: &str) -> Result<Function, TokenStream> {
    syn::parse2::<Function>(item.clone()).map_err(|why| {
        let Some(called) = syntax::function_name(&item) else {
            let report = Report::new(Span::call_site(), messages::NOT_A_FUNCTION.with(&[name]));
            return quote!(#report #item);
        };
        let text = messages::UNREADABLE_SIGNATURE.with(&[&why.to_string()]);
        let report = Report::new(why.span(), text);
        let named = (name == "workflow").then(|| expand::unread_type(&called));
        quote!(#report #item #named)
    })
}

/// All that is wrong, and the expansion as if nothing were.
fn with(errors: Errors, expanded: TokenStream) -> TokenStream {
    let reports = errors.finish();
    quote!(#(#reports)* #expanded)
}
