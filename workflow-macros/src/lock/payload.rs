//! How a type is read from a payload, as `Deserialize` is told by attributes.

use syn::{Attribute, Fields, Meta};

use super::types::{Member, Shape, is_option, split, words_in};
use crate::model::name;

pub(super) fn fields(fields: &Fields, of: &[Attribute]) -> Shape {
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

pub(super) fn derives(attrs: &[Attribute]) -> bool {
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
    lists.flat_map(|list| split(&list)).collect()
}

/// What on a type decides how it is read.
pub(super) fn container(attrs: &[Attribute]) -> Vec<String> {
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

pub(super) fn renamed(attrs: &[Attribute]) -> Option<String> {
    serde(attrs).iter().find_map(|said| {
        let both = said
            .strip_prefix("rename(")
            .and_then(|said| said.strip_suffix(')'));
        match both {
            Some(both) => split(both)
                .iter()
                .find_map(|said| valued(said, "deserialize")),
            None => valued(said, "rename"),
        }
    })
}

pub(super) fn aliases(attrs: &[Attribute]) -> Vec<String> {
    serde(attrs)
        .iter()
        .filter_map(|said| valued(said, "alias"))
        .collect()
}

pub(super) fn is_skipped(attrs: &[Attribute]) -> bool {
    serde(attrs)
        .iter()
        .any(|said| said == "skip" || said == "skip_deserializing")
}
