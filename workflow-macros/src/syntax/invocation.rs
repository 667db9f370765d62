//! The macros of ours that stand in a body, and what is written in them: a list of expressions.

use proc_macro2::TokenStream;
use syn::ext::IdentExt;
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::{Expr, Path, Token};

macro_rules! durables {
    ($($variant:ident { word: $word:literal, shape: $shape:literal, awaited: $awaited:literal })*) => {
        /// A macro that does something durable.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Durable {
            $($variant),*
        }

        const ALL: &[Durable] = &[$(Durable::$variant),*];

        impl Durable {
            /// Its name.
            pub(crate) fn word(self) -> &'static str {
                match self {
                    $(Self::$variant => $word),*
                }
            }

            /// What is written in it, for help.
            pub(crate) fn shape(self) -> &'static str {
                match self {
                    $(Self::$variant => $shape),*
                }
            }

            /// Whether `.await` stands behind it. If not, it gives its value at once.
            pub(crate) fn is_awaited(self) -> bool {
                match self {
                    $(Self::$variant => $awaited),*
                }
            }
        }
    };
}

// All of them: how it is called, what is written in it for help, and whether `.await` stands behind it.
durables! {
    Sleep { word: "sleep", shape: "window, \"15m\"", awaited: true }
    Now { word: "now", shape: "started", awaited: true }
    Uuid { word: "uuid", shape: "key", awaited: false }
    Random { word: "random", shape: "dice", awaited: false }
    Join { word: "join", shape: "both, a = first(x).await?, b = second(y).await?", awaited: true }
    Race { word: "race", shape: "settle, paid = pay(x).await?, expired = wait(y).await?", awaited: true }
    Recv { word: "recv", shape: "paid, PAYMENT", awaited: true }
    Send { word: "send", shape: "tell, order_id, PAYMENT, value", awaited: true }
    Guide { word: "guide", shape: "billing, Billing::default()", awaited: true }
    Attempt { word: "attempt", shape: "book, { reserve(x).await? }", awaited: true }
    Version { word: "version", shape: "new_prices, 2", awaited: true }
    Checkpoint { word: "checkpoint", shape: "begun", awaited: false }
    Rollback { word: "rollback", shape: "back, to = begun", awaited: true }
    Settle { word: "settle", shape: "done", awaited: false }
    Removed { word: "removed", shape: "old_step, kind = \"step\"", awaited: false }
    Progress { word: "progress", shape: "done", awaited: false }
    JoinAll { word: "join_all", shape: "ship_all, limit = 8, for item in items { ship(item).await? }", awaited: true }
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
        ALL.iter().copied().find(|durable| durable.word() == last)
    }
}

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
