//! Random programs, killed at any instant, keep to the laws of replay.

use std::cell::Cell;
use std::collections::BTreeSet;

use workflow::Location;
use workflow::replay::{Body, Record};
use workflow_tests::program::{
    Branch, Broken, Cut, Features, How, Life, Node, Plan, Program, Random, Verdict, World, cases,
    check, live_cut_everywhere, live_in_engine, live_on_disk, replayed,
};

/// Lives a program's life, and says what happened when a law was broken.
fn lives(program: &Program, seed: u64, plan: Plan) -> Result<Verdict, (Broken, String)> {
    let mut life = Life::new(program, seed, seed.is_multiple_of(2));
    life.live(plan)
        .map_err(|broken| (broken, format!("{plan:?}\n{}", life.world().told())))
}

// UA-21
#[test]
fn a_random_program_that_is_killed_at_random_keeps_every_law() {
    let (killed, drives) = (Cell::new(0), Cell::new(0));
    for features in &Features::ALL {
        check(features, cases(6_000) / 15, 3, |program, seed| {
            let verdict = lives(program, seed, Plan::Often)?;
            killed.set(killed.get() + verdict.killed);
            drives.set(drives.get() + verdict.drives);
            Ok(())
        });
    }
    // Or nothing was tried.
    assert!(
        killed.get() * 4 > drives.get(),
        "killed {killed:?} times in {drives:?} drives"
    );
}

#[test]
fn a_small_program_may_be_killed_at_every_instant() {
    for features in &Features::ALL {
        check(features, cases(6_000) / 400, 2, |program, seed| {
            let whole = lives(program, seed, Plan::Whole)?;
            for instant in 0..whole.instants.min(150) {
                lives(program, seed, Plan::Once(instant))?;
            }
            Ok(())
        });
    }
}

#[test]
fn a_small_program_may_be_killed_at_every_pair_of_instants() {
    for features in &Features::ALL {
        check(features, cases(6_000) / 1_000, 1, |program, seed| {
            let whole = lives(program, seed, Plan::Whole)?;
            let instants = whole.instants.min(25);
            for first in 0..instants {
                for second in 0..instants {
                    lives(program, seed, Plan::Twice(first, second))?;
                }
            }
            Ok(())
        });
    }
}

#[test]
fn what_the_outcomes_determine_comes_out_the_same_in_every_schedule() {
    let features = Features::ALL.iter().find(|features| features.steady);
    let features = features.expect("one of them is steady");
    check(features, cases(6_000) / 10, 3, |program, seed| {
        let answer = |seed, plan| {
            let mut life = Life::new(program, seed, false);
            let lived = life.live(plan);
            let verdict = lived.map_err(|broken| (broken, life.world().told()))?;
            Ok(verdict.answer)
        };
        let whole = answer(seed, Plan::Whole)?;
        for schedule in [seed ^ 0xff, seed ^ 0xff00] {
            let again = answer(schedule, Plan::Often)?;
            if again != whole {
                let what = format!("{whole} crash-free, {again} with crashes");
                return Err((Broken::answer(what), String::new()));
            }
        }
        Ok(())
    });
}

fn step(name: &'static str) -> Node {
    Node::Step {
        name,
        how: How::Succeeds,
        caught: false,
    }
}

/// `join!(j, x = { a; a2 }, y = { b; b2 }, z = { c; c2 })`, each branch telling the others what it got.
fn join_of_three() -> Program {
    let branch = |name, steps: [&'static str; 2]| Branch {
        name,
        body: vec![step(steps[0]), Node::Push, step(steps[1]), Node::Push],
    };
    let branches = vec![
        branch("x", ["a", "a2"]),
        branch("y", ["b", "b2"]),
        branch("z", ["c", "c2"]),
    ];
    let join = Node::Join {
        name: "j",
        branches,
        caught: false,
    };
    Program::new(vec![join, step("last")])
}

/// The order in which outcomes are recorded.
fn order(history: &[Record]) -> Vec<Location> {
    let ended = history
        .iter()
        .filter(|record| matches!(record.body, Body::Ended(_)));
    ended.map(|record| record.location.clone()).collect()
}

// UA-01: the steps of a join finish in all 6 orders, and the run is killed after each.
#[test]
fn a_join_resumes_whichever_of_its_steps_ended_first() {
    let program = join_of_three();
    let mut orders = BTreeSet::new();
    for seed in 0..60 {
        let mut whole = Life::new(&program, seed, true);
        let verdict = whole.live(Plan::Whole).expect("no law is broken");
        let first: Vec<_> = order(&whole.history())
            .into_iter()
            .filter(|at| ["j/x/a", "j/y/b", "j/z/c"].contains(&at.to_string().as_str()))
            .collect();
        orders.insert(first);
        for instant in 0..verdict.instants {
            let mut life = Life::new(&program, seed, true);
            let lived = life.live(Plan::Once(instant));
            assert!(lived.is_ok(), "{lived:?}\n{}", life.world().told());
        }
    }
    assert_eq!(orders.len(), 6);
}

// UA-11, second half: nothing in here depends on how maps are hashed, which differs for each of them.
#[test]
fn a_history_that_is_replayed_100_times_comes_to_the_same_records() {
    let program = Program::new(vec![
        Node::JoinAll {
            name: "all",
            items: 40,
            limit: Some(30),
            keyed: true,
            body: vec![step("s"), Node::Push],
            caught: false,
        },
        step("last"),
    ]);
    for cut in [30, 90, 150, 1_000] {
        let mut life = Life::new(&program, 11, true);
        life.drive(Cut::At(cut));
        let history = life.history();
        let first = replayed(&program, &history).expect("no law is broken");
        for _ in 0..100 {
            assert_eq!(
                replayed(&program, &history).expect("no law is broken"),
                first
            );
        }
    }
    // And live: the same schedule gives the same records, byte for byte.
    let live = || {
        let mut life = Life::new(&program, 11, true);
        life.live(Plan::Once(60)).expect("no law is broken");
        life.history()
    };
    let first = live();
    for _ in 0..20 {
        assert_eq!(live(), first);
    }
}

// UA-12: each branch asserts that its item's result is its own, and each body that it is told its own location.
#[test]
fn a_fan_out_by_key_finds_each_items_result_whatever_the_order_of_their_ends() {
    let program = Program::new(vec![Node::JoinAll {
        name: "all",
        items: 8,
        limit: Some(5),
        keyed: true,
        body: vec![step("fetch"), Node::Push, step("store")],
        caught: false,
    }]);
    let mut orders = BTreeSet::new();
    for seed in 0..100 {
        let mut life = Life::new(&program, seed, true);
        let lived = life.live(Plan::Often);
        assert!(lived.is_ok(), "{lived:?}\n{}", life.world().told());
        orders.insert(order(&life.history()));
    }
    assert!(orders.len() > 50, "{} orders", orders.len());
}

// UA-13
#[test]
fn a_slow_loser_is_entered_once() {
    let branch = |name, step| Branch {
        name,
        body: vec![step],
    };
    let race = Node::Race {
        name: "r",
        branches: vec![branch("a", step("a")), branch("c", step("c"))],
        caught: false,
    };
    let program = Program::new(vec![race, step("b")]);
    for seed in 0..50 {
        let mut life = Life::new(&program, seed, true);
        life.live(Plan::Whole).expect("no law is broken");
        let at = |branch: &str| Location::root().site("r").branch(branch).site(branch);
        let entered = |at: &Location| World::entered(life.world(), at);
        assert_eq!((entered(&at("a")), entered(&at("c"))), (1, 1));
    }
}

#[test]
fn a_random_program_keeps_every_law_in_engines_that_die() {
    let engines = Cell::new(0);
    for features in &Features::ALL {
        check(features, cases(6_000) / 60, 3, |program, seed| {
            engines.set(engines.get() + live_in_engine(program, seed)?);
            Ok(())
        });
    }
    let programs = cases(6_000) / 60 * Features::ALL.len() as u64;
    assert!(
        u64::from(engines.get()) > programs,
        "{engines:?} engines for {programs} programs"
    );
}

fn named(name: &'static str, body: Vec<Node>) -> Branch {
    Branch { name, body }
}

/// Tries every order in which things can happen to this program: bodies end, batches are written, deadlines pass, the store fails
/// or the run leaves memory (`exceptions` times); and in each order a kill at each instant. How many orders there are, and lives.
fn in_all_orders(program: &Program, exceptions: u32) -> (u64, u64) {
    let (mut orders, mut lives) = (0, 0);
    let mut schedule = Random::exploring(exceptions);
    loop {
        let mut live = |schedule: Random, plan| {
            let mut life = Life::scheduled(program, 1, true, schedule);
            let verdict = life.live(plan);
            lives += 1;
            let broken = |broken| {
                panic!(
                    "{plan:?} of order {orders}:\n{program}\n{}\n{broken}",
                    life.world().told()
                )
            };
            (verdict.unwrap_or_else(broken), life.into_schedule())
        };
        let (whole, after) = live(schedule, Plan::Whole);
        for instant in 0..whole.instants {
            live(after.again(), Plan::Once(instant));
        }
        schedule = after;
        orders += 1;
        if !schedule.next_path() {
            return (orders, lives);
        }
    }
}

#[test]
fn a_small_join_or_race_keeps_every_law_in_all_orders_of_what_can_happen() {
    let join = |name, branches| Node::Join {
        name,
        branches,
        caught: false,
    };
    let race = |name, branches| Node::Race {
        name,
        branches,
        caught: false,
    };
    let sleep = |name| Node::Sleep(name, 5);
    let two = || vec![named("x", vec![step("a")]), named("y", vec![step("b")])];
    let often = if cases(6_000) > 6_000 { 2 } else { 1 };
    let programs = [
        (often, vec![join("j", two()), step("last")]),
        (often, vec![race("r", two()), step("last")]),
        (
            0,
            vec![join(
                "j",
                vec![
                    named("x", vec![step("a")]),
                    named("y", vec![step("b")]),
                    named("z", vec![step("c")]),
                ],
            )],
        ),
        (
            0,
            vec![race(
                "r",
                vec![
                    named("x", vec![step("a"), step("a2")]),
                    named("y", vec![step("b"), step("b2")]),
                ],
            )],
        ),
        (
            1,
            vec![
                race(
                    "r",
                    vec![named("x", vec![step("a")]), named("late", vec![sleep("s")])],
                ),
                step("last"),
            ],
        ),
        (
            0,
            vec![join(
                "j",
                vec![
                    named("x", vec![race("r", two())]),
                    named("y", vec![step("c")]),
                ],
            )],
        ),
        (
            0,
            vec![
                race(
                    "r",
                    vec![
                        named("x", vec![join("j", two())]),
                        named("y", vec![step("c")]),
                    ],
                ),
                step("last"),
            ],
        ),
    ];
    for (exceptions, nodes) in programs {
        let program = Program::new(nodes);
        let (orders, lives) = in_all_orders(&program, exceptions);
        assert!(
            orders > 50 && lives > orders * 10,
            "{orders} orders, {lives} lives of\n{program}"
        );
    }
}

// UA-75
#[test]
fn a_random_program_keeps_every_law_over_a_redb_store_whose_power_fails() {
    let engines = Cell::new(0);
    for features in &Features::ALL {
        check(features, cases(6_000) / 300, 3, |program, seed| {
            engines.set(engines.get() + live_on_disk(program, seed)?);
            Ok(())
        });
    }
    let programs = cases(6_000) / 300 * Features::ALL.len() as u64;
    assert!(
        u64::from(engines.get()) > programs,
        "{engines:?} engines for {programs} programs"
    );
}

#[test]
fn a_small_program_keeps_every_law_in_an_engine_that_dies_at_any_commit_or_instant() {
    let engines = Cell::new(0);
    for features in &Features::ALL {
        check(features, cases(6_000) / 1_000, 1, |program, seed| {
            engines.set(engines.get() + live_cut_everywhere(program, seed)?);
            Ok(())
        });
    }
    let programs = cases(6_000) / 1_000 * Features::ALL.len() as u64;
    assert!(u64::from(engines.get()) > programs * 49, "{engines:?}");
}
