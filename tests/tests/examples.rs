//! The examples as processes: what a user sees of them, and that a kill -9 in the middle changes nothing of it.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "helpers of tests are tests"
)]

mod example;

use std::collections::HashSet;
use std::path::Path;

use example::Process;

/// The lines that stand in a text, in any order.
fn lines(text: &str) -> HashSet<&str> {
    text.lines().map(str::trim).collect()
}

/// Runs an example until it has printed something, kills it, and runs it to its end: both outputs.
fn killed_after(example: &'static str, dir: &Path, text: &str) -> (String, String) {
    let mut first = Process::start(example, dir, &[]);
    first.prints(text);
    first.kill();
    let second = Process::start(example, dir, &[]);
    (first.printed(), second.finish())
}

const DECIDED: [&str; 4] = [
    r#"claim-1: Paid { by: "Grace" }"#,
    r#"claim-2: Refused { by: "Grace" }"#,
    r#"claim-3: Paid { by: "Radia" }"#,
    "claim-4: Lapsed",
];

fn mails(printed: &str, text: &str) -> usize {
    printed.lines().filter(|line| line.contains(text)).count()
}

#[test]
fn approval_reminds_escalates_and_gives_up() {
    let dir = tempfile::tempdir().unwrap();
    let printed = Process::start("approval", dir.path(), &[]).finish();
    assert!(
        DECIDED.iter().all(|line| lines(&printed).contains(line)),
        "{printed}"
    );
    assert_eq!(mails(&printed, "euros are paid"), 2, "{printed}");
    for mail in [
        "claim-4: to the manager: reminder 1",
        "claim-4: to the manager: reminder 2",
        "claim-4: to the director",
        "claim-3: to the director",
    ] {
        assert_eq!(mails(&printed, mail), 1, "{mail}\n{printed}");
    }
    assert_eq!(mails(&printed, "claim-1: to the director"), 0, "{printed}");
    assert!(
        !dir.path().join("runs.redb").exists(),
        "it is done with its file"
    );
}

// UA-78
#[test]
fn approval_killed_while_it_waits_asks_nobody_again() {
    let dir = tempfile::tempdir().unwrap();
    let (first, second) = killed_after(
        "approval",
        dir.path(),
        "claim-4: to the manager: reminder 1",
    );
    assert!(
        DECIDED.iter().all(|line| lines(&second).contains(line)),
        "{second}"
    );
    assert_eq!(mails(&first, "please approve"), 4, "{first}");
    assert_eq!(mails(&second, "please approve"), 0, "{second}");
    assert_eq!(mails(&first, "claim-1: 240 euros are paid"), 1, "{first}");
    assert_eq!(mails(&second, "claim-1: 240 euros are paid"), 0, "{second}");
    // It may have been printed and not yet recorded.
    assert!(mails(&second, "claim-4: to the manager: reminder 1") <= 1);
    assert_eq!(mails(&second, "claim-4: to the manager: reminder 2"), 1);
}

const BROKEN: [&str; 6] = [
    "broken: /docs/5: 404 not found",
    "broken: /docs/7: 503 service unavailable",
    "broken: /docs/24: 404 not found",
    "broken: /docs/30: 503 service unavailable",
    "broken: /docs/43: 404 not found",
    "broken: /docs/53: 503 service unavailable",
];

fn broken(printed: &str) -> Vec<&str> {
    let lines = printed.lines().map(str::trim);
    lines.filter(|line| line.starts_with("broken")).collect()
}

#[test]
fn fan_out_collects_the_failures_in_the_order_of_the_input() {
    let dir = tempfile::tempdir().unwrap();
    let printed = Process::start("fan_out", dir.path(), &[]).finish();
    assert_eq!(broken(&printed), BROKEN, "{printed}");
    assert!(
        printed.contains("54 of 60 links are good, 115716 bytes in all"),
        "{printed}"
    );
    assert_eq!(printed.matches("fetched").count(), 54, "{printed}");
    // What is not there is not asked for again; what is down is.
    assert_eq!(printed.matches("404").count(), 3 * 2, "{printed}");
    assert!(printed.contains("attempt 3 at /docs/53: 503"), "{printed}");
}

// UA-12, UA-78
#[test]
fn fan_out_killed_in_the_middle_fetches_again_only_what_was_under_way() {
    let dir = tempfile::tempdir().unwrap();
    let (first, second) = killed_after("fan_out", dir.path(), "fetched /docs/26:");
    assert_eq!(broken(&second), BROKEN, "{second}");
    assert!(
        second.contains("54 of 60 links are good, 115716 bytes in all"),
        "{second}"
    );
    let fetched = |printed: &str| -> HashSet<String> {
        let lines = printed.lines().map(str::trim);
        lines
            .filter(|line| line.starts_with("fetched"))
            .map(ToOwned::to_owned)
            .collect()
    };
    let (before, after) = (fetched(&first), fetched(&second));
    let twice = before.intersection(&after).count();
    assert!(
        twice <= 8,
        "{twice} were fetched twice, and 8 are under way at most"
    );
    assert_eq!(before.union(&after).count(), 54);
}

#[test]
fn child_sends_what_there_is_and_cancels_the_parcels_with_their_order() {
    let dir = tempfile::tempdir().unwrap();
    let printed = Process::start("child", dir.path(), &[]).finish();
    children_are_right(&printed);
    assert!(!printed.contains("handed chair"), "{printed}");
    assert_eq!(
        printed.matches("how did you like it?").count(),
        2,
        "{printed}"
    );
}

fn children_are_right(printed: &str) {
    for line in [
        "order-1: sent tea by carrier, mug by carrier, lamp by carrier; missing unicorn (child run `order-1/parcels[unicorn]/parcel`: there is no unicorn on the shelf)",
        "order-2: run `order-2` was cancelled",
        "order-1                          completed",
        "order-1/parcels[tea]/parcel      completed",
        "order-1/parcels[unicorn]/parcel  failed",
        "order-2                          cancelled",
        "order-2/parcels[chair]/parcel    cancelled",
        "review-1                         completed",
        "review-2                         completed",
    ] {
        assert!(lines(printed).contains(line), "no `{line}` in\n{printed}");
    }
}

// UA-78
#[test]
fn child_killed_after_the_cancellation_goes_on_with_what_is_left() {
    let dir = tempfile::tempdir().unwrap();
    let (first, second) = killed_after("child", dir.path(), "handed tea");
    children_are_right(&second);
    assert!(first.contains("order-2 is cancelled"), "{first}");
    assert!(!second.contains("packed tea"), "{second}");
    assert!(
        !second.contains("order-2/parcels[chair]/parcel: "),
        "{second}"
    );
    let both = first + &second;
    assert_eq!(both.matches("how did you like it?").count(), 2, "{both}");
}

#[test]
fn poller_is_told_what_to_do_and_goes_on_where_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let mut first = Process::start("poller", dir.path(), &["--for", "2500ms"]);
    assert!(first.types("every 10s") && first.types("push urgent") && first.types("dance"));
    first.prints("published urgent");
    first.prints("say `every 50ms`, `push NAME` or `stop`");
    let first = first.finish();
    assert!(first.contains("left; run it again to go on"), "{first}");
    let found = first.matches("published item-").count();
    assert!(
        (1..=4).contains(&found),
        "it polls every ten seconds now\n{first}"
    );

    let mut second = Process::start("poller", dir.path(), &[]);
    assert!(second.types("every 5ms"));
    second.prints("published item-70");
    assert!(second.types("stop"));
    let second = second.finish();
    assert!(
        !second.contains("published item-0 "),
        "the cursor is carried\n{second}"
    );
    assert!(
        second.contains("items were found, 1 were pushed"),
        "{second}"
    );
    assert!(
        !dir.path().join("runs.redb").exists(),
        "it is done with its file"
    );
}

#[test]
fn deploy_tells_a_new_program_that_stops_runs_from_one_that_does_not() {
    let dir = tempfile::tempdir().unwrap();
    let run = |words: &[&str]| Process::start("deploy", dir.path(), words).ended();
    let (code, printed) = run(&["start", "200"]);
    assert_eq!(
        (code, printed.trim()),
        (Some(0), "200 orders are under way")
    );
    let (code, printed) = run(&["preflight", "renamed"]);
    assert_eq!(code, Some(2), "{printed}");
    for said in ["would stop: diverged at `weigh`", "deploy.rs:", "order-0"] {
        assert!(printed.contains(said), "`{said}` is not in:\n{printed}");
    }
    let (code, printed) = run(&["preflight", "gated"]);
    assert_eq!(code, Some(0), "{printed}");
    assert!(printed.contains("this code stops no run"), "{printed}");
    // What was asked twice is as it was.
    assert_eq!(run(&["preflight", "renamed"]).0, Some(2));
    assert_eq!(run(&["clean"]).0, Some(0));
    assert!(!dir.path().join("runs.redb").exists());
}
