//! What the package's own source says: which workflows there are, what a step gives, how a recorded type is made.
//!
//! A macro is given the tokens of one function; the rest is read from the files. Only names are followed, not paths: a name
//! that several things have is left alone, as is what macros make and what stands in other packages. All that is kept is
//! text, because the tokens that were read do not outlive the expansion.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::visit_mut::VisitMut;
use syn::{
    Attribute, Fields, GenericArgument, Item, Meta, PathArguments, ReturnType, Signature, Token,
    Type, UseTree,
};

use super::guided::{Flow, id_of};
use super::tree;
use super::types::{Member, Shape, TypeDef, Variant, is_option};
use crate::model::{Generics, is_number, name};

/// Files of Rust, with their text.
pub(crate) struct Sources {
    /// The package's directory.
    dir: PathBuf,
    files: Vec<(PathBuf, String)>,
}

/// A function that is durable by itself.
pub(crate) struct Found {
    pub(crate) path: PathBuf,
    /// From 1.
    pub(crate) line: usize,
    /// No other function of its file has its name, or looks as if it had: one in a function, or in a comment.
    pub(crate) is_alone: bool,
    /// Its module, its type and its name: `crate::orders::Desk::notify`.
    pub(crate) full_name: String,
    /// `workflow` or `fragment`.
    pub(crate) item: tree::Item,
    pub(crate) attr: Attribute,
    pub(crate) tokens: TokenStream,
    /// The guided flow whose stage it belongs to.
    pub(crate) flow: Option<String>,
}

/// What is defined in the files that were parsed, by name.
#[derive(Default)]
pub(crate) struct Index {
    calls: HashMap<String, Defined<String>>,
    /// What those that are durable are: `step`, `fragment`, `child`.
    kinds: HashMap<String, Defined<&'static str>>,
    channels: HashMap<String, Defined<String>>,
    /// Functions that are imported under another name.
    renamed: HashMap<String, Defined<String>>,
    /// Functions that are not async: `start`, `Cursor::new`.
    functions: HashMap<String, Defined<Returned>>,
    types: HashMap<String, Defined<TypeDef>>,
}

/// What a function returns.
#[derive(Clone, PartialEq, Eq)]
struct Returned {
    ty: String,
    /// The `T` of a `Result<T>`.
    ok: Option<String>,
}

/// Something by its name.
enum Defined<T> {
    Once(T),
    /// Only a compiler knows which is meant.
    Often,
}

impl Sources {
    /// All files of Rust under these, from `dir`.
    ///
    /// # Errors
    /// When one of them cannot be read.
    pub(crate) fn read(dir: &Path, roots: &[String]) -> Result<Self, String> {
        let mut files = Vec::new();
        for root in roots {
            let path = dir.join(root);
            gather(&path, &mut Vec::new(), &mut files)
                .map_err(|error| format!("{}: {error}", path.display()))?;
        }
        Ok(Self::of_files(dir, files))
    }

    /// The same, of what is there: a package may be built from less than what it was locked with.
    pub(crate) fn found(dir: &Path, roots: &[String]) -> Self {
        let mut files = Vec::new();
        for root in roots {
            let _ = gather(&dir.join(root), &mut Vec::new(), &mut files);
        }
        Self::of_files(dir, files)
    }

    fn of_files(dir: &Path, mut files: Vec<(PathBuf, String)>) -> Self {
        files.sort();
        files.dedup();
        let tests: Vec<PathBuf> = files
            .iter()
            .flat_map(|(path, text)| tests_of(path, text))
            .collect();
        files.retain(|(path, _)| !tests.iter().any(|test| path.starts_with(test)));
        let dir = dir.to_owned();
        Self { dir, files }
    }

    /// The files, as far as their paths are text.
    pub(crate) fn paths(&self) -> Vec<String> {
        let paths = self.files.iter().filter_map(|(path, _)| path.to_str());
        paths.map(str::to_owned).collect()
    }

    #[cfg(test)]
    pub(crate) fn of(text: &str) -> Self {
        Self::of_each(&[("src/lib.rs", text)])
    }

    /// Of these files, by their paths.
    #[cfg(test)]
    pub(crate) fn of_each(files: &[(&str, &str)]) -> Self {
        let files = files
            .iter()
            .map(|(path, text)| (PathBuf::from(path), (*text).to_owned()));
        Self {
            dir: PathBuf::new(),
            files: files.collect(),
        }
    }

    /// The workflows and fragments in them, but for those of tests.
    pub(crate) fn durable(&self) -> Vec<Found> {
        self.durable_with("")
    }

    /// Those in files that have this word.
    pub(crate) fn durable_with(&self, word: &str) -> Vec<Found> {
        let mut found = Vec::new();
        for (path, text) in &self.files {
            let words = ["workflow", "fragment", "guided"];
            if text.contains(word) && words.iter().any(|word| text.contains(word)) {
                found.extend(self.durable_of(path, text));
            }
        }
        found
    }

    /// Those of a file.
    fn durable_of(&self, path: &Path, text: &str) -> Vec<Found> {
        durable(
            path,
            text,
            &module(path.strip_prefix(&self.dir).unwrap_or(path)),
        )
    }

    /// Those in this file, if it is one of them.
    pub(crate) fn durable_in(&self, path: &Path) -> Vec<Found> {
        let Ok(wanted) = fs::canonicalize(path) else {
            return Vec::new();
        };
        let mut files = self.files.iter();
        let file = files.find(|(path, _)| fs::canonicalize(path).is_ok_and(|path| path == wanted));
        file.map(|(path, text)| self.durable_of(path, text))
            .unwrap_or_default()
    }

    /// The guided flows in them, but for those of tests.
    pub(crate) fn guided(&self) -> Vec<Flow> {
        let files = self.files.iter();
        let files = files.filter(|(_, text)| text.contains("guided"));
        files.flat_map(|(_, text)| guided(text)).collect()
    }

    /// Those in this file, if it is one of them.
    pub(crate) fn guided_in(&self, path: &Path) -> Vec<Flow> {
        let Ok(wanted) = fs::canonicalize(path) else {
            return Vec::new();
        };
        let mut files = self.files.iter();
        let file = files.find(|(path, _)| fs::canonicalize(path).is_ok_and(|path| path == wanted));
        file.map(|(_, text)| guided(text)).unwrap_or_default()
    }

    /// What is known of the names in `wanted`, and of those that these are made of.
    pub(crate) fn index(&self, wanted: &[String]) -> Index {
        let mut index = Index::default();
        let mut parsed = vec![false; self.files.len()];
        let mut wanted: Vec<String> = wanted.to_vec();
        let mut seen: Vec<String> = Vec::new();
        while let Some(word) = wanted.pop() {
            // Casts name primitive types everywhere.
            if seen.contains(&word) || is_number(&word) {
                continue;
            }
            for (at, (_, text)) in self.files.iter().enumerate() {
                if !parsed[at] && defines(text, &word) {
                    parsed[at] = true;
                    if let Some(file) = parse(text) {
                        index.add(&file.items);
                    }
                }
            }
            wanted.extend(index.words_of(&word));
            seen.push(word);
        }
        index
    }
}

/// Adds the files under `path`. `around` are the directories it stands in, for a link may lead back into one.
fn gather(
    path: &Path,
    around: &mut Vec<PathBuf>,
    files: &mut Vec<(PathBuf, String)>,
) -> io::Result<()> {
    if !path.is_dir() {
        // What is not text is no Rust either.
        if let Ok(text) = String::from_utf8(fs::read(path)?) {
            files.push((path.to_owned(), text));
        }
        return Ok(());
    }
    let real = fs::canonicalize(path)?;
    if around.contains(&real) {
        return Ok(());
    }
    around.push(real);
    let mut wrong = None;
    for entry in fs::read_dir(path)? {
        let entry = entry?.path();
        let is_source = entry.extension().is_some_and(|kind| kind == "rs");
        if entry.is_dir() || is_source && entry.exists() {
            // One that cannot be read does not hide the others.
            wrong = gather(&entry, around, files).err().or(wrong);
        }
    }
    around.pop();
    wrong.map_or(Ok(()), Err)
}

/// Where the modules are that a file has for its tests only: `#[cfg(test)] mod tests;`. Each is a file, or a directory.
fn tests_of(path: &Path, text: &str) -> Vec<PathBuf> {
    let stem = path
        .file_stem()
        .and_then(|stem| stem.to_str())
        .unwrap_or_default();
    let beside = path.parent().unwrap_or(Path::new(""));
    let dir = match stem {
        "lib" | "main" | "mod" => beside.to_owned(),
        stem => beside.join(stem),
    };
    let mut found = Vec::new();
    for (at, mark) in text.match_indices("#[cfg(test)]") {
        let rest = text[at + mark.len()..].trim_start();
        let Some((head, _)) = rest.split_once(';') else {
            continue;
        };
        let words: Vec<&str> = head.split_whitespace().collect();
        if let [.., "mod", name] = words.as_slice() {
            found.extend([dir.join(format!("{name}.rs")), dir.join(name)]);
        }
    }
    found
}

/// Whether a text may define this name: a cheap look before it is parsed.
fn defines(text: &str, word: &str) -> bool {
    let mut from = 0;
    while let Some(at) = text[from..].find(word) {
        let (start, end) = (from + at, from + at + word.len());
        let is_word =
            |char: Option<char>| char.is_some_and(|char| char.is_alphanumeric() || char == '_');
        let before = text[..start].trim_end();
        let introduced = [
            "fn", "struct", "enum", "type", "static", "const", "mut", "as",
        ]
        .iter()
        .any(|keyword| before.ends_with(keyword));
        if introduced && !is_word(text[end..].chars().next()) {
            return true;
        }
        from = end;
    }
    false
}

/// The attributes that say what something is.
const MARKS: &[&str] = &["workflow", "step", "fragment", "guided", "stage", "leave"];

/// A file, with its attributes as the compiler hands them on: under their own names, and without the conditions around them.
fn parse(text: &str) -> Option<syn::File> {
    let mut file = syn::parse_file(text).ok()?;
    let mut plain = Plain::default();
    if text.contains(" as ") {
        plain.renames(&file.items);
    }
    if !plain.marks.is_empty() || text.contains("cfg_attr") {
        plain.visit_file_mut(&mut file);
    }
    Some(file)
}

/// Spells attributes out.
#[derive(Default)]
struct Plain {
    /// Other names under which they are imported: `use workflow::step as effect;`.
    marks: HashMap<String, syn::Ident>,
}

impl Plain {
    fn renames(&mut self, items: &[Item]) {
        for item in items {
            match item {
                Item::Use(of) => self.tree(&of.tree),
                Item::Mod(of) => {
                    if let Some((_, items)) = &of.content {
                        self.renames(items);
                    }
                }
                _ => {}
            }
        }
    }

    fn tree(&mut self, tree: &UseTree) {
        match tree {
            UseTree::Path(of) => self.tree(&of.tree),
            UseTree::Group(of) => of.items.iter().for_each(|tree| self.tree(tree)),
            UseTree::Rename(of) if MARKS.iter().any(|mark| of.ident == mark) => {
                self.marks.insert(of.rename.to_string(), of.ident.clone());
            }
            _ => {}
        }
    }
}

impl VisitMut for Plain {
    fn visit_attribute_mut(&mut self, attr: &mut Attribute) {
        if let Meta::List(list) = &attr.meta
            && list.path.is_ident("cfg_attr")
            && let Ok(list) =
                Punctuated::<Meta, Token![,]>::parse_terminated.parse2(list.tokens.clone())
        {
            let says = |meta: &&Meta| {
                let last = meta.path().segments.last();
                last.is_some_and(|last| {
                    let name = last.ident.to_string();
                    matches!(name.as_str(), "derive" | "serde")
                        || MARKS.contains(&name.as_str())
                        || self.marks.contains_key(&name)
                })
            };
            let is_test = list
                .first()
                .is_some_and(|first| first.path().is_ident("test"));
            if let Some(meta) = list.iter().skip(1).find(says).filter(|_| !is_test) {
                attr.meta = meta.clone();
            }
        }
        let path = match &mut attr.meta {
            Meta::Path(path) => path,
            Meta::List(list) => &mut list.path,
            Meta::NameValue(_) => return,
        };
        let renamed = path
            .get_ident()
            .and_then(|word| self.marks.get(&word.to_string()));
        if let Some(mark) = renamed {
            *path = mark.clone().into();
        }
    }
}

/// Whether something is compiled for tests only.
fn is_test(attrs: &[Attribute]) -> bool {
    attrs.iter().any(|attr| match &attr.meta {
        Meta::List(list) if list.path.is_ident("cfg") => {
            let text = name::type_text(&list.tokens);
            let all = text
                .strip_prefix("all(")
                .and_then(|all| all.strip_suffix(')'));
            super::types::split(all.unwrap_or(&text))
                .iter()
                .any(|condition| condition == "test")
        }
        _ => false,
    })
}

fn attributes_of(item: &Item) -> Option<&[Attribute]> {
    Some(match item {
        Item::Const(of) => &of.attrs,
        Item::Enum(of) => &of.attrs,
        Item::Fn(of) => &of.attrs,
        Item::Impl(of) => &of.attrs,
        Item::Mod(of) => &of.attrs,
        Item::Static(of) => &of.attrs,
        Item::Struct(of) => &of.attrs,
        Item::Trait(of) => &of.attrs,
        Item::Type(of) => &of.attrs,
        Item::Use(of) => &of.attrs,
        _ => return None,
    })
}

fn marked<'a>(attrs: &'a [Attribute], mark: &str) -> Option<&'a Attribute> {
    let mut attrs = attrs.iter();
    attrs.find(|attr| {
        let last = attr.path().segments.last();
        last.is_some_and(|last| last.ident == mark)
    })
}

/// The guided flows of a file.
fn guided(text: &str) -> Vec<Flow> {
    fn gather(items: &[Item], found: &mut Vec<Flow>) {
        for item in items {
            match item {
                Item::Mod(of) if !is_test(&of.attrs) => {
                    if let Some((_, items)) = &of.content {
                        gather(items, found);
                    }
                }
                Item::Impl(of) if !is_test(&of.attrs) => {
                    let flow = marked(&of.attrs, "guided").and_then(|attr| Flow::read(attr, of));
                    found.extend(flow);
                }
                _ => {}
            }
        }
    }
    let mut found = Vec::new();
    if let Some(file) = parse(text) {
        gather(&file.items, &mut found);
    }
    found
}

/// The module that a file is, by its path in the package: `crate::orders`.
fn module(path: &Path) -> String {
    let mut words = vec!["crate".to_owned()];
    let parts = path.with_extension("");
    let parts = parts.iter().map(|part| part.to_string_lossy().into_owned());
    words.extend(parts.filter(|part| !matches!(part.as_str(), "src" | "lib" | "main" | "mod")));
    words.join("::")
}

/// A function of a file, durable or not.
struct Function {
    ident: String,
    /// The module, or the type, that it belongs to.
    scope: String,
    /// Which of the two it is, with its attribute and the rest; not in a test.
    durable: Option<(tree::Item, Attribute, TokenStream)>,
    flow: Option<String>,
}

/// All functions in source order, but for those in other functions.
fn functions(items: &[Item], scope: &str, in_test: bool, found: &mut Vec<Function>) {
    for item in items {
        match item {
            Item::Mod(of) => {
                if let Some((_, items)) = &of.content {
                    let scope = format!("{scope}::{}", of.ident);
                    functions(items, &scope, in_test || is_test(&of.attrs), found);
                }
            }
            Item::Fn(of) => found.push(Function::of(of, &of.attrs, &of.sig, scope, in_test)),
            Item::Impl(of) => {
                let scope = &format!("{scope}::{}", name::type_text(&of.self_ty));
                let in_test = in_test || is_test(&of.attrs);
                let flow = marked(&of.attrs, "guided").and_then(id_of);
                found.extend(of.items.iter().filter_map(|item| match item {
                    syn::ImplItem::Fn(of) => {
                        let function = Function::of(of, &of.attrs, &of.sig, scope, in_test);
                        Some(function.within(flow.as_ref(), of, in_test))
                    }
                    _ => None,
                }));
            }
            Item::Trait(of) => {
                let scope = &format!("{scope}::{}", of.ident);
                found.extend(of.items.iter().filter_map(|item| match item {
                    syn::TraitItem::Fn(of) => {
                        Some(Function::of(of, &of.attrs, &of.sig, scope, in_test))
                    }
                    _ => None,
                }));
            }
            _ => {}
        }
    }
}

impl Function {
    fn of(
        tokens: &dyn ToTokens,
        attrs: &[Attribute],
        sig: &Signature,
        scope: &str,
        in_test: bool,
    ) -> Self {
        let is_test = in_test || is_test(attrs);
        let mut items = [tree::Item::Workflow, tree::Item::Fragment].into_iter();
        let durable = items.find_map(|item| Some((item, marked(attrs, item.word())?.clone())));
        Self {
            ident: name::plain(&sig.ident.to_string()),
            scope: scope.to_owned(),
            durable: durable
                .filter(|_| !is_test)
                .map(|(item, attr)| (item, attr, tokens.to_token_stream())),
            flow: None,
        }
    }

    /// The same in a guided flow: the code of a stage is a fragment.
    fn within(mut self, flow: Option<&String>, of: &syn::ImplItemFn, in_test: bool) -> Self {
        let mark = ["stage", "leave"]
            .iter()
            .find_map(|mark| marked(&of.attrs, mark));
        if let (Some(flow), Some(attr)) = (flow, mark)
            && of.sig.asyncness.is_some()
            && !in_test
        {
            self.durable = Some((tree::Item::Fragment, attr.clone(), of.to_token_stream()));
            self.flow = Some(flow.clone());
        }
        self
    }
}

/// The durable functions of a file.
///
/// The compiler does not tell where in a text that it is given a token stands, so lines are found by looking: the first
/// function of a name stands in the first line that begins one, and so on.
fn durable(path: &Path, text: &str, module: &str) -> Vec<Found> {
    let Some(file) = parse(text) else {
        return Vec::new();
    };
    let mut all = Vec::new();
    functions(&file.items, module, false, &mut all);
    let mut totals: HashMap<String, usize> = HashMap::new();
    for function in &all {
        *totals.entry(function.ident.clone()).or_default() += 1;
    }
    let mut counts: HashMap<String, usize> = HashMap::new();
    let mut found = Vec::new();
    for Function {
        ident,
        scope,
        durable,
        flow,
    } in all
    {
        let count = counts.entry(ident.clone()).or_default();
        let nth = *count;
        *count += 1;
        if let Some((item, attr, tokens)) = durable {
            found.push(Found {
                path: path.to_owned(),
                line: lines_of(text, &ident).nth(nth).unwrap_or_default(),
                is_alone: totals.get(&ident) == Some(&1) && lines_of(text, &ident).count() <= 1,
                full_name: format!("{scope}::{ident}"),
                item,
                attr,
                tokens,
                flow,
            });
        }
    }
    found
}

/// The lines, from 1, in which a function of this name begins.
fn lines_of(text: &str, ident: &str) -> impl Iterator<Item = usize> {
    text.lines().enumerate().filter_map(move |(index, line)| {
        let code = line.split("//").next().unwrap_or_default();
        let after = code.split_once("fn ")?.1.trim_start();
        let after = after.strip_prefix("r#").unwrap_or(after);
        let rest = after.strip_prefix(ident)?.trim_start();
        rest.starts_with(['(', '<']).then_some(index + 1)
    })
}

impl Index {
    fn add(&mut self, items: &[Item]) {
        for item in items {
            match item {
                item if attributes_of(item).is_some_and(is_test) => {}
                Item::Use(of) => self.renames(&of.tree),
                Item::Mod(of) => {
                    if let Some((_, items)) = &of.content {
                        self.add(items);
                    }
                }
                Item::Fn(of) => self.function(&of.attrs, &of.sig, None),
                Item::Impl(of) => {
                    for item in &of.items {
                        if let syn::ImplItem::Fn(function) = item {
                            self.function(&function.attrs, &function.sig, Some(of));
                        }
                    }
                }
                Item::Trait(of) => {
                    for item in &of.items {
                        if let syn::TraitItem::Fn(function) = item {
                            self.call(&function.attrs, &function.sig);
                        }
                    }
                }
                Item::Static(of) => self.channel(&of.ident, &of.ty),
                Item::Const(of) => self.channel(&of.ident, &of.ty),
                Item::Struct(of) => {
                    let shape = fields(&of.fields, &of.attrs);
                    self.ty(&of.ident, &of.attrs, &of.generics, shape);
                }
                Item::Enum(of) => {
                    let variants = of
                        .variants
                        .iter()
                        .filter(|variant| !is_skipped(&variant.attrs));
                    let variants = variants.map(|variant| Variant {
                        name: renamed(&variant.attrs)
                            .unwrap_or_else(|| name::plain(&variant.ident.to_string())),
                        shape: fields(&variant.fields, &[]),
                        aliases: aliases(&variant.attrs),
                    });
                    let shape = Shape::Enum(variants.collect());
                    self.ty(&of.ident, &of.attrs, &of.generics, shape);
                }
                Item::Type(of) if of.generics.params.is_empty() => {
                    let name = of.ident.to_string();
                    let alias = TypeDef {
                        name: name.clone(),
                        serde: Vec::new(),
                        shape: Shape::Alias(name::type_text(&of.ty)),
                        line: 0,
                    };
                    define(&mut self.types, name, alias);
                }
                _ => {}
            }
        }
    }

    /// What is imported under another name.
    fn renames(&mut self, tree: &UseTree) {
        match tree {
            UseTree::Path(of) => self.renames(&of.tree),
            UseTree::Group(of) => of.items.iter().for_each(|tree| self.renames(tree)),
            UseTree::Rename(of) => {
                let [name, target] = [&of.rename, &of.ident].map(|of| name::plain(&of.to_string()));
                if name == "_" || name == target {
                    return;
                }
                if name.starts_with(char::is_uppercase) {
                    let alias = TypeDef {
                        name: name.clone(),
                        serde: Vec::new(),
                        shape: Shape::Alias(target),
                        line: 0,
                    };
                    define(&mut self.types, name, alias);
                } else {
                    define(&mut self.renamed, name, target);
                }
            }
            UseTree::Name(_) | UseTree::Glob(_) => {}
        }
    }

    /// What is looked up under this name: it, or what it is imported for.
    fn meant<'a>(&'a self, name: &'a str) -> &'a str {
        match self.renamed.get(name) {
            Some(Defined::Once(target)) if !self.kinds.contains_key(name) => target,
            _ => name,
        }
    }

    fn function(&mut self, attrs: &[Attribute], sig: &Signature, of: Option<&syn::ItemImpl>) {
        if is_test(attrs) {
            return;
        }
        if sig.asyncness.is_some() || marked(attrs, "step").is_some() {
            return self.call(attrs, sig);
        }
        let name = name::plain(&sig.ident.to_string());
        let (path, own) = match of {
            None => (name, None),
            Some(of) => {
                let own = name::type_text(&of.self_ty);
                let head = own.split('<').next().unwrap_or_default();
                let head = head.rsplit("::").next().unwrap_or_default();
                (format!("{head}::{name}"), Some(own))
            }
        };
        let ReturnType::Type(_, ty) = &sig.output else {
            return;
        };
        let generics = Generics::of(&sig.generics).and(of.map(|of| &of.generics));
        let text = |text: String| {
            let text = match &own {
                Some(own) => with_self(&text, own),
                None => text,
            };
            generics.written(text)
        };
        if let Some(returned) = text(name::type_text(ty)) {
            let ok = name::ok_type(ty).and_then(text);
            define(&mut self.functions, path, Returned { ty: returned, ok });
        }
    }

    /// What a durable call of it records; what any other async function gives is recorded where a step in place calls it.
    fn call(&mut self, attrs: &[Attribute], sig: &Signature) {
        const MARKS: &[(&str, &str)] = &[
            ("step", "step"),
            ("workflow", "child"),
            ("fragment", "fragment"),
            ("stage", "fragment"),
            ("leave", "fragment"),
        ];
        let name = name::plain(&sig.ident.to_string());
        let mut marks = MARKS.iter();
        let kind = marks.find(|(mark, _)| marked(attrs, mark).is_some());
        let kind = kind.map(|(_, kind)| *kind);
        if let Some(kind) = kind {
            define(&mut self.kinds, name.clone(), kind);
        }
        if kind == Some("fragment") || kind.is_none() && sig.asyncness.is_none() {
            return;
        }
        let gives = match &sig.output {
            ReturnType::Default => "()".to_owned(),
            ReturnType::Type(_, ty) => name::ok_type(ty).unwrap_or_else(|| name::type_text(ty)),
        };
        define(&mut self.calls, name, gives);
    }

    fn channel(&mut self, ident: &syn::Ident, ty: &Type) {
        let Type::Path(path) = ty else { return };
        let Some(last) = path.path.segments.last() else {
            return;
        };
        if last.ident != "Channel" {
            return;
        }
        if let PathArguments::AngleBracketed(given) = &last.arguments
            && let Some(GenericArgument::Type(message)) = given.args.first()
        {
            define(
                &mut self.channels,
                ident.to_string(),
                name::type_text(message),
            );
        }
    }

    fn ty(
        &mut self,
        ident: &syn::Ident,
        attrs: &[Attribute],
        generics: &syn::Generics,
        shape: Shape,
    ) {
        let name = name::plain(&ident.to_string());
        // One that reads itself by hand says nothing by its fields, and of a generic one they are not known.
        if !derives(attrs) || generics.type_params().next().is_some() {
            if let Some(defined) = self.types.get_mut(&name) {
                *defined = Defined::Often;
            }
            return;
        }
        let defined = TypeDef {
            name: name.clone(),
            serde: container(attrs),
            shape,
            line: 0,
        };
        define(&mut self.types, name, defined);
    }

    /// The names that what is known of this one is made of.
    fn words_of(&self, word: &str) -> Vec<String> {
        let mut words = Vec::new();
        let texts = [self.calls.get(word), self.channels.get(word)];
        for text in texts.into_iter().flatten() {
            if let Defined::Once(text) = text {
                words_in(text, &mut words);
            }
        }
        if let Some(Defined::Once(target)) = self.renamed.get(word) {
            words.push(target.clone());
        }
        for (path, returned) in &self.functions {
            if path.split("::").next() == Some(word)
                && let Defined::Once(returned) = returned
            {
                words_in(&returned.ty, &mut words);
            }
        }
        if let Some(Defined::Once(defined)) = self.types.get(word) {
            words_of_shape(&defined.shape, &mut words);
        }
        words
    }

    /// The types that these are made of and that are defined here, by name.
    pub(crate) fn types_in(&self, texts: &[String]) -> Vec<TypeDef> {
        let mut words = Vec::new();
        for text in texts {
            words_in(text, &mut words);
        }
        let mut types: Vec<TypeDef> = Vec::new();
        while let Some(word) = words.pop() {
            if types.iter().any(|defined| defined.name == word) {
                continue;
            }
            if let Some(Defined::Once(defined)) = self.types.get(&word) {
                words_of_shape(&defined.shape, &mut words);
                types.push(defined.clone());
            }
        }
        types.sort_by(|one, other| one.name.cmp(&other.name));
        types
    }
}

impl tree::Types for Index {
    fn of_call(&self, path: &str) -> Option<String> {
        once(self.calls.get(self.meant(path.rsplit([':', '.']).next()?)))
    }

    fn kind_of_call(&self, path: &str) -> Option<&'static str> {
        once(self.kinds.get(self.meant(path.rsplit([':', '.']).next()?)))
    }

    fn of_channel(&self, path: &str) -> Option<String> {
        once(self.channels.get(path.rsplit(':').next()?))
    }

    fn of_function(&self, path: &str, is_tried: bool) -> Option<String> {
        let Returned { ty, ok } = once(self.functions.get(path))?;
        if is_tried { ok } else { Some(ty) }
    }

    fn of_made(&self, path: &str) -> Option<String> {
        let mut words = path.rsplit("::");
        let last = words.next()?;
        if self.types.contains_key(last) {
            return once(self.types.get(last)).map(|defined| defined.name);
        }
        let around = once(self.types.get(words.next()?))?;
        matches!(around.shape, Shape::Enum(_)).then_some(around.name)
    }
}

/// The text of a type with `Self` spelled out.
fn with_self(text: &str, own: &str) -> String {
    let mut spelled = String::new();
    for word in text.split_inclusive(|char: char| !char.is_alphanumeric() && char != '_') {
        match word.strip_prefix("Self") {
            Some(rest)
                if rest
                    .chars()
                    .all(|char| !char.is_alphanumeric() && char != '_') =>
            {
                spelled.push_str(own);
                spelled.push_str(rest);
            }
            _ => spelled.push_str(word),
        }
    }
    spelled
}

fn once<T: Clone>(defined: Option<&Defined<T>>) -> Option<T> {
    match defined? {
        Defined::Once(defined) => Some(defined.clone()),
        Defined::Often => None,
    }
}

fn define<T: PartialEq>(table: &mut HashMap<String, Defined<T>>, name: String, defined: T) {
    match table.get_mut(&name) {
        // Two that say the same are as good as one.
        Some(Defined::Once(before)) if *before == defined => {}
        Some(before) => *before = Defined::Often,
        None => {
            table.insert(name, Defined::Once(defined));
        }
    }
}

/// The names in a type's text.
fn words_in(text: &str, words: &mut Vec<String>) {
    let found = text.split(|char: char| !char.is_alphanumeric() && char != '_');
    words.extend(found.filter(|word| !word.is_empty()).map(str::to_owned));
}

fn words_of_shape(shape: &Shape, words: &mut Vec<String>) {
    match shape {
        Shape::Unit => {}
        Shape::Alias(text) => words_in(text, words),
        Shape::Tuple(types) => types.iter().for_each(|text| words_in(text, words)),
        Shape::Struct(members) => members
            .iter()
            .for_each(|member| words_in(&member.ty, words)),
        Shape::Enum(variants) => {
            for variant in variants {
                words_of_shape(&variant.shape, words);
            }
        }
    }
}

fn fields(fields: &Fields, of: &[Attribute]) -> Shape {
    let all_optional = container(of).iter().any(|said| said.starts_with("default"));
    match fields {
        Fields::Unit => Shape::Unit,
        Fields::Unnamed(list) => {
            let types = list
                .unnamed
                .iter()
                .filter(|field| !is_skipped(&field.attrs));
            let types = types.map(|field| {
                let ty = name::type_text(&field.ty);
                match by_hand(&serde(&field.attrs)) {
                    Some(by) => format!("{ty} {by}"),
                    None => ty,
                }
            });
            Shape::Tuple(types.collect())
        }
        Fields::Named(list) => {
            let read = list.named.iter().filter(|field| !is_skipped(&field.attrs));
            let members = read.map(|field| {
                let own = field
                    .ident
                    .as_ref()
                    .map(|ident| name::plain(&ident.to_string()));
                let ty = name::type_text(&field.ty);
                let said = serde(&field.attrs);
                let says = |word: &str| {
                    said.iter()
                        .any(|said| said == word || said.starts_with(&format!("{word}=")))
                };
                let by_hand = by_hand(&said);
                let is_flat = says("flatten");
                Member {
                    name: renamed(&field.attrs).or(own).unwrap_or_default(),
                    is_optional: all_optional
                        || is_flat
                        || says("default")
                        || by_hand.is_none() && is_option(&ty),
                    ty: match by_hand {
                        Some(by) => format!("{ty} {by}"),
                        None => ty,
                    },
                    aliases: aliases(&field.attrs),
                }
            });
            Shape::Struct(members.collect())
        }
    }
}

/// What a field is read by, where that is not its type's own way: `with="humantime_serde"`.
fn by_hand(said: &[String]) -> Option<&String> {
    said.iter()
        .find(|said| said.starts_with("with=") || said.starts_with("deserialize_with="))
}

fn derives(attrs: &[Attribute]) -> bool {
    attrs.iter().any(|attr| match &attr.meta {
        Meta::List(list) if list.path.is_ident("derive") => {
            let mut words = Vec::new();
            words_in(&name::type_text(&list.tokens), &mut words);
            words.iter().any(|word| word == "Deserialize")
        }
        _ => false,
    })
}

/// What stands in the `#[serde(..)]`s, each in one spelling: `rename="id"`.
fn serde(attrs: &[Attribute]) -> Vec<String> {
    let lists = attrs.iter().filter_map(|attr| match &attr.meta {
        Meta::List(list) if list.path.is_ident("serde") => Some(name::type_text(&list.tokens)),
        _ => None,
    });
    lists.flat_map(|list| super::types::split(&list)).collect()
}

/// What on a type decides how it is read.
fn container(attrs: &[Attribute]) -> Vec<String> {
    const DECIDES: &[&str] = &[
        "rename_all",
        "rename_all_fields",
        "tag",
        "content",
        "untagged",
        "transparent",
        "default",
        "deny_unknown_fields",
        "from",
        "try_from",
        "remote",
    ];
    let mut said = serde(attrs);
    said.retain(|said| DECIDES.contains(&said.split(['=', '(']).next().unwrap_or_default()));
    said.sort();
    said
}

fn valued(said: &str, word: &str) -> Option<String> {
    let value = said.strip_prefix(word)?.strip_prefix('=')?;
    Some(value.trim_matches('"').to_owned())
}

fn renamed(attrs: &[Attribute]) -> Option<String> {
    serde(attrs).iter().find_map(|said| {
        let both = said
            .strip_prefix("rename(")
            .and_then(|said| said.strip_suffix(')'));
        match both {
            Some(both) => super::types::split(both)
                .iter()
                .find_map(|said| valued(said, "deserialize")),
            None => valued(said, "rename"),
        }
    })
}

fn aliases(attrs: &[Attribute]) -> Vec<String> {
    serde(attrs)
        .iter()
        .filter_map(|said| valued(said, "alias"))
        .collect()
}

fn is_skipped(attrs: &[Attribute]) -> bool {
    serde(attrs)
        .iter()
        .any(|said| said == "skip" || said == "skip_deserializing")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_of_tests_are_left_out_wherever_they_stand() {
        let text = "mod live;\n#[cfg(test)]\nmod tests;\n#[cfg(test)] pub(crate) mod helpers;\n#[cfg(test)]\nmod inner { }\n";
        let of = |path: &str| tests_of(Path::new(path), text);
        assert_eq!(
            of("src/lib.rs"),
            ["src/tests.rs", "src/tests", "src/helpers.rs", "src/helpers"].map(PathBuf::from)
        );
        assert_eq!(of("src/shop.rs")[0], PathBuf::from("src/shop/tests.rs"));
        assert_eq!(of("src/shop/mod.rs")[0], PathBuf::from("src/shop/tests.rs"));
    }

    #[test]
    fn a_function_is_found_where_it_begins_and_not_in_a_test() {
        let text = "// fn pay(\nfn pay(x: u32) {}\n#[cfg(test)]\nmod tests {\n    #[workflow]\n    async fn pay() {}\n}\nmod live {\n    #[workflow(name = \"pay-now\")]\n    async fn pay() {}\n}\n";
        let found = Sources::of(text).durable();
        let found: Vec<_> = found
            .iter()
            .map(|found| (found.line, found.name()))
            .collect();
        assert_eq!(found, [(10, "pay-now".to_owned())]);
    }
}
