//! What stands in `#[guided(..)]` and `#[stage(..)]`.

use proc_macro2::Ident;
use syn::parse::Parser as _;
use syn::punctuated::Punctuated;
use syn::{Expr, Lit, LitInt, Token, Type};

use super::Stage;
use crate::diagnostics::{Errors, Place};
use crate::messages;
use crate::model::options::{backoff, distance, flag, literal, text};
use crate::model::{duration, name};
use crate::syntax::{Marks, Setting, Settings, Value, peel};

/// The options of a flow.
#[derive(Default)]
pub(crate) struct FlowOptions {
    /// Under which its guides are stored.
    pub(crate) id: String,
    pub(crate) version: u32,
    pub(crate) history: Option<usize>,
    /// What makes of the data of each version that of the next.
    pub(crate) migrations: Vec<(u32, Expr)>,
    /// The data of the flows that may be in its stages.
    pub(crate) nests: Vec<Type>,
    /// In milliseconds.
    pub(crate) hooks_timeout: Option<u64>,
    pub(crate) reopens: bool,
    pub(crate) krate: Option<syn::Path>,
    pub(super) is_faulty: bool,
}

/// Every option of a flow with the way it is written.
const FLOW: &[(&str, &str)] = &[
    ("id", "id = \"project\""),
    ("version", "version = 2"),
    ("migrate", "migrate(1 => Self::from_v1)"),
    ("history", "history = 100"),
    ("nests", "nests(Billing)"),
    ("hooks_timeout", "hooks_timeout = \"30s\""),
    ("reopen", "reopen"),
    ("crate", "crate = my_crate::workflow"),
];

/// The same of a stage.
const STAGE: &[(&str, &str)] = &[
    ("start", "start"),
    ("terminal", "terminal"),
    ("skippable", "skippable"),
    ("title", "title = \"Details\""),
    ("name", "name = \"other\""),
    ("to", "to = [region if Self::wants_cloud, create]"),
    ("otherwise", "otherwise = stay"),
    ("when", "when = Self::wants_cloud"),
    ("timeout", "timeout = \"30s\""),
    ("retries", "retries = 2"),
    (
        "backoff",
        "backoff(exponential, initial = \"200ms\", factor = 2, max = \"30s\")",
    ),
    ("revisit", "revisit = fresh"),
    ("on_interrupt", "on_interrupt = rerun"),
];

impl FlowOptions {
    pub(crate) fn check(settings: &Settings, flow: Option<&Ident>, errors: &mut Errors) -> Self {
        let before = errors.count();
        let mut options = Self {
            version: 1,
            ..Self::default()
        };
        if let Some(broken) = &settings.broken {
            let example = "#[guided(id = \"project\", version = 2)]";
            errors.push(
                broken.span(),
                messages::GUIDED_SYNTAX.with(&["guided", example]),
            );
        }
        let mut id = None;
        for (setting, shape) in known(&settings.list, FLOW, "#[guided]", errors) {
            match &*setting.name.to_string() {
                "id" => id = text(setting, "id", shape, errors),
                "version" => {
                    let version = whole(setting, shape, errors);
                    options.version = version.unwrap_or(1);
                    if version == Some(0) {
                        errors.push(setting.value_place(), messages::GUIDED_VERSION);
                    }
                }
                "history" => {
                    options.history = whole(setting, shape, errors).map(|stops| stops as usize);
                }
                "nests" => options.nests = types(setting, shape, errors),
                "hooks_timeout" => options.hooks_timeout = millis(setting, shape, errors),
                "reopen" => options.reopens = flag(setting, "reopen", errors).unwrap_or(true),
                "migrate" => options.migrations = migrations(setting, shape, errors),
                _ => match &setting.value {
                    Value::Equals(Expr::Path(path)) => options.krate = Some(path.path.clone()),
                    _ => errors.push(setting.place(), messages::CRATE_PATH),
                },
            }
        }
        let given = settings.list.iter().any(|setting| setting.name == "id");
        match (id, flow) {
            (Some((id, span)), _) if !name::is_name(&id) => {
                let words = [&*id, &name::like(&id)];
                errors.push(span, messages::NAME_SHAPE.with(&words));
            }
            (Some((id, _)), _) => options.id = id,
            (None, Some(flow)) if !given && settings.broken.is_none() => {
                let name = flow.to_string().to_ascii_lowercase();
                errors.push(flow.span(), messages::GUIDED_NO_ID.with(&[&name]));
            }
            (None, _) => {}
        }
        options.chain(settings, errors);
        options.is_faulty = errors.count() > before;
        options
    }

    /// Migrations lead from one version to the next, up to this one.
    fn chain(&self, settings: &Settings, errors: &mut Errors) {
        let mut from: Vec<_> = self.migrations.iter().map(|(from, _)| *from).collect();
        from.sort_unstable();
        let Some(first) = from.first().copied() else {
            return;
        };
        let wanted: Vec<_> = (first..self.version.max(first)).collect();
        let setting = settings
            .list
            .iter()
            .find(|setting| setting.name == "migrate");
        if let (true, Some(setting)) = (from != wanted, setting) {
            let missing = wanted.iter().find(|version| !from.contains(version));
            let words = [
                self.version.to_string(),
                missing.map_or_else(
                    || "each version before it once".to_owned(),
                    |missing| format!("`{missing} => ..`"),
                ),
            ];
            let words = words.each_ref().map(|word| &**word);
            errors.push(setting.place(), messages::GUIDED_MIGRATION_GAP.with(&words));
        }
    }
}

/// Reads the options of a stage into it.
pub(super) fn stage(marks: &Marks, stage: &mut Stage, errors: &mut Errors) {
    if let Some(broken) = &marks.broken {
        let example = "#[stage(title = \"Details\", to = [region if Self::wants_cloud, create])]";
        errors.push(
            broken.span(),
            messages::GUIDED_SYNTAX.with(&["stage", example]),
        );
    }
    for again in marks.exits.iter().skip(1) {
        errors.push(again.word.span(), messages::OPTION_REPEATED.with(&["to"]));
    }
    for (setting, shape) in known(&marks.list, STAGE, "#[stage]", errors) {
        let place = setting.place();
        let name = setting.name.to_string();
        match &*name {
            "start" => stage.start = mark(setting, &name, errors),
            "terminal" => stage.terminal = mark(setting, &name, errors),
            "skippable" => stage.skippable = mark(setting, &name, errors),
            "title" => stage.title = text(setting, &name, shape, errors).map(|(text, _)| text),
            "name" => {
                if let Some((text, span)) = text(setting, &name, shape, errors) {
                    stage.name = text;
                    stage.place = span.into();
                }
            }
            "otherwise" => stage.stays = word(setting, &[("stay", "stay")], errors).is_some(),
            "when" => match &setting.value {
                Value::Equals(when) => stage.when = Some(when.clone()),
                _ => errors.push(place, messages::OPTION_IS_NO_FLAG.with(&[&name, shape])),
            },
            "timeout" => stage.timeout = millis(setting, shape, errors),
            "retries" => stage.retries = whole(setting, shape, errors),
            "backoff" => stage.backoff = backoff(setting, shape, errors),
            "revisit" => {
                stage.revisit = word(setting, &[("keep", "Keep"), ("fresh", "Fresh")], errors);
            }
            "on_interrupt" => {
                stage.on_interrupt = word(setting, &[("ask", "Ask"), ("rerun", "Rerun")], errors);
            }
            // `to` with anything else than `=`.
            _ => errors.push(place, messages::OPTION_IS_NO_FLAG.with(&[&name, shape])),
        }
    }
}

/// The options that there are, each once, with the way it is written.
fn known<'a>(
    list: &'a [Setting],
    table: &'static [(&'static str, &'static str)],
    of: &str,
    errors: &mut Errors,
) -> Vec<(&'a Setting, &'static str)> {
    let mut found: Vec<(&Setting, &str)> = Vec::new();
    for setting in list {
        let name = setting.name.to_string();
        let Some((_, shape)) = table.iter().find(|(known, _)| *known == name) else {
            let words = [&*name, of, &meant(&name, table)];
            errors.push(setting.name.span(), messages::OPTION_UNKNOWN.with(&words));
            continue;
        };
        if found.iter().any(|(other, _)| other.name == setting.name) {
            errors.push(setting.place(), messages::OPTION_REPEATED.with(&[&name]));
            continue;
        }
        found.push((setting, shape));
    }
    found
}

/// The option that was probably meant, or all there are.
fn meant(word: &str, table: &[(&str, &str)]) -> String {
    let near = table
        .iter()
        .map(|(known, _)| (distance(word, known), *known));
    match near.min() {
        Some((distance, known)) if distance <= known.len() / 2 && distance < 4 => {
            format!("did you mean `{known}`?")
        }
        _ => {
            let all = table.iter().map(|(known, _)| format!("`{known}`"));
            format!("the options are {}", all.collect::<Vec<_>>().join(", "))
        }
    }
}

/// A word that is there, or `= false`.
fn mark(setting: &Setting, name: &str, errors: &mut Errors) -> Option<Place> {
    flag(setting, name, errors)
        .unwrap_or(true)
        .then(|| setting.place())
}

/// One of these words, as the library calls it.
fn word(
    setting: &Setting,
    words: &[(&str, &'static str)],
    errors: &mut Errors,
) -> Option<&'static str> {
    let name = setting.name.to_string();
    if let Value::Equals(value) = &setting.value
        && let Expr::Path(path) = peel(value)
        && let Some((_, word)) = words.iter().find(|(word, _)| path.path.is_ident(word))
    {
        return Some(word);
    }
    let all = words.iter().map(|(word, _)| format!("{name} = {word}"));
    let all = all.collect::<Vec<_>>().join("` or `");
    errors.push(setting.place(), messages::OPTION_VALUE.with(&[&name, &all]));
    None
}

/// A duration, in milliseconds.
fn millis(setting: &Setting, shape: &str, errors: &mut Errors) -> Option<u64> {
    let (text, span) = text(setting, &setting.name.to_string(), shape, errors)?;
    match duration::parse(&text) {
        Ok(millis) => Some(millis),
        Err(wrong) => {
            errors.push(span, wrong.message().with(&[&text]));
            None
        }
    }
}

/// `nests(Billing, Address)`
fn types(setting: &Setting, shape: &str, errors: &mut Errors) -> Vec<Type> {
    if let Value::Parentheses(_, tokens) = &setting.value
        && let Ok(list) = Punctuated::<Type, Token![,]>::parse_terminated.parse2(tokens.clone())
        && !list.is_empty()
    {
        return list.into_iter().collect();
    }
    errors.push(
        setting.place(),
        messages::OPTION_VALUE.with(&["nests", shape]),
    );
    Vec::new()
}

/// A whole number.
fn whole(setting: &Setting, shape: &str, errors: &mut Errors) -> Option<u32> {
    let name = setting.name.to_string();
    let before = errors.count();
    let number = match literal(setting, &name, shape, errors) {
        Some(Lit::Int(number)) => number.base10_parse().ok(),
        _ => None,
    };
    if number.is_none() && errors.count() == before {
        errors.push(
            setting.value_place(),
            messages::OPTION_VALUE.with(&[&name, shape]),
        );
    }
    number
}

/// `migrate(1 => Self::from_v1, 2 => Self::from_v2)`
fn migrations(setting: &Setting, shape: &str, errors: &mut Errors) -> Vec<(u32, Expr)> {
    let read = |input: syn::parse::ParseStream<'_>| {
        let from: LitInt = input.parse()?;
        input.parse::<Token![=>]>()?;
        Ok((from.base10_parse()?, input.parse()?))
    };
    if let Value::Parentheses(_, tokens) = &setting.value {
        let list = |input: syn::parse::ParseStream<'_>| {
            Punctuated::<(u32, Expr), Token![,]>::parse_terminated_with(input, read)
        };
        if let Ok(list) = list.parse2(tokens.clone())
            && !list.is_empty()
        {
            return list.into_iter().collect();
        }
    }
    errors.push(
        setting.place(),
        messages::OPTION_VALUE.with(&["migrate", shape]),
    );
    Vec::new()
}
