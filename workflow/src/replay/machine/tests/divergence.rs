//! Reports: each says what is recorded, of which kind and where, and which file and line of the code now it concerns.

use super::*;

static V: Site = Site::new("v", Kind::Version, "v", "src/x.rs", 20);
static MARK: Site = Site::new("v", Kind::Checkpoint, "v", "src/x.rs", 21);
static REMOVED: Site = Site::new("a", Kind::Removed, "a", "src/x.rs", 22);
static F: Site = Site::new("f", Kind::Call, "f", "src/x.rs", 23);
static L: Site = Site::new("l", Kind::Loop, "l", "src/x.rs", 24);

const END: Finished = Finished::Cancelled;

/// What the code of a history of `a` and `b` is now, and what the report has to say beside `src/x.rs`.
fn report(
    history: Vec<Record>,
    sites: &'static [Site],
    code: impl FnOnce(&mut Replay),
    said: &[&str],
) -> Divergence {
    let mut replay = load(history);
    replay.knows(sites);
    code(&mut replay);
    let divergence = replay.divergence().expect("it diverges").clone();
    let text = divergence.to_string();
    for said in said {
        assert!(text.contains(said), "`{said}` is not in:\n{text}");
    }
    assert!(divergence.sites().next().is_some(), "{text}");
    divergence
}

fn passed(replay: &mut Replay, site: &'static Site) {
    assert!(matches!(
        replay.issue(Scope::ROOT, site, STEP),
        Issue::Ready(_)
    ));
}

fn quiet(replay: &mut Replay) {
    assert!(!replay.poll_handout() && !replay.handle_quiet());
}

// UA-45
#[test]
fn another_site_is_reported_with_its_place_and_with_where_the_recorded_one_is_now() {
    let reached = |replay: &mut Replay| {
        let _ = replay.issue(Scope::ROOT, &B, STEP);
    };
    // (the sites of the code now, what is said of `a`, the likely cause)
    let inserted = report(
        a_then_b(),
        const { &[B, A] },
        reached,
        &[
            "recorded: step `a` (record 2)",
            "issued:   b (step) at src/x.rs:2",
            "it is now: a (step) at src/x.rs:1",
        ],
    );
    assert_eq!(inserted.now, Now::At(A));
    assert_eq!(
        inserted.likely_cause(),
        "a site was inserted before the recorded one, or the two changed places"
    );
    let renamed = report(
        a_then_b(),
        const { &[B] },
        reached,
        &["it is now: nowhere in the code"],
    );
    assert_eq!(
        renamed.likely_cause(),
        "the recorded site was removed or renamed"
    );
}

// UA-45
#[test]
fn an_end_too_early_says_after_which_site_it_comes() {
    let gone = report(
        a_then_b(),
        const { &[A] },
        |replay| {
            passed(replay, &A);
            assert!(!replay.finish(END));
        },
        &[
            "recorded: step `b` (record 3)",
            "the workflow's end, after a (step) at src/x.rs:1",
            "nowhere in the code",
        ],
    );
    assert_eq!(gone.standing, [A]);
    // It is still there, and is not reached.
    let unreached = report(
        a_then_b(),
        const { &[A, B] },
        |replay| {
            passed(replay, &A);
            assert!(!replay.finish(END));
        },
        &["it is now: b (step) at src/x.rs:2"],
    );
    assert_eq!(
        unreached.likely_cause(),
        "a condition before the site changed, or the site was moved"
    );
}

// UA-45
#[test]
fn what_is_not_reached_says_where_the_code_stands_instead() {
    // Another branch of a join waits, so `b` is no wrong head: it is left over.
    let mut replay = live();
    let names = ["x", "y"];
    let enter = |replay: &mut Replay| {
        let Entered::Open { scope, .. } = replay.enter(Scope::ROOT, &J, Container::Join(&names))
        else {
            panic!()
        };
        names.map(|name| replay.member(scope, Member::Branch(name)))
    };
    let [x, _] = enter(&mut replay);
    let a = pending(replay.issue(x, &A, STEP));
    run(&mut replay, &a, "1");
    let history = append(&mut replay);
    static LATER: Site = Site::new("z", Kind::Sleep, "j/y/z", "src/x.rs", 31);
    let stands = report(
        history.clone(),
        const { &[J, LATER] },
        |replay| {
            let [_, y] = enter(replay);
            pending(replay.issue(y, &LATER, Op::Sleep { until: at(1) }));
            quiet(replay);
        },
        &[
            "step `j/x/a` (record 3)",
            "it stands at z (sleep) at src/x.rs:31",
            "nowhere in the code",
        ],
    );
    assert_eq!(stands.issued, Issued::NotReached);
    // Nothing waits: then the last site that it came to.
    report(
        history,
        const { &[J] },
        |replay| {
            enter(replay);
            quiet(replay);
        },
        &["it stands at j (join) at src/x.rs:3"],
    );
}

// UA-45
#[test]
fn a_left_over_wait_is_reported_with_its_kind() {
    let mut replay = live();
    pending(replay.issue(Scope::ROOT, &Z, Op::Sleep { until: at(9) }));
    let history = append(&mut replay);
    report(
        history,
        const { &[A] },
        |replay| {
            let Entered::Open { scope, .. } = replay.enter(Scope::ROOT, &F, Container::Fragment)
            else {
                panic!()
            };
            replay.leave(scope);
            quiet(replay);
        },
        &[
            "recorded: sleep `z` (record 2)",
            "it stands at f (call) at src/x.rs:23",
        ],
    );
}

// UA-45
#[test]
fn a_site_in_a_fragment_is_told_to_be_there_if_anywhere() {
    let mut replay = live();
    let Entered::Open { scope, .. } = replay.enter(Scope::ROOT, &F, Container::Fragment) else {
        panic!()
    };
    let a = pending(replay.issue(scope, &A, STEP));
    run(&mut replay, &a, "1");
    let history = append(&mut replay);
    let within = report(
        history,
        const { &[F] },
        |replay| {
            let Entered::Open { scope, .. } = replay.enter(Scope::ROOT, &F, Container::Fragment)
            else {
                panic!()
            };
            let _ = replay.issue(scope, &B, STEP);
        },
        &[
            "step `f/a`",
            "b (step) at src/x.rs:2",
            "it is now: in f (call) at src/x.rs:23, if anywhere",
        ],
    );
    assert_eq!(within.now, Now::In(F));
}

// UA-45
#[test]
fn branches_items_and_winners_are_reported_with_the_container_and_its_place() {
    let history = |container| {
        let mut replay = live();
        let site = match container {
            Container::JoinAll(_) => &J,
            _ => &R,
        };
        let Entered::Open { scope, .. } = replay.enter(Scope::ROOT, site, container) else {
            panic!()
        };
        let member = match container {
            Container::JoinAll(_) => Member::Iter(0),
            _ => Member::Branch("x"),
        };
        let member = replay.member(scope, member);
        let a = pending(replay.issue(member, &A, STEP));
        run(&mut replay, &a, "1");
        let mut records = append(&mut replay);
        if matches!(container, Container::Race(_)) {
            assert!(replay.poll_handout());
            got(&mut replay, &a).unwrap();
            assert!(replay.decide(scope, 0));
            replay.handle_flush();
            records.extend(append(&mut replay));
        }
        records
    };
    let race = history(Container::Race(&["x", "y"]));
    report(
        race.clone(),
        const { &[R] },
        |replay| {
            replay.enter(Scope::ROOT, &R, Container::Race(&["x"]));
        },
        &[
            "branches x, y of `r`",
            "branches x of r (race) at src/x.rs:4",
        ],
    );
    report(
        race,
        const { &[R] },
        |replay| {
            let Entered::Open { scope, .. } =
                replay.enter(Scope::ROOT, &R, Container::Race(&["x", "y"]))
            else {
                panic!()
            };
            let y = replay.member(scope, Member::Branch("y"));
            assert!(!replay.decide(scope, 1), "{y:?}");
        },
        &[
            "branch `x` won `r`",
            "branch `y` won r (race) at src/x.rs:4",
        ],
    );
    report(
        history(Container::JoinAll(2)),
        const { &[J] },
        |replay| {
            replay.enter(Scope::ROOT, &J, Container::JoinAll(3));
        },
        &["2 items in `j`", "3 items in j (join_all) at src/x.rs:3"],
    );
}

// UA-45
#[test]
fn a_loop_that_no_longer_carries_names_what_it_did() {
    let mut replay = live();
    let Entered::Open { scope, .. } = replay.enter(Scope::ROOT, &L, Container::Carry(&["n"]))
    else {
        panic!()
    };
    let first = replay.member(scope, Member::Iter(0));
    let a = pending(replay.issue(first, &A, STEP));
    run(&mut replay, &a, "1");
    report(
        append(&mut replay),
        const { &[L] },
        |replay| {
            replay.enter(Scope::ROOT, &L, Container::Loop);
        },
        &["branches n of `l`", "l (loop) at src/x.rs:24"],
    );
}

// UA-45
#[test]
fn facts_are_reported_with_their_kind_and_place() {
    let mut replay = live();
    replay.checkpoint(Scope::ROOT, &MARK);
    let a = pending(replay.issue(Scope::ROOT, &A, STEP));
    run(&mut replay, &a, "1");
    let marked = append(&mut replay);
    report(
        marked,
        const { &[V, A] },
        |replay| assert_eq!(replay.pin(Scope::ROOT, &V, 2), Pinned::Never),
        &[
            "recorded: checkpoint `v` (record 2)",
            "v (version) at src/x.rs:20",
        ],
    );

    // A gate at which the run took the old way is no longer in the code.
    let mut replay = load(a_then_b());
    assert_eq!(replay.pin(Scope::ROOT, &V, 2), Pinned::Version(1));
    ready(replay.issue(Scope::ROOT, &A, STEP));
    ready(replay.issue(Scope::ROOT, &B, STEP));
    assert!(replay.handle_quiet());
    let _ = replay.issue(Scope::ROOT, &Z, Op::Sleep { until: at(1) });
    let mut pinned = a_then_b();
    pinned.extend(append(&mut replay));
    report(
        pinned,
        const { &[A, B, Z] },
        |replay| {
            passed(replay, &A);
            passed(replay, &B);
            pending(replay.issue(Scope::ROOT, &Z, Op::Sleep { until: at(1) }));
            quiet(replay);
        },
        &[
            "at `v`",
            "version 1, when 2 was the newest",
            "it stands at z (sleep) at src/x.rs:5",
        ],
    );

    // Declared removed, of another kind than it was.
    report(
        a_then_b(),
        const { &[REMOVED] },
        |replay| assert!(!replay.removed(Scope::ROOT, &REMOVED, Kind::Sleep)),
        &["step `a`", "that a sleep `a` was removed, at src/x.rs:22"],
    );

    // Declared removed, and there again.
    let mut replay = load(a_then_b());
    assert!(replay.removed(Scope::ROOT, &REMOVED, Kind::Step));
    passed(&mut replay, &B);
    assert!(replay.handle_quiet());
    let _ = replay.issue(Scope::ROOT, &Z, Op::Sleep { until: at(1) });
    let mut removed: Vec<_> = a_then_b();
    removed.retain(|record| record.location.to_string() != "a");
    removed.extend(append(&mut replay));
    report(
        removed,
        const { &[A, B] },
        |replay| {
            let _ = replay.issue(Scope::ROOT, &A, STEP);
        },
        &[
            "recorded: that a step was removed here",
            "a (step) at src/x.rs:1",
        ],
    );
}
