//! By which path the library is reached in the user's crate.

use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{Ident, Span, TokenStream};
use quote::quote;

/// The path of the library: as said by `crate = ..`, else as the user's `Cargo.toml` calls it, else `::workflow`.
pub(crate) fn krate(said: Option<&syn::Path>) -> TokenStream {
    if let Some(said) = said {
        return quote!(#said);
    }
    // Looked up each time: in an editor this process outlives the file.
    let renamed =
        std::env::var_os("CARGO_MANIFEST_DIR").and_then(|dir| renamed(&PathBuf::from(dir)));
    let name = Ident::new(renamed.as_deref().unwrap_or("workflow"), Span::call_site());
    quote!(::#name)
}

/// The name under which the package `workflow` is a dependency, where that is another one.
fn renamed(dir: &Path) -> Option<String> {
    let text = fs::read_to_string(dir.join("Cargo.toml")).ok()?;
    let found = dependencies(&text);
    if let Some((name, _)) = found.iter().find(|(_, how)| *how == How::Renamed) {
        return Some(name.replace('-', "_"));
    }
    // `wf.workspace = true`: what it is stands in the workspace's table.
    let inherited: Vec<_> = found
        .iter()
        .filter(|(_, how)| *how == How::Inherited)
        .map(|(name, _)| name)
        .collect();
    if inherited.is_empty() || found.iter().any(|(name, _)| name == "workflow") {
        return None;
    }
    dir.ancestors().skip(1).find_map(|up| {
        let text = fs::read_to_string(up.join("Cargo.toml"))
            .ok()
            .filter(|text| text.contains("[workspace"))?;
        let name = dependencies(&text)
            .into_iter()
            .find(|(name, how)| *how == How::Renamed && inherited.contains(&name))?
            .0;
        Some(name.replace('-', "_"))
    })
}

#[derive(Debug, PartialEq, Eq)]
enum How {
    /// `package = "workflow"`
    Renamed,
    /// `workspace = true`
    Inherited,
    Plain,
}

/// The dependencies that a manifest names. Reads as much of TOML as manifests use: tables, and one key a line.
fn dependencies(text: &str) -> Vec<(String, How)> {
    let mut found: Vec<(String, How)> = Vec::new();
    // In a dependency table; with the dependency's name in a table of its own.
    let mut table: Option<Option<String>> = None;
    for line in text.lines() {
        let line = line.split(" #").next().unwrap_or_default().trim();
        if let Some(header) = line.strip_prefix('[') {
            let header = header.trim_end_matches(']').trim_matches('[');
            let words: Vec<&str> = header
                .split('.')
                .map(|word| word.trim().trim_matches(['"', '\'']))
                .collect();
            let at = words.iter().position(|word| word.ends_with("dependencies"));
            table = at.map(|at| words.get(at + 1).map(|name| (*name).to_owned()));
            if let Some(Some(name)) = &table {
                found.push((name.clone(), How::Plain));
            }
            continue;
        }
        let (Some(table), Some((key, value))) = (&table, line.split_once('=')) else {
            continue;
        };
        let (key, value) = (key.trim().trim_matches(['"', '\'']), value.trim());
        let packaged = |text: &str| {
            let rest = text
                .split("package")
                .nth(1)?
                .trim_start()
                .strip_prefix('=')?
                .trim_start();
            Some(rest.trim_matches(['"', '\'']).split(['"', '\'']).next()? == "workflow")
        };
        if let Some(name) = table {
            let how = match key {
                "package" if value.trim_matches(['"', '\'']) == "workflow" => How::Renamed,
                "workspace" => How::Inherited,
                _ => continue,
            };
            found.push((name.clone(), how));
        } else {
            let key: String = key.replace(['"', '\''], "");
            let (name, dotted) = key
                .split_once('.')
                .map_or((key.as_str(), None), |(name, rest)| (name, Some(rest)));
            let how = if dotted == Some("workspace")
                || value.contains("workspace") && value.contains("true")
            {
                How::Inherited
            } else if dotted == Some("package") && value.trim_matches(['"', '\'']) == "workflow"
                || packaged(value) == Some(true)
            {
                How::Renamed
            } else {
                How::Plain
            };
            found.push((name.to_owned(), how));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Option<String> {
        dependencies(text)
            .into_iter()
            .find(|(_, how)| *how == How::Renamed)
            .map(|(name, _)| name)
    }

    #[test]
    fn a_renamed_dependency_is_found_however_it_is_written() {
        assert_eq!(
            name("[dependencies]\nwf = { package = \"workflow\", version = \"1\" }").as_deref(),
            Some("wf")
        );
        assert_eq!(
            name("[dependencies.wf]\npackage = \"workflow\"\nversion = \"1\"").as_deref(),
            Some("wf")
        );
        assert_eq!(
            name("[dev-dependencies]\n\"wf\".package = 'workflow'").as_deref(),
            Some("wf")
        );
        assert_eq!(
            name("[target.'cfg(unix)'.dependencies]\nwf = {version=\"1\",package=\"workflow\"}")
                .as_deref(),
            Some("wf")
        );
    }

    #[test]
    fn what_is_no_renaming_is_left_alone() {
        assert_eq!(
            name("[dependencies]\nworkflow = \"1\"\nother = { package = \"workflow-macros\" }"),
            None
        );
        assert_eq!(
            name("[package]\nname = \"x\"\n[package.metadata]\nwf = { package = \"workflow\" }"),
            None
        );
    }
}
