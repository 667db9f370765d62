//! A guided flow: its stages with their hooks, and whether they make one.

mod hooks;
mod options;
pub(crate) mod rules;
mod told;

use proc_macro2::{Ident, Span, TokenStream};
use syn::{Attribute, Expr, ExprLit, Lit, Meta, Type};

pub(crate) use self::options::FlowOptions;
use super::Site;
use super::walk::{Undo, Undos};
use super::{name, walk};
use crate::diagnostics::{Errors, Place};
use crate::messages;
use crate::syntax::{Body, Function, Impl, Marks, Member, Role};

/// A flow, as far as it is in order.
pub(crate) struct Guided {
    pub(crate) options: FlowOptions,
    /// The enum of its stages.
    pub(crate) key: Ident,
    pub(crate) stages: Vec<Stage>,
    pub(crate) exit_guard: Option<ExitGuard>,
    /// What of the `impl` stays, in order.
    pub(crate) members: Vec<Kept>,
    /// Something is wrong with it, so the library need not look at it.
    pub(crate) is_faulty: bool,
}

/// A stage.
pub(crate) struct Stage {
    /// Under which it is stored.
    pub(crate) name: String,
    /// Where it is named.
    pub(crate) place: Place,
    /// Its function.
    pub(crate) function: Ident,
    pub(crate) docs: Vec<Attribute>,
    pub(crate) variant: Ident,
    pub(crate) title: Option<String>,
    pub(crate) help: Option<String>,
    pub(crate) start: Option<Place>,
    pub(crate) terminal: Option<Place>,
    pub(crate) skippable: Option<Place>,
    pub(crate) stays: bool,
    pub(crate) when: Option<Expr>,
    pub(crate) exits: Vec<Exit>,
    /// In milliseconds.
    pub(crate) timeout: Option<u64>,
    pub(crate) revisit: Option<&'static str>,
    pub(crate) on_interrupt: Option<&'static str>,
    pub(crate) body: Option<Code>,
    pub(crate) checks: Vec<Ident>,
    /// Checks that are durable code.
    pub(crate) asks: Vec<Code>,
    pub(crate) retries: Option<u32>,
    /// As tokens of the library.
    pub(crate) backoff: Option<TokenStream>,
    pub(crate) leave: Option<Code>,
    pub(crate) undo: Option<Code>,
    pub(crate) undo_unfinished: bool,
    /// What takes steps of its code back.
    pub(crate) undos: Vec<Undo>,
    /// The sites of its code, with the stage before them: `create[]/publish`.
    pub(crate) sites: Vec<Site>,
}

/// A way to another stage.
pub(crate) struct Exit {
    /// As it was written.
    pub(crate) target: Ident,
    pub(crate) guard: Option<Expr>,
    /// The guard, if it is durable code.
    pub(crate) asks: Option<Code>,
}

/// A function of a stage, with the places where the compiler underlines what does not fit.
#[derive(Clone)]
pub(crate) struct Code {
    pub(crate) function: Ident,
    /// The type of what it takes.
    pub(crate) takes: Span,
    /// What it returns.
    pub(crate) returns: Place,
}

/// What is asked before a guide is cancelled.
pub(crate) struct ExitGuard {
    pub(crate) function: Ident,
    pub(crate) is_async: bool,
}

/// What of the `impl` stays.
pub(crate) enum Kept {
    /// Durable code: a fragment. The span is that of what made it one.
    Durable(Function, Span),
    /// The same, of a stage: what takes its steps back is the flow's.
    Body(Function, Span),
    /// As it was written.
    Plain(Function),
    /// As it was written.
    Other(TokenStream),
}

/// What a flow is called in the types that belong to it.
pub(crate) fn type_name(ty: &Type) -> Option<Ident> {
    match ty {
        Type::Path(path) if path.qself.is_none() => {
            path.path.segments.last().map(|last| last.ident.clone())
        }
        Type::Group(group) => type_name(&group.elem),
        Type::Paren(paren) => type_name(&paren.elem),
        _ => None,
    }
}

/// Reads an `impl`, and checks it.
pub(crate) fn check_guided(
    written: Impl,
    type_name: &Ident,
    options: FlowOptions,
    errors: &mut Errors,
) -> Guided {
    let before = errors.count();
    let mut reading = Reading {
        stages: Vec::new(),
        hooks: Vec::new(),
        guards: Vec::new(),
        exit_guard: None,
        members: Vec::new(),
    };
    for member in written.members {
        match member {
            Member::Other(tokens) => reading.members.push(Kept::Other(tokens)),
            Member::Function(function) => reading.function(*function, errors),
        }
    }
    let Reading {
        mut stages,
        hooks,
        guards,
        exit_guard,
        members,
    } = reading;
    hooks::attach(hooks, &mut stages, errors);
    hooks::ask(&guards, &mut stages, errors);
    told::check(&stages, type_name, errors);
    let key = Ident::new(&format!("{type_name}Stage"), type_name.span());
    Guided {
        is_faulty: errors.count() > before || options.is_faulty,
        options,
        key,
        stages,
        exit_guard,
        members,
    }
}

/// Finds the sites of the stages' code, and what takes steps of it back. What is wrong with that code is said where it is expanded.
pub(crate) fn look_into_code(guided: &mut Guided, krate: &TokenStream) {
    for member in &guided.members {
        let Kept::Body(function, _) = member else {
            continue;
        };
        let Body::Block(block) = &function.body else {
            continue;
        };
        let (mut block, mut unsaid) = (block.clone(), Errors::default());
        let walked = walk(
            &mut block,
            &function.sig,
            super::lent(&function.sig),
            Undos::OfFlow,
            krate,
            &mut unsaid,
        );
        drop(unsaid.finish());
        let name = &function.sig.ident;
        let stage = guided.stages.iter_mut().find(|it| it.function == *name);
        if let Some(stage) = stage {
            stage.undos = walked.undos;
            stage.sites = walked.sites;
            for site in &mut stage.sites {
                site.path = format!("{}[]/{}", stage.name, site.path);
            }
        }
    }
}

/// What was read so far.
struct Reading {
    stages: Vec<Stage>,
    hooks: Vec<hooks::Hook>,
    /// Guards of exits that are durable code.
    guards: Vec<Code>,
    exit_guard: Option<ExitGuard>,
    members: Vec<Kept>,
}

impl Reading {
    fn function(&mut self, mut function: Function, errors: &mut Errors) {
        let mut roles = Role::take(&mut function.attrs).into_iter();
        let Some((role, attr)) = roles.next() else {
            return self.members.push(Kept::Plain(function));
        };
        if let Some((other, second)) = roles.next() {
            let words = [role.word(), other.word()];
            errors.push(Place::of(&second), messages::GUIDED_TWO_ROLES.with(&words));
        }
        match role {
            Role::Stage => self.stage(function, &attr, errors),
            Role::ExitGuard => self.exit_guard(function, &attr, errors),
            Role::Guard => {
                let guard = hooks::durable(&function, messages::GUARD_SHAPE, errors);
                self.members.push(if guard.is_some() {
                    Kept::Durable(function, attr_span(&attr))
                } else {
                    Kept::Plain(function)
                });
                self.guards.extend(guard);
            }
            Role::Check | Role::Leave | Role::Undo => {
                let hook = hooks::Hook::read(role, &attr, &function, errors);
                self.hooks.extend(hook);
                let span = attr_span(&attr);
                self.members.push(match role {
                    Role::Leave | Role::Check if function.sig.asyncness.is_some() => {
                        Kept::Durable(function, span)
                    }
                    _ => Kept::Plain(function),
                });
            }
        }
    }

    fn stage(&mut self, function: Function, attr: &Attribute, errors: &mut Errors) {
        let marks = Marks::of(attr);
        let mut stage = Stage::of(&function);
        options::stage(&marks, &mut stage, errors);
        for exits in marks.exits {
            stage.exits.extend(exits.list.into_iter().map(|exit| Exit {
                target: exit.target,
                guard: exit.guard,
                asks: None,
            }));
        }
        if let Some(cfg) = function
            .attrs
            .iter()
            .find(|attr| attr.path().is_ident("cfg"))
        {
            errors.push(
                Place::of(cfg),
                messages::STAGE_CFG.with(&[&name::plain(&function.sig.ident.to_string())]),
            );
        }
        if function.sig.asyncness.is_some() {
            stage.body = hooks::durable(&function, messages::STAGE_BODY, errors);
            self.members.push(Kept::Body(function, attr_span(attr)));
        } else {
            // What only asks has no code: its function says that there is a stage, and is gone.
            hooks::question(&function, errors);
        }
        self.stages.push(stage);
    }

    fn exit_guard(&mut self, function: Function, attr: &Attribute, errors: &mut Errors) {
        if self.exit_guard.is_some() {
            errors.push(Place::of(attr), messages::EXIT_GUARD_TWICE);
        }
        if hooks::is_exit_guard(&function, errors) && self.exit_guard.is_none() {
            self.exit_guard = Some(ExitGuard {
                function: function.sig.ident.clone(),
                is_async: function.sig.asyncness.is_some(),
            });
        }
        self.members.push(Kept::Plain(function));
    }
}

impl Stage {
    fn of(function: &Function) -> Self {
        let ident = &function.sig.ident;
        let called = name::plain(&ident.to_string());
        let docs = function.attrs.iter();
        let docs: Vec<_> = docs
            .filter(|attr| attr.path().is_ident("doc"))
            .cloned()
            .collect();
        Self {
            place: ident.span().into(),
            function: ident.clone(),
            variant: variant(&called, ident.span()),
            title: None,
            help: help(&docs),
            docs,
            start: None,
            terminal: None,
            skippable: None,
            stays: false,
            when: None,
            exits: Vec::new(),
            timeout: None,
            revisit: None,
            on_interrupt: None,
            body: None,
            checks: Vec::new(),
            asks: Vec::new(),
            retries: None,
            backoff: None,
            leave: None,
            undo: None,
            undo_unfinished: false,
            undos: Vec::new(),
            sites: Vec::new(),
            name: called,
        }
    }
}

fn attr_span(attr: &Attribute) -> Span {
    Place::of(attr.path()).first
}

/// `create_repo` as `CreateRepo`.
fn variant(called: &str, span: Span) -> Ident {
    let mut text = String::new();
    for word in called.split('_') {
        let mut letters = word.chars();
        text.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        text.extend(letters);
    }
    // `self_` and `_`.
    if text == "Self" || text.is_empty() {
        text += "Stage";
    }
    Ident::new(&text, span)
}

/// What a doc comment says, as one paragraph for each of its own.
fn help(docs: &[Attribute]) -> Option<String> {
    let lines = docs.iter().filter_map(|attr| match &attr.meta {
        Meta::NameValue(pair) => match &pair.value {
            Expr::Lit(ExprLit {
                lit: Lit::Str(text),
                ..
            }) => Some(text.value().trim().to_owned()),
            _ => None,
        },
        _ => None,
    });
    let lines: Vec<_> = lines.collect();
    let paragraphs = lines.split(String::is_empty).map(|lines| lines.join(" "));
    let paragraphs: Vec<_> = paragraphs.filter(|text| !text.is_empty()).collect();
    (!paragraphs.is_empty()).then(|| paragraphs.join("\n\n"))
}

/// Whether a function has no body worth the name.
fn is_empty(body: &Body) -> bool {
    matches!(body, Body::Block(block) if block.stmts.is_empty())
}
