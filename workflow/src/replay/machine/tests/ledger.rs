//! The undo ledger.

use super::*;
use crate::replay::{Failure, FailureKind};

static C: Site = Site::new("c", Kind::Version, "c", "src/x.rs", 30);
static PAID: Site = Site::new("paid", Kind::Version, "paid", "src/x.rs", 31);

fn undone(unknown: bool) -> Op {
    announced(unknown, false)
}

fn announced(unknown: bool, announced: bool) -> Op {
    Op::Step {
        attempts: 4,
        ephemeral: false,
        announced,
        undoing: Some(Undoing { path: "a", unknown }),
    }
}

fn open(replay: &Replay) -> Vec<(u64, String, bool)> {
    let entries = replay.ledger().entries();
    entries
        .map(|entry| {
            let at = entry.location.to_string();
            (entry.number, at, entry.output.is_some())
        })
        .collect()
}

fn begins(replay: &mut Replay, ticket: &Ticket) -> bool {
    replay.may_run(ticket, Waker::noop()).is_ready()
}

fn end(replay: &mut Replay, ticket: &Ticket, result: Result<&'static str, ()>) {
    let failure = || Failure::new(FailureKind::TimedOut, Location::root().site("a"), "late");
    let result = result.map(Payload::json).map_err(|()| failure());
    replay.record(
        ticket,
        Ending {
            result,
            attempts: 1,
            started_at: at(0),
            values: Vec::new(),
        },
    );
}

/// `a`, with an undo, ended and handed out. Its history, without what else is queued.
fn a_undone() -> (Replay, Vec<Record>) {
    let mut replay = live();
    replay.checkpoint(Scope::ROOT, &C);
    let ticket = pending(replay.issue(Scope::ROOT, &A, undone(false)));
    run(&mut replay, &ticket, "1");
    let history = append(&mut replay);
    assert!(replay.poll_handout());
    got(&mut replay, &ticket).unwrap();
    (replay, history)
}

fn join(replay: &mut Replay) -> [Scope; 2] {
    let Entered::Open { scope, .. } = replay.enter(Scope::ROOT, &J, Container::Join(&["x", "y"]))
    else {
        panic!()
    };
    ["x", "y"].map(|name| replay.member(scope, Member::Branch(name)))
}

#[test]
fn an_entry_is_made_in_the_batch_of_its_effect_and_costs_none_of_its_own() {
    let (replay, history) = a_undone();
    let armed = history
        .iter()
        .filter(|record| matches!(record.body, Body::Armed { .. }));
    assert_eq!(armed.count(), 1);
    assert_eq!(open(&replay), [(1, "a".to_owned(), true)]);
    assert!(!replay.wants_append());
}

// U12
#[test]
fn what_is_undone_also_when_unknown_is_in_the_ledger_before_its_body_begins() {
    let mut replay = live();
    let ticket = pending(replay.issue(Scope::ROOT, &A, undone(true)));
    assert!(!begins(&mut replay, &ticket));
    append(&mut replay);
    assert_eq!(open(&replay), [(1, "a".to_owned(), false)]);
    assert!(begins(&mut replay, &ticket));
    end(&mut replay, &ticket, Ok("1"));
    let batch = replay.poll_append(at(0)).unwrap();
    assert_eq!(batch.deletes, [ledger_location(1)]);
    assert_eq!(open(&replay), [(1, "a".to_owned(), true)]);
}

// U12
#[test]
fn a_crash_between_the_entry_and_the_end_of_the_body_leaves_one_entry() {
    let mut replay = live();
    let ticket = pending(replay.issue(Scope::ROOT, &A, undone(true)));
    assert!(!begins(&mut replay, &ticket));
    let history = append(&mut replay);

    let mut replay = load(history);
    let ticket = pending(replay.issue(Scope::ROOT, &A, undone(true)));
    assert!(replay.handle_quiet());
    assert!(begins(&mut replay, &ticket), "it is armed already");
    end(&mut replay, &ticket, Err(()));
    append(&mut replay);
    assert_eq!(open(&replay), [(1, "a".to_owned(), false)]);
}

#[test]
fn at_most_once_is_announced_and_armed_in_one_batch_and_an_interrupted_one_is_undone() {
    let mut replay = live();
    let ticket = pending(replay.issue(Scope::ROOT, &A, announced(true, true)));
    assert!(!begins(&mut replay, &ticket));
    let history = append(&mut replay);
    assert!(begins(&mut replay, &ticket), "after one batch");
    assert_eq!(replay.alive(), 1);

    let mut replay = load(history);
    let ticket = pending(replay.issue(Scope::ROOT, &A, announced(true, true)));
    assert!(replay.handle_quiet());
    append(&mut replay);
    assert!(replay.poll_handout());
    assert_eq!(got(&mut replay, &ticket).as_deref(), Some("interrupted"));
    assert_eq!(open(&replay), [(1, "a".to_owned(), false)]);
}

// The code's end and a cancellation: the first wins.
#[test]
fn a_run_whose_end_is_queued_or_being_written_does_not_unwind_any_more() {
    let (mut replay, _) = a_undone();
    let end = Finished::Completed(Payload::json("1"));
    assert!(replay.finish(end.clone()));
    assert!(!replay.unwind());
    let batch = replay.poll_append(at(0)).unwrap();
    assert_eq!(batch.records.last().unwrap().body, Body::Finished(end));
    assert!(!replay.unwind());
    replay.handle_appended();
    assert_eq!(replay.phase(), Phase::Done);
    assert_eq!(replay.ledger().unwinds(), None);
}

#[test]
fn a_cancellation_before_the_end_wins_over_it() {
    let (mut replay, _) = a_undone();
    assert!(replay.unwind());
    assert!(!replay.finish(Finished::Completed(Payload::json("1"))));
    let batch = replay.poll_append(at(0)).unwrap();
    assert_eq!(batch.state, Some(RunState::RollingBack));
}

#[test]
fn the_first_cause_of_unwinding_stays() {
    let failure = Failure::new(FailureKind::Exhausted, Location::root(), "no");
    let mut ledger = Ledger::default();
    for cause in [Some(failure.clone()), None] {
        ledger.take(&Location::root(), &Body::Unwinding { cause });
    }
    assert_eq!(ledger.unwinds(), Some(&Unwinding::Failed(failure)));
}

#[test]
fn what_was_settled_stays_so_also_when_the_record_that_says_so_is_pruned() {
    let mut replay = live();
    let [x, y] = join(&mut replay);
    let first = pending(replay.issue(x, &A, undone(false)));
    let second = pending(replay.issue(y, &A, undone(false)));
    run(&mut replay, &first, "1");
    let mut history = append(&mut replay);
    // Its entry is still queued when the other branch settles.
    run(&mut replay, &second, "2");
    assert_eq!(open(&replay).len(), 2);
    replay.settle(x, &PAID);
    assert_eq!(open(&replay), []);
    let batch = replay.poll_append(at(0)).unwrap();
    assert_eq!(batch.deletes, [ledger_location(1)]);
    history.retain(|record| !matches!(record.body, Body::Armed { .. }));
    history.extend(batch.records);
    history.retain(|record| !matches!(record.body, Body::Settled { .. }));
    assert_eq!(Ledger::of(&history).newest(), None);
}

// U12
#[test]
fn settling_keeps_the_entry_of_a_body_that_runs_beside_it() {
    for durable in [false, true] {
        let mut replay = live();
        let [x, y] = join(&mut replay);
        let running = pending(replay.issue(y, &A, undone(true)));
        assert!(!begins(&mut replay, &running));
        if durable {
            append(&mut replay);
            assert!(begins(&mut replay, &running));
        }
        replay.settle(x, &PAID);
        assert_eq!(open(&replay), [(2, "j/y/a".to_owned(), false)]);
        replay.handle_flush();
        append(&mut replay);
        assert!(durable || begins(&mut replay, &running));
        end(&mut replay, &running, Ok("1"));
        append(&mut replay);
        assert_eq!(open(&replay), [(2, "j/y/a".to_owned(), true)]);
    }
}

#[test]
fn a_run_that_is_cancelled_while_it_replays_is_undone_by_what_is_recorded() {
    let (_, history) = a_undone();
    let mut replay = load(history);
    replay.checkpoint(Scope::ROOT, &C);
    ready(replay.issue(Scope::ROOT, &A, undone(false)));
    // Not recorded, and of code that may not fit the history.
    replay.settle(Scope::ROOT, &PAID);
    assert_eq!(open(&replay), []);
    assert!(replay.unwind());
    let batch = replay.poll_append(at(0)).unwrap();
    assert_eq!((batch.records.len(), batch.deletes.len()), (1, 0));
    assert_eq!(open(&replay), [(1, "a".to_owned(), true)]);
}

// U12
#[test]
fn a_loser_that_was_dropped_in_its_body_is_undone_only_if_the_undo_takes_the_unknown() {
    for unknown in [false, true] {
        let mut replay = live();
        let Entered::Open { scope, .. } =
            replay.enter(Scope::ROOT, &R, Container::Race(&["x", "y"]))
        else {
            panic!()
        };
        let [x, y] = ["x", "y"].map(|name| replay.member(scope, Member::Branch(name)));
        let slow = pending(replay.issue(x, &A, undone(unknown)));
        let fast = pending(replay.issue(y, &B, STEP));
        if unknown {
            assert!(!begins(&mut replay, &slow));
            append(&mut replay);
        }
        assert!(begins(&mut replay, &slow));
        run(&mut replay, &fast, "1");
        append(&mut replay);
        assert!(replay.poll_handout());
        got(&mut replay, &fast).unwrap();
        assert!(replay.decide(scope, 1));
        assert_eq!(replay.alive(), 0);
        assert_eq!(open(&replay).len(), usize::from(unknown));
        replay.handle_flush();
        let batch = replay.poll_append(at(0)).unwrap();
        assert!(
            batch
                .deletes
                .iter()
                .all(|gone| !ledger_location(1).is_under(gone))
        );
    }
}

#[test]
fn a_name_that_was_declared_removed_is_no_checkpoint() {
    static GONE: Site = Site::new("a", Kind::Removed, "a", "src/x.rs", 21);
    static AGAIN: Site = Site::new("a", Kind::Version, "a", "src/x.rs", 22);
    let mut replay = load(a_then_b());
    assert!(replay.removed(Scope::ROOT, &GONE, Kind::Step));
    ready(replay.issue(Scope::ROOT, &B, STEP));
    assert!(replay.handle_quiet());
    replay.settle(Scope::ROOT, &AGAIN);
    assert_eq!(replay.phase(), Phase::Diverged);
}
