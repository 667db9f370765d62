//! `join_all!`.

use std::sync::Mutex;

use workflow::__private as p;
use workflow::{Failure, FailureKind, join_all};

use crate::driver::{Sim, run, site, sold_out, step, survives, value, workflow};

workflow!(squares, Fallible, Result<Vec<u32>, Failure>, |cx, log| {
    let items = [3u32, 1, 2];
    join_all!(@site cx site!("all", JoinAll); limit = p::None, items = items.iter(), key = [],
    slot => p::item(|| p::fut(async {
        let (cx, item) = slot.open();
        let cx = &cx;
        p::Ok::<_, p::Thrown>({ run!(cx, "square", value(&log, "square", item * item))? })
    })))
});

#[test]
fn results_come_in_input_order() {
    let (whole, end) = survives::<squares>(Sim::new);
    assert_eq!(end.value::<Vec<u32>>(), [9, 1, 4]);
    assert!(
        whole
            .history
            .iter()
            .any(|record| record.location.to_string() == "all[2]/square"),
        "{whole:?}"
    );
}

static ALIVE: Mutex<(u32, u32)> = Mutex::new((0, 0));

workflow!(
    limited,
    Fallible,
    Result<Vec<String>, Failure>,
    |cx, log| {
        let items: Vec<String> = (0..7).map(|n| format!("i{n}")).collect();
        join_all!(@site cx site!("all", JoinAll); limit = p::Some(3), items = items, key = [|item| p::key(&(item))],
        slot => p::item(|| p::fut(async {
            let (cx, item) = slot.open();
            let cx = &cx;
            p::Ok::<_, p::Thrown>({
                {
                    let mut alive = ALIVE.lock().unwrap();
                    alive.0 += 1;
                    alive.1 = alive.1.max(alive.0);
                }
                log.add(&item);
                let given = run!(cx, "s", value(&log, "s", item.clone()))?;
                ALIVE.lock().unwrap().0 -= 1;
                given
            })
        })))
    }
);

#[test]
fn so_many_run_at_once_and_they_start_in_input_order() {
    let mut sim = Sim::new();
    let given = sim.drive::<limited>().value::<Vec<String>>();
    assert_eq!(given, ["i0", "i1", "i2", "i3", "i4", "i5", "i6"]);
    let started: Vec<_> = sim
        .log
        .take()
        .into_iter()
        .filter(|line| line != "s")
        .collect();
    assert_eq!(started, given);
    assert_eq!(ALIVE.lock().unwrap().1, 3);
    assert!(
        sim.history
            .iter()
            .any(|record| record.location.to_string() == "all[i6]/s"),
        "{sim:?}"
    );
}

workflow!(some_fail, Fallible, Result<Vec<u32>, Failure>, |cx, log| {
    join_all!(@site cx site!("all", JoinAll); limit = p::Some(1), items = [true, false, true], key = [],
    slot => p::item(|| p::fut(async {
        let (cx, fails) = slot.open();
        let cx = &cx;
        p::Ok::<_, p::Thrown>({
            if fails { run!(cx, "s", sold_out(&log, "s"))? } else { run!(cx, "s", value(&log, "ok", 1u32))? }
        })
    })))
});

#[test]
fn a_failure_does_not_keep_the_rest_from_starting() {
    let (whole, end) = survives::<some_fail>(Sim::new);
    let failure = end.failure();
    assert_eq!(failure.kind(), FailureKind::Join);
    let at: Vec<_> = failure
        .branches()
        .iter()
        .map(|branch| branch.location().to_string())
        .collect();
    assert_eq!(at, ["all[0]/s", "all[2]/s"]);
    assert_eq!(whole.log.take(), ["s", "ok", "s"]);
}

workflow!(twins, Fallible, Result<Vec<u32>, Failure>, |cx, log| {
    let items = [("a", 1u32), ("b", 2), ("a", 3)];
    join_all!(@site cx site!("all", JoinAll); limit = p::None, items = items.iter(), key = [|(name, n)| p::key(&(name))],
    slot => p::item(|| p::fut(async {
        let (cx, (_, n)) = slot.open();
        let cx = &cx;
        p::Ok::<_, p::Thrown>({ run!(cx, "s", value(&log, "s", *n))? })
    })))
});

// U25
#[test]
fn two_items_with_one_key_fail_before_any_start() {
    let (whole, end) = survives::<twins>(Sim::new);
    let failure = end.failure();
    assert_eq!(
        (failure.kind(), failure.location().to_string()),
        (FailureKind::DuplicateKey, "all".into())
    );
    assert!(failure.message().contains("`a`"), "{failure}");
    assert_eq!(whole.log.take(), [""; 0]);
}

workflow!(nothing, Fallible, Result<Vec<u32>, Failure>, |cx, log| {
    let given = join_all!(@site cx site!("all", JoinAll); limit = p::Some(0), items = Vec::<u32>::new(), key = [],
    slot => p::item(|| p::fut(async {
        let (_, item) = slot.open();
        p::Ok::<_, p::Thrown>({ item })
    })))?;
    run!(cx, "after", value(&log, "after", given))
});

#[test]
fn no_items_give_no_results_at_once() {
    let (_, end) = survives::<nothing>(Sim::new);
    assert_eq!(end.value::<Vec<u32>>(), [0u32; 0]);
}

workflow!(wide, Fallible, Result<u64, Failure>, |cx, log| {
    let given: Vec<u64> = join_all!(@site cx site!("all", JoinAll); limit = p::None, items = 0..5_000u64, key = [],
        slot => p::item(|| p::fut(async {
            let (cx, n) = slot.open();
            let cx = &cx;
            p::Ok::<_, p::Thrown>({ run!(cx, "s", step!(workflow::context::StepOptions::new(), u64, move || p::fut(async move { n })))? })
        })))?;
    Ok(given.iter().sum())
});

#[test]
fn five_thousand_recorded_branches_replay_one_pass_each() {
    let mut whole = Sim::new();
    let sum = 4_999 * 5_000 / 2;
    assert_eq!(whole.drive::<wide>().value::<u64>(), sum);
    let mut again = whole.cut_at(whole.batches.len() - 1);
    assert_eq!(again.drive::<wide>().value::<u64>(), sum);
    assert!(again.polls <= 5_001, "{} passes", again.polls);
}
