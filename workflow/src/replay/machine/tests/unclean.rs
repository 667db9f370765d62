//! Owners that died.

use super::*;
use crate::replay::FailureKind;

fn announced() -> Op {
    Op::Step {
        attempts: 1,
        ephemeral: false,
        announced: true,
        undoing: None,
    }
}

/// The history of a run whose first step has begun, or was about to.
fn begun_only() -> Vec<Record> {
    append(&mut live())
}

/// A run of which so many owners died.
fn taken_over(history: Vec<Record>, claims: u32) -> Replay {
    let mut replay = load(history);
    replay.handle_unclean(claims, at(1_000));
    replay
}

fn attempt(replay: &mut Replay, ticket: &Ticket) -> Attempt {
    match replay.may_run(ticket, Waker::noop()) {
        Poll::Ready(attempt) => attempt,
        Poll::Pending => panic!("the step may run"),
    }
}

// U19
#[test]
fn each_counts_as_an_attempt_until_none_is_left() {
    for claims in 0..4 {
        let mut replay = taken_over(begun_only(), claims);
        let ticket = pending(replay.issue(Scope::ROOT, &A, STEP));
        assert!(replay.handle_quiet());
        let Attempt { number, last } = attempt(&mut replay, &ticket);
        assert_eq!(number, claims + 1);
        let kind = last.map(|last| last.kind());
        assert_eq!(kind, (claims > 0).then_some(FailureKind::Interrupted));
    }
    let mut replay = taken_over(begun_only(), 4);
    let ticket = pending(replay.issue(Scope::ROOT, &A, STEP));
    assert!(replay.handle_quiet());
    assert!(replay.may_run(&ticket, Waker::noop()).is_pending());
    append(&mut replay);
    assert!(replay.poll_handout());
    assert_eq!(got(&mut replay, &ticket).as_deref(), Some("interrupted"));
}

// U19: at least 2.
#[test]
fn a_step_without_retries_survives_one() {
    let op = Op::Step {
        attempts: 1,
        ephemeral: false,
        announced: false,
        undoing: None,
    };
    let mut replay = taken_over(begun_only(), 1);
    let ticket = pending(replay.issue(Scope::ROOT, &A, op));
    assert!(replay.handle_quiet());
    assert_eq!(attempt(&mut replay, &ticket).number, 2);
}

// U18: `Started` would be there if it had begun.
#[test]
fn a_step_that_is_announced_and_was_not_begun_has_had_no_attempt() {
    let mut replay = taken_over(begun_only(), 9);
    let ticket = pending(replay.issue(Scope::ROOT, &A, announced()));
    assert!(replay.handle_quiet());
    assert!(replay.may_run(&ticket, Waker::noop()).is_pending());
    append(&mut replay);
    assert_eq!(attempt(&mut replay, &ticket).number, 1);
}

#[test]
fn a_step_that_waits_to_be_tried_again_did_not_end_the_process() {
    let mut replay = live();
    let ticket = pending(replay.issue(Scope::ROOT, &A, STEP));
    attempt(&mut replay, &ticket);
    let failure = Failure::new(FailureKind::Returned, Location::root(), "no");
    replay.attempt_failed(&ticket, 1, failure, at(2_000));
    let history = append(&mut replay);
    for (now, number) in [(1_999, 2), (2_000, 4)] {
        let mut replay = load(history.clone());
        replay.handle_unclean(2, at(now));
        let ticket = pending(replay.issue(Scope::ROOT, &A, STEP));
        assert!(replay.handle_quiet());
        assert!(replay.may_run(&ticket, Waker::noop()).is_pending());
        replay.handle_due(at(2_000));
        assert_eq!(attempt(&mut replay, &ticket).number, number);
    }
}

#[test]
fn what_becomes_durable_takes_the_count_back() {
    let mut replay = taken_over(begun_only(), 3);
    let ticket = pending(replay.issue(Scope::ROOT, &A, STEP));
    assert!(replay.handle_quiet());
    run(&mut replay, &ticket, "1");
    let batch = replay.poll_append(at(0)).expect("a batch is wanted");
    assert!(batch.recovers);
    replay.handle_appended();
    assert!(replay.poll_handout());
    assert!(got(&mut replay, &ticket).is_some());
    let next = pending(replay.issue(Scope::ROOT, &B, STEP));
    assert_eq!(attempt(&mut replay, &next).number, 1);
}

// U17
#[test]
fn a_run_that_is_let_go_of_in_the_middle_says_so() {
    let mut replay = live();
    let ticket = pending(replay.issue(Scope::ROOT, &A, STEP));
    append(&mut replay);
    attempt(&mut replay, &ticket);
    replay.handle_drain();
    assert!(replay.poll_suspend().is_none(), "its body runs");
    replay.handle_dropped();
    assert!(replay.poll_suspend().is_none());
    let batch = replay.poll_append(at(0)).expect("a batch is wanted");
    assert!(batch.releases);
    replay.handle_appended();
    assert!(replay.poll_suspend().is_some());
}
