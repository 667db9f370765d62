//! The machine driven by hand: no runtime, no store, no clock.

use std::task::{Poll, Waker};

use super::*;
use crate::replay::{Finished, Record, RunId, RunState};

mod carry;
mod divergence;
mod facts;
mod inbox;
mod ledger;
mod unclean;
mod visits;

static A: Site = Site::new("a", Kind::Step, "a", "src/x.rs", 1);
static B: Site = Site::new("b", Kind::Step, "b", "src/x.rs", 2);
static J: Site = Site::new("j", Kind::Join, "j", "src/x.rs", 3);
static R: Site = Site::new("r", Kind::Race, "r", "src/x.rs", 4);
static Z: Site = Site::new("z", Kind::Sleep, "z", "src/x.rs", 5);
static N: Site = Site::new("n", Kind::Now, "n", "src/x.rs", 6);

const STEP: Op = Op::Step {
    attempts: 4,
    ephemeral: false,
    announced: false,
    undoing: None,
};

fn begun() -> Begun {
    Begun {
        workflow: "w".into(),
        input: Payload::json("{}"),
        input_hash: 0,
        seed: 7,
        generation: 0,
        parent: None::<(RunId, Location)>,
        forked_from: None,
    }
}

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn live() -> Replay {
    Replay::begin(begun(), CodeId(1))
}

fn pending(issue: Issue) -> Ticket {
    match issue {
        Issue::Pending(ticket) => ticket,
        other => panic!("{other:?}"),
    }
}

fn ready(issue: Issue) -> String {
    match issue {
        Issue::Ready(outcome) => text(outcome),
        other => panic!("{other:?}"),
    }
}

fn text(outcome: Outcome) -> String {
    match outcome.into_result() {
        Ok(payload) => String::from_utf8(payload.bytes.to_vec()).unwrap(),
        Err(failure) => failure.kind().word().to_owned(),
    }
}

/// Runs the body of a step to a value.
fn run(replay: &mut Replay, ticket: &Ticket, value: &'static str) {
    assert!(matches!(
        replay.may_run(ticket, Waker::noop()),
        Poll::Ready(_)
    ));
    replay.record(
        ticket,
        Ending {
            result: Ok(Payload::json(value)),
            attempts: 1,
            started_at: at(0),
            values: Vec::new(),
        },
    );
}

/// Writes what is to be written; the records of the batch.
fn append(replay: &mut Replay) -> Vec<Record> {
    let batch = replay.poll_append(at(0)).expect("a batch is wanted");
    replay.handle_appended();
    batch.records
}

fn got(replay: &mut Replay, ticket: &Ticket) -> Option<String> {
    match replay.poll_outcome(ticket, Waker::noop()) {
        Poll::Ready(outcome) => Some(text(outcome)),
        Poll::Pending => None,
    }
}

/// The history of a run of `a` then `b`, both recorded.
fn a_then_b() -> Vec<Record> {
    let mut replay = live();
    let mut history = Vec::new();
    for (site, value) in [(&A, "1"), (&B, "2")] {
        let ticket = pending(replay.issue(Scope::ROOT, site, STEP));
        run(&mut replay, &ticket, value);
        assert_eq!(got(&mut replay, &ticket), None, "not before it is durable");
        history.extend(append(&mut replay));
        assert!(replay.poll_handout());
        assert_eq!(got(&mut replay, &ticket).as_deref(), Some(value));
    }
    history
}

fn standing(state: RunState, wake_at: Option<Timestamp>) -> Standing {
    Standing {
        state,
        wake_at,
        waits: None,
    }
}

fn load(history: Vec<Record>) -> Replay {
    Replay::load(history, CodeId(1), standing(RunState::Running, None)).unwrap()
}

#[test]
fn what_is_recorded_is_handed_out_and_nothing_runs_again() {
    let history = a_then_b();
    assert_eq!(
        history.iter().map(|record| record.seq).collect::<Vec<_>>(),
        [1, 2, 3]
    );
    let mut replay = load(history);
    assert_eq!(ready(replay.issue(Scope::ROOT, &A, STEP)), "1");
    assert_eq!(ready(replay.issue(Scope::ROOT, &B, STEP)), "2");
    assert_eq!(replay.phase(), Phase::Replaying);
    assert!(replay.finish(Finished::Completed(Payload::json("3"))));
    let batch = replay.poll_append(at(9)).unwrap();
    assert_eq!(
        (batch.expected_seq, batch.number, batch.state),
        (3, 1, Some(RunState::Completed))
    );
    replay.handle_appended();
    assert_eq!(replay.phase(), Phase::Done);
}

// U4, RVT-FIX-34
#[test]
fn a_renamed_a_swapped_and_a_dropped_site_diverge_with_both_sides_named() {
    let mut replay = load(a_then_b());
    assert!(matches!(replay.issue(Scope::ROOT, &B, STEP), Issue::Never));
    let report = replay.divergence().unwrap().to_string();
    assert!(
        report.contains("step `a` (record 2)") && report.contains("b (step) at src/x.rs:2"),
        "{report}"
    );
    assert!(replay.poll_append(at(0)).is_none() && !replay.poll_handout());

    let mut replay = load(a_then_b());
    ready(replay.issue(Scope::ROOT, &A, STEP));
    assert!(!replay.finish(Finished::Completed(Payload::json("1"))));
    let divergence = replay.divergence().unwrap();
    assert_eq!(divergence.issued, Issued::End);
    assert!(
        matches!(&divergence.recorded, Recorded::Site { location, .. } if location.to_string() == "b")
    );
}

// RVT-STEP-23
#[test]
fn a_site_of_another_kind_diverges() {
    let mut replay = load(a_then_b());
    static SLEEP: Site = Site::new("a", Kind::Sleep, "a", "src/x.rs", 8);
    assert!(matches!(
        replay.issue(Scope::ROOT, &SLEEP, Op::Sleep { until: at(1) }),
        Issue::Never
    ));
    assert_eq!(
        replay.divergence().unwrap().likely_cause(),
        "the site was changed into another kind"
    );
}

#[test]
fn no_body_begins_before_the_whole_history_is_consumed() {
    let mut history = a_then_b();
    history.pop();
    let mut replay = load(history);
    ready(replay.issue(Scope::ROOT, &A, STEP));
    let ticket = pending(replay.issue(Scope::ROOT, &B, STEP));
    assert!(replay.may_run(&ticket, Waker::noop()).is_pending());
    assert!(!replay.poll_handout() && replay.handle_quiet());
    assert!(replay.may_run(&ticket, Waker::noop()).is_ready());
}

// U3
#[test]
fn branches_get_their_outcomes_in_the_recorded_order_one_at_a_time() {
    let names = ["x", "y"];
    let enter = |replay: &mut Replay| {
        let Entered::Open { scope, .. } = replay.enter(Scope::ROOT, &J, Container::Join(&names))
        else {
            panic!()
        };
        let [x, y] = names.map(|name| replay.member(scope, Member::Branch(name)));
        (scope, x, y)
    };
    let mut replay = live();
    let (_, x, y) = enter(&mut replay);
    let a = pending(replay.issue(x, &A, STEP));
    let b = pending(replay.issue(y, &B, STEP));
    run(&mut replay, &b, "2");
    run(&mut replay, &a, "1");
    let history = append(&mut replay);
    let kinds: Vec<_> = history
        .iter()
        .map(|record| record.location.to_string())
        .collect();
    assert_eq!(
        kinds,
        ["", "j", "j/y/b", "j/x/a"],
        "`Opened` goes before the first record below it"
    );
    let drive = |mut replay: Replay, a: Ticket, b: Ticket| {
        assert!(replay.poll_handout());
        assert_eq!(
            (got(&mut replay, &a), got(&mut replay, &b).as_deref()),
            (None, Some("2"))
        );
        assert!(replay.poll_handout());
        assert_eq!(got(&mut replay, &a).as_deref(), Some("1"));
    };
    drive(replay, a, b);
    let mut again = load(history);
    let (_, x, y) = enter(&mut again);
    let a = pending(again.issue(x, &A, STEP));
    let b = pending(again.issue(y, &B, STEP));
    drive(again, a, b);
}

// RVT-FIX-24, RVT-FIX-25
#[test]
fn a_changed_set_of_branches_diverges_before_any_is_entered() {
    let mut replay = live();
    let Entered::Open { scope, .. } = replay.enter(Scope::ROOT, &J, Container::Join(&["x"])) else {
        panic!()
    };
    let x = replay.member(scope, Member::Branch("x"));
    let a = pending(replay.issue(x, &A, STEP));
    run(&mut replay, &a, "1");
    let mut replay = load(append(&mut replay));
    assert_eq!(
        replay.enter(Scope::ROOT, &J, Container::Join(&["x", "z"])),
        Entered::Never
    );
    assert!(
        replay
            .divergence()
            .unwrap()
            .to_string()
            .contains("branches x, z")
    );
}

// U8, RVT-RACE-08
#[test]
fn what_a_loser_recorded_late_is_covered_and_deleted() {
    let enter = |replay: &mut Replay| {
        let Entered::Open { scope, winner } =
            replay.enter(Scope::ROOT, &R, Container::Race(&["x", "y"]))
        else {
            panic!()
        };
        (
            scope,
            replay.member(scope, Member::Branch("x")),
            replay.member(scope, Member::Branch("y")),
            winner,
        )
    };
    let mut replay = live();
    let (_, x, y, _) = enter(&mut replay);
    let a = pending(replay.issue(x, &A, STEP));
    let b = pending(replay.issue(y, &B, STEP));
    run(&mut replay, &a, "1");
    run(&mut replay, &b, "2");
    let mut history = append(&mut replay);
    // Killed here: both outcomes are durable, no decision is.
    let mut replay = load(history.clone());
    let (race, x, y, winner) = enter(&mut replay);
    assert_eq!(winner, None);
    let a = pending(replay.issue(x, &A, STEP));
    pending(replay.issue(y, &B, STEP));
    assert!(replay.poll_handout());
    assert_eq!(got(&mut replay, &a).as_deref(), Some("1"));
    assert!(replay.decide(race, 0));
    replay.leave(race);
    assert!(!replay.poll_handout());
    assert!(replay.handle_quiet(), "the loser's record is covered");
    assert!(replay.finish(Finished::Completed(Payload::json("1"))));
    let batch = replay.poll_append(at(0)).unwrap();
    assert_eq!(
        batch
            .deletes
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>(),
        ["r/y"]
    );
    // A decided race runs its winner only.
    history.retain(|record| !record.location.to_string().starts_with("r/y"));
    history.push(batch.records[0].clone());
    let mut replay = load(history);
    let (_, _, _, winner) = enter(&mut replay);
    assert_eq!(winner, Some(0));
}

// U5
#[test]
fn no_body_begins_while_a_choice_is_not_durable() {
    let mut replay = live();
    assert_eq!(
        ready(replay.issue(Scope::ROOT, &N, Op::Now { now: at(42) })),
        "42"
    );
    let ticket = pending(replay.issue(Scope::ROOT, &A, STEP));
    assert!(replay.may_run(&ticket, Waker::noop()).is_pending());
    append(&mut replay);
    assert!(replay.may_run(&ticket, Waker::noop()).is_ready());
}

#[test]
fn a_sleep_costs_one_commit_and_its_recorded_deadline_wins() {
    let mut replay = live();
    let ticket = pending(replay.issue(Scope::ROOT, &Z, Op::Sleep { until: at(100) }));
    let batch = replay.poll_append(at(0)).unwrap();
    assert_eq!(
        (batch.state, batch.wake_at),
        (Some(RunState::Waiting), Some(Some(at(100))))
    );
    replay.handle_appended();
    assert_eq!(
        replay.poll_suspend(),
        Some(Suspend {
            wake_at: Some(at(100))
        })
    );
    replay.handle_due(at(99));
    assert!(!replay.poll_handout());
    replay.handle_due(at(100));
    assert!(replay.poll_handout());
    assert_eq!(got(&mut replay, &ticket).as_deref(), Some("null"));
    assert!(
        replay.poll_append(at(100)).is_none(),
        "a lone wake-up rides"
    );

    let mut again = Replay::load(
        batch.records,
        CodeId(1),
        standing(RunState::Waiting, Some(at(100))),
    )
    .unwrap();
    pending(again.issue(Scope::ROOT, &Z, Op::Sleep { until: at(5_000) }));
    assert!(!again.poll_handout() && again.handle_quiet());
    assert_eq!(again.next_deadline(), Some(at(100)));
}

#[test]
fn a_failed_attempt_is_remembered_with_its_wake_time() {
    let mut replay = live();
    let ticket = pending(replay.issue(Scope::ROOT, &A, STEP));
    assert!(replay.may_run(&ticket, Waker::noop()).is_ready());
    let failure = Failure::new(
        crate::replay::FailureKind::Exhausted,
        Location::root(),
        "no",
    );
    replay.attempt_failed(&ticket, 1, failure.clone(), at(200));
    let history = append(&mut replay);
    assert!(replay.may_run(&ticket, Waker::noop()).is_pending());
    let row = standing(RunState::Waiting, Some(at(200)));
    let mut replay = Replay::load(history, CodeId(1), row).unwrap();
    let ticket = pending(replay.issue(Scope::ROOT, &A, STEP));
    assert!(replay.handle_quiet());
    assert_eq!(
        replay.poll_suspend(),
        Some(Suspend {
            wake_at: Some(at(200))
        })
    );
    replay.handle_due(at(200));
    let Poll::Ready(attempt) = replay.may_run(&ticket, Waker::noop()) else {
        panic!()
    };
    assert_eq!(
        attempt,
        Attempt {
            number: 2,
            last: Some(failure)
        }
    );
}

// U18, UA-54
#[test]
fn an_announced_attempt_that_never_ended_is_interrupted_and_not_run_again() {
    let op = Op::Step {
        attempts: 4,
        ephemeral: false,
        announced: true,
        undoing: None,
    };
    let mut replay = live();
    let ticket = pending(replay.issue(Scope::ROOT, &A, op.clone()));
    assert!(
        replay.may_run(&ticket, Waker::noop()).is_pending(),
        "`Started` is durable first"
    );
    let history = append(&mut replay);
    assert!(replay.may_run(&ticket, Waker::noop()).is_ready());
    // Killed in the body.
    let mut replay = load(history);
    let ticket = pending(replay.issue(Scope::ROOT, &A, op));
    assert!(replay.handle_quiet());
    assert!(replay.may_run(&ticket, Waker::noop()).is_pending());
    append(&mut replay);
    assert!(replay.poll_handout());
    assert_eq!(got(&mut replay, &ticket).as_deref(), Some("interrupted"));
}

#[test]
fn a_history_that_no_run_wrote_is_refused() {
    let history = a_then_b();
    assert_eq!(
        Replay::load(
            history[1..].to_vec(),
            CodeId(1),
            standing(RunState::Running, None)
        )
        .unwrap_err(),
        HistoryError::NoBeginning
    );
    let mut twice = history.clone();
    twice[2].location = twice[1].location.clone();
    let refused = Replay::load(twice, CodeId(1), standing(RunState::Running, None)).unwrap_err();
    assert!(matches!(refused, HistoryError::Twice { seq: 3, .. }));
    let mut swapped = history;
    swapped.swap(1, 2);
    let refused = Replay::load(swapped, CodeId(1), standing(RunState::Running, None)).unwrap_err();
    assert!(matches!(
        refused,
        HistoryError::Disordered { after: 3, found: 2 }
    ));
}

// Z3. Nothing else asks for a commit here, so the step waited for ever.
#[test]
fn a_step_that_is_held_by_a_choice_made_during_a_commit_still_begins() {
    static M: Site = Site::new("m", Kind::Now, "m", "src/x.rs", 7);
    let mut replay = live();
    let names = ["x", "y"];
    let Entered::Open { scope, .. } = replay.enter(Scope::ROOT, &J, Container::Join(&names)) else {
        panic!()
    };
    let [x, y] = names.map(|name| replay.member(scope, Member::Branch(name)));
    let first = pending(replay.issue(x, &N, Op::Now { now: at(1) }));
    assert!(replay.poll_handout());
    assert!(got(&mut replay, &first).is_some());
    let step = pending(replay.issue(x, &A, STEP));
    assert!(replay.may_run(&step, Waker::noop()).is_pending());
    assert!(replay.poll_append(at(2)).is_some());
    // While the first choice is written, the other branch makes one.
    let second = pending(replay.issue(y, &M, Op::Now { now: at(3) }));
    assert!(replay.poll_handout());
    assert!(got(&mut replay, &second).is_some());
    replay.handle_appended();
    // Nothing wakes the step now, so it is not polled, and cannot ask again.
    assert_eq!(append(&mut replay).len(), 1);
    assert!(replay.may_run(&step, Waker::noop()).is_ready());
}

// U18
#[test]
fn an_announced_attempt_still_begins_when_the_run_is_to_leave_memory() {
    let announced = Op::Step {
        attempts: 4,
        ephemeral: false,
        announced: true,
        undoing: None,
    };
    let mut replay = live();
    let ticket = pending(replay.issue(Scope::ROOT, &A, announced));
    assert!(replay.may_run(&ticket, Waker::noop()).is_pending());
    replay.handle_drain();
    append(&mut replay);
    assert_eq!(
        replay.poll_suspend(),
        None,
        "left now, it would be interrupted"
    );
    run(&mut replay, &ticket, "1");
    append(&mut replay);
    assert!(replay.poll_suspend().is_some());
}

#[test]
fn a_container_in_the_place_of_a_recorded_site_diverges_at_once() {
    static F: Site = Site::new("b", Kind::Fragment, "b", "src/x.rs", 9);
    for passed in [false, true] {
        let mut replay = load(a_then_b());
        if passed {
            ready(replay.issue(Scope::ROOT, &A, STEP));
        }
        // In its own place, and before its turn.
        assert_eq!(
            replay.enter(Scope::ROOT, &F, Container::Fragment),
            Entered::Never
        );
        assert!(matches!(
            replay.divergence().unwrap().issued,
            Issued::Site(Site { name: "b", .. })
        ));
    }
}

#[test]
fn a_race_that_is_decided_before_what_is_recorded_diverges() {
    let mut replay = load(a_then_b());
    ready(replay.issue(Scope::ROOT, &A, STEP));
    let names = ["x", "y"];
    let Entered::Open { scope, .. } = replay.enter(Scope::ROOT, &R, Container::Race(&names)) else {
        panic!()
    };
    replay.member(scope, Member::Branch("x"));
    // Its decision would be recorded after `b`, which comes after it.
    assert!(!replay.decide(scope, 0));
    assert_eq!(replay.phase(), Phase::Diverged);
}

#[test]
fn a_step_that_is_held_by_a_choice_under_way_asks_for_no_commit_of_its_own() {
    let mut replay = live();
    let names = ["x", "y"];
    let Entered::Open { scope, .. } = replay.enter(Scope::ROOT, &J, Container::Join(&names)) else {
        panic!()
    };
    let [x, y] = names.map(|name| replay.member(scope, Member::Branch(name)));
    let choice = pending(replay.issue(x, &N, Op::Now { now: at(1) }));
    let first = pending(replay.issue(y, &B, STEP));
    assert!(replay.may_run(&first, Waker::noop()).is_pending());
    assert!(replay.poll_append(at(2)).is_some());
    assert!(replay.poll_handout());
    assert!(got(&mut replay, &choice).is_some());
    let second = pending(replay.issue(x, &A, STEP));
    assert!(replay.may_run(&second, Waker::noop()).is_pending());
    replay.handle_appended();
    assert_eq!(replay.poll_append(at(3)), None);
    assert!(replay.may_run(&second, Waker::noop()).is_ready());
}
