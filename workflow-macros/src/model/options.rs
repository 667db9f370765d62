//! What a step's options mean: read from `#[step(..)]`, printed as one `StepOptions` expression.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote};
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::{Expr, ExprClosure, Lit, Token};

use super::duration;
use crate::diagnostics::Errors;
use crate::messages;
use crate::syntax::{Setting, Settings, Value, peel};

/// Where options stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum At {
    /// On the definition of a step function.
    Definition,
    /// On an expression in a workflow.
    Site,
}

/// Options that are in order.
#[derive(Default)]
pub(crate) struct Options {
    pub(crate) name: Option<(String, Span)>,
    pub(crate) retry_if: Option<ExprClosure>,
    pub(crate) blocking: bool,
    pub(crate) infallible: bool,
    /// What takes its effect back.
    pub(crate) undo: Option<Expr>,
    /// The guided flow has the undo, and here it is only looked at whether it fits.
    pub(crate) undone_by_flow: bool,
    /// The crate, when it is said: `crate = wf`.
    pub(crate) krate: Option<syn::Path>,
    calls: Vec<TokenStream>,
}

/// Every option with the way it is written.
const KNOWN: &[(&str, &str)] = &[
    ("name", "name = \"other\""),
    ("retries", "retries = 5"),
    (
        "backoff",
        "backoff(exponential, initial = \"200ms\", factor = 2, max = \"30s\")",
    ),
    ("timeout", "timeout = \"10s\""),
    ("retry_on_timeout", "retry_on_timeout"),
    (
        "retry_if",
        "retry_if(|error: &MyError| error.is_transient())",
    ),
    ("ephemeral", "ephemeral"),
    ("at_most_once", "at_most_once"),
    ("blocking", "blocking"),
    ("infallible", "infallible"),
    ("undo", "undo(refund)"),
    ("crate", "crate = my_crate::workflow"),
];

impl Options {
    /// Whether nothing is said but a name.
    pub(crate) fn is_bare(&self) -> bool {
        self.calls.is_empty()
            && self.retry_if.is_none()
            && self.undo.is_none()
            && !self.blocking
            && !self.infallible
    }

    /// Checks what was written.
    pub(crate) fn check(settings: &Settings, at: At, errors: &mut Errors) -> Self {
        let mut options = Self::default();
        if let Some(broken) = &settings.broken {
            errors.push(broken.span(), messages::OPTION_SYNTAX.with(&["step"]));
        }
        let mut seen: Vec<String> = Vec::new();
        for setting in &settings.list {
            let name = setting.name.to_string();
            let Some((_, shape)) = KNOWN.iter().find(|(known, _)| *known == name) else {
                errors.push(
                    setting.name.span(),
                    messages::OPTION_UNKNOWN.with(&[&name, "#[step]", &meant(&name)]),
                );
                continue;
            };
            if seen.contains(&name) {
                errors.push(setting.place(), messages::OPTION_REPEATED.with(&[&name]));
                continue;
            }
            options.take(&name, shape, setting, at, errors);
            seen.push(name);
        }
        contradictions(&seen, settings, errors);
        options
    }

    fn take(&mut self, name: &str, shape: &str, setting: &Setting, at: At, errors: &mut Errors) {
        match name {
            "name" => {
                let Some((text, span)) = text(setting, name, shape, errors) else {
                    return;
                };
                if at == At::Definition {
                    errors.push(setting.place(), messages::NAME_ON_DEFINITION.with(&[&text]));
                } else if super::name::is_name(&text) {
                    self.name = Some((text, span));
                } else {
                    errors.push(
                        span,
                        messages::NAME_SHAPE.with(&[&text, &super::name::like(&text)]),
                    );
                }
            }
            "retries" => {
                if let Some(Lit::Int(number)) = literal(setting, name, shape, errors) {
                    match number.base10_parse::<u32>() {
                        Ok(retries) => self.calls.push(quote!(.retries(#retries))),
                        Err(_) => {
                            errors.push(number.span(), messages::OPTION_VALUE.with(&[name, shape]));
                        }
                    }
                } else if matches!(setting.value, Value::Equals(_)) {
                    errors.push(
                        setting.value_place(),
                        messages::OPTION_VALUE.with(&[name, shape]),
                    );
                }
            }
            "timeout" => {
                let Some((text, span)) = text(setting, name, shape, errors) else {
                    return;
                };
                if text == "none" {
                    return self.calls.push(quote!(.no_timeout()));
                }
                match duration::parse(&text) {
                    // A timeout of nothing is none.
                    Ok(0) => self.calls.push(quote!(.no_timeout())),
                    Ok(millis) => self
                        .calls
                        .push(quote!(.timeout(__private::millis(#millis)))),
                    Err(wrong) => errors.push(span, wrong.message().with(&[&text])),
                }
            }
            "backoff" => {
                let backoff = backoff(setting, shape, errors);
                self.calls
                    .extend(backoff.map(|backoff| quote!(.backoff(#backoff))));
            }
            "retry_on_timeout" => {
                if let Some(value) = flag(setting, name, errors) {
                    self.calls.push(quote!(.retry_on_timeout(#value)));
                }
            }
            "ephemeral" => {
                if let Some(value) = flag(setting, name, errors) {
                    self.calls.push(quote!(.ephemeral(#value)));
                }
            }
            "at_most_once" => {
                if let Some(value) = flag(setting, name, errors) {
                    self.calls.push(quote!(.at_most_once(#value)));
                }
            }
            "blocking" => {
                self.blocking = flag(setting, name, errors).unwrap_or(true);
                if self.blocking && at == At::Site {
                    errors.push(setting.place(), messages::BLOCKING_IN_PLACE);
                    self.blocking = false;
                }
            }
            "infallible" => {
                self.infallible = flag(setting, name, errors).unwrap_or(true);
                if at == At::Site {
                    errors.push(setting.place(), messages::INFALLIBLE_IN_PLACE);
                }
            }
            "undo" if at == At::Definition => {
                errors.push(setting.place(), messages::UNDO_ON_DEFINITION);
            }
            "undo" => match &setting.value {
                Value::Parentheses(_, tokens) => match syn::parse2::<Expr>(tokens.clone()) {
                    Ok(undo @ (Expr::Path(_) | Expr::Closure(_))) => self.undo = Some(undo),
                    _ => errors.push(setting.value_place(), messages::UNDO_SHAPE),
                },
                _ => errors.push(setting.place(), messages::UNDO_SHAPE),
            },
            "retry_if" => match &setting.value {
                Value::Parentheses(_, tokens) => match syn::parse2::<ExprClosure>(tokens.clone()) {
                    Ok(closure)
                        if closure.inputs.len() == 1
                            && matches!(closure.inputs[0], syn::Pat::Type(_)) =>
                    {
                        self.retry_if = Some(closure);
                    }
                    _ => errors.push(setting.value_place(), messages::RETRY_IF_CLOSURE),
                },
                _ => errors.push(setting.place(), messages::RETRY_IF_CLOSURE),
            },
            _ => match &setting.value {
                Value::Equals(Expr::Path(path)) if at == At::Definition => {
                    self.krate = Some(path.path.clone());
                }
                _ => errors.push(setting.place(), messages::CRATE_PATH),
            },
        }
    }

    /// `P::StepOptions::new().retries(5)..`
    pub(crate) fn tokens(&self, krate: &impl ToTokens) -> TokenStream {
        let calls = &self.calls;
        let calls: TokenStream = quote!(#(#calls)*);
        let calls = crate::expand::within(calls, krate);
        quote!(#krate::__private::StepOptions::new() #calls)
    }
}

/// `backoff(fixed, wait = "1s")`, as tokens of the library.
pub(super) fn backoff(setting: &Setting, shape: &str, errors: &mut Errors) -> Option<TokenStream> {
    let Value::Parentheses(_, tokens) = &setting.value else {
        errors.push(
            setting.place(),
            messages::OPTION_IS_NO_FLAG.with(&["backoff", shape]),
        );
        return None;
    };
    let parts = Settings::read(tokens.clone());
    if let Some(broken) = &parts.broken {
        errors.push(broken.span(), messages::BACKOFF_SHAPE);
        return None;
    }
    let mut list = parts.list.iter();
    let kind = list
        .next()
        .filter(|kind| matches!(kind.value, Value::Nothing))
        .map(|kind| kind.name.to_string());
    let known: &[&str] = match kind.as_deref() {
        Some("fixed") => &["wait", "jitter"],
        Some("exponential") => &["initial", "factor", "max", "jitter"],
        _ => {
            errors.push(setting.value_place(), messages::BACKOFF_SHAPE);
            return None;
        }
    };
    let default_wait = quote!(__private::millis(200));
    let (mut initial, mut max) = (default_wait, quote!(__private::millis(30_000)));
    let (mut factor, mut jitter) = (quote!(2.0), None);
    let mut seen: Vec<&Ident> = Vec::new();
    for part in list {
        let name = part.name.to_string();
        if !known.contains(&name.as_str()) {
            errors.push(part.place(), messages::BACKOFF_SHAPE);
            continue;
        }
        if seen.contains(&&part.name) {
            errors.push(part.place(), messages::OPTION_REPEATED.with(&[&name]));
            continue;
        }
        seen.push(&part.name);
        match name.as_str() {
            "wait" | "initial" | "max" => {
                let Some((text, span)) = text(part, &name, &format!("{name} = \"1s\""), errors)
                else {
                    continue;
                };
                match duration::parse(&text) {
                    Ok(millis) if name == "max" => max = quote!(__private::millis(#millis)),
                    Ok(millis) => initial = quote!(__private::millis(#millis)),
                    Err(wrong) => errors.push(span, wrong.message().with(&[&text])),
                }
            }
            "factor" => match number(part) {
                Some(value) if value >= 1.0 => factor = quote!(#value),
                _ => errors.push(part.value_place(), messages::BACKOFF_FACTOR),
            },
            _ => match number(part) {
                Some(value) if value >= 0.0 => jitter = Some(quote!(#value)),
                _ => errors.push(part.value_place(), messages::BACKOFF_JITTER),
            },
        }
    }
    let backoff = if kind.as_deref() == Some("fixed") {
        quote!(__private::Backoff::fixed(#initial))
    } else {
        quote!(__private::Backoff::exponential(#initial, #factor, #max))
    };
    Some(match jitter {
        None => backoff,
        Some(jitter) => quote!(__private::Backoff { jitter: #jitter, ..#backoff }),
    })
}

fn contradictions(seen: &[String], settings: &Settings, errors: &mut Errors) {
    const PAIRS: &[(&str, &str, &str)] = &[
        (
            "ephemeral",
            "at_most_once",
            "what may run again cannot run at most once",
        ),
        (
            "ephemeral",
            "undo",
            "what is not recorded for sure cannot be undone for sure",
        ),
    ];
    let place = |name: &str| {
        settings
            .list
            .iter()
            .find(|setting| setting.name == name)
            .map(Setting::place)
    };
    for (one, other, why) in PAIRS {
        if seen.iter().any(|name| name == one)
            && seen.iter().any(|name| name == other)
            && let Some(place) = place(other)
        {
            errors.push(place, messages::OPTIONS_CONTRADICT.with(&[one, other, why]));
        }
    }
    let no_timeout = settings.list.iter().any(|setting| {
        setting.name == "timeout" && matches!(&setting.value, Value::Equals(Expr::Lit(lit)) if matches!(&lit.lit, Lit::Str(text) if text.value() == "none"))
    });
    if no_timeout && let Some(place) = place("retry_on_timeout") {
        errors.push(
            place,
            messages::OPTIONS_CONTRADICT.with(&[
                "timeout = \"none\"",
                "retry_on_timeout",
                "there is no timeout to retry on",
            ]),
        );
    }
}

/// The literal of `name = literal`.
pub(super) fn literal<'a>(
    setting: &'a Setting,
    name: &str,
    shape: &str,
    errors: &mut Errors,
) -> Option<&'a Lit> {
    match &setting.value {
        Value::Nothing => {
            errors.push(
                setting.place(),
                messages::OPTION_IS_NO_FLAG.with(&[name, shape]),
            );
            None
        }
        Value::Equals(value) => match peel(value) {
            Expr::Lit(literal) => Some(&literal.lit),
            _ => None,
        },
        Value::Parentheses(..) => {
            errors.push(setting.place(), messages::OPTION_VALUE.with(&[name, shape]));
            None
        }
    }
}

pub(super) fn text(
    setting: &Setting,
    name: &str,
    shape: &str,
    errors: &mut Errors,
) -> Option<(String, Span)> {
    if let Some(Lit::Str(text)) = literal(setting, name, shape, errors) {
        Some((text.value(), text.span()))
    } else {
        if matches!(setting.value, Value::Equals(_)) {
            errors.push(
                setting.value_place(),
                messages::OPTION_VALUE.with(&[name, shape]),
            );
        }
        None
    }
}

fn number(setting: &Setting) -> Option<f64> {
    let Value::Equals(value) = &setting.value else {
        return None;
    };
    match peel(value) {
        Expr::Lit(literal) => match &literal.lit {
            Lit::Int(number) => number.base10_parse().ok(),
            Lit::Float(number) => number.base10_parse().ok(),
            _ => None,
        },
        _ => None,
    }
}

/// A word, or a word with `true` or `false`.
pub(super) fn flag(setting: &Setting, name: &str, errors: &mut Errors) -> Option<bool> {
    match &setting.value {
        Value::Nothing => Some(true),
        Value::Equals(value) => match peel(value) {
            Expr::Lit(literal) if matches!(literal.lit, Lit::Bool(_)) => {
                let Lit::Bool(value) = &literal.lit else {
                    return None;
                };
                Some(value.value)
            }
            _ => {
                errors.push(
                    setting.value_place(),
                    messages::OPTION_IS_A_FLAG.with(&[name]),
                );
                None
            }
        },
        Value::Parentheses(..) => {
            errors.push(setting.place(), messages::OPTION_IS_A_FLAG.with(&[name]));
            None
        }
    }
}

/// The option that was probably meant, or all there are.
fn meant(word: &str) -> String {
    let near = KNOWN
        .iter()
        .map(|(known, _)| (distance(word, known), *known))
        .min();
    match near {
        Some((distance, known)) if distance <= known.len() / 2 && distance < 4 => {
            format!("did you mean `{known}`?")
        }
        _ => {
            let all: Vec<_> = KNOWN
                .iter()
                .map(|(known, _)| format!("`{known}`"))
                .collect();
            format!("the options are {}", all.join(", "))
        }
    }
}

/// How many letters have to be changed to turn one word into the other.
pub(super) fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in one.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, b) in other.iter().enumerate() {
            let change = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[other.len()]
}

/// What stands in `#[workflow(..)]` and `#[fragment(..)]`.
#[derive(Default)]
pub(crate) struct ItemOptions {
    pub(crate) name: Option<String>,
    pub(crate) krate: Option<syn::Path>,
    /// The guided flow whose stage the fragment belongs to.
    pub(crate) flow: Option<String>,
    /// It is the code of a stage: the flow has the undos of its steps.
    pub(crate) is_body: bool,
    /// Another workflow of the crate may have its name, too.
    pub(crate) shares_name: bool,
}

impl ItemOptions {
    pub(crate) fn check(settings: &Settings, item: &str, errors: &mut Errors) -> Self {
        let mut options = Self::default();
        if let Some(broken) = &settings.broken {
            errors.push(broken.span(), messages::OPTION_SYNTAX.with(&[item]));
        }
        let mut seen: Vec<String> = Vec::new();
        for setting in &settings.list {
            let name = setting.name.to_string();
            if seen.contains(&name) {
                errors.push(setting.place(), messages::OPTION_REPEATED.with(&[&name]));
                continue;
            }
            match name.as_str() {
                "name" if item == "workflow" => {
                    if let Some((text, span)) = text(setting, "name", "name = \"other\"", errors) {
                        if super::name::is_name(&text) {
                            options.name = Some(text);
                        } else {
                            errors.push(
                                span,
                                messages::NAME_SHAPE.with(&[&text, &super::name::like(&text)]),
                            );
                        }
                    }
                }
                "shared_name" if item == "workflow" => {
                    if !matches!(setting.value, Value::Nothing) {
                        let text = messages::OPTION_IS_A_FLAG.with(&["shared_name"]);
                        errors.push(setting.value_place(), text);
                    }
                    options.shares_name = true;
                }
                // What `#[guided]` says to the fragments that it makes.
                "of" if item == "fragment" => {
                    let flow = text(setting, "of", "of = \"flow\"", errors);
                    options.flow = flow.map(|(flow, _)| flow);
                }
                "body" if item == "fragment" => options.is_body = true,
                "crate" => match &setting.value {
                    Value::Equals(Expr::Path(path)) => options.krate = Some(path.path.clone()),
                    _ => errors.push(setting.place(), messages::CRATE_PATH),
                },
                _ => {
                    let all = if item == "workflow" {
                        "the options are `name`, `shared_name`, `crate`"
                    } else {
                        "the only option is `crate`"
                    };
                    errors.push(
                        setting.name.span(),
                        messages::OPTION_UNKNOWN.with(&[&name, &format!("#[{item}]"), all]),
                    );
                }
            }
            seen.push(name);
        }
        options
    }
}

/// The one expression of `#[key(expr)]`.
pub(crate) fn key(tokens: TokenStream) -> Option<Expr> {
    let list = Punctuated::<Expr, Token![,]>::parse_terminated
        .parse2(tokens)
        .ok()?;
    let mut list = list.into_iter();
    let key = list.next()?;
    list.next().is_none().then_some(key)
}
