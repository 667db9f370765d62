//! The `checkout` example as a process, killed with SIGKILL: at random moments, and right after each of its first appends
//! became durable. Afterwards every order is done, every recorded step's effect is there exactly once.
//!
//! The example's own `--verify` compares its effects file with the histories; what it counts is checked here once more.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "helpers of tests are tests"
)]

mod example;

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use example::{Random, binary};

/// The first orders of the file that the example ships with: every kind of line is among them.
fn some_orders(dir: &Path, lines: usize) -> PathBuf {
    let all = include_str!("../../examples/checkout/orders.jsonl");
    let some: String = all.split_inclusive('\n').take(lines).collect();
    let path = dir.join("orders.jsonl");
    fs::write(&path, some).unwrap();
    path
}

fn checkout(dir: &Path, orders: &Path) -> Command {
    let mut command = Command::new(binary("checkout"));
    command
        .arg("--dir")
        .arg(dir.join("data"))
        .arg("--orders")
        .arg(orders);
    command
}

/// Runs it to its end and checks everything.
fn finish(dir: &Path, orders: &Path, context: &str) -> String {
    let Output {
        status,
        stdout,
        stderr,
    } = checkout(dir, orders).arg("--verify").output().unwrap();
    let stdout = String::from_utf8(stdout).unwrap();
    let stderr = String::from_utf8_lossy(&stderr);
    assert!(status.success(), "{context}: {status}\n{stdout}\n{stderr}");
    assert_eq!(
        count(&stdout, "orders not at their end"),
        0,
        "{context}\n{stdout}"
    );
    assert_eq!(count(&stdout, "wrong"), 0, "{context}\n{stdout}");
    assert_eq!(count(&stdout, "stuck"), 0, "{context}\n{stdout}");
    stdout
}

/// The figure behind a word of the summary.
fn count(stdout: &str, word: &str) -> u64 {
    let line = stdout
        .lines()
        .find(|line| line.trim_start().starts_with(word));
    let line = line.unwrap_or_else(|| panic!("no {word} in\n{stdout}"));
    let figure = line.trim_start()[word.len()..].split_whitespace().next();
    figure.unwrap().parse().unwrap()
}

/// Nonces are given once per effect, so a line that is there twice is a file written twice.
fn effects(dir: &Path) -> usize {
    let text = fs::read_to_string(dir.join("data/effects.log")).unwrap();
    let lines: HashSet<&str> = text.lines().collect();
    assert_eq!(lines.len(), text.lines().count());
    lines.len()
}

// UA-78
#[test]
fn killed_at_random_moments_every_order_is_done_and_no_recorded_effect_is_repeated() {
    const KILLS: u64 = 25;
    let dir = tempfile::tempdir().unwrap();
    let orders = some_orders(dir.path(), 2080);
    let mut random = Random::seeded();
    let mut cut_off = 0;
    for _ in 0..KILLS {
        let mut child = checkout(dir.path(), &orders)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        // The process is outside of any clock of ours.
        std::thread::sleep(Duration::from_millis(5 + random.below(130)));
        cut_off += u64::from(child.try_wait().unwrap().is_none());
        child.kill().unwrap();
        child.wait().unwrap();
    }
    assert_eq!(
        cut_off, KILLS,
        "it was done before it could be killed as often"
    );
    let stdout = finish(dir.path(), &orders, "after the kills");
    assert!(effects(dir.path()) as u64 >= count(&stdout, "steps recorded"));
    assert_eq!(count(&stdout, "malformed"), 30);
    let before = effects(dir.path());
    let again = finish(dir.path(), &orders, "once more");
    assert_eq!(
        effects(dir.path()),
        before,
        "a run that is done does nothing\n{again}"
    );
}

// RVT-FIX-68, UA-78
#[test]
fn killed_right_after_each_of_its_first_fifty_commits_it_goes_on() {
    for commit in 1..=50 {
        let dir = tempfile::tempdir().unwrap();
        let orders = some_orders(dir.path(), 20);
        let killed = checkout(dir.path(), &orders)
            .env("CHECKOUT_KILL_AT_COMMIT", commit.to_string())
            .stdout(Stdio::null())
            .status()
            .unwrap();
        assert!(example::was_killed(killed), "commit {commit}: {killed}");
        let context = format!("killed after commit {commit}");
        let stdout = finish(dir.path(), &orders, &context);
        assert_eq!(
            count(&stdout, "paid") + count(&stdout, "expired"),
            20,
            "{context}"
        );
        assert!(
            count(&stdout, "steps recorded") >= 20 * 2,
            "{context}\n{stdout}"
        );
    }
}

#[test]
fn without_a_crash_no_effect_is_unrecorded() {
    let dir = tempfile::tempdir().unwrap();
    let orders = some_orders(dir.path(), 60);
    let stdout = finish(dir.path(), &orders, "one run");
    assert_eq!(count(&stdout, "effects unrecorded"), 0);
    assert_eq!(count(&stdout, "steps recorded"), effects(dir.path()) as u64);
}
