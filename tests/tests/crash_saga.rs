//! The `saga` example as a process, killed with SIGKILL right after each of its commits, also while it undoes. Afterwards each
//! recorded effect of a trip that failed is undone, newest first.
//!
//! The example's own `--verify` lays its effects file beside the histories; the order of the undos is checked here once more.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "helpers of tests are tests"
)]

mod example;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

fn saga(dir: &Path) -> Command {
    let mut command = Command::new(example::binary("saga"));
    command.arg("--dir").arg(dir).args(["--trips", "3"]);
    command
}

/// Runs it to its end and checks everything.
fn finish(dir: &Path, context: &str) {
    let output = saga(dir).arg("--verify").output().unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    let status = output.status;
    assert!(status.success(), "{context}: {status}\n{stdout}");
    for line in [
        "trip-1: undone, because `ticket`",
        "trip-2: undone, because `payment`",
        "trip-3: booked, for 800",
    ] {
        assert!(stdout.contains(line), "{context}: no {line} in\n{stdout}");
    }
    for trip in ["trip-1", "trip-2"] {
        let places = ["payment", "flight", "car", "hotel"];
        assert_eq!(undone(dir, trip), places, "{context}");
    }
    assert_eq!(undone(dir, "trip-3"), Vec::<String>::new(), "{context}");
}

/// What of a trip was undone, in order. An undo that was cut off before its record is there twice.
fn undone(dir: &Path, trip: &str) -> Vec<String> {
    let text = fs::read_to_string(dir.join("effects.log")).unwrap();
    let words = text.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    let mut places: Vec<_> = words
        .filter(|words| words[0] == trip && words[2] == "undo")
        .map(|words| words[1].to_owned())
        .collect();
    places.dedup();
    places
}

// RVT-RB-01 RVT-RB-08
#[test]
fn killed_right_after_each_of_its_commits_a_saga_is_undone_newest_first() {
    let mut commit = 0;
    loop {
        commit += 1;
        let dir = tempfile::tempdir().unwrap();
        let status = saga(dir.path())
            .env("SAGA_KILL_AT_COMMIT", commit.to_string())
            .stdout(Stdio::null())
            .status()
            .unwrap();
        finish(dir.path(), &format!("killed after commit {commit}"));
        if !example::was_killed(status) {
            assert!(status.success(), "{status}");
            break;
        }
    }
    // Of each of the two that fail: five of steps, one of unwinding, four undos, the end.
    assert!(commit > 2 * 10, "only {commit} commits");
}

// RVT-RB-08
#[test]
fn killed_again_and_again_a_saga_comes_to_its_end() {
    let dir = tempfile::tempdir().unwrap();
    for commits in [3, 2, 2, 1, 2, 1, 1, 3, 1, 1, 1] {
        let status = saga(dir.path())
            .env("SAGA_KILL_AT_COMMIT", commits.to_string())
            .stdout(Stdio::null())
            .status()
            .unwrap();
        assert!(example::was_killed(status), "{status}");
    }
    finish(dir.path(), "killed eleven times");
}
