//! What the package's sources define, by name: what a step gives, what a function returns, how a recorded type is made.
//!
//! Only names are followed, not paths: a name that several things have is left alone. All that is kept is text, because the
//! tokens that were read do not outlive the expansion.

use std::collections::HashMap;

use syn::{Attribute, GenericArgument, Item, PathArguments, ReturnType, Signature, Type, UseTree};

use super::attributes::{attributes_of, is_test, marked};
use super::payload::{aliases, container, derives, fields, is_skipped, renamed};
use super::tree;
use super::types::{Shape, TypeDef, Variant, words_in};
use crate::model::{Generics, name};

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

impl Index {
    pub(super) fn add(&mut self, items: &[Item]) {
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
                            let around = Generics::of(&of.generics);
                            self.call(&function.attrs, &function.sig, &around, None);
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
        let own = of.map(|of| name::type_text(&of.self_ty));
        let around = of.map(|of| Generics::of(&of.generics)).unwrap_or_default();
        if sig.asyncness.is_some() || marked(attrs, "step").is_some() {
            return self.call(attrs, sig, &around, own.as_deref());
        }
        let name = name::plain(&sig.ident.to_string());
        let path = match &own {
            None => name,
            Some(own) => {
                let head = own.split('<').next().unwrap_or_default();
                let head = head.rsplit("::").next().unwrap_or_default();
                format!("{head}::{name}")
            }
        };
        let ReturnType::Type(_, ty) = &sig.output else {
            return;
        };
        let generics = Generics::of(&sig.generics);
        let text = |text: String| {
            let text = with_self(text, own.as_deref());
            generics.written(around.written(text)?)
        };
        if let Some(returned) = text(name::type_text(ty)) {
            let ok = name::ok_type(ty).and_then(text);
            define(&mut self.functions, path, Returned { ty: returned, ok });
        }
    }

    /// What a durable call of it records; what any other async function gives is recorded where a step in place calls it.
    fn call(&mut self, attrs: &[Attribute], sig: &Signature, around: &Generics, own: Option<&str>) {
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
        // What is generic in it each call decides.
        let generics = Generics::of(&sig.generics);
        let gives = around.written(with_self(gives, own));
        if let Some(gives) = gives.and_then(|gives| generics.written(gives)) {
            define(&mut self.calls, name, gives);
        } else if let Some(defined) = self.calls.get_mut(&name) {
            *defined = Defined::Often;
        }
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
    pub(super) fn words_of(&self, word: &str) -> Vec<String> {
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
fn with_self(text: String, own: Option<&str>) -> String {
    let Some(own) = own else { return text };
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
