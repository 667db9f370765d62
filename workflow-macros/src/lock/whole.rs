//! The lock of a package as its sources have it.

use std::path::{Path, PathBuf};

use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::{LitStr, Token};

use super::mode::Mode;
use super::sources::{Found, Sources};
use super::text::Lock;
use super::tree::{Item, Section};
use super::{Expanded, FILE, guided, names, package, read, section, texts, watched};
use crate::diagnostics::Errors;
use crate::model::{self, Parameter, Walked};
use crate::syntax::{Body, Function};
use crate::{expand, messages};

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
    let before = read(&path);
    let sources = match Sources::read(&dir, roots) {
        Ok(sources) => sources,
        Err(why) => {
            errors.push(at, messages::LOCK_SOURCES.with(&[&why]));
            return None;
        }
    };
    let lock = of_sources(&sources, roots, errors);
    if let Some(Ok(before)) = before {
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
pub(super) fn of_sources(sources: &Sources, roots: &[String], errors: &mut Errors) -> Lock {
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
        let others = || {
            let all = walked
                .iter()
                .filter(|(other, ..)| !std::ptr::eq(other, found));
            all.filter(|(other, of, ..)| other.item == found.item && of == name)
        };
        let is_workflow = found.item == Item::Workflow;
        if is_workflow && found.shares_name() && others().any(|(other, ..)| !other.shares_name()) {
            continue;
        }
        let name = if is_workflow || others().next().is_none() {
            name
        } else {
            &found.full_name
        };
        let expanded = Expanded {
            item: found.item,
            name,
            ident: &function.sig.ident,
            parameters,
            walked: body,
            written: &found.tokens,
        };
        let same = sections
            .iter()
            .find(|(section, _)| section.item == found.item && section.name == *name);
        if let Some((_, first)) = same {
            if is_workflow {
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
pub(super) fn walk(found: &Found) -> Option<(Function, (Vec<Parameter>, Walked))> {
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
        &function.sig,
        given,
        model::Undos::Own,
        &quote!(workflow),
        &mut errors,
    );
    drop(errors.finish());
    Some((function, (parameters, walked)))
}
