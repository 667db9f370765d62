//! The macros of ours that stand in a body, and what is written in them: a list of expressions.

use proc_macro2::TokenStream;
use syn::ext::IdentExt;
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::{Expr, Path, Token};

/// A macro that does something durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durable {
    Sleep,
    Now,
    Uuid,
    Random,
    Join,
    Race,
    JoinAll,
}

impl Durable {
    /// Which one `path` names. Renamed imports are not seen, and macros of other crates are not ours.
    pub(crate) fn named(path: &Path) -> Option<Self> {
        let words: Vec<_> = path
            .segments
            .iter()
            .map(|segment| segment.ident.unraw().to_string())
            .collect();
        Self::spelled(&words)
    }

    /// Which one a path of these words names.
    pub(crate) fn spelled(words: &[String]) -> Option<Self> {
        let (last, way) = words.split_last()?;
        if way
            .first()
            .is_some_and(|first| FOREIGN.contains(&first.as_str()))
        {
            return None;
        }
        ALL.into_iter().find(|durable| durable.word() == last)
    }

    /// Its name.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Sleep => "sleep",
            Self::Now => "now",
            Self::Uuid => "uuid",
            Self::Random => "random",
            Self::Join => "join",
            Self::Race => "race",
            Self::JoinAll => "join_all",
        }
    }

    /// What is written in it, for help.
    pub(crate) fn shape(self) -> &'static str {
        match self {
            Self::Sleep => "window, \"15m\"",
            Self::Now => "started",
            Self::Uuid => "key",
            Self::Random => "dice",
            Self::Join => "both, a = first(x).await?, b = second(y).await?",
            Self::Race => "settle, paid = pay(x).await?, expired = wait(y).await?",
            Self::JoinAll => "ship_all, limit = 8, for item in items { ship(item).await? }",
        }
    }

    /// Whether it gives its value at once, without `.await`.
    pub(crate) fn is_derived(self) -> bool {
        matches!(self, Self::Uuid | Self::Random)
    }
}

const ALL: [Durable; 7] = [
    Durable::Sleep,
    Durable::Now,
    Durable::Uuid,
    Durable::Random,
    Durable::Join,
    Durable::Race,
    Durable::JoinAll,
];

/// Crates whose macros bear the same names and mean something else.
const FOREIGN: &[&str] = &[
    "tokio",
    "futures",
    "futures_util",
    "futures_lite",
    "futures_concurrency",
    "async_std",
    "smol",
    "std",
    "core",
];

/// What is written in such a macro.
///
/// # Errors
/// When it is not a list of expressions.
pub(crate) fn arguments(tokens: TokenStream) -> syn::Result<Vec<Expr>> {
    let list = Punctuated::<Expr, Token![,]>::parse_terminated.parse2(tokens)?;
    Ok(list.into_iter().collect())
}
