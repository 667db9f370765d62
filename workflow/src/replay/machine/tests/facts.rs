//! Version gates and declared removals.

use super::*;

static V: Site = Site::new("v", Kind::Version, "v", "src/x.rs", 20);
static GONE: Site = Site::new("a", Kind::Removed, "a", "src/x.rs", 21);

fn step(replay: &mut Replay, scope: Scope, site: &'static Site) -> Vec<Record> {
    let ticket = pending(replay.issue(scope, site, STEP));
    let mut records = Vec::new();
    // A choice is to be durable first.
    replay.handle_flush();
    if replay.wants_append() {
        records = append(replay);
    }
    run(replay, &ticket, "1");
    records.extend(append(replay));
    assert!(replay.poll_handout());
    got(replay, &ticket).unwrap();
    records
}

// RVT-VER-01, RVT-VER-03
#[test]
fn a_fresh_run_gets_the_latest_version_and_keeps_it() {
    let mut replay = live();
    assert_eq!(replay.pin(Scope::ROOT, &V, 2), Pinned::Version(2));
    let history = step(&mut replay, Scope::ROOT, &A);
    for latest in [2, 3] {
        let mut replay = load(history.clone());
        assert_eq!(replay.pin(Scope::ROOT, &V, latest), Pinned::Version(2));
        ready(replay.issue(Scope::ROOT, &A, STEP));
        assert!(replay.handle_quiet());
    }
    let mut replay = load(history);
    assert_eq!(replay.pin(Scope::ROOT, &V, 1), Pinned::Unsupported(2));
}

// U5: what was chosen before an effect is durable before it.
#[test]
fn no_body_begins_before_the_version_is_durable() {
    let mut replay = live();
    replay.pin(Scope::ROOT, &V, 2);
    let ticket = pending(replay.issue(Scope::ROOT, &A, STEP));
    assert!(replay.may_run(&ticket, Waker::noop()).is_pending());
    let records = append(&mut replay);
    assert!(records.iter().any(|record| record.body
        == Body::Pin {
            value: 2,
            latest: 2
        }));
    assert!(replay.may_run(&ticket, Waker::noop()).is_ready());
}

// RVT-VER-02
#[test]
fn a_run_that_passed_under_older_code_gets_1() {
    let mut replay = load(a_then_b());
    assert_eq!(replay.pin(Scope::ROOT, &V, 4), Pinned::Version(1));
    ready(replay.issue(Scope::ROOT, &A, STEP));
    ready(replay.issue(Scope::ROOT, &B, STEP));
    assert!(replay.handle_quiet());

    let mut replay = load(a_then_b());
    ready(replay.issue(Scope::ROOT, &A, STEP));
    ready(replay.issue(Scope::ROOT, &B, STEP));
    assert_eq!(replay.pin(Scope::ROOT, &V, 4), Pinned::Version(4));
}

// U11
#[test]
fn a_gate_at_the_end_of_an_iteration_sees_the_iterations_after_it() {
    static L: Site = Site::new("l", Kind::Loop, "l", "src/x.rs", 10);
    let open = |replay: &mut Replay| match replay.enter(Scope::ROOT, &L, Container::Loop) {
        Entered::Open { scope, .. } => scope,
        Entered::Never => panic!(),
    };
    let mut replay = live();
    let scope = open(&mut replay);
    let mut history = Vec::new();
    for index in 0..2 {
        let iteration = replay.member(scope, Member::Iter(index));
        history.extend(step(&mut replay, iteration, &A));
        replay.leave(iteration);
    }

    let mut replay = load(history);
    let scope = open(&mut replay);
    let mut versions = Vec::new();
    for index in 0..2 {
        let iteration = replay.member(scope, Member::Iter(index));
        ready(replay.issue(iteration, &A, STEP));
        versions.push(replay.pin(iteration, &V, 2));
        replay.leave(iteration);
    }
    assert_eq!(versions, [Pinned::Version(1), Pinned::Version(2)]);
}

// U11
#[test]
fn a_gate_does_not_take_a_branch_beside_it_for_what_comes_after() {
    let open = |replay: &mut Replay| {
        let Entered::Open { scope, .. } =
            replay.enter(Scope::ROOT, &J, Container::Join(&["a", "b"]))
        else {
            panic!()
        };
        (
            replay.member(scope, Member::Branch("a")),
            replay.member(scope, Member::Branch("b")),
        )
    };
    let mut replay = live();
    let (_, b) = open(&mut replay);
    let history = step(&mut replay, b, &B);

    let mut replay = load(history);
    let (a, _) = open(&mut replay);
    assert_eq!(replay.pin(a, &V, 2), Pinned::Version(2));
}

// RVT-VER-05
#[test]
fn a_gate_where_a_step_is_recorded_diverges() {
    static AT_A: Site = Site::new("a", Kind::Version, "a", "src/x.rs", 22);
    let mut replay = load(a_then_b());
    assert_eq!(replay.pin(Scope::ROOT, &AT_A, 2), Pinned::Never);
    assert!(
        replay
            .divergence()
            .unwrap()
            .to_string()
            .contains("step `a`")
    );
}

#[test]
fn a_gate_may_go_when_its_runs_took_the_newest_way_and_not_before() {
    let mut replay = live();
    replay.pin(Scope::ROOT, &V, 2);
    let newest = step(&mut replay, Scope::ROOT, &A);
    let mut replay = load(newest);
    ready(replay.issue(Scope::ROOT, &A, STEP));
    assert!(replay.handle_quiet());

    let mut replay = load(a_then_b());
    replay.pin(Scope::ROOT, &V, 2);
    ready(replay.issue(Scope::ROOT, &A, STEP));
    ready(replay.issue(Scope::ROOT, &B, STEP));
    assert!(replay.handle_quiet());
    replay.handle_flush();
    let mut older = a_then_b();
    older.extend(append(&mut replay));
    let mut replay = load(older);
    ready(replay.issue(Scope::ROOT, &A, STEP));
    ready(replay.issue(Scope::ROOT, &B, STEP));
    assert!(!replay.handle_quiet());
    let report = replay.divergence().unwrap().to_string();
    assert!(
        report.contains("version 1, when 2 was the newest"),
        "{report}"
    );
}

// RVT-REM-01
#[test]
fn a_removed_step_is_covered_and_deleted_with_the_next_batch() {
    for kind in [Kind::Step, Kind::Call] {
        let mut replay = load(a_then_b());
        assert!(replay.removed(Scope::ROOT, &GONE, kind));
        ready(replay.issue(Scope::ROOT, &B, STEP));
        assert!(replay.handle_quiet(), "{:?}", replay.divergence());
        replay.handle_flush();
        let batch = replay.poll_append(at(0)).unwrap();
        assert_eq!(batch.deletes, [Location::root().site("a")]);
        assert!(matches!(
            batch.records[..],
            [Record {
                body: Body::Removed { .. },
                ..
            }]
        ));
    }
}

// RVT-REM-02
#[test]
fn a_declaration_may_stay_and_may_go_but_the_site_may_not_come_back() {
    let mut replay = load(a_then_b());
    replay.removed(Scope::ROOT, &GONE, Kind::Step);
    ready(replay.issue(Scope::ROOT, &B, STEP));
    assert!(replay.handle_quiet());
    replay.handle_flush();
    let mut history: Vec<_> = a_then_b();
    history.retain(|record| record.location != Location::root().site("a"));
    history.extend(append(&mut replay));

    let mut replay = load(history.clone());
    replay.removed(Scope::ROOT, &GONE, Kind::Step);
    ready(replay.issue(Scope::ROOT, &B, STEP));
    assert!(replay.handle_quiet());
    replay.handle_flush();
    assert!(replay.poll_append(at(0)).is_none(), "it is said once");

    let mut replay = load(history.clone());
    ready(replay.issue(Scope::ROOT, &B, STEP));
    assert!(replay.handle_quiet());

    let mut replay = load(history);
    assert!(matches!(replay.issue(Scope::ROOT, &A, STEP), Issue::Never));
    let report = replay.divergence().unwrap().to_string();
    assert!(report.contains("that a step was removed here"), "{report}");
}

// RVT-REM-03
#[test]
fn a_removed_site_of_another_kind_diverges() {
    let mut replay = load(a_then_b());
    assert!(!replay.removed(Scope::ROOT, &GONE, Kind::Sleep));
    let report = replay.divergence().unwrap().to_string();
    assert!(report.contains("that a sleep `a` was removed"), "{report}");
}

#[test]
fn a_block_whose_failures_stop_at_its_edge_is_entered_again() {
    static T: Site = Site::new("t", Kind::Attempt, "t", "src/x.rs", 23);
    let mut replay = live();
    let Entered::Open { scope, .. } = replay.enter(Scope::ROOT, &T, Container::Attempt) else {
        panic!()
    };
    let history = step(&mut replay, scope, &A);
    let mut replay = load(history);
    let Entered::Open { scope, .. } = replay.enter(Scope::ROOT, &T, Container::Attempt) else {
        panic!("{:?}", replay.divergence())
    };
    ready(replay.issue(scope, &A, STEP));
    replay.leave(scope);
    assert!(replay.handle_quiet());
}

// 9: nothing stays recorded under a loser.
#[test]
fn a_version_that_a_losing_branch_was_pinned_to_is_deleted_with_it_also_after_a_restart() {
    let open = |replay: &mut Replay| {
        let Entered::Open { scope: race, .. } =
            replay.enter(Scope::ROOT, &R, Container::Race(&["a", "b"]))
        else {
            panic!()
        };
        let a = replay.member(race, Member::Branch("a"));
        assert_eq!(replay.pin(a, &V, 2), Pinned::Version(2));
        (race, replay.member(race, Member::Branch("b")))
    };
    let mut replay = live();
    let (_, b) = open(&mut replay);
    let step = pending(replay.issue(b, &B, STEP));
    replay.handle_flush();
    let mut history = append(&mut replay);
    run(&mut replay, &step, "1");
    history.extend(append(&mut replay));

    let mut replay = load(history);
    let (race, b) = open(&mut replay);
    let step = pending(replay.issue(b, &B, STEP));
    assert!(replay.poll_handout());
    got(&mut replay, &step).unwrap();
    assert!(replay.decide(race, 1));
    replay.leave(race);
    assert!(replay.finish(Finished::Completed(Payload::json("1"))));
    let batch = replay.poll_append(at(0)).unwrap();
    assert_eq!(batch.deletes, [Location::root().site("r").branch("a")]);
}
