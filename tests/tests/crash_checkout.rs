//! Starts the `checkout` example as a process, kills it with SIGKILL again and again, and lets it verify itself at the
//! end: every order done, every recorded effect exactly once, every other at least once.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

fn example() -> PathBuf {
    let status = Command::new(env!("CARGO"))
        .args([
            "build",
            "-q",
            "-p",
            "workflow-examples",
            "--example",
            "checkout",
        ])
        .status()
        .expect("cargo runs");
    assert!(status.success());
    // `target/debug/deps/this_test` stands beside `target/debug/examples`.
    let this = std::env::current_exe().expect("a test has a path");
    this.ancestors()
        .nth(2)
        .expect("a test lies in deps")
        .join("examples/checkout")
}

fn start(program: &PathBuf, dir: &std::path::Path, more: &[&str]) -> Child {
    let mut command = Command::new(program);
    command
        .arg("--dir")
        .arg(dir)
        .args(more)
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    command.spawn().expect("the example starts")
}

fn effects(dir: &std::path::Path) -> usize {
    let text = std::fs::read_to_string(dir.join("effects.log")).unwrap_or_default();
    text.lines().count()
}

/// Kills the process once it has had so many more effects, or at the latest after a while.
fn kill_after(child: &mut Child, dir: &std::path::Path, more: usize) {
    let (until, began) = (effects(dir) + more, Instant::now());
    while effects(dir) < until && began.elapsed() < Duration::from_secs(5) {
        if child.try_wait().expect("the child can be asked").is_some() {
            return;
        }
        std::thread::sleep(Duration::from_micros(200));
    }
    // SIGKILL, on Unix.
    child.kill().expect("the child can be killed");
    child.wait().expect("the child ends");
}

// RVT-FIX-68, UA-78
#[test]
fn checkout_killed_again_and_again_loses_nothing_and_repeats_nothing_recorded() {
    let program = example();
    let place = tempfile::tempdir().expect("a directory");
    let dir = place.path();
    // Early kills hit the first commits, later ones anywhere; the strides share no rhythm with the workflow.
    let strides = (1..=50).chain((0..25).map(|turn| 17 + turn * 41 % 397));
    let mut kills = 0;
    for stride in strides {
        let mut child = start(&program, dir, &[]);
        kill_after(&mut child, dir, stride);
        kills += 1;
    }
    assert_eq!(kills, 75);
    let output = start(&program, dir, &["--verify"])
        .wait_with_output()
        .expect("the example ends");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains("\nverified"),
        "{said}"
    );
    assert!(said.contains("resumed:"), "{said}");
    // Once more over the finished store: nothing is done again.
    let before = effects(dir);
    let output = start(&program, dir, &["--verify"])
        .wait_with_output()
        .expect("the example ends");
    assert!(output.status.success());
    assert_eq!(effects(dir), before, "finished runs have effects");
}
