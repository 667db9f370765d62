//! Notes, visits, and the held gate.

use super::*;

fn state(revision: u64) -> Body {
    Body::State {
        revision,
        payload: Payload::json(revision.to_string().into_bytes()),
        command: None,
    }
}

fn note(replay: &mut Replay, revision: u64, noting: Noting) -> Noted {
    replay.note(
        position_location(&Location::root(), revision),
        state(revision),
        noting,
    )
}

fn is_durable(replay: &mut Replay, noted: Noted) -> bool {
    replay.poll_noted(noted, Waker::noop()).is_ready()
}

fn places(records: &[Record]) -> Vec<String> {
    let places = records.iter().map(|record| record.location.to_string());
    places.map(|place| place.replace('\0', ".")).collect()
}

/// A guided flow whose first visit of `s` has `a` behind it and is at `b`.
fn at_b() -> (Replay, Vec<Record>, Scope) {
    let mut replay = live();
    replay.await_desk("\0guide");
    note(&mut replay, 1, Noting::Intent);
    let mut history = append(&mut replay);
    let visit = replay.visit(Scope::ROOT, "s", 1, None);
    let ticket = pending(replay.issue(visit, &A, STEP));
    run(&mut replay, &ticket, "1");
    history.extend(append(&mut replay));
    assert!(replay.poll_handout());
    got(&mut replay, &ticket).unwrap();
    let ticket = pending(replay.issue(visit, &B, STEP));
    assert!(replay.may_run(&ticket, Waker::noop()).is_ready());
    (replay, history, visit)
}

/// A guided flow that waits for its person, as its row says.
fn resting() -> Replay {
    let mut replay = live();
    replay.await_desk("\0guide");
    let _ = append(&mut replay);
    replay.handle_inbox(Vec::new(), false);
    assert_eq!(replay.poll_suspend(), None, "its row is to say so first");
    let _ = append(&mut replay);
    replay
}

fn loaded(history: &[Record], alive: &[Alive]) -> Replay {
    let row = Standing::default();
    let nothing = Alive {
        base: Location::root(),
        visit: None,
        earlier: Vec::new(),
    };
    let alive = if alive.is_empty() {
        std::slice::from_ref(&nothing)
    } else {
        alive
    };
    Replay::load_alive(history.to_vec(), CodeId(1), row, alive).unwrap()
}

fn visit_location(number: u64) -> Location {
    Location::root().branch("s").iteration(number)
}

/// The visit of that number, which goes on from `first`.
fn alive(number: u64, first: u64) -> Alive {
    Alive {
        base: Location::root(),
        visit: Some(visit_location(number)),
        earlier: (first..number).map(visit_location).collect(),
    }
}

#[test]
fn a_note_is_durable_with_its_batch_and_not_before() {
    let mut replay = live();
    let _ = append(&mut replay);
    let first = note(&mut replay, 1, Noting::Durable);
    let batch = replay.poll_append(at(0)).unwrap();
    let second = note(&mut replay, 2, Noting::Durable);
    assert_eq!(places(&batch.records), [".state[1]"]);
    assert!(!is_durable(&mut replay, first));
    replay.handle_appended();
    assert!(is_durable(&mut replay, first));
    assert!(!is_durable(&mut replay, second));
    let _ = append(&mut replay);
    assert!(is_durable(&mut replay, second));
}

#[test]
fn a_rider_goes_with_what_is_written_next() {
    let mut replay = live();
    let _ = append(&mut replay);
    note(&mut replay, 1, Noting::Rider);
    assert!(!replay.wants_append());
    note(&mut replay, 2, Noting::Durable);
    assert_eq!(places(&append(&mut replay)), [".state[1]", ".state[2]"]);
}

#[test]
fn no_body_begins_before_the_note_that_says_so_is_durable() {
    let mut replay = resting();
    note(&mut replay, 1, Noting::Intent);
    let visit = replay.visit(Scope::ROOT, "s", 1, None);
    let ticket = pending(replay.issue(visit, &A, STEP));
    assert!(replay.may_run(&ticket, Waker::noop()).is_pending());
    let batch = replay.poll_append(at(0)).unwrap();
    // The run is at something: a restart takes it up by itself.
    assert_eq!(batch.state, Some(RunState::Running));
    assert!(replay.may_run(&ticket, Waker::noop()).is_pending());
    replay.handle_appended();
    assert!(replay.may_run(&ticket, Waker::noop()).is_ready());
}

#[test]
fn a_flow_that_waits_for_its_person_rests_and_leaves_no_trace_of_it() {
    let mut replay = live();
    replay.await_desk("\0guide");
    note(&mut replay, 1, Noting::Durable);
    let _ = append(&mut replay);
    assert_eq!(replay.wants_inbox(), Some(0));
    replay.handle_inbox(Vec::new(), false);
    assert_eq!(replay.poll_suspend(), None, "its row is to say so first");
    let batch = replay.poll_append(at(0)).unwrap();
    assert_eq!(batch.records, []);
    assert_eq!(batch.state, Some(RunState::Waiting));
    assert_eq!(batch.waits, Some(Some(vec!["\0guide".to_owned()])));
    replay.handle_appended();
    assert!(replay.poll_suspend().is_some());
    // A command: its note, and the row stays as it is.
    note(&mut replay, 2, Noting::Durable);
    let batch = replay.poll_append(at(0)).unwrap();
    assert_eq!((batch.state, batch.waits), (None, None));
}

#[test]
fn only_the_visits_that_are_alive_are_replayed() {
    let (mut replay, mut history, visit) = at_b();
    replay.abandon(visit);
    note(&mut replay, 2, Noting::Intent);
    history.extend(append(&mut replay));
    let second = replay.visit(Scope::ROOT, "s", 2, Some(1));
    let ticket = pending(replay.issue(second, &A, STEP));
    run(&mut replay, &ticket, "2");
    history.extend(append(&mut replay));
    assert_eq!(
        places(&history),
        [
            "",
            ".state[1]",
            "s[1]",
            "s[1]/a",
            ".state[2]",
            "s[2]",
            "s[2]/a"
        ]
    );

    let mut none = loaded(&history, &[]);
    assert!(none.handle_quiet(), "there is nothing to be replayed");
    assert_eq!(
        none.position(&Location::root()).unwrap().bytes,
        "2".as_bytes()
    );

    let mut again = loaded(&history, &[alive(2, 1)]);
    let scope = again.visit(Scope::ROOT, "s", 2, Some(1));
    assert_eq!(ready(again.issue(scope, &A, STEP)), "2");
    assert!(again.handle_quiet());
}

#[test]
fn a_held_gate_says_which_effects_are_at_the_frontier_and_which_only_wait() {
    let (_, history, _) = at_b();
    let mut replay = loaded(&history, &[alive(1, 1)]);
    replay.await_desk("\0guide");
    replay.hold_gate();
    let visit = replay.visit(Scope::ROOT, "s", 1, None);
    assert_eq!(ready(replay.issue(visit, &A, STEP)), "1");
    assert!(replay.poll_gate(Waker::noop()).is_pending());
    let step = pending(replay.issue(visit, &B, STEP));
    assert!(!replay.handle_quiet(), "somebody holds it");
    let Poll::Ready(frontier) = replay.poll_gate(Waker::noop()) else {
        panic!("the gate was reached");
    };
    let effects: Vec<_> = frontier.effects.iter().map(ToString::to_string).collect();
    assert_eq!(effects, ["s[1]/b"]);
    assert_eq!(frontier.waits, 1, "for its person");
    assert!(replay.may_run(&step, Waker::noop()).is_pending());
    assert!(replay.poll_append(at(0)).is_none());

    // It is not to go on: nothing of it ever begins.
    replay.abandon(visit);
    replay.open_gate();
    assert!(replay.handle_quiet());
    assert!(replay.may_run(&step, Waker::noop()).is_pending());
    assert_eq!(replay.alive(), 0);
}

#[test]
fn what_was_done_in_an_abandoned_visit_is_written_all_the_same() {
    let mut replay = live();
    replay.await_desk("\0guide");
    let _ = append(&mut replay);
    let visit = replay.visit(Scope::ROOT, "s", 1, None);
    let ended = pending(replay.issue(visit, &A, STEP));
    run(&mut replay, &ended, "1");
    replay.abandon(visit);
    note(&mut replay, 1, Noting::Durable);
    assert_eq!(
        places(&append(&mut replay)),
        ["s[1]", "s[1]/a", ".state[1]"]
    );
    assert!(!replay.poll_handout(), "nobody waits for it any more");
    assert_eq!(replay.pending(), 1, "only the person is waited for");
}

#[test]
fn a_body_that_no_longer_fits_its_visit_diverges() {
    let (_, history, _) = at_b();
    let mut replay = loaded(&history, &[alive(1, 1)]);
    let visit = replay.visit(Scope::ROOT, "s", 1, None);
    assert!(matches!(replay.issue(visit, &B, STEP), Issue::Never));
    let told = replay.divergence().unwrap().to_string();
    assert!(told.contains("s[1]/b") && told.contains("s[1]/a"), "{told}");
}

#[test]
fn what_succeeded_in_an_earlier_visit_is_not_had_again() {
    let (mut replay, mut history, visit) = at_b();
    replay.abandon(visit);
    let second = replay.visit(Scope::ROOT, "s", 2, Some(1));
    let kept = Kept::of(&history, &[visit_location(1)]);
    replay.keep(second, visit_location(1), kept);
    // Another order than before: it is found by its place.
    let b = pending(replay.issue(second, &B, STEP));
    run(&mut replay, &b, "2");
    history.extend(append(&mut replay));
    assert!(replay.poll_handout());
    assert_eq!(got(&mut replay, &b).as_deref(), Some("2"));
    assert_eq!(ready(replay.issue(second, &A, STEP)), "1");
    note(&mut replay, 3, Noting::Durable);
    let batch = append(&mut replay);
    assert_eq!(places(&batch), ["s[2]/a", ".state[3]"]);
    history.extend(batch);

    // It is in this visit's own records now, and replayed from them.
    let mut again = loaded(&history, &[alive(2, 2)]);
    let second = again.visit(Scope::ROOT, "s", 2, Some(1));
    assert_eq!(ready(again.issue(second, &B, STEP)), "2");
    assert_eq!(ready(again.issue(second, &A, STEP)), "1");
    assert!(again.handle_quiet());
}

#[test]
fn what_is_kept_is_given_at_a_held_gate_and_what_comes_after_it_is_what_was_cut_off() {
    let (_, history, _) = at_b();
    let mut replay = loaded(&history, &[alive(2, 1)]);
    replay.hold_gate();
    let second = replay.visit(Scope::ROOT, "s", 2, Some(1));
    let a = pending(replay.issue(second, &A, STEP));
    assert!(replay.handle_quiet());
    assert!(replay.poll_handout());
    assert_eq!(got(&mut replay, &a).as_deref(), Some("1"));
    let b = pending(replay.issue(second, &B, STEP));
    assert!(!replay.handle_quiet());
    let held = Held {
        effects: vec![visit_location(2).site("b")],
        waits: 0,
    };
    assert_eq!(replay.poll_gate(Waker::noop()), Poll::Ready(held));
    assert!(replay.may_run(&b, Waker::noop()).is_pending());
    replay.open_gate();
    assert!(replay.handle_quiet());
    assert!(replay.may_run(&b, Waker::noop()).is_ready());
}

#[test]
fn a_visit_derives_as_the_first_one_that_it_goes_on_from() {
    let mut replay = live();
    let third = replay.visit(Scope::ROOT, "s", 3, Some(2));
    replay.keep(third, visit_location(1), Kept::default());
    let below = |number| visit_location(number).site("a");
    assert_eq!(replay.origin(&below(3)), below(1));
    assert_eq!(replay.origin(&below(4)), below(4));
    replay.abandon(third);
    assert_eq!(replay.origin(&below(3)), below(3));
}

#[test]
fn a_run_that_is_at_something_else_does_not_rest() {
    let mut replay = resting();
    assert!(replay.poll_suspend().is_some());
    replay.stay_up();
    note(&mut replay, 1, Noting::Durable);
    let batch = replay.poll_append(at(0)).unwrap();
    assert_eq!(batch.state, Some(RunState::Running));
    replay.handle_appended();
    assert!(replay.poll_suspend().is_none());
    replay.settle_in();
    assert!(
        replay.poll_suspend().is_none(),
        "its row is to say so first"
    );
    let _ = append(&mut replay);
    assert!(replay.poll_suspend().is_some());
}
