//! The lock: what live runs may stand on, compared with the code whenever it is compiled.
//!
//! `tree` is what is locked, `text` how it is written. What only other files tell: `sources` finds the functions in them, `index`
//! what they define, `payload` how a type is read, `attributes` how each is marked. `flow` is what can follow what, `types` and
//! `compare` are the law. `whole` is what `lock!` writes.
//!
//! Without a `workflow.lock` beside the package's `Cargo.toml` nothing is read and nothing is checked.

mod attributes;
mod compare;
mod flow;
mod guided;
mod index;
mod mode;
mod outline;
mod payload;
mod sources;
#[cfg(test)]
mod tests;
mod text;
mod tree;
mod types;
mod whole;

use std::path::{Path, PathBuf};
use std::{env, fs};

use proc_macro2::{Ident, TokenStream};
use quote::quote;

use self::mode::Mode;
use self::sources::{Found, Sources};
use self::text::{Lock, Unreadable};
pub(crate) use self::tree::Item;
use self::tree::{Input, Origin, Section, Types};
use self::types::Tables;
use crate::diagnostics::{Errors, Place, Report};
use crate::messages;
use crate::model::{ItemOptions, Parameter, Walked, name};
use crate::syntax::{Body, Function, Settings};

/// The file, beside the package's `Cargo.toml`.
const FILE: &str = "workflow.lock";

/// What the words at a site's beginning are.
const KINDS: &[&str] = &[
    "call",
    "step",
    "fragment",
    "child",
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
use self::whole::walk;
pub(crate) use self::whole::write;

/// A function that is being expanded.
pub(crate) struct Expanded<'a> {
    pub(crate) item: Item,
    /// Its name in the store.
    pub(crate) name: &'a str,
    pub(crate) ident: &'a Ident,
    pub(crate) parameters: &'a [Parameter],
    pub(crate) walked: &'a Walked,
    /// All of it, as it is written.
    pub(crate) written: &'a TokenStream,
}

/// Compares a function with its section of the lock. Gives what makes the compiler come back when the lock changes.
pub(crate) fn check(expanded: &Expanded<'_>, errors: &mut Errors) -> TokenStream {
    let Some(dir) = package() else {
        return TokenStream::new();
    };
    let path = dir.join(FILE);
    let Some(lock) = read(&path) else {
        return watched(None);
    };
    if !expanded.walked.is_faulty {
        compare_with(&dir, lock, expanded, errors);
    }
    watched(Some(&path))
}

/// The lock, or what is wrong with it; none where there is none.
fn read(path: &Path) -> Option<Result<Lock, Unreadable>> {
    let why = match fs::read(path) {
        Ok(bytes) => match String::from_utf8(bytes) {
            Ok(text) => return Some(Lock::parse(&text)),
            Err(wrong) => {
                let good = &wrong.as_bytes()[..wrong.utf8_error().valid_up_to()];
                let line = good.split(|byte| *byte == b'\n').count();
                let why = "it is not UTF-8".to_owned();
                return Some(Err(Unreadable { line, why }));
            }
        },
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
        Err(error) => error.to_string(),
    };
    Some(Err(Unreadable { line: 1, why }))
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

fn compare_with(
    dir: &Path,
    lock: Result<Lock, Unreadable>,
    expanded: &Expanded<'_>,
    errors: &mut Errors,
) {
    let at = expanded.ident.span();
    let mode = Mode::now();
    if mode.accepts_all() {
        return;
    }
    let lock = match lock {
        Ok(lock) => lock,
        Err(wrong) => {
            let text = messages::LOCK_UNREADABLE.with(&[&wrong.line.to_string(), &wrong.why]);
            return errors.push(at, text);
        }
    };
    if lock
        .sections_of(expanded.item, expanded.name)
        .next()
        .is_none()
    {
        return;
    }
    let sources = Sources::found(dir, &lock.roots);
    let place = Place::from(at);
    let here = place
        .file()
        .map(|file| sources.durable_in(Path::new(&file)));
    let mut here = here.unwrap_or_default();
    here.retain(|found| found.item == expanded.item && found.name() == expanded.name);
    let own = here.iter().filter(|found| !found.shares_name()).count();
    if expanded.item == Item::Workflow && own > 1 {
        // They are refused as two of one name, and nothing more is to be said of them.
        return;
    }
    // In a test, or in another target of the package, a function may have the same name.
    let written = text_of(expanded.written);
    here.retain(|found| {
        found.is_alone || found.line == place.position().0 || text_of(&found.tokens) == written
    });
    let [here] = here.as_slice() else {
        return;
    };
    let Some(locked) = lock.section_of(here, expanded.name, &sources) else {
        return;
    };
    for found in breaks(&lock, locked, expanded, &sources) {
        if !mode.accepts(&locked.name, &found.path) {
            let report = Report::new(found.place, found.text);
            errors.add(match found.under {
                Some(condition) => report.under(&condition),
                None => report,
            });
        }
    }
}

/// A function's parameters and body, in one spelling.
fn text_of(function: &TokenStream) -> Option<String> {
    let function: Function = syn::parse2(function.clone()).ok()?;
    let Body::Block(block) = &function.body else {
        return None;
    };
    let text = [name::type_text(&function.sig), name::type_text(block)];
    Some(text.concat())
}

/// What of a function breaks the runs that stand on a section.
fn breaks(
    lock: &Lock,
    locked: &Section,
    expanded: &Expanded<'_>,
    sources: &Sources,
) -> Vec<compare::Break> {
    let index = sources.index(&names(expanded.walked, expanded.parameters));
    let found = section(expanded, &index);
    let types = index.types_in(&texts(&found));
    let tables = Tables {
        locked: &lock.types,
        found: &types,
    };
    compare::compare(locked, &found, expanded.ident.span().into(), &tables)
}

impl Lock {
    /// The sections of functions of this name: a workflow's own, or those of all fragments that have it.
    fn sections_of(&self, item: Item, name: &str) -> impl Iterator<Item = &Section> {
        self.sections.iter().filter(move |section| {
            let last = section.name.rsplit("::").next().unwrap_or_default();
            section.item == item && (section.name == name || item == Item::Fragment && last == name)
        })
    }

    /// The section in which a function is locked that stands there.
    fn section_of(&self, here: &Found, name: &str, sources: &Sources) -> Option<&Section> {
        // A workflow's name may be written as its option.
        let word = match here.item {
            Item::Workflow => name,
            _ => here.ident(),
        };
        let mut named = sources.durable_with(word);
        named.retain(|found| found.item == here.item && found.name() == name);
        if here.item == Item::Workflow {
            // One that shares its name on purpose is another than the one that is locked.
            let is_locked = !here.shares_name() || named.iter().all(Found::shares_name);
            return self.section(here.item, name).filter(|_| is_locked);
        }
        if let ([_], [only]) = (
            named.as_slice(),
            &*self.sections_of(here.item, name).collect::<Vec<_>>(),
        ) {
            return Some(only);
        }
        if let Some(own) = self.section(here.item, &here.full_name) {
            return Some(own);
        }
        // It was the only one of its name once, or stood in another module: a section that nobody has is that of the one that
        // fits it, or else of the first.
        let orphans: Vec<&Section> = self
            .sections_of(here.item, name)
            .filter(|section| named.iter().all(|found| found.full_name != section.name))
            .collect();
        named.retain(|found| self.section(found.item, &found.full_name).is_none());
        let fits = |section: &Section, found: &Found| {
            walk(found).is_some_and(|(function, (parameters, walked))| {
                let expanded = Expanded {
                    item: found.item,
                    name,
                    ident: &function.sig.ident,
                    parameters: &parameters,
                    walked: &walked,
                    written: &found.tokens,
                };
                breaks(self, section, &expanded, sources).is_empty()
            })
        };
        orphans.iter().copied().find(|section| {
            let first = named.first().filter(|_| orphans.len() == 1);
            let heir = named.iter().find(|found| fits(section, found)).or(first);
            heir.is_some_and(|heir| heir.full_name == here.full_name)
        })
    }
}

impl Found {
    fn options(&self) -> ItemOptions {
        let mut errors = Errors::default();
        let options = ItemOptions::check(&Settings::of(&self.attr), self.item.word(), &mut errors);
        drop(errors.finish());
        options
    }

    /// The function's own name.
    fn ident(&self) -> &str {
        self.full_name.rsplit("::").next().unwrap_or_default()
    }

    /// Its name in the store.
    fn name(&self) -> String {
        match &self.flow {
            Some(flow) => format!("{flow}/{}", self.ident()),
            None => (self.options().name).unwrap_or_else(|| self.ident().to_owned()),
        }
    }

    /// It says that another workflow may have its name.
    fn shares_name(&self) -> bool {
        self.flow.is_none() && self.options().shares_name
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
        let carried = details.carried.iter().flatten();
        carried
            .filter_map(|local| local.ty.as_ref())
            .for_each(|hint| hint.words(&mut add));
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
                    let carried = site.carried.iter().flatten();
                    texts.extend(carried.filter_map(|local| local.ty.clone()));
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
