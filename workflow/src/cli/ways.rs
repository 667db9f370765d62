//! The ways out for a run that is parked.

use crate::text::one_line;

/// What helps a run that is parked for this reason.
pub(crate) fn out_of(reason: &str, id: &str) -> Vec<String> {
    let id = quoted(id);
    let resume = format!("once that is mended: workflow resume {id}");
    let end = format!("end it: workflow cancel {id}, with --undo to undo first what it did");
    let back = format!("do a part of it again: workflow rewind {id} LOCATION --dry-run says which");
    let skip = format!("go on without that undo: workflow skip-undo {id} ENTRY --reason WHY");
    match reason {
        "diverged" => vec![
            "deploy code that fits its history (`removed!`, `version!`, or the old name): it goes on by itself".to_owned(),
            back,
            end,
        ],
        "decode" => vec![
            "deploy code whose types read what is recorded: it goes on by itself".to_owned(),
            back,
            end,
        ],
        "version" => vec![
            "deploy code that has the version it was pinned to: it goes on by itself".to_owned(),
            end,
        ],
        "unregistered" => vec![
            "give its workflow to the engine, `.workflow(..)`: it goes on by itself".to_owned(),
            end,
        ],
        "panicked" | "not_durable" | "encode" => vec![
            "deploy code that is mended: it goes on by itself".to_owned(),
            resume,
            back,
            end,
        ],
        "undo_failed" => vec![resume, skip],
        "undo_missing" => vec![
            "deploy code that has the undo (`removed!(.., undo = ..)`): it goes on by itself".to_owned(),
            skip,
        ],
        "newer_format" => vec!["deploy a program with a newer `workflow`: it goes on by itself".to_owned()],
        "storage" => vec![
            "see to the disk; `workflow doctor` says what cannot be read".to_owned(),
            resume,
        ],
        _ => vec![resume, end],
    }
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let word = one_line(word);
    let is_plain = |char: char| char.is_ascii_alphanumeric() || "-_./#@:".contains(char);
    if !word.is_empty() && !word.starts_with('-') && word.chars().all(is_plain) {
        return word;
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_a_way_out_and_ids_are_quoted_for_a_shell() {
        for reason in [
            "diverged",
            "decode",
            "version",
            "unregistered",
            "panicked",
            "not_durable",
            "undo_failed",
            "undo_missing",
            "encode",
            "newer_format",
            "storage",
            "one that comes later",
        ] {
            assert!(!out_of(reason, "a").is_empty(), "{reason}");
        }
        assert_eq!(quoted("order-17/ship#2"), "order-17/ship#2");
        assert_eq!(quoted("it's; rm -rf"), r"'it'\''s; rm -rf'");
        assert_eq!(quoted("-x"), "'-x'");
    }
}
