//! A guided flow in the lock: what its guides were written with.
//!
//! A guide is a position: the names of the stages it is at and went by, and the person's data. So what is locked is the names and the
//! type of the data; edges, checks and guards may change at any time. With a higher `version` everything may: that is what migrations
//! are for. The code of its stages is locked as fragments are, `project/create`.

use std::env;
use std::path::Path;

use proc_macro2::{Ident, TokenStream};
use quote::ToTokens;
use syn::{Attribute, ItemImpl};

use super::mode::Mode;
use super::sources::Sources;
use super::text::Lock;
use super::tree::{Input, Item, Origin, Part, Section, Site};
use super::types::Tables;
use super::{FILE, read, watched};
use crate::diagnostics::{Errors, Place};
use crate::messages::{self, Text};
use crate::model::{self, FlowOptions, Guided};
use crate::syntax::{Impl, Settings};

/// A flow, as far as the lock looks at it.
pub(crate) struct Flow {
    pub(crate) id: String,
    version: u32,
    /// The type of its data, by name.
    pub(crate) data: String,
    at: Place,
    /// The stages: where each is named, and its name.
    stages: Vec<(Place, String)>,
}

/// The `id` in a `#[guided(..)]`.
pub(super) fn id_of(attr: &Attribute) -> Option<String> {
    let mut errors = Errors::default();
    let options = FlowOptions::check(&Settings::of(attr), None, &mut errors);
    drop(errors.finish());
    (!options.id.is_empty()).then_some(options.id)
}

impl Flow {
    /// Of a file; none if it is so broken that the compiler says so itself.
    pub(super) fn read(attr: &Attribute, of: &ItemImpl) -> Option<Self> {
        let written: Impl = syn::parse2(of.to_token_stream()).ok()?;
        let name = model::type_name(&written.ty)?;
        let mut errors = Errors::default();
        let options = FlowOptions::check(&Settings::of(attr), Some(&name), &mut errors);
        let guided = model::check_guided(written, &name, options, &mut errors);
        drop(errors.finish());
        (!guided.is_faulty).then(|| Self::of(&guided, &name))
    }

    fn of(guided: &Guided, data: &Ident) -> Self {
        let stages = guided.stages.iter();
        Self {
            id: guided.options.id.clone(),
            version: guided.options.version,
            data: data.to_string(),
            at: data.span().into(),
            stages: stages
                .map(|stage| (stage.place, stage.name.clone()))
                .collect(),
        }
    }

    pub(super) fn section(&self) -> Section {
        let site = |kind: &str, name: &str, at: Place| Site {
            kind: kind.to_owned(),
            name: name.to_owned(),
            gives: None,
            of: None,
            channels: Vec::new(),
            has_undo: false,
            is_keyed: false,
            carried: None,
            latest: None,
            was: None,
            to: None,
            cfg: None,
            bodies: Vec::new(),
            origin: Origin::Code(at),
        };
        let version = Site {
            latest: Some(self.version),
            ..site("version", "data", self.at)
        };
        let stages = self
            .stages
            .iter()
            .map(|(at, name)| site("stage", name, *at));
        let sites = [version].into_iter().chain(stages);
        Section {
            item: Item::Guided,
            name: self.id.clone(),
            inputs: vec![Input {
                name: "data".to_owned(),
                ty: self.data.clone(),
                origin: Origin::Code(self.at),
            }],
            parts: sites.map(|site| Part::Site(Box::new(site))).collect(),
            origin: Origin::Code(self.at),
        }
    }
}

/// Compares a flow that is being expanded with its section. Gives what makes the compiler come back when the lock changes.
pub(crate) fn check_guided(guided: &Guided, data: &Ident, errors: &mut Errors) -> TokenStream {
    let Some(dir) = env::var_os("CARGO_MANIFEST_DIR") else {
        return TokenStream::new();
    };
    let dir = Path::new(&dir);
    let path = dir.join(FILE);
    let Some(lock) = read(&path) else {
        return watched(None);
    };
    if let (false, Ok(lock)) = (guided.is_faulty, lock) {
        // What of it cannot be read is said at the functions.
        compare_with(dir, &lock, &Flow::of(guided, data), errors);
    }
    watched(Some(&path))
}

fn compare_with(dir: &Path, lock: &Lock, flow: &Flow, errors: &mut Errors) {
    let mode = Mode::now();
    if mode.accepts_all() {
        return;
    }
    let Some(locked) = lock.section(Item::Guided, &flow.id) else {
        return;
    };
    let sources = Sources::found(dir, &lock.roots);
    // In a test, or in another target of the package, a flow may have the same name.
    let here = flow
        .at
        .file()
        .map(|file| sources.guided_in(Path::new(&file)));
    let mut here = here.unwrap_or_default();
    here.retain(|found| found.id == flow.id);
    if here.len() != 1 {
        return;
    }
    let index = sources.index(std::slice::from_ref(&flow.data));
    let types = index.types_in(std::slice::from_ref(&flow.data));
    let tables = Tables {
        locked: &lock.types,
        found: &types,
    };
    for (path, place, text) in compare(locked, flow, &tables) {
        if !mode.accepts(&flow.id, &path) {
            errors.push(place, text);
        }
    }
}

/// What of a flow its guides do not survive: at which path, where it is told, and what.
pub(super) fn compare(
    locked: &Section,
    flow: &Flow,
    tables: &Tables<'_>,
) -> Vec<(String, Place, Text)> {
    let sites = || {
        locked.parts.iter().filter_map(|part| match part {
            Part::Site(site) => Some(&**site),
            _ => None,
        })
    };
    let mut breaks = Vec::new();
    let mut told = |path: &str, place: Place, text: Text| {
        let accept = format!(
            "or accept it, if there is no such guide: `WORKFLOW_LOCK=write:{}/{path} cargo test`",
            flow.id
        );
        breaks.push((path.to_owned(), place, text.or(&accept)));
    };
    let version = sites().find(|site| site.kind == "version");
    let before = version.and_then(|site| site.latest).unwrap_or(1);
    if flow.version > before {
        return breaks;
    }
    if let (true, Some(site)) = (flow.version < before, version) {
        let words = [
            flow.version.to_string(),
            before.to_string(),
            site.origin.quoted(),
        ];
        let words = words.each_ref().map(|word| &**word);
        told("data", flow.at, messages::LOCK_FLOW_VERSION.with(&words));
        return breaks;
    }
    let old: Vec<_> = sites().filter(|site| site.kind == "stage").collect();
    let is_new = |name: &str| old.iter().all(|site| site.name != name);
    for (index, site) in old.iter().enumerate() {
        if flow.stages.iter().any(|(_, name)| *name == site.name) {
            continue;
        }
        let quoted = site.origin.quoted();
        // As many as there were, and a new one in its place: it was called otherwise.
        let instead = flow.stages.get(index).filter(|(_, name)| is_new(name));
        if let Some((place, name)) = instead.filter(|_| flow.stages.len() == old.len()) {
            let text = messages::LOCK_STAGE_RENAMED.with(&[name, &site.name, &quoted]);
            told(&site.name, *place, text);
        } else {
            let text = messages::LOCK_STAGE_GONE.with(&[&site.name, &quoted]);
            told(&site.name, flow.at, text);
        }
    }
    for input in &locked.inputs {
        if let Some(why) = tables.broken(&input.ty, &flow.data) {
            let quoted = input.origin.quoted();
            let words = [&*flow.data, &*why, &*quoted];
            told("data", flow.at, messages::LOCK_FLOW_DATA.with(&words));
        }
    }
    breaks
}
