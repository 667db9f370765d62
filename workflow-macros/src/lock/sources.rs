//! The package's own source: which files there are, and which workflows, fragments and flows in them.
//!
//! A macro is given the tokens of one function; the rest is read from the files.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::{Attribute, Item, Signature};

use super::attributes::{is_test, marked, parse};
use super::guided::{Flow, id_of};
use super::index::Index;
use super::tree;
use crate::model::{is_number, name};

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
