//! The floors of the house: a module names lower floors only, and siblings do not name each other.

use std::fs;
use std::path::{Path, PathBuf};

/// The modules of `workflow/src`, each with the modules it may name.
const MAY_NAME: &[(&str, &[&str])] = &[
    ("replay", &[]),
    ("graph", &["replay"]),
    ("codec", &["replay"]),
    ("store", &["replay"]),
    ("context", &["replay", "graph", "codec", "store"]),
    ("clock", &["replay"]),
    ("schedule", &["replay", "context"]),
    (
        "engine",
        &[
            "replay", "graph", "codec", "store", "context", "clock", "schedule", "error",
        ],
    ),
    ("operation", &["replay", "codec", "context", "clock"]),
    (
        "guided",
        &[
            "replay",
            "codec",
            "store",
            "context",
            "engine",
            "error",
            "operation",
        ],
    ),
    ("http", &["replay", "store", "engine", "error", "guided"]),
    ("dashboard", &["http", "engine"]),
    (
        "testing",
        &["replay", "codec", "store", "context", "engine", "guided"],
    ),
];

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../workflow/src")
}

fn files_under(path: &Path, found: &mut Vec<PathBuf>) {
    if path.is_file() {
        found.push(path.to_owned());
    } else if let Ok(entries) = fs::read_dir(path) {
        for entry in entries {
            files_under(&entry.expect("the entry is readable").path(), found);
        }
    }
}

#[test]
fn imports_only_go_down() {
    let mut wrong = Vec::new();
    for (module, may_name) in MAY_NAME {
        let mut files = Vec::new();
        files_under(&source().join(module), &mut files);
        files_under(&source().join(format!("{module}.rs")), &mut files);
        assert!(
            !files.is_empty(),
            "{module} has no files: the list above is stale"
        );
        for file in files {
            for (number, line) in fs::read_to_string(&file).unwrap().lines().enumerate() {
                // Documentation may point anywhere.
                let code = line.split("//").next().unwrap_or_default();
                for (_, rest) in code
                    .match_indices("crate::")
                    .map(|(at, found)| code.split_at(at + found.len()))
                {
                    let named: String = rest
                        .chars()
                        .take_while(|char| char.is_alphanumeric() || *char == '_')
                        .collect();
                    let known = MAY_NAME.iter().any(|(other, _)| *other == named);
                    if known && named != *module && !may_name.contains(&named.as_str()) {
                        wrong.push(format!(
                            "{}:{}: `{module}` names `crate::{named}`",
                            file.display(),
                            number + 1
                        ));
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn the_lower_floors_know_neither_tokio_nor_a_database() {
    for module in ["replay", "graph", "codec", "context"] {
        let mut files = Vec::new();
        files_under(&source().join(module), &mut files);
        files_under(&source().join(format!("{module}.rs")), &mut files);
        for file in files {
            let text = fs::read_to_string(&file).unwrap();
            for (number, line) in text.lines().enumerate() {
                let code = line.split("//").next().unwrap_or_default();
                assert!(
                    !code.contains("tokio::") && !code.contains("redb::"),
                    "{}:{}: {line}",
                    file.display(),
                    number + 1
                );
            }
        }
    }
}
