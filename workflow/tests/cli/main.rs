//! The command line as its users run it: the real program, on stores that the tests make.
#![allow(clippy::unwrap_used, unreachable_pub, reason = "tests")]

mod codes;
mod control;
mod doctor;
mod look;
mod schedules;
mod shop;
mod upkeep;
#[cfg(feature = "axum")]
mod url;

use std::path::Path;
use std::process::{Command, Output, Stdio};

/// What the program said, and its exit code.
#[derive(Debug)]
struct Said {
    code: i32,
    out: String,
    err: String,
}

impl Said {
    fn json(&self) -> serde_json::Value {
        assert_eq!(self.code, 0, "{self:?}");
        serde_json::from_str(&self.out).unwrap()
    }
}

fn command(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_workflow"));
    command.args(words).stdin(Stdio::null());
    for name in [
        "WORKFLOW_STORE",
        "WORKFLOW_URL",
        "WORKFLOW_TOKEN",
        "NO_PROXY",
        "HTTP_PROXY",
        "http_proxy",
        "ALL_PROXY",
    ] {
        command.env_remove(name);
    }
    command
}

fn said(output: &Output) -> Said {
    Said {
        code: output.status.code().unwrap(),
        out: String::from_utf8(output.stdout.clone()).unwrap(),
        err: String::from_utf8(output.stderr.clone()).unwrap(),
    }
}

/// Runs `workflow` with these words.
fn workflow(words: &[&str]) -> Said {
    said(&command(words).output().unwrap())
}

/// Runs `workflow` on a store.
fn on(store: &Path, words: &[&str]) -> Said {
    said(
        &command(words)
            .env("WORKFLOW_STORE", store)
            .output()
            .unwrap(),
    )
}
