//! The `wizard` example as a process, killed with SIGKILL where a person would be annoyed.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "helpers of tests are tests"
)]

mod example;

use std::path::Path;
use std::thread;
use std::time::Duration;

use example::{Process, Random};

const NAME: &str = "What is the project called? ";
const HOSTING: &str = "Shall it run in the cloud?";
const REGION: &str = "In which region?";
const CREATE: &str = "Create it";
const DONE: &str = "That is all";
const CREATING: &str = "  creating `";

fn wizard(dir: &Path) -> Process {
    Process::start("wizard", dir, &[])
}

/// Everything that was printed, by whichever process.
fn world(dir: &Path) -> String {
    std::fs::read_to_string(dir.join("printed")).unwrap()
}

fn count(dir: &Path, text: &str) -> usize {
    world(dir).matches(text).count()
}

/// The keys with which the repository was asked for.
fn keys(dir: &Path) -> Vec<String> {
    let world = world(dir);
    let lines = world.lines().filter(|line| line.starts_with(CREATING));
    let keys = lines.filter_map(|line| line.rsplit_once("key "));
    keys.map(|(_, key)| key.to_owned()).collect()
}

/// Types keys one by one, and kills it after some of them; gives what it starts with again.
fn killed_while_typing(dir: &Path, keys: &str, wait: Duration) -> String {
    let mut process = wizard(dir);
    process.prints(NAME);
    process.keys(keys);
    thread::sleep(wait);
    process.kill();
    let mut process = wizard(dir);
    process.prints(NAME);
    // The line that it asks with ends with what had been typed.
    thread::sleep(Duration::from_millis(20));
    let printed = process.printed();
    process.kill();
    let line = printed.lines().find(|line| line.starts_with(NAME));
    line.unwrap_or(NAME)[NAME.len()..].to_owned()
}

#[test]
fn the_wizard_killed_between_two_keys_goes_on_with_the_keys_it_had() {
    let dir = tempfile::tempdir().unwrap();
    let mut random = Random::seeded();
    let mut typed = String::new();
    for keys in ["a", "cm", "e", "-an", "d-co"] {
        // The process is outside of any clock of ours: how far it comes in this time is open, but not what that looks like.
        let wait = Duration::from_millis(random.below(60));
        let found = killed_while_typing(dir.path(), keys, wait);
        let whole = typed.clone() + keys;
        assert!(
            whole.starts_with(&found) && found.starts_with(&typed),
            "`{found}` after `{typed}` and `{keys}`"
        );
        typed = found;
    }
    let mut process = wizard(dir.path());
    assert!(process.types("-and-more"));
    process.prints(HOSTING);
    assert!(process.types("no"));
    process.prints(CREATE);
    assert!(world(dir.path()).contains(&format!("{CREATING}{typed}-and-more`")));
}

#[test]
fn the_wizard_killed_at_each_stage_goes_on_there() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let answers = [
        (NAME, "acme"),
        (HOSTING, "yes"),
        (REGION, "Oslo"),
        (CREATE, ":next"),
    ];
    for (asked, answer) in answers {
        let mut process = wizard(dir);
        process.prints(asked);
        process.kill();
        let mut process = wizard(dir);
        process.prints(asked);
        assert!(process.types(answer));
        let next = answers.iter().skip_while(|(other, _)| *other != asked);
        process.prints(next.map(|(asked, _)| *asked).nth(1).unwrap_or(DONE));
        process.kill();
    }
    assert_eq!(keys(dir).len(), 1, "{}", world(dir));
    let mut process = wizard(dir);
    process.prints(DONE);
    assert!(process.types(":next"));
    let printed = process.finish();
    assert!(
        printed.ends_with("the project is at git.example/acme\n"),
        "{printed}"
    );
    assert!(!dir.join("runs.redb").exists());
}

#[test]
fn the_wizard_killed_while_it_creates_asks_and_repeats_nothing_that_succeeded() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let mut process = wizard(dir);
    process.prints(NAME);
    assert!(process.types("acme") && process.types("no"));
    process.prints(CREATING);
    process.kill();

    // Cut off in its first effect, whose fate nobody knows: it is asked for again under the same key.
    let mut process = wizard(dir);
    process.prints("! interrupted");
    assert!(process.types(":next"));
    process.prints("! it is failed");
    assert!(process.types(":retry"));
    // The second effect has ended when this is printed, or nearly; the third one has not.
    process.prints("checks run on");
    thread::sleep(Duration::from_millis(30));
    process.kill();
    let [first, second] = &keys(dir)[..] else {
        panic!("{}", world(dir));
    };
    assert_eq!(first, second);

    let mut process = wizard(dir);
    process.prints("! interrupted");
    assert!(process.types(":retry"));
    process.prints(CREATE);
    process.prints("has a README");
    assert_eq!(keys(dir).len(), 2, "{}", world(dir));
    assert_eq!(count(dir, "checks run on"), 1, "{}", world(dir));

    // Who has a repository takes it back before they leave.
    assert!(process.types(":cancel"));
    process.prints("! it may not be cancelled");
    assert!(process.types(":undo"));
    process.prints("deleting");
    process.kill();
    let mut process = wizard(dir);
    process.prints("from the beginning");
    process.kill();
    assert!(count(dir, "deleting the repository") >= 1);
}
