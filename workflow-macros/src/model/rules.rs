//! What may not stand in a workflow's body because a replay would see something else there.

use proc_macro2::Ident;
use syn::ext::IdentExt;
use syn::{Path, PathArguments};

use crate::messages::{self, Message};

/// Types whose constructors give something that a replay would see differently.
const CONSTRUCTED: &[(&[&str], Message)] = &[
    (&["HashMap", "HashSet"], messages::HASH_ORDER),
    (
        &[
            "Mutex",
            "RwLock",
            "Cell",
            "RefCell",
            "OnceCell",
            "OnceLock",
            "LazyCell",
            "LazyLock",
            "AtomicBool",
            "AtomicU8",
            "AtomicU16",
            "AtomicU32",
            "AtomicU64",
            "AtomicUsize",
            "AtomicI8",
            "AtomicI16",
            "AtomicI32",
            "AtomicI64",
            "AtomicIsize",
            "AtomicPtr",
        ],
        messages::INTERIOR,
    ),
];

/// What makes a value of a type.
const CONSTRUCTORS: &[&str] = &[
    "new",
    "with_capacity",
    "with_hasher",
    "default",
    "from",
    "from_iter",
    "with_capacity_and_hasher",
];

/// Types that have another order in every process, and how many generic arguments they have before a hasher of their own.
const UNORDERED: &[(&str, usize)] = &[("HashMap", 2), ("HashSet", 1)];

/// The last two words of a path, and what is said of it.
const CALLED: &[(&str, &str, Message)] = &[
    ("SystemTime", "now", messages::CLOCK),
    ("Instant", "now", messages::CLOCK),
    ("Utc", "now", messages::CLOCK),
    ("Local", "now", messages::CLOCK),
    ("OffsetDateTime", "now_utc", messages::CLOCK),
    ("OffsetDateTime", "now_local", messages::CLOCK),
    ("Zoned", "now", messages::CLOCK),
    ("Timestamp", "now", messages::CLOCK),
    ("Uuid", "new_v4", messages::RANDOM),
    ("Uuid", "new_v7", messages::RANDOM),
    ("Uuid", "now_v7", messages::RANDOM),
    ("Uuid", "now_v1", messages::RANDOM),
    ("tokio", "spawn", messages::THREADS),
    ("task", "spawn", messages::THREADS),
    ("task", "spawn_blocking", messages::THREADS),
    ("task", "spawn_local", messages::THREADS),
    ("thread", "spawn", messages::THREADS),
    ("thread", "sleep", messages::THREADS),
    ("thread", "scope", messages::THREADS),
    ("thread", "current", messages::THREADS),
    ("thread", "park", messages::THREADS),
    ("thread", "yield_now", messages::THREADS),
    ("rayon", "join", messages::THREADS),
    ("rayon", "spawn", messages::THREADS),
];

/// Modules all of whose functions are refused.
const MODULES: &[(&str, &str, Message)] = &[
    ("std", "env", messages::ENVIRONMENT),
    ("std", "fs", messages::FILES),
    ("tokio", "fs", messages::FILES),
];

/// Macros of other crates that await what is not recorded.
const AWAITING: &[&str] = &[
    "select",
    "select_biased",
    "try_join",
    "join_all",
    "try_join_all",
    "pin",
    "select_loop",
];

/// What is wrong with naming this path here, with the words that say so.
pub(super) fn refused(path: &[Ident]) -> Option<(Message, String)> {
    let words: Vec<String> = path.iter().map(|word| word.unraw().to_string()).collect();
    let (last, way) = words.split_last()?;
    let shown = || words.join("::");
    if words[0] == "rand" && !way.is_empty() {
        return Some((messages::RANDOM, shown()));
    }
    let Some(before) = way.last() else {
        return (last == "thread_rng").then(|| (messages::RANDOM, shown()));
    };
    if let Some((.., message)) = CALLED
        .iter()
        .find(|(owner, called, _)| owner == before && called == last)
    {
        return Some((*message, shown()));
    }
    if CONSTRUCTORS.contains(&last.as_str())
        && let Some((_, message)) = CONSTRUCTED
            .iter()
            .find(|(types, _)| types.contains(&before.as_str()))
    {
        return Some((
            *message,
            if message.is(messages::HASH_ORDER) {
                before.clone()
            } else {
                shown()
            },
        ));
    }
    let module = |root: &str, module: &str| {
        words
            .windows(2)
            .next()
            .is_some_and(|first| first[0] == root && first[1] == module && words.len() > 2)
    };
    if let Some((.., message)) = MODULES.iter().find(|(root, name, _)| module(root, name)) {
        return Some((*message, shown()));
    }
    // `use std::{env, fs};` and then `env::var(..)`, `fs::read(..)`.
    match before.as_str() {
        "env" if way.len() == 1 => Some((messages::ENVIRONMENT, shown())),
        "fs" if way.len() == 1 => Some((messages::FILES, shown())),
        _ => None,
    }
}

/// The name of the type that `path` names, if it has another order in every process. One with a hasher of its own need not.
pub(super) fn unordered(path: &Path) -> Option<&'static str> {
    let last = path.segments.last()?;
    let (name, before_hasher) = UNORDERED.iter().find(|(name, _)| last.ident == name)?;
    let given = match &last.arguments {
        PathArguments::AngleBracketed(given) => given.args.len(),
        _ => 0,
    };
    (given <= *before_hasher).then_some(name)
}

/// Whether a macro of another crate awaits by itself what is not recorded.
pub(super) fn awaits_by_itself(path: &[Ident]) -> bool {
    let words: Vec<String> = path.iter().map(|word| word.unraw().to_string()).collect();
    let Some(last) = words.last() else {
        return false;
    };
    let foreign = matches!(
        words[0].as_str(),
        "tokio" | "futures" | "futures_util" | "futures_lite" | "async_std" | "smol"
    );
    AWAITING.contains(&last.as_str()) && (foreign || last != "join_all")
        || foreign && matches!(last.as_str(), "join" | "race" | "poll_fn")
}
