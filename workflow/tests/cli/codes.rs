//! Every exit code, and outputs that nobody reads.

use std::process::Stdio;

use workflow::RedbStore;

use crate::shop::Shop;
use crate::{command, on, said, workflow};

#[test]
fn what_is_done_is_0_and_what_is_not_there_or_refused_is_1() {
    let shop = Shop::new();
    assert_eq!(on(&shop.store(), &["show", "done"]).code, 0);
    for command in [
        "show", "history", "tail", "graph", "timeline", "cancel", "recover", "resume", "rewind",
        "export",
    ] {
        let missing = on(&shop.store(), &[command, "nobody"]);
        let expected = (1, "", "error: there is no run `nobody`\n");
        assert_eq!(
            (missing.code, &*missing.out, &*missing.err),
            expected,
            "{command}"
        );
    }
    let missing = on(&shop.store(), &["show", "nobody", "--json"]);
    assert_eq!(
        missing.err,
        "{\"error\":\"not_found\",\"message\":\"there is no run `nobody`\"}\n"
    );
    let how = workflow(&["preflight", "--anything"]);
    assert_eq!((how.code, &*how.out), (1, ""));
    assert!(how.err.contains(".preflight().await?"), "{}", how.err);
}

#[test]
fn what_cannot_be_meant_is_2() {
    let shop = Shop::new();
    for words in [
        &["list"][..],
        &["lift"],
        &[],
        &["list", "--store"],
        &["list", "--state", "sleeping"],
        &["list", "--since", "yesterday"],
        &["list", "--limit", "0"],
        &["lock", "--check", "--accept", "order"],
    ] {
        let refused = workflow(words);
        assert_eq!((refused.code, &*refused.out), (2, ""), "{words:?}");
        assert!(!refused.err.is_empty());
    }
    for words in [
        &["send", "waits", "payment", "{"][..],
        &["list", "--after", "x"],
    ] {
        assert_eq!(on(&shop.store(), words).code, 2, "{words:?}");
    }
    let help = workflow(&["--help"]);
    assert_eq!(help.code, 0);
    for code in ["\n  0  ", "\n  1  ", "\n  2  ", "\n  3  "] {
        assert!(help.out.contains(code), "{}", help.out);
    }
}

#[test]
fn a_store_that_cannot_be_opened_is_3_and_is_not_made() {
    let shop = Shop::new();
    let dir = shop.dir.path();
    let missing = dir.join("no.redb");
    let said = on(&missing, &["list"]);
    assert_eq!(said.code, 3);
    assert!(
        said.err.contains("no.redb` cannot be opened"),
        "{}",
        said.err
    );
    assert!(!missing.exists());
    for (name, content) in [("empty", ""), ("text", "not a store")] {
        let path = dir.join(name);
        std::fs::write(&path, content).unwrap();
        assert_eq!(on(&path, &["list"]).code, 3, "{name}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), content);
    }
    // Open elsewhere: here.
    let held = RedbStore::open(shop.store()).unwrap();
    let locked = on(&shop.store(), &["list", "--json"]);
    assert_eq!((locked.code, &*locked.out), (3, ""));
    let error: serde_json::Value = serde_json::from_str(&locked.err).unwrap();
    assert_eq!(error["error"], "unopened");
    let message = error["message"].as_str().unwrap();
    assert!(
        message.contains("is in use by another process: stop it, or ask it"),
        "{message}"
    );
    drop(held);
    assert_eq!(on(&shop.store(), &["list"]).code, 0);
}

#[test]
fn a_reader_that_goes_away_ends_the_program_without_a_word() {
    let shop = Shop::new();
    for words in [
        &["list"][..],
        &["history", "done", "--json"],
        &["export", "done"],
        &["completions", "bash"],
        &["man"],
    ] {
        let mut command = command(words);
        let command = command.env("WORKFLOW_STORE", shop.store());
        let mut running = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(running.stdout.take());
        let ended = said(&running.wait_with_output().unwrap());
        assert_eq!((ended.code, &*ended.err), (0, ""), "{words:?}");
    }
}

#[test]
fn completions_and_manual_pages_name_every_command() {
    for shell in ["bash", "zsh", "fish"] {
        let script = workflow(&["completions", shell]);
        assert_eq!(script.code, 0);
        assert!(
            script.out.contains("skip-undo") && script.out.contains("backfill"),
            "{shell}"
        );
    }
    let page = workflow(&["man"]);
    assert!(
        page.out.contains(".TH workflow") && page.out.contains("timeline"),
        "{}",
        page.out
    );
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(
        workflow(&["man", "--dir", dir.path().to_str().unwrap()]).code,
        0
    );
    assert!(dir.path().join("workflow-rewind.1").exists());
}
