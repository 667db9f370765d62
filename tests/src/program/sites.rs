//! Names and sites that live for ever, as those of compiled code do.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{LazyLock, Mutex, PoisonError};

use workflow::{Kind, Site};

/// The site of this name and kind.
pub(super) fn site(name: &'static str, kind: Kind) -> &'static Site {
    static SITES: LazyLock<Mutex<HashMap<(&str, Kind), &'static Site>>> =
        LazyLock::new(Mutex::default);
    once(&SITES, (name, kind), || {
        Box::leak(Box::new(Site::new(name, kind, name, "src/program.rs", 1)))
    })
}

/// This text, for ever.
pub(super) fn name(text: &str) -> &'static str {
    static NAMES: LazyLock<Mutex<HashMap<String, &'static str>>> = LazyLock::new(Mutex::default);
    once(&NAMES, text.to_owned(), || text.to_owned().leak())
}

/// These names, for ever.
pub(super) fn names(names: Vec<&'static str>) -> &'static [&'static str] {
    static LISTS: LazyLock<Mutex<HashMap<Vec<&str>, &'static [&'static str]>>> =
        LazyLock::new(Mutex::default);
    once(&LISTS, names.clone(), || names.leak())
}

/// What was made for this key, or is made now.
fn once<K: Eq + Hash, V: Copy>(
    table: &Mutex<HashMap<K, V>>,
    key: K,
    make: impl FnOnce() -> V,
) -> V {
    let mut table = table.lock().unwrap_or_else(PoisonError::into_inner);
    *table.entry(key).or_insert_with(make)
}
