//! Attributes of items: what they are, for tests only or not, and under which names they are imported.

use std::collections::HashMap;

use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::visit_mut::VisitMut;
use syn::{Attribute, Item, Meta, Token, UseTree};

use super::types::split;
use crate::model::name;

/// The attributes that say what something is.
const MARKS: &[&str] = &["workflow", "step", "fragment", "guided", "stage", "leave"];

/// A file, with its attributes as the compiler hands them on: under their own names, and without the conditions around them.
pub(super) fn parse(text: &str) -> Option<syn::File> {
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
pub(super) fn is_test(attrs: &[Attribute]) -> bool {
    attrs.iter().any(|attr| match &attr.meta {
        Meta::List(list) if list.path.is_ident("cfg") => {
            let text = name::type_text(&list.tokens);
            let all = text
                .strip_prefix("all(")
                .and_then(|all| all.strip_suffix(')'));
            split(all.unwrap_or(&text))
                .iter()
                .any(|condition| condition == "test")
        }
        _ => false,
    })
}

pub(super) fn attributes_of(item: &Item) -> Option<&[Attribute]> {
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

pub(super) fn marked<'a>(attrs: &'a [Attribute], mark: &str) -> Option<&'a Attribute> {
    let mut attrs = attrs.iter();
    attrs.find(|attr| {
        let last = attr.path().segments.last();
        last.is_some_and(|last| last.ident == mark)
    })
}
