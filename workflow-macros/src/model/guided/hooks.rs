//! The functions of a flow: what shape each has, and to which stages it belongs.

use proc_macro2::Ident;
use syn::{Attribute, Expr, FnArg, Pat, ReturnType, Type};

use super::{Code, Stage, is_empty, rules, told};
use crate::diagnostics::{Errors, Place};
use crate::messages::{self, Message};
use crate::model::name;
use crate::syntax::{Body, Function, Role, peel, words};

/// A function that belongs to stages.
pub(super) struct Hook {
    role: Role,
    /// The stages, as they were written.
    stages: Vec<Ident>,
    code: Option<Code>,
    function: Ident,
    unfinished: bool,
    place: Place,
}

impl Hook {
    /// What was written. A hook of the wrong shape is reported, and its stages are looked at still.
    pub(super) fn read(
        role: Role,
        attr: &Attribute,
        function: &Function,
        errors: &mut Errors,
    ) -> Option<Self> {
        let shape = match role {
            Role::Undo | Role::Leave => "create",
            _ => "details",
        };
        let place = Place::of(attr);
        let Ok(mut stages) = words(attr) else {
            errors.push(place, messages::HOOK_STAGE.with(&[role.word(), shape]));
            return None;
        };
        let unfinished = role == Role::Undo
            && stages.len() > 1
            && stages.last().is_some_and(|word| word == "unfinished");
        if unfinished {
            stages.pop();
        }
        if stages.is_empty() {
            errors.push(place, messages::HOOK_STAGE.with(&[role.word(), shape]));
        }
        let code = match role {
            Role::Leave => durable(function, messages::LEAVE_SHAPE, errors),
            Role::Undo => undo(function, errors),
            _ if function.sig.asyncness.is_some() => {
                durable(function, messages::CHECK_CODE_SHAPE, errors)
            }
            _ => {
                check(function, errors);
                None
            }
        };
        Some(Self {
            role,
            stages,
            code,
            function: function.sig.ident.clone(),
            unfinished,
            place,
        })
    }
}

/// Gives each hook to its stages.
pub(super) fn attach(hooks: Vec<Hook>, stages: &mut [Stage], errors: &mut Errors) {
    let graph = told::graph(stages);
    for hook in hooks {
        for written in &hook.stages {
            let called = name::plain(&written.to_string());
            let Some(found) = rules::find(&graph, &called) else {
                let near = told::meant(&graph, &called);
                let words = [hook.role.word(), &called, &near];
                errors.push(written.span(), messages::HOOK_UNKNOWN.with(&words));
                continue;
            };
            let stage = &mut stages[found];
            let taken = match hook.role {
                Role::Leave => stage.leave.is_some(),
                Role::Undo => stage.undo.is_some(),
                _ => false,
            };
            if taken {
                let words = [hook.role.word(), &called];
                errors.push(hook.place, messages::HOOK_TWICE.with(&words));
                continue;
            }
            match hook.role {
                Role::Leave => stage.leave.clone_from(&hook.code),
                Role::Undo => {
                    stage.undo.clone_from(&hook.code);
                    stage.undo_unfinished = hook.unfinished;
                }
                _ => match &hook.code {
                    Some(code) => stage.asks.push(code.clone()),
                    None => stage.checks.push(hook.function.clone()),
                },
            }
        }
    }
}

/// Finds the exits whose guards are durable code.
pub(super) fn ask(guards: &[Code], stages: &mut [Stage], errors: &mut Errors) {
    let mut asked = vec![false; guards.len()];
    for stage in stages {
        let called = name::plain(&stage.function.to_string());
        if let Some(when) = &stage.when
            && let Some(at) = guards.iter().position(|guard| names(when, guard))
        {
            asked[at] = true;
            let guard = name::plain(&guards[at].function.to_string());
            let words = [&*guard, &*called];
            errors.push(Place::of(when), messages::GUARD_WHEN.with(&words));
        }
        let is_conditional = stage.when.is_some();
        for exit in &mut stage.exits {
            let Some(written) = &exit.guard else { continue };
            let Some(at) = guards.iter().position(|guard| names(written, guard)) else {
                continue;
            };
            asked[at] = true;
            if is_conditional {
                let guard = name::plain(&guards[at].function.to_string());
                let words = [&*called, &*guard];
                errors.push(Place::of(written), messages::STAGE_ASKED.with(&words));
            }
            exit.asks = Some(guards[at].clone());
        }
    }
    let unasked = guards.iter().zip(asked).filter(|(_, asked)| !asked);
    for (guard, _) in unasked {
        let name = name::plain(&guard.function.to_string());
        errors.push(guard.function.span(), messages::GUARD_UNUSED.with(&[&name]));
    }
}

/// Whether this is `Self::is_allowed` of a guard.
fn names(written: &Expr, guard: &Code) -> bool {
    let Expr::Path(path) = peel(written) else {
        return false;
    };
    let last = path.path.segments.last();
    path.path.segments.len() > 1 && last.is_some_and(|last| last.ident == guard.function)
}

/// `fn details() {}`
pub(super) fn question(function: &Function, errors: &mut Errors) {
    let sig = &function.sig;
    let plain = sig.inputs.is_empty() && matches!(sig.output, ReturnType::Default);
    if !plain || !is_empty(&function.body) || !is_bare(function) {
        let name = name::plain(&sig.ident.to_string());
        errors.push(head(function), messages::STAGE_QUESTION.with(&[&name]));
    }
}

/// `async fn create(stage: Stage<Self>) -> Result<(), E>`
pub(super) fn durable(function: &Function, message: Message, errors: &mut Errors) -> Option<Code> {
    let code = one_argument(function).filter(|_| function.sig.asyncness.is_some());
    refused(code, function, message, errors)
}

/// `async fn undo_create(undone: Undone<Self>) -> Result<(), E>`
fn undo(function: &Function, errors: &mut Errors) -> Option<Code> {
    let code = one_argument(function).filter(|_| function.sig.asyncness.is_some());
    refused(code, function, messages::UNDO_HOOK_SHAPE, errors)
}

/// `fn details_ok(&self, problems: &mut Problems)`
fn check(function: &Function, errors: &mut Errors) {
    let sig = &function.sig;
    let fits = sig.asyncness.is_none()
        && is_bare(function)
        && sig.inputs.len() == 2
        && looks(sig.inputs.first())
        && matches!(sig.output, ReturnType::Default);
    if !fits {
        let name = name::plain(&sig.ident.to_string());
        errors.push(head(function), messages::CHECK_SHAPE.with(&[&name]));
    }
}

/// `fn may_leave(&self) -> bool`, or `async fn may_leave(self) -> bool`
pub(super) fn is_exit_guard(function: &Function, errors: &mut Errors) -> bool {
    let sig = &function.sig;
    let asks = match sig.inputs.first() {
        Some(FnArg::Receiver(receiver)) if sig.asyncness.is_some() => {
            matches!(receiver.kind, syn::ReceiverKind::Value)
        }
        first => looks(first),
    };
    let answers = matches!(&sig.output, ReturnType::Type(_, ty) if is_bool(ty));
    let fits = asks && answers && sig.inputs.len() == 1 && is_bare(function);
    if !fits {
        let name = name::plain(&sig.ident.to_string());
        errors.push(head(function), messages::EXIT_GUARD_SHAPE.with(&[&name]));
    }
    fits
}

fn refused(
    code: Option<Code>,
    function: &Function,
    message: Message,
    errors: &mut Errors,
) -> Option<Code> {
    if code.is_none() {
        let name = name::plain(&function.sig.ident.to_string());
        errors.push(head(function), message.with(&[&name]));
    }
    code
}

/// A function of one owned argument that gives something back.
fn one_argument(function: &Function) -> Option<Code> {
    let sig = &function.sig;
    let (Some(FnArg::Typed(argument)), 1) = (sig.inputs.first(), sig.inputs.len()) else {
        return None;
    };
    let ReturnType::Type(_, returns) = &sig.output else {
        return None;
    };
    let fits = matches!(*argument.pat, Pat::Ident(_) | Pat::Wild(_))
        && !matches!(*argument.ty, Type::Reference(_))
        && is_bare(function);
    fits.then(|| Code {
        function: sig.ident.clone(),
        takes: Place::of(&argument.ty).first,
        returns: Place::of(returns),
    })
}

/// Whether it is generic over nothing, and has a body.
fn is_bare(function: &Function) -> bool {
    let sig = &function.sig;
    sig.generics.params.is_empty() && !matches!(function.body, Body::Missing(_))
}

/// `&self`
fn looks(argument: Option<&FnArg>) -> bool {
    matches!(argument, Some(FnArg::Receiver(receiver))
        if matches!(receiver.kind, syn::ReceiverKind::Reference(..)) && receiver.mutability.is_none())
}

fn is_bool(ty: &Type) -> bool {
    matches!(ty, Type::Path(path) if path.path.is_ident("bool"))
}

/// The signature.
fn head(function: &Function) -> Place {
    Place::of(&function.sig)
}
