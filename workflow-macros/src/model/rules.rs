//! What may not stand in a workflow's body because a replay would see something else there.
//!
//! Only what is written is known here, never its type: a function is told by the last words of its path. What is behind a
//! function of the user's own is seen by clippy, which knows types: `workflow::guide::replay` has the same lists for it.

use proc_macro2::Ident;
use syn::ext::IdentExt;
use syn::{ExprMethodCall, GenericArgument, Path, PathArguments, Type};

use crate::messages::{self, Message};

/// Functions, by their whole paths. A function of a type is told by the type and its name, whatever stands before them;
/// any other by as much of its path as is written, and at least by two words of it.
const FUNCTIONS: &[(Message, &[&str])] = &[
    (
        messages::CLOCK,
        &[
            "std::time::SystemTime::now",
            "std::time::Instant::now",
            "tokio::time::Instant::now",
            "chrono::Utc::now",
            "chrono::Local::now",
            "time::OffsetDateTime::now_utc",
            "time::OffsetDateTime::now_local",
            "time::UtcDateTime::now",
            "jiff::Zoned::now",
            "jiff::Timestamp::now",
        ],
    ),
    (
        messages::RANDOM,
        &[
            "std::hash::RandomState::new",
            "std::hash::RandomState::default",
            "rand::random",
            "rand::random_bool",
            "rand::random_iter",
            "rand::random_range",
            "rand::random_ratio",
            "rand::fill",
            "rand::rng",
            "rand::thread_rng",
            "rand::rngs::OsRng",
            "rand::rngs::ThreadRng::default",
            "uuid::Uuid::new_v4",
            "uuid::Uuid::new_v7",
            "uuid::Uuid::now_v1",
            "uuid::Uuid::now_v6",
            "uuid::Uuid::now_v7",
            "ulid::Ulid::new",
            "ulid::Ulid::from_datetime",
            "cuid2::create_id",
        ],
    ),
    (
        messages::ENVIRONMENT,
        &[
            "std::env::args",
            "std::env::args_os",
            "std::env::current_dir",
            "std::env::current_exe",
            "std::env::home_dir",
            "std::env::remove_var",
            "std::env::set_current_dir",
            "std::env::set_var",
            "std::env::temp_dir",
            "std::env::var",
            "std::env::var_os",
            "std::env::vars",
            "std::env::vars_os",
            "std::io::stdin",
            "std::process::id",
            "std::thread::available_parallelism",
            "jiff::tz::TimeZone::system",
            "num_cpus::get",
            "hostname::get",
            "dotenvy::var",
        ],
    ),
    (
        messages::FILES,
        &[
            "std::fs::canonicalize",
            "std::fs::copy",
            "std::fs::create_dir",
            "std::fs::create_dir_all",
            "std::fs::exists",
            "std::fs::File::create",
            "std::fs::File::create_new",
            "std::fs::File::open",
            "std::fs::hard_link",
            "std::fs::metadata",
            "std::fs::OpenOptions::new",
            "std::fs::read",
            "std::fs::read_dir",
            "std::fs::read_link",
            "std::fs::read_to_string",
            "std::fs::remove_dir",
            "std::fs::remove_dir_all",
            "std::fs::remove_file",
            "std::fs::rename",
            "std::fs::set_permissions",
            "std::fs::symlink_metadata",
            "std::fs::write",
            "tempfile::tempdir",
            "tempfile::tempfile",
            "tempfile::NamedTempFile::new",
        ],
    ),
    (
        messages::NETWORK,
        &[
            "std::net::TcpListener::bind",
            "std::net::TcpStream::connect",
            "std::net::TcpStream::connect_timeout",
            "std::net::UdpSocket::bind",
            "reqwest::blocking::get",
            "reqwest::blocking::Client::new",
            "ureq::get",
            "ureq::post",
            "ureq::put",
            "ureq::delete",
        ],
    ),
    (
        messages::THREADS,
        &[
            "std::process::Command::new",
            "std::thread::current",
            "std::thread::park",
            "std::thread::scope",
            "std::thread::sleep",
            "std::thread::spawn",
            "std::thread::yield_now",
            "tokio::spawn",
            "tokio::runtime::Handle::current",
            "tokio::runtime::Handle::try_current",
            "tokio::runtime::Runtime::new",
            "tokio::task::JoinSet::new",
            "tokio::task::LocalSet::new",
            "tokio::task::spawn",
            "tokio::task::spawn_blocking",
            "tokio::task::spawn_local",
            "futures::executor::block_on",
            "rayon::join",
            "rayon::scope",
            "rayon::spawn",
        ],
    ),
];

/// Modules and crates all of whose functions are refused, but those named.
const MODULES: &[(Message, &str, &[&str])] = &[
    (
        messages::ENVIRONMENT,
        "std::env",
        &["join_paths", "split_paths"],
    ),
    (messages::FILES, "std::fs", &[]),
    (messages::FILES, "tokio::fs", &[]),
    (messages::RANDOM, "fastrand", &["with_seed"]),
    (messages::RANDOM, "getrandom", &[]),
    (messages::ENVIRONMENT, "whoami", &[]),
    (messages::ENVIRONMENT, "dirs", &[]),
];

/// What seeds a generator of any type from the machine. From a seed of the run's own, a generator is the same on every replay.
const SEEDED: &[&str] = &["from_entropy", "from_os_rng", "try_from_os_rng"];

/// Words that need nothing before them.
const WORDS: &[&str] = &["thread_rng", "OsRng"];

/// Types that can be changed through a shared reference.
const INTERIOR: &[&str] = &[
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
];

/// Types that have another order in every process, and how many generic arguments they have before a hasher of their own.
const UNORDERED: &[(&str, usize)] = &[
    ("HashMap", 2),
    ("HashSet", 1),
    ("AHashMap", 2),
    ("AHashSet", 1),
    ("DashMap", 2),
    ("DashSet", 1),
];

/// What makes a value of a type. With a hasher of its own, a map's order is that hasher's business.
const CONSTRUCTORS: &[&str] = &["new", "with_capacity", "default", "from", "from_iter"];

/// Methods by which a `HashMap` shows its order.
const IN_ORDER: &[&str] = &[
    "drain",
    "extract_if",
    "into_iter",
    "into_keys",
    "into_values",
    "iter",
    "iter_mut",
    "keys",
    "retain",
    "values",
    "values_mut",
];

/// Methods that give the same in any order.
const BLIND: &[&str] = &["all", "any", "count", "max", "min", "product", "sum"];

/// Methods that read or change a `static`. What other types have methods of these names, a constant is not of.
const OF_A_STATIC: &[&str] = &[
    "borrow_mut",
    "compare_exchange",
    "compare_exchange_weak",
    "fetch_add",
    "fetch_and",
    "fetch_max",
    "fetch_min",
    "fetch_or",
    "fetch_sub",
    "fetch_update",
    "fetch_xor",
    "get_or_init",
    "load",
    "lock",
    "store",
    "try_lock",
    "with_borrow",
    "with_borrow_mut",
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
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (last, way) = words.split_last()?;
    let shown = || words.join("::");
    let Some(owner) = way.last() else {
        return WORDS.contains(last).then(|| (messages::RANDOM, shown()));
    };
    if let Some(message) = function(&words).or_else(|| in_module(&words)) {
        return Some((message, shown()));
    }
    if SEEDED.contains(last) {
        return Some((messages::RANDOM, shown()));
    }
    if !CONSTRUCTORS.contains(last) {
        return None;
    }
    if INTERIOR.contains(owner) {
        return Some((messages::INTERIOR, shown()));
    }
    let unordered = UNORDERED.iter().any(|(name, _)| name == owner);
    unordered.then(|| (messages::HASH_ORDER, (*owner).to_owned()))
}

fn function(words: &[&str]) -> Option<Message> {
    let found = |whole: &&str| {
        let whole: Vec<&str> = whole.split("::").collect();
        let of_a_type = whole.len() > 2 && whole[whole.len() - 2].starts_with(char::is_uppercase);
        if of_a_type {
            words.ends_with(&whole[whole.len() - 2..])
        } else {
            whole.ends_with(words)
        }
    };
    let listed = FUNCTIONS.iter().find(|(_, all)| all.iter().any(found));
    listed.map(|(message, _)| *message)
}

fn in_module(words: &[&str]) -> Option<Message> {
    let last = words.last()?;
    let (message, ..) = MODULES.iter().find(|(_, module, but)| {
        let module: Vec<&str> = module.split("::").collect();
        words.len() > module.len() && words.starts_with(&module) && !but.contains(last)
    })?;
    // `std::env::VarError` and `std::env::consts::OS` are the same at every time.
    last.starts_with(char::is_lowercase).then_some(*message)
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

/// Whether an awaited call of this path is told of by its type, which says better what to do: what it gives is not durable.
pub(super) fn told_by_type(path: &[Ident]) -> bool {
    refused(path).is_some_and(|(message, _)| !message.is(messages::THREADS))
}

/// Whether a call gives the same whatever the order of what it is called on.
pub(super) fn is_blind_to_order(call: &ExprMethodCall) -> bool {
    let method = call.method.to_string();
    let collects = call.turbofish.as_ref().is_some_and(
        |given| matches!(given.args.first(), Some(GenericArgument::Type(ty)) if is_sorted(ty)),
    );
    BLIND.contains(&method.as_str()) || method.starts_with("sorted") || collects
}

/// Whether what is collected into this type has an order of its own.
pub(super) fn is_sorted(ty: &Type) -> bool {
    matches!(ty, Type::Path(path) if path.path.segments.last().is_some_and(|last| last.ident.to_string().starts_with("BTree")))
}

/// Whether a method shows the order of what it is called on.
pub(super) fn is_in_order(method: &Ident) -> bool {
    IN_ORDER.iter().any(|name| method == name)
}

/// Whether `owner.method(..)` reads or changes a `static`.
pub(super) fn is_of_a_static(owner: &Path, method: &Ident) -> bool {
    let shouted = owner.segments.last().is_some_and(|last| {
        let name = last.ident.to_string();
        name.contains(char::is_uppercase) && !name.contains(char::is_lowercase)
    });
    shouted && OF_A_STATIC.iter().any(|name| method == name)
}

/// What is wrong with a macro of another crate, whatever is given to it.
pub(super) fn refused_macro(path: &[Ident]) -> Option<Message> {
    let words: Vec<String> = path.iter().map(|word| word.unraw().to_string()).collect();
    match words.last()?.as_str() {
        "nanoid" => Some(messages::RANDOM),
        "thread_local" => Some(messages::SHARED),
        _ => None,
    }
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
        || foreign && matches!(last.as_str(), "join" | "race" | "poll_fn" | "poll")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;

    use proc_macro2::Span;

    use super::*;

    fn said(path: &str) -> Option<&'static str> {
        let words: Vec<Ident> = path
            .split("::")
            .map(|word| Ident::new(word, Span::call_site()))
            .collect();
        let (message, _) = refused(&words)?;
        [
            ("clock", messages::CLOCK),
            ("random", messages::RANDOM),
            ("environment", messages::ENVIRONMENT),
            ("files", messages::FILES),
            ("network", messages::NETWORK),
            ("threads", messages::THREADS),
            ("order", messages::HASH_ORDER),
            ("interior", messages::INTERIOR),
        ]
        .into_iter()
        .find_map(|(word, of)| message.is(of).then_some(word))
    }

    #[test]
    fn what_differs_on_replay_is_refused_however_it_is_imported() {
        for (kind, paths) in [
            (
                "clock",
                "SystemTime::now std::time::Instant::now tokio::time::Instant::now chrono::Utc::now Local::now OffsetDateTime::now_utc jiff::Zoned::now Timestamp::now",
            ),
            (
                "random",
                "rand::random rand::rng rand::thread_rng thread_rng rand::random_range rngs::OsRng OsRng StdRng::from_entropy rand::rngs::SmallRng::from_os_rng Uuid::new_v4 uuid::Uuid::now_v7 Ulid::new fastrand::u64 fastrand::Rng::new getrandom::fill RandomState::new",
            ),
            (
                "environment",
                "std::env::var env::var env::temp_dir std::env::args std::process::id process::id io::stdin whoami::username num_cpus::get thread::available_parallelism",
            ),
            (
                "files",
                "std::fs::read fs::read_to_string tokio::fs::read std::fs::File::open File::create fs::File::open OpenOptions::new tempfile::tempdir",
            ),
            (
                "network",
                "std::net::TcpStream::connect TcpListener::bind reqwest::blocking::get ureq::get",
            ),
            (
                "threads",
                "thread::spawn std::thread::sleep tokio::spawn task::spawn_blocking tokio::task::JoinSet::new Command::new rayon::join",
            ),
            (
                "order",
                "HashMap::new std::collections::HashSet::from HashMap::with_capacity ahash::AHashMap::new DashMap::new",
            ),
            (
                "interior",
                "Mutex::new std::cell::RefCell::new AtomicU32::new tokio::sync::RwLock::new",
            ),
        ] {
            for path in paths.split(' ') {
                assert_eq!(said(path), Some(kind), "{path}");
            }
        }
    }

    #[test]
    fn what_is_the_same_on_every_replay_is_not() {
        for path in [
            // Types, constants and errors.
            "rand::rngs::StdRng",
            "std::env::VarError",
            "std::env::consts::OS",
            "std::fs::File",
            "std::net::Ipv4Addr::new",
            "std::net::SocketAddr::from",
            // Seeded by the run.
            "StdRng::seed_from_u64",
            "rand::rngs::StdRng::from_seed",
            "fastrand::Rng::with_seed",
            // Given a time, or a hasher.
            "Utc::timestamp_opt",
            "OffsetDateTime::from_unix_timestamp",
            "HashMap::with_hasher",
            "HashMap::with_capacity_and_hasher",
            // Of the user's own.
            "crate::env::var",
            "env::region",
            "fs::path_of",
            "crate::rand::random",
            "now",
            "spawn",
            "random",
            "String::new",
            "orders::spawn",
            "std::env::split_paths",
        ] {
            assert_eq!(said(path), None, "{path}");
        }
    }

    /// The page has the lists for clippy, which sees through functions that this does not: the functions it names are those
    /// refused here; `CLIPPY=write cargo test -p workflow-macros` writes them anew.
    #[test]
    fn the_page_names_the_same_functions_for_clippy() {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../workflow/src/guide/replay.md"
        );
        let page = fs::read_to_string(path).expect("the page is there");
        let (before, rest) = page
            .split_once("disallowed-methods = [\n")
            .expect("the page lists methods");
        let (list, after) = rest.split_once("]\n").expect("the list ends");
        let wanted: Vec<String> = FUNCTIONS
            .iter()
            .flat_map(|(message, all)| all.iter().map(move |path| (path, message)))
            // A value, and a trait's function, which clippy does not find by a type.
            .filter(|(path, _)| !path.ends_with("OsRng") && !path.ends_with("::default"))
            .map(|(path, message)| {
                let reason = message.plainly();
                // A crate may lack what a feature brings; the standard library lacks nothing.
                let may_lack = if path.starts_with("std::") {
                    ""
                } else {
                    ", allow-invalid = true"
                };
                format!("    {{ path = \"{path}\", reason = \"{reason}\"{may_lack} }},\n")
            })
            .collect();
        let wanted = wanted.concat();
        if std::env::var_os("CLIPPY").is_some() {
            let page = format!("{before}disallowed-methods = [\n{wanted}]\n{after}");
            fs::write(path, page).expect("the page can be written");
        } else {
            assert_eq!(list, wanted, "run with CLIPPY=write, and look at the page");
        }
        let types: BTreeSet<&str> = after
            .lines()
            .filter_map(|line| line.trim().strip_prefix("{ path = \""))
            .filter_map(|line| line.split('"').next()?.rsplit("::").next())
            .collect();
        let known: BTreeSet<&str> = UNORDERED
            .iter()
            .map(|(name, _)| *name)
            .chain(INTERIOR.iter().copied())
            .collect();
        assert!(!types.is_empty() && types.is_subset(&known), "{types:?}");
    }
}
