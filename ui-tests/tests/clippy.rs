//! The lists for clippy of `workflow::guide::replay` hold what they promise: each of the functions is found in a helper.

use std::path::PathBuf;
use std::process::Command;
use std::{env, fs};

const PAGE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../workflow/src/guide/replay.md"
);

/// The page's blocks of TOML: `clippy.toml`, and the lints of `Cargo.toml`.
fn blocks() -> Vec<String> {
    let page = fs::read_to_string(PAGE).expect("the page is there");
    let blocks = page.split("```toml\n").skip(1);
    blocks
        .filter_map(|block| Some(block.split_once("```")?.0.to_owned()))
        .collect()
}

/// The functions of the standard library that the page lists, each named in a function of its own.
fn helpers(clippy: &str) -> (Vec<&str>, String) {
    let listed: Vec<&str> = clippy
        .lines()
        .skip_while(|line| !line.starts_with("disallowed-methods"))
        .take_while(|line| *line != "]")
        .filter_map(|line| line.trim().strip_prefix("{ path = \"")?.split('"').next())
        .filter(|path| path.starts_with("std::"))
        .collect();
    let code = listed.iter().enumerate().map(|(index, path)| {
        // What it takes and gives is left open: naming it is enough.
        let generics = match *path {
            "std::thread::spawn" => "::<fn(), ()>",
            "std::thread::scope" => "::<fn(&std::thread::Scope<'_, '_>), ()>",
            "std::env::set_var" | "std::fs::copy" | "std::fs::rename" | "std::fs::hard_link"
            | "std::fs::write" => "::<&str, &str>",
            "std::env::var"
            | "std::env::var_os"
            | "std::env::remove_var"
            | "std::env::set_current_dir" => "::<&str>",
            path if path.starts_with("std::fs::") && !path.ends_with("Options::new")
                || ["::bind", "::connect", "Command::new"]
                    .iter()
                    .any(|end| path.ends_with(end)) =>
            {
                "::<&str>"
            }
            _ => "",
        };
        format!("pub fn helper_{index}() {{ let _ = {path}{generics}; }}\n")
    });
    (listed.clone(), code.collect())
}

#[test]
fn clippy_finds_in_helpers_what_the_page_lists() {
    let blocks = blocks();
    let [clippy, lints] = &blocks[..] else {
        panic!("the page has two blocks of TOML");
    };
    let (listed, code) = helpers(clippy);
    assert!(listed.len() > 40, "{listed:?}");
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("replay-lints");
    fs::create_dir_all(folder.join("src")).expect("the target folder can be written");
    let manifest =
        format!("[package]\nname = \"replay-lints\"\nedition = \"2024\"\n\n[workspace]\n\n{lints}");
    let order = "pub fn order(map: &std::collections::HashMap<u32, u32>) { for _ in map { } }\n";
    for (name, text) in [
        ("Cargo.toml", &manifest),
        ("clippy.toml", clippy),
        ("src/lib.rs", &(code + order)),
    ] {
        fs::write(folder.join(name), text).expect("the target folder can be written");
    }
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let run = Command::new(cargo)
        .args(["clippy", "--offline", "--color=never"])
        .current_dir(&folder)
        .env("CARGO_TARGET_DIR", folder.join("target"))
        .env_remove("CLIPPY_CONF_DIR")
        .output()
        .expect("cargo can be run");
    let said = String::from_utf8_lossy(&run.stderr);
    assert!(!run.status.success(), "{said}");
    assert!(!said.contains("does not refer to"), "{said}");
    for path in listed {
        let found = said.contains(&format!("use of a disallowed method `{path}`"));
        assert!(found, "{path} is not found in:\n{said}");
    }
    for lint in [
        "use of a disallowed type `std::collections::HashMap`",
        "iteration over unordered hash-based type",
    ] {
        assert!(said.contains(lint), "{lint} is not said in:\n{said}");
    }
}
