//! The lock: what live runs may stand on, compared with the code whenever it is compiled.
//!
//! `tree` is what is locked, `text` how it is written, `sources` what only other files tell; `flow` is what can follow what,
//! `types` and `compare` are the law.
//! Without a `workflow.lock` beside the package's `Cargo.toml` nothing is read and nothing is checked.

mod compare;
mod flow;
mod guided;
mod mode;
mod outline;
mod sources;
#[cfg(test)]
mod tests;
mod text;
mod tree;
mod types;

use std::path::{Path, PathBuf};
use std::{env, fs};

use proc_macro2::{Ident, Span, TokenStream};
use quote::quote;
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::{LitStr, Token};

use self::mode::Mode;
use self::sources::{Found, Sources};
use self::text::Lock;
pub(crate) use self::tree::Item;
use self::tree::{Input, Origin, Section, Types};
use self::types::Tables;
use crate::diagnostics::{Errors, Place};
use crate::model::{self, ItemOptions, Parameter, Walked, name};
use crate::syntax::{Body, Function, Settings};
use crate::{expand, messages};

/// The file, beside the package's `Cargo.toml`.
const FILE: &str = "workflow.lock";

/// What the words at a site's beginning are.
const KINDS: &[&str] = &[
    "call",
    "step",
    "sleep",
    "now",
    "derived",
    "join",
    "race",
    "join_all",
    "loop",
    "recv",
    "send",
    "attempt",
    "version",
    "removed",
    "checkpoint",
    "settle",
    "rollback",
    "stage",
];

pub(crate) use self::guided::check_guided;
pub(crate) use self::outline::outline;

/// A function that is being expanded.
pub(crate) struct Expanded<'a> {
    pub(crate) item: Item,
    /// Its name in the store.
    pub(crate) name: &'a str,
    pub(crate) ident: &'a Ident,
    pub(crate) parameters: &'a [Parameter],
    pub(crate) walked: &'a Walked,
}

/// Compares a function with its section of the lock. Gives what makes the compiler come back when the lock changes.
pub(crate) fn check(expanded: &Expanded<'_>, errors: &mut Errors) -> TokenStream {
    let Some(dir) = package() else {
        return TokenStream::new();
    };
    let path = dir.join(FILE);
    let Ok(text) = fs::read_to_string(&path) else {
        return watched(None);
    };
    if !expanded.walked.is_faulty {
        compare_with(&dir, &text, expanded, errors);
    }
    watched(Some(&path))
}

fn package() -> Option<PathBuf> {
    env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from)
}

/// What the compiler is to look at again before it says that nothing has changed: the lock, and whether it is to be written.
fn watched(path: Option<&Path>) -> TokenStream {
    let file = path.and_then(Path::to_str).map(|path| {
        quote!(
            const _: &[::core::primitive::u8] = ::core::include_bytes!(#path);
        )
    });
    let variable = mode::VARIABLE;
    quote! {
        #file
        const _: ::core::option::Option<&::core::primitive::str> = ::core::option_env!(#variable);
    }
}

fn compare_with(dir: &Path, text: &str, expanded: &Expanded<'_>, errors: &mut Errors) {
    let at = expanded.ident.span();
    let mode = Mode::now();
    if mode.accepts_all() {
        return;
    }
    let lock = match Lock::parse(text) {
        Ok(lock) => lock,
        Err(wrong) => {
            let text = messages::LOCK_UNREADABLE.with(&[&wrong.line.to_string(), &wrong.why]);
            return errors.push(at, text);
        }
    };
    let Some(locked) = lock.section(expanded.item, expanded.name) else {
        return;
    };
    let Ok(sources) = Sources::read(dir, &lock.roots) else {
        return;
    };
    if !is_meant(&sources, expanded) {
        return;
    }
    let names = names(expanded.walked, expanded.parameters);
    let index = sources.index(&names);
    let found = section(expanded, &index);
    let types = index.types_in(&texts(&found));
    let tables = Tables {
        locked: &lock.types,
        found: &types,
    };
    for found in compare::compare(locked, &found, at.into(), &tables) {
        if !mode.accepts(expanded.name, &found.path) {
            errors.push(found.place, found.text);
        }
    }
}

/// Whether it is the one that is locked: in a test, or in another target of the package, a function may have the same name.
fn is_meant(sources: &Sources, expanded: &Expanded<'_>) -> bool {
    let place = Place::from(expanded.ident.span());
    let Some(file) = place.file() else {
        return false;
    };
    let mut named = sources.durable_in(Path::new(&file));
    named.retain(|found| found.item == expanded.item && found.name() == expanded.name);
    // Two of one name are refused as that, and nothing more is to be said of them.
    matches!(named.as_slice(), [only] if only.line == place.position().0)
}

impl Found {
    /// Its name in the store.
    fn name(&self) -> String {
        let own = || {
            let function: Option<Function> = syn::parse2(self.tokens.clone()).ok();
            function.map(|function| model::workflow_name(&function.sig))
        };
        if let Some(flow) = &self.flow {
            return format!("{flow}/{}", own().unwrap_or_default());
        }
        let mut errors = Errors::default();
        let options = ItemOptions::check(&Settings::of(&self.attr), self.item.word(), &mut errors);
        drop(errors.finish());
        options.name.or_else(own).unwrap_or_default()
    }
}

/// All names of which more can be known than is written in the function.
fn names(walked: &Walked, parameters: &[Parameter]) -> Vec<String> {
    let mut names = Vec::new();
    let mut add = |text: &str| {
        let words = text.split(|char: char| !char.is_alphanumeric() && char != '_');
        names.extend(words.filter(|word| !word.is_empty()).map(str::to_owned));
    };
    for site in &walked.sites {
        let details = &site.details;
        details.calls.iter().for_each(|path| {
            add(path.rsplit([':', '.']).next().unwrap_or_default());
        });
        details.gives.iter().for_each(|ty| add(ty));
        details.channels.iter().for_each(|channel| add(channel));
    }
    for parameter in parameters.iter().filter(|parameter| !parameter.is_state) {
        add(&name::type_text(&parameter.ty));
    }
    names
}

/// All types that a section names.
fn texts(section: &Section) -> Vec<String> {
    fn gather(parts: &[tree::Part], texts: &mut Vec<String>) {
        for part in parts {
            match part {
                tree::Part::Leaves => {}
                tree::Part::Choice { arms, .. } => arms.iter().for_each(|arm| gather(arm, texts)),
                tree::Part::Site(site) => {
                    texts.extend(site.gives.clone());
                    site.bodies
                        .iter()
                        .for_each(|body| gather(&body.parts, texts));
                }
            }
        }
    }
    let mut texts: Vec<String> = section
        .inputs
        .iter()
        .map(|input| input.ty.clone())
        .collect();
    gather(&section.parts, &mut texts);
    texts
}

fn section(expanded: &Expanded<'_>, types: &dyn Types) -> Section {
    let recorded = |parameter: &&Parameter| expanded.item == Item::Workflow && !parameter.is_state;
    let inputs = expanded
        .parameters
        .iter()
        .filter(recorded)
        .map(|parameter| Input {
            name: name::plain(&parameter.name.to_string()),
            ty: name::type_text(&parameter.ty),
            origin: Origin::Code(Place::of(&parameter.ty)),
        });
    Section {
        item: expanded.item,
        name: expanded.name.to_owned(),
        inputs: inputs.collect(),
        parts: tree::parts(expanded.walked, &expanded.walked.outline, types),
        origin: Origin::Code(expanded.ident.span().into()),
    }
}

/// `lock!()`: the whole lock of the package as its sources have it now, for the library to compare or write.
pub(crate) fn write(input: TokenStream) -> TokenStream {
    let mut errors = Errors::default();
    let krate = expand::krate(None);
    let text = roots(input).map(|roots| whole(&roots, &mut errors));
    let reports = match text {
        Ok(Some(Whole { path, text, read })) => {
            let (reports, path) = (errors.finish(), path.to_string_lossy().into_owned());
            let watched = watched(Path::new(&path).exists().then_some(Path::new(&path)));
            return quote!({
                #(#reports)*
                #watched
                #(const _: &[::core::primitive::u8] = ::core::include_bytes!(#read);)*
                #krate::__private::lock(#path, #text)
            });
        }
        Ok(None) => errors.finish(),
        Err(wrong) => {
            let mut reports = errors.finish();
            reports.push(wrong.into());
            reports
        }
    };
    quote!({ #(#reports)* })
}

/// The directories and files that `lock!` is told to read.
fn roots(input: TokenStream) -> syn::Result<Vec<String>> {
    let list = Punctuated::<LitStr, Token![,]>::parse_terminated.parse2(input)?;
    if list.is_empty() {
        return Ok(vec!["src".to_owned()]);
    }
    Ok(list.iter().map(LitStr::value).collect())
}

/// A package's lock, as its sources have it.
struct Whole {
    path: PathBuf,
    text: String,
    /// The files that were read: when one changes, so may this.
    read: Vec<String>,
}

fn whole(roots: &[String], errors: &mut Errors) -> Option<Whole> {
    let at = Span::call_site();
    let dir = package()?;
    let path = dir.join(FILE);
    let before = fs::read_to_string(&path).ok();
    let sources = match Sources::read(&dir, roots) {
        Ok(sources) => sources,
        Err(why) => {
            errors.push(at, messages::LOCK_SOURCES.with(&[&why]));
            return None;
        }
    };
    let lock = of_sources(&sources, roots, errors);
    if let Some(Ok(before)) = before.map(|text| Lock::parse(&text)) {
        let mode = Mode::now();
        for section in &before.sections {
            let gone = match section.item {
                Item::Workflow => messages::LOCK_WORKFLOW_GONE,
                Item::Guided => messages::LOCK_FLOW_GONE,
                Item::Fragment => continue,
            };
            let is_gone = lock.section(section.item, &section.name).is_none()
                && !mode.accepts(&section.name, "");
            if is_gone {
                let quoted = section.origin.quoted();
                errors.push(at, gone.with(&[&section.name, &quoted]));
            }
        }
    }
    Some(Whole {
        path,
        text: lock.print(),
        read: sources.paths(),
    })
}

/// The lock of these files.
fn of_sources(sources: &Sources, roots: &[String], errors: &mut Errors) -> Lock {
    let mut walked = Vec::new();
    for found in sources.durable() {
        let name = found.name();
        if let Some((function, body)) = walk(&found) {
            walked.push((found, name, function, body));
        }
    }
    let flows = sources.guided();
    let wanted: Vec<String> = walked
        .iter()
        .flat_map(|(.., (parameters, body))| names(body, parameters))
        .chain(flows.iter().map(|flow| flow.data.clone()))
        .collect();
    let index = sources.index(&wanted);
    let mut sections: Vec<(Section, &Found)> = Vec::new();
    for (found, name, function, (parameters, body)) in &walked {
        let expanded = Expanded {
            item: found.item,
            name,
            ident: &function.sig.ident,
            parameters,
            walked: body,
        };
        let same = sections
            .iter()
            .find(|(section, _)| section.item == found.item && section.name == *name);
        if let Some((_, first)) = same {
            if found.item == Item::Workflow {
                let [first, second] =
                    [*first, found].map(|found| format!("{}:{}", found.path.display(), found.line));
                errors.push(
                    Span::call_site(),
                    messages::LOCK_TWICE.with(&[name, &first, &second]),
                );
            }
            continue;
        }
        sections.push((section(&expanded, &index), found));
    }
    let mut sections: Vec<Section> = sections.into_iter().map(|(section, _)| section).collect();
    sections.extend(flows.iter().map(guided::Flow::section));
    sections.sort_by_key(|section| {
        let of = match section.item {
            Item::Workflow => 0,
            Item::Fragment => 1,
            Item::Guided => 2,
        };
        (of, section.name.clone())
    });
    let texts: Vec<String> = sections.iter().flat_map(texts).collect();
    Lock {
        roots: roots.to_vec(),
        types: index.types_in(&texts),
        sections,
    }
}

/// A function of the sources, walked; none if it is so broken that the compiler says so itself.
fn walk(found: &Found) -> Option<(Function, (Vec<Parameter>, Walked))> {
    let mut function: Function = syn::parse2(found.tokens.clone()).ok()?;
    let mut errors = Errors::default();
    let model = match found.item {
        Item::Workflow => model::check_workflow(&mut function, &mut errors),
        Item::Fragment | Item::Guided => None,
    };
    let parameters = model
        .as_ref()
        .map(|model| model.parameters.clone())
        .unwrap_or_default();
    let given = match &model {
        Some(model) => model.given(),
        None => model::lent(&function.sig),
    };
    let Body::Block(block) = &function.body else {
        drop(errors.finish());
        return None;
    };
    let mut block = block.clone();
    let walked = model::walk(
        &mut block,
        model::names(&function.sig),
        given,
        model::Undos::Own,
        &quote!(workflow),
        &mut errors,
    );
    drop(errors.finish());
    Some((function, (parameters, walked)))
}
