//! What the environment says of the lock.

use std::env;

/// `write` accepts all edits; `write:checkout/mail,refund` those at a site, in what is under it, or in a workflow.
pub(super) const VARIABLE: &str = "WORKFLOW_LOCK";

/// Which edits are accepted.
pub(super) enum Mode {
    None,
    All,
    Some(Vec<String>),
}

impl Mode {
    pub(super) fn now() -> Self {
        Self::read(&env::var(VARIABLE).unwrap_or_default())
    }

    fn read(text: &str) -> Self {
        match text.split_once(':') {
            None if text == "write" => Self::All,
            Some(("write", list)) => Self::Some(
                list.split(',')
                    .map(|path| path.trim().to_owned())
                    .filter(|path| !path.is_empty())
                    .collect(),
            ),
            _ => Self::None,
        }
    }

    pub(super) fn accepts_all(&self) -> bool {
        matches!(self, Self::All)
    }

    /// Whether an edit at this path of a function is accepted.
    pub(super) fn accepts(&self, function: &str, path: &str) -> bool {
        match self {
            Self::None => false,
            Self::All => true,
            Self::Some(list) => list.iter().any(|accepted| {
                let whole = format!("{function}/{path}");
                let rest = whole.strip_prefix(accepted.as_str());
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '[']))
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edit_is_accepted_where_it_is_named_and_nowhere_else() {
        let mode = Mode::read("write:checkout/items, refund");
        for (function, path, accepted) in [
            ("checkout", "items", true),
            ("checkout", "items[]/ship", true),
            ("checkout", "items_more", false),
            ("checkout", "mail", false),
            ("refund", "pay", true),
            ("refunds", "pay", false),
        ] {
            assert_eq!(mode.accepts(function, path), accepted, "{function}/{path}");
        }
        assert!(Mode::read("write").accepts("any", "thing"));
        for nothing in ["", "check", "write:", "yes"] {
            assert!(!Mode::read(nothing).accepts("any", "thing"), "{nothing}");
        }
    }
}
