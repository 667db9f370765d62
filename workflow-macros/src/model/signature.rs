//! The rules on the items themselves.

use proc_macro2::{Ident, Span};
use quote::ToTokens;
use syn::visit::{self, Visit};
use syn::{FnArg, Pat, PatIdent, ReturnType, Signature, Type};

use super::{Given, name, rules};
use crate::diagnostics::{Errors, Place, Report};
use crate::messages;
use crate::syntax::{Body, Function, Mark, Settings, Value, take};

/// A parameter that is a plain name.
#[derive(Clone)]
pub(crate) struct Parameter {
    pub(crate) name: Ident,
    pub(crate) is_mut: bool,
    pub(crate) ty: Type,
    /// The engine gives it.
    pub(crate) is_state: bool,
    /// How it was borrowed, which was reported: the body goes on with that, so that nothing follows from it.
    pub(crate) borrowed: Option<Type>,
}

/// A workflow whose signature is in order.
pub(crate) struct Workflow {
    pub(crate) parameters: Vec<Parameter>,
}

impl Workflow {
    /// The parameters that the engine gives, and those that have no order.
    pub(crate) fn given(&self) -> Vec<(Ident, Given)> {
        let particular = self.parameters.iter().filter_map(|given| {
            let what = if given.is_state {
                Given::State
            } else {
                unordered(&given.ty)?
            };
            Some((given.name.clone(), what))
        });
        particular.collect()
    }
}

/// A map or set that has another order on every replay.
fn unordered(ty: &Type) -> Option<Given> {
    match ty {
        Type::Reference(reference) => unordered(&reference.elem),
        Type::Path(path) => rules::unordered(&path.path).map(Given::Unordered),
        _ => None,
    }
}

/// The parameters of a fragment that are a `&mut`, and those that have no order.
pub(crate) fn lent(sig: &Signature) -> Vec<(Ident, Given)> {
    let lent = sig.inputs.iter().filter_map(|input| match input {
        FnArg::Typed(typed) => {
            let what = if is_mut_reference(&typed.ty) {
                Given::Lent
            } else {
                unordered(&typed.ty)?
            };
            match &*typed.pat {
                Pat::Ident(named) => Some((named.ident.clone(), what)),
                _ => None,
            }
        }
        FnArg::Receiver(_) => None,
    });
    lent.collect()
}

/// A step whose signature is in order.
pub(crate) struct Step {
    pub(crate) parameters: Vec<Parameter>,
    /// Its body can be compiled. If not, that was reported, and the compiler would only follow.
    pub(crate) has_body: bool,
}

/// Whether a return type is named `..Result`.
pub(crate) fn returns_result(sig: &Signature) -> bool {
    let ReturnType::Type(_, ty) = &sig.output else {
        return false;
    };
    let mut ty = &**ty;
    while let Type::Paren(syn::TypeParen { elem, .. }) | Type::Group(syn::TypeGroup { elem, .. }) =
        ty
    {
        ty = elem;
    }
    matches!(ty, Type::Path(path) if path.path.segments.last().is_some_and(|last| last.ident.to_string().ends_with("Result")))
}

/// What is the same for every annotated function. `false` when nothing else can be made of it.
fn check_item(function: &Function, item: &str, errors: &mut Errors) -> bool {
    let sig = &function.sig;
    if sig.asyncness.is_none() {
        errors.push(
            sig.fn_token.span,
            messages::NOT_ASYNC.with(&[item, &sig.ident.to_string()]),
        );
    }
    qualifiers(sig, item, errors);
    match &function.body {
        Body::Unreadable { why, .. } => {
            errors.push(
                why.span(),
                messages::UNREADABLE_BODY.with(&[&why.to_string()]),
            );
            // A step may have to do without one; what else there is has one that says nothing.
            item != "step"
        }
        Body::Missing(semicolon) if item != "step" => {
            errors.push(semicolon.span, messages::NO_BODY.with(&[item]));
            false
        }
        _ => true,
    }
}

fn qualifiers(sig: &Signature, item: &str, errors: &mut Errors) {
    if let Some(token) = &sig.constness {
        errors.push(token.span, messages::QUALIFIED.with(&[item, "const"]));
    }
    if let syn::Safety::Unsafe(token) = &sig.safety {
        errors.push(token.span, messages::QUALIFIED.with(&[item, "unsafe"]));
    }
    if let Some(abi) = &sig.abi {
        errors.push(Place::of(abi), messages::QUALIFIED.with(&[item, "extern"]));
    }
    if let Some(variadic) = &sig.variadic {
        errors.push(
            Place::of(variadic),
            messages::QUALIFIED.with(&[item, "variadic"]),
        );
    }
}

/// Checks a workflow's signature, and takes `#[state]` off it.
pub(crate) fn check_workflow(function: &mut Function, errors: &mut Errors) -> Option<Workflow> {
    let fine = check_item(function, "workflow", errors);
    if !function.sig.generics.params.is_empty() {
        errors.push(
            Place::of(&function.sig.generics),
            messages::WORKFLOW_GENERIC,
        );
    }
    let mut parameters = Vec::new();
    for input in &mut function.sig.inputs {
        match input {
            FnArg::Receiver(receiver) => errors.push(Place::of(receiver), messages::WORKFLOW_SELF),
            FnArg::Typed(typed) => {
                let state = take(&mut typed.attrs, Mark::State);
                let Pat::Ident(PatIdent {
                    by_ref: None,
                    subpat: None,
                    ident,
                    mutability,
                    ..
                }) = &*typed.pat
                else {
                    errors.push(
                        Place::of(&typed.pat),
                        messages::WORKFLOW_PATTERN.with(&[&written(&typed.pat)]),
                    );
                    continue;
                };
                if let Some(state) = &state
                    && !matches!(state.meta, syn::Meta::Path(_))
                {
                    errors.push(
                        Place::of(state),
                        messages::STATE_TAKES_NOTHING.with(&[&ident.to_string()]),
                    );
                }
                let mut borrowed = None;
                if let Some(borrow) = borrows(&typed.ty) {
                    let owned = owned(&typed.ty);
                    let text = messages::WORKFLOW_BORROWS.with(&[&ident.to_string(), &owned]);
                    if let Some((lent, owned)) = taken_apart(&typed.ty, &owned) {
                        errors.push(borrow, text);
                        borrowed = Some(lent);
                        *typed.ty = owned;
                    } else {
                        *typed.ty = refused(&Report::new(borrow, text));
                    }
                }
                let is_mut = mutability.is_some();
                parameters.push(Parameter {
                    name: ident.clone(),
                    is_mut,
                    ty: (*typed.ty).clone(),
                    is_state: state.is_some(),
                    borrowed,
                });
            }
        }
    }
    // A type cannot be put beside a method.
    let fine = fine && function.sig.receiver().is_none();
    fine.then_some(Workflow { parameters })
}

/// Checks a step's signature.
pub(crate) fn check_step(
    function: &mut Function,
    settings: &Settings,
    errors: &mut Errors,
) -> Step {
    let blocking = settings
        .list
        .iter()
        .find(|setting| setting.name == "blocking" && matches!(setting.value, Value::Nothing));
    let mut has_body = if blocking.is_some() {
        check_blocking(function, errors)
    } else {
        check_item(function, "step", errors)
    };
    let mut parameters = Vec::new();
    for input in &mut function.sig.inputs {
        match input {
            FnArg::Receiver(this) => {
                let place = Place::of(this);
                match &this.kind {
                    syn::ReceiverKind::Reference(_, _, Some(_)) => {
                        has_body = false;
                        errors.push(place, messages::STEP_MUT_SELF);
                    }
                    syn::ReceiverKind::Reference(..) => {
                        if blocking.is_some() {
                            errors.push(place, messages::STEP_BLOCKING_BORROWS);
                        }
                    }
                    _ => errors.push(place, messages::STEP_SELF_BY_VALUE.with(&["step"])),
                }
            }
            FnArg::Typed(typed) => {
                let Pat::Ident(PatIdent {
                    by_ref: None,
                    subpat: None,
                    ident,
                    mutability,
                    ..
                }) = &*typed.pat
                else {
                    errors.push(
                        Place::of(&typed.pat),
                        messages::STEP_PATTERN.with(&[&written(&typed.pat)]),
                    );
                    continue;
                };
                if is_mut_reference(&typed.ty) {
                    has_body = false;
                    errors.push(
                        Place::of(&typed.ty),
                        messages::STEP_MUT_PARAMETER.with(&[&ident.to_string()]),
                    );
                } else if let Some(borrow) = borrows(&typed.ty)
                    && blocking.is_some()
                {
                    errors.push(borrow, messages::STEP_BLOCKING_BORROWS);
                }
                let is_mut = mutability.is_some();
                parameters.push(Parameter {
                    name: ident.clone(),
                    is_mut,
                    ty: (*typed.ty).clone(),
                    is_state: false,
                    borrowed: None,
                });
            }
        }
    }
    if let ReturnType::Type(_, ty) = &mut function.sig.output
        && let Some(borrow) = borrows(ty)
    {
        has_body = false;
        **ty = refused(&Report::new(borrow, messages::STEP_BORROWED_RETURN));
    }
    Step {
        parameters,
        has_body,
    }
}

/// What is wrong with a type, in its place: to the compiler it then fits everywhere, and nothing follows from it.
fn refused(report: &Report) -> Type {
    Type::Verbatim(report.to_token_stream())
}

/// A blocking step need not be `async`, and awaits nothing.
fn check_blocking(function: &Function, errors: &mut Errors) -> bool {
    qualifiers(&function.sig, "step", errors);
    match &function.body {
        Body::Unreadable { why, .. } => {
            errors.push(
                why.span(),
                messages::UNREADABLE_BODY.with(&[&why.to_string()]),
            );
            false
        }
        Body::Block(block) => {
            let mut awaits = Awaits(Vec::new());
            awaits.visit_block(block);
            let fine = awaits.0.is_empty();
            for span in awaits.0 {
                errors.push(span, messages::STEP_BLOCKING_AWAITS);
            }
            fine
        }
        Body::Missing(_) => true,
    }
}

struct Awaits(Vec<Span>);

impl<'ast> Visit<'ast> for Awaits {
    fn visit_expr_await(&mut self, awaited: &'ast syn::ExprAwait) {
        self.0.push(awaited.await_token.span);
        visit::visit_expr_await(self, awaited);
    }

    fn visit_expr_async(&mut self, _: &'ast syn::ExprAsync) {}

    fn visit_item(&mut self, _: &'ast syn::Item) {}
}

/// Checks a fragment's signature.
pub(crate) fn check_fragment(function: &Function, errors: &mut Errors) -> bool {
    let fine = check_item(function, "fragment", errors);
    if let Some(receiver) = function.sig.receiver()
        && !matches!(receiver.kind, syn::ReceiverKind::Reference(..))
        && !matches!(receiver.kind, syn::ReceiverKind::Value)
    {
        errors.push(
            Place::of(receiver),
            messages::STEP_SELF_BY_VALUE.with(&["fragment"]),
        );
    }
    fine
}

fn is_mut_reference(ty: &Type) -> bool {
    matches!(ty, Type::Reference(reference) if reference.mutability.is_some())
}

/// Where a type borrows for a lifetime that is not `'static`.
fn borrows(ty: &Type) -> Option<Place> {
    struct Finder(Option<Place>);
    impl<'ast> Visit<'ast> for Finder {
        fn visit_type_reference(&mut self, reference: &'ast syn::TypeReference) {
            let is_static = reference
                .lifetime
                .as_ref()
                .is_some_and(|lifetime| lifetime.ident == "static");
            if !is_static {
                self.0.get_or_insert(Place::of(reference));
            }
        }

        fn visit_lifetime(&mut self, lifetime: &'ast syn::Lifetime) {
            if lifetime.ident != "static" {
                self.0.get_or_insert(lifetime.span().into());
            }
        }

        // `fn(&str)` and `Fn(&str)` borrow when they are called.
        fn visit_type_fn_ptr(&mut self, _: &'ast syn::TypeFnPtr) {}

        fn visit_parenthesized_generic_arguments(
            &mut self,
            _: &'ast syn::ParenthesizedGenericArguments,
        ) {
        }
    }
    let mut finder = Finder(None);
    finder.visit_type(ty);
    finder.0
}

/// A pattern, nearly as it was written.
fn written(pat: &Pat) -> String {
    let text = quote::quote!(#pat).to_string();
    [
        (" ,", ","),
        ("( ", "("),
        (" )", ")"),
        (" ::", "::"),
        (":: ", "::"),
    ]
    .iter()
    .fold(text, |text, (loose, tight)| text.replace(loose, tight))
}

/// The owned type that is probably meant by a borrowed one.
fn owned(ty: &Type) -> String {
    let Type::Reference(reference) = ty else {
        return "Owned".to_owned();
    };
    let inner = &reference.elem;
    match quote::quote!(#inner).to_string().as_str() {
        "str" => "String".to_owned(),
        other if other.starts_with('[') => format!("Vec<{}>", other.trim_matches(['[', ']', ' '])),
        other => other.replace(' ', ""),
    }
}

/// A `&T` as what it is without a lifetime, and the owned type that was suggested for it.
fn taken_apart(ty: &Type, owned: &str) -> Option<(Type, Type)> {
    let Type::Reference(reference) = ty else {
        return None;
    };
    let owned: Type = syn::parse_str(owned).ok()?;
    if is_mut_reference(ty) || borrows(&owned).is_some() {
        return None;
    }
    let mut lent = reference.clone();
    lent.lifetime = None;
    Some((Type::Reference(lent), owned))
}

/// The name under which a workflow is stored.
pub(crate) fn workflow_name(sig: &Signature) -> String {
    name::plain(&sig.ident.to_string())
}
