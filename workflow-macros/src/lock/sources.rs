//! What the package's own source says: which workflows there are, what a step gives, how a recorded type is made.
//!
//! A macro is given the tokens of one function; the rest is read from the files. Only names are followed, not paths: a name
//! that several things have is left alone, as is what macros make and what stands in other packages. All that is kept is
//! text, because the tokens that were read do not outlive the expansion.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::{Attribute, Fields, GenericArgument, Item, Meta, PathArguments, ReturnType, Type};

use super::guided::{Flow, id_of};
use super::tree;
use super::types::{Member, Shape, TypeDef, Variant};
use crate::model::name;

/// Files of Rust, with their text.
pub(crate) struct Sources {
    files: Vec<(PathBuf, String)>,
}

/// A function that is durable by itself.
pub(crate) struct Found {
    pub(crate) path: PathBuf,
    /// From 1.
    pub(crate) line: usize,
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
    channels: HashMap<String, Defined<String>>,
    types: HashMap<String, Defined<TypeDef>>,
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
            gather(&path, &mut files).map_err(|error| format!("{}: {error}", path.display()))?;
        }
        files.sort();
        let tests: Vec<PathBuf> = files
            .iter()
            .flat_map(|(path, text)| tests_of(path, text))
            .collect();
        files.retain(|(path, _)| !tests.iter().any(|test| path.starts_with(test)));
        Ok(Self { files })
    }

    /// The files, as far as their paths are text.
    pub(crate) fn paths(&self) -> Vec<String> {
        let paths = self.files.iter().filter_map(|(path, _)| path.to_str());
        paths.map(str::to_owned).collect()
    }

    #[cfg(test)]
    pub(crate) fn of(text: &str) -> Self {
        Self {
            files: vec![(PathBuf::from("src/lib.rs"), text.to_owned())],
        }
    }

    /// The workflows and fragments in them, but for those of tests.
    pub(crate) fn durable(&self) -> Vec<Found> {
        let mut found = Vec::new();
        for (path, text) in &self.files {
            let words = ["workflow", "fragment", "guided"];
            if words.iter().any(|word| text.contains(word)) {
                found.extend(durable(path, text));
            }
        }
        found
    }

    /// Those in this file, if it is one of them.
    pub(crate) fn durable_in(&self, path: &Path) -> Vec<Found> {
        let Ok(wanted) = fs::canonicalize(path) else {
            return Vec::new();
        };
        let mut files = self.files.iter();
        let file = files.find(|(path, _)| fs::canonicalize(path).is_ok_and(|path| path == wanted));
        file.map(|(path, text)| durable(path, text))
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
            if seen.contains(&word) {
                continue;
            }
            for (at, (_, text)) in self.files.iter().enumerate() {
                if !parsed[at] && defines(text, &word) {
                    parsed[at] = true;
                    if let Ok(file) = syn::parse_file(text) {
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

fn gather(path: &Path, files: &mut Vec<(PathBuf, String)>) -> std::io::Result<()> {
    if path.is_dir() {
        for entry in fs::read_dir(path)? {
            let entry = entry?.path();
            if entry.is_dir() || entry.extension().is_some_and(|kind| kind == "rs") {
                gather(&entry, files)?;
            }
        }
    } else {
        files.push((path.to_owned(), fs::read_to_string(path)?));
    }
    Ok(())
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
        let introduced = ["fn", "struct", "enum", "type", "static", "const", "mut"]
            .iter()
            .any(|keyword| before.ends_with(keyword));
        if introduced && !is_word(text[end..].chars().next()) {
            return true;
        }
        from = end;
    }
    false
}

fn is_test(attrs: &[Attribute]) -> bool {
    attrs.iter().any(|attr| match &attr.meta {
        Meta::List(list) => list.path.is_ident("cfg") && name::type_text(&list.tokens) == "test",
        _ => false,
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
    if let Ok(file) = syn::parse_file(text) {
        gather(&file.items, &mut found);
    }
    found
}

/// A function of a file, durable or not.
struct Function {
    ident: String,
    /// Which of the two it is, with its attribute and the rest; not in a test.
    durable: Option<(tree::Item, Attribute, TokenStream)>,
    flow: Option<String>,
}

/// All functions in source order, but for those in other functions.
fn functions(items: &[Item], in_test: bool, found: &mut Vec<Function>) {
    for item in items {
        match item {
            Item::Mod(of) => {
                if let Some((_, items)) = &of.content {
                    functions(items, in_test || is_test(&of.attrs), found);
                }
            }
            Item::Fn(of) => found.push(Function::of(of, &of.attrs, &of.sig, in_test)),
            Item::Impl(of) => {
                let in_test = in_test || is_test(&of.attrs);
                let flow = marked(&of.attrs, "guided").and_then(id_of);
                found.extend(of.items.iter().filter_map(|item| match item {
                    syn::ImplItem::Fn(of) => {
                        let function = Function::of(of, &of.attrs, &of.sig, in_test);
                        Some(function.within(flow.as_ref(), of, in_test))
                    }
                    _ => None,
                }));
            }
            Item::Trait(of) => {
                found.extend(of.items.iter().filter_map(|item| match item {
                    syn::TraitItem::Fn(of) => Some(Function::of(of, &of.attrs, &of.sig, in_test)),
                    _ => None,
                }));
            }
            _ => {}
        }
    }
}

impl Function {
    fn of(tokens: &dyn ToTokens, attrs: &[Attribute], sig: &syn::Signature, in_test: bool) -> Self {
        let is_test = in_test || is_test(attrs);
        let mut items = [tree::Item::Workflow, tree::Item::Fragment].into_iter();
        let durable = items.find_map(|item| Some((item, marked(attrs, item.word())?.clone())));
        Self {
            ident: name::plain(&sig.ident.to_string()),
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
fn durable(path: &Path, text: &str) -> Vec<Found> {
    let Ok(file) = syn::parse_file(text) else {
        return Vec::new();
    };
    let mut all = Vec::new();
    functions(&file.items, false, &mut all);
    let mut counts: HashMap<String, usize> = HashMap::new();
    let mut found = Vec::new();
    for Function {
        ident,
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
                Item::Mod(of) if !is_test(&of.attrs) => {
                    if let Some((_, items)) = &of.content {
                        self.add(items);
                    }
                }
                Item::Fn(of) => self.function(&of.attrs, &of.sig),
                Item::Impl(of) => {
                    for item in &of.items {
                        if let syn::ImplItem::Fn(function) = item {
                            self.function(&function.attrs, &function.sig);
                        }
                    }
                }
                Item::Trait(of) => {
                    for item in &of.items {
                        if let syn::TraitItem::Fn(function) = item {
                            self.function(&function.attrs, &function.sig);
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

    /// What a durable call of it records; what any other async function gives is recorded where a step in place calls it.
    fn function(&mut self, attrs: &[Attribute], sig: &syn::Signature) {
        let marks = ["fragment", "stage", "leave"];
        let is_fragment = marks.iter().any(|mark| marked(attrs, mark).is_some());
        if is_fragment || sig.asyncness.is_none() && marked(attrs, "step").is_none() {
            return;
        }
        let gives = match &sig.output {
            ReturnType::Default => "()".to_owned(),
            ReturnType::Type(_, ty) => name::ok_type(ty).unwrap_or_else(|| name::type_text(ty)),
        };
        define(&mut self.calls, name::plain(&sig.ident.to_string()), gives);
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
        once(self.calls.get(path.rsplit([':', '.']).next()?))
    }

    fn of_channel(&self, path: &str) -> Option<String> {
        once(self.channels.get(path.rsplit(':').next()?))
    }
}

fn once(defined: Option<&Defined<String>>) -> Option<String> {
    match defined? {
        Defined::Once(text) => Some(text.clone()),
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
            Shape::Tuple(types.map(|field| name::type_text(&field.ty)).collect())
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
                // Read by something else than the type's own way.
                let by_hand = said.iter().find(|said| {
                    said.starts_with("with=") || said.starts_with("deserialize_with=")
                });
                let is_flat = says("flatten");
                Member {
                    name: renamed(&field.attrs).or(own).unwrap_or_default(),
                    is_optional: all_optional
                        || is_flat
                        || says("default")
                        || by_hand.is_none()
                            && (ty.starts_with("Option<") || ty.contains("::Option<")),
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
