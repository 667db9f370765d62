//! Joins and races.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use workflow::__private as p;
use workflow::context::StepOptions;
use workflow::{Failure, FailureKind, Step, Won, join, race, sleep};

use crate::driver::{Log, Sim, after_polls, run, site, sold_out, step, survives, value, workflow};

/// A step that takes some polls.
fn slow<'s>(log: &'s Log, name: &'s str, polls: usize) -> Step<'s, String, p::Infallible> {
    step!(StepOptions::new(), String, move || p::fut(async move {
        log.add(name);
        after_polls(polls).await;
        name.to_owned()
    }))
}

workflow!(both, Fallible, Result<(String, u32), Failure>, |cx, log| {
    let seen = Mutex::new(Vec::new());
    let (a, b) = join!(@site cx site!("j", Join); cx_a "a", cx_b "b";
        p::arm(|| p::fut(async { p::Ok::<_, p::Thrown>({
            let slow = run!(cx_a, "slow", slow(&log, "slow", 3))?;
            seen.lock().unwrap().push("a");
            slow
        }) })),
        p::arm(|| p::fut(async { p::Ok::<_, p::Thrown>({
            let fast: u32 = run!(cx_b, "fast", value(&log, "fast", 1))?;
            seen.lock().unwrap().push("b");
            fast + run!(cx_b, "more", value(&log, "more", 1u32))?
        }) })))?;
    let order = seen.lock().unwrap().join(",");
    let last: String = run!(cx, "last", value(&log, "last", order))?;
    Ok((format!("{a} {last}"), b))
});

// U3
#[test]
fn what_branches_share_comes_out_the_same_on_replay() {
    let (whole, end) = survives::<both>(Sim::new);
    let (order, sum) = end.value::<(String, u32)>();
    assert_eq!(sum, 2);
    assert_eq!(order, "slow b,a");
    assert_eq!(
        whole.log.take()[..2],
        ["slow", "fast"],
        "polled first in declared order"
    );
}

workflow!(failing, Fallible, Result<u32, Failure>, |cx, log| {
    let joined = join!(@site cx site!("j", Join); cx_a "a", cx_b "b", cx_c "c";
        p::arm(|| p::fut(async { p::Ok::<_, p::Thrown>({ run!(cx_a, "s", sold_out(&log, "s"))? }) })),
        p::arm(|| p::fut(async { p::Ok::<_, p::Thrown>({ run!(cx_b, "t", value(&log, "t", 1u32))? }) })),
        p::arm(|| p::fut(async { p::Ok::<_, p::Thrown>({
            if log.count("never") == 0 { Err("no luck")?; }
            let _ = cx_c;
        }) })));
    joined.map(|_| 0)
});

#[test]
fn a_join_runs_every_branch_and_its_failure_names_those_that_failed() {
    let (whole, end) = survives::<failing>(Sim::new);
    assert_eq!(whole.log.count("t"), 1);
    let failure = end.failure();
    assert_eq!(
        (failure.kind(), failure.location().to_string()),
        (FailureKind::Join, "j".into())
    );
    let [a, c] = failure.branches() else {
        panic!("{failure:?}")
    };
    assert_eq!(
        (a.kind(), a.location().to_string()),
        (FailureKind::Exhausted, "j/a/s".into())
    );
    assert_eq!(
        (c.kind(), c.location().to_string()),
        (FailureKind::Returned, "j/c".into())
    );
    assert!(
        failure.message().starts_with("2 of 3 branches failed"),
        "{failure}"
    );
}

/// Says that it is dropped.
struct Tell<'l>(&'l Log, &'static str);

impl Drop for Tell<'_> {
    fn drop(&mut self) {
        self.0.add(self.1);
    }
}

workflow!(racing, Fallible, Result<(String, u32), Failure>, |cx, log| {
    let won: Won<u32> = race!(@site cx site!("r", Race); cx_a "a", cx_b "b", cx_c "c";
        p::arm(|| p::fut(async { p::Ok::<_, p::Thrown>({
            let _tell = Tell(&log, "a dropped");
            sleep!(@site cx_a site!("long", Sleep); Duration::from_secs(9));
            log.add("a went on");
            1
        }) })),
        p::arm(|| p::fut(async { p::Ok::<_, p::Thrown>({ run!(cx_b, "s", sold_out(&log, "b"))? }) })),
        p::arm(|| p::fut(async { p::Ok::<_, p::Thrown>({
            sleep!(@site cx_c site!("short", Sleep); Duration::from_secs(1));
            run!(cx_c, "v", value(&log, "c", 3u32))?
        }) })))?;
    let after: u32 = run!(cx, "after", value(&log, "after", 10))?;
    Ok((won.branch.to_owned(), won.value + after))
});

#[test]
fn the_first_success_wins_a_race_and_the_losers_are_dropped_at_once() {
    let mut whole = Sim::new();
    assert_eq!(
        whole.drive::<racing>().value::<(String, u32)>(),
        ("c".to_owned(), 13)
    );
    assert_eq!(whole.log.take(), ["b", "c", "a dropped", "after"]);
    for cut in 0..whole.batches.len() {
        let mut again = whole.cut_at(cut);
        assert_eq!(
            again.drive::<racing>().value::<(String, u32)>(),
            ("c".to_owned(), 13),
            "cut after {cut}"
        );
        assert_eq!(again.log.count("a went on"), 0, "cut after {cut}");
    }
    // Nothing is left under a loser.
    let left: Vec<_> = whole
        .history
        .iter()
        .map(|record| record.location.to_string())
        .collect();
    assert!(
        !left
            .iter()
            .any(|at| at.starts_with("r/a") || at.starts_with("r/b")),
        "{left:?}"
    );
}

#[test]
fn a_decided_race_runs_its_winner_only() {
    let mut whole = Sim::new();
    whole.drive::<racing>();
    let mut again = whole.cut_at(whole.batches.len() - 1);
    again.drive::<racing>();
    assert_eq!(again.log.take(), [""; 0], "not even the losers' plain code");
}

workflow!(all_fail, Fallible, Result<u32, Failure>, |cx, log| {
    let won = race!(@site cx site!("r", Race); cx_a "a", cx_b "b";
        p::arm(|| p::fut(async { p::Ok::<_, p::Thrown>({ run!(cx_a, "s", sold_out(&log, "s"))? }) })),
        p::arm(|| p::fut(async { p::Ok::<_, p::Thrown>({ run!(cx_b, "t", sold_out(&log, "t"))? }) })));
    let failure = won.unwrap_err();
    let after: u32 = run!(cx, "after", value(&log, "after", 1))?;
    assert_eq!(after, 1);
    Err(failure)
});

#[test]
fn a_race_whose_branches_all_failed_fails_with_all_of_them() {
    let (_, end) = survives::<all_fail>(Sim::new);
    let failure = end.failure();
    assert_eq!(failure.kind(), FailureKind::Race);
    let at: Vec<_> = failure
        .branches()
        .iter()
        .map(|branch| branch.location().to_string())
        .collect();
    assert_eq!(at, ["r/a/s", "r/b/t"]);
}

workflow!(outside, Fallible, Result<u32, Failure>, |cx, log| {
    let won = race!(@site cx site!("r", Race); cx_a "a", cx_b "b";
        p::arm(|| p::fut(async { p::Ok::<_, p::Thrown>({ run!(cx_a, "s", value(&log, "s", 1u32))? }) })),
        p::arm(|| p::fut(async { p::Ok::<_, p::Thrown>({ run!(cx_b, "t", value(&log, "t", 2u32))? }) })))?;
    Ok(won.value)
});
workflow!(outside_edited, Fallible, Result<u32, Failure>, |cx, log| {
    let won = race!(@site cx site!("r", Race); cx_a "a", cx_c "c";
        p::arm(|| p::fut(async { p::Ok::<_, p::Thrown>({ run!(cx_a, "s", value(&log, "s", 1u32))? }) })),
        p::arm(|| p::fut(async { p::Ok::<_, p::Thrown>({ run!(cx_c, "t", value(&log, "t", 2u32))? }) })));
    log.add(format!("caught {}", won.is_err()));
    Ok(0)
});

#[test]
fn branches_that_changed_diverge_and_user_code_cannot_catch_it() {
    let mut sim = Sim::new();
    sim.drive_for::<outside>(2);
    sim.log.take();
    let crate::driver::End::Diverged(report) = sim.drive::<outside_edited>() else {
        panic!("{sim:?}")
    };
    assert!(report.contains("a, c"), "{report}");
    assert_eq!(sim.log.take(), [""; 0]);
}

workflow!(backwards, Fallible, Result<String, Failure>, |cx, log| {
    let (a, b, c, d) = join!(@site cx site!("j", Join); cx_a "a", cx_b "b", cx_c "c", cx_d "d";
        p::arm(|| p::fut(async { p::Ok::<_, p::Thrown>({ run!(cx_a, "s", slow(&log, "a", 9))? }) })),
        p::arm(|| p::fut(async { p::Ok::<_, p::Thrown>({ run!(cx_b, "s", slow(&log, "b", 6))? }) })),
        p::arm(|| p::fut(async { p::Ok::<_, p::Thrown>({ run!(cx_c, "s", slow(&log, "c", 3))? }) })),
        p::arm(|| p::fut(async { p::Ok::<_, p::Thrown>({
            let mut lap = p::enter_loop(cx_d, site!("laps", Loop)).await;
            let cx = &lap.iteration();
            run!(cx, "s", slow(&log, "d", 12))?
        }) })))?;
    Ok(format!("{a}{b}{c}{d}"))
});

#[test]
fn branches_that_end_in_any_order_go_on_after_a_cut_anywhere() {
    let (_, end) = survives::<backwards>(Sim::new);
    assert_eq!(end.value::<String>(), "abcd");
}

workflow!(empty_loop, Fallible, Result<u32, Failure>, |cx, log| {
    {
        let mut lap = p::enter_loop(cx, site!("laps", Loop)).await;
        lap.iteration();
    }
    run!(cx, "s", value(&log, "s", 1u32))
});
workflow!(full_loop, Fallible, Result<u32, Failure>, |cx, log| {
    {
        let mut lap = p::enter_loop(cx, site!("laps", Loop)).await;
        let cx = &lap.iteration();
        run!(cx, "new", value(&log, "new", 1u32))?;
    }
    run!(cx, "s", value(&log, "s", 1u32))
});

// U4
#[test]
fn a_loop_that_recorded_nothing_replays_and_one_that_now_does_something_diverges() {
    let (mut whole, end) = survives::<empty_loop>(Sim::new);
    assert_eq!(end.value::<u32>(), 1);
    whole = whole.cut_at(1);
    let crate::driver::End::Diverged(report) = whole.drive::<full_loop>() else {
        panic!("{whole:?}")
    };
    assert!(
        report.contains("new (step)") && report.contains("step `s`"),
        "{report}"
    );
    assert_eq!(whole.log.take(), [""; 0]);
}

/// Counts how often it is polled.
fn counted<'a>(
    polls: &'a Mutex<Vec<usize>>,
    index: usize,
    inner: p::BoxFut<'a, Result<u32, p::Thrown>>,
) -> p::BoxFut<'a, Result<u32, p::Thrown>> {
    let mut inner = inner;
    p::fut(std::future::poll_fn(move |task| {
        polls.lock().unwrap()[index] += 1;
        inner.as_mut().poll(task)
    }))
}

static POLLS: std::sync::LazyLock<Arc<Mutex<Vec<usize>>>> =
    std::sync::LazyLock::new(|| Arc::new(Mutex::new(vec![0; 3])));

workflow!(counting, Fallible, Result<u32, Failure>, |cx, log| {
    let polls = Arc::clone(&POLLS);
    let (a, b, c) = join!(@site cx site!("j", Join); cx_a "a", cx_b "b", cx_c "c";
        p::arm(|| counted(&polls, 0, p::fut(async { p::Ok::<_, p::Thrown>({ run!(cx_a, "s", value(&log, "s", 1u32))? }) }))),
        p::arm(|| counted(&polls, 1, p::fut(async { p::Ok::<_, p::Thrown>({ run!(cx_b, "s", value(&log, "s", 1u32))? }) }))),
        p::arm(|| counted(&polls, 2, p::fut(async { p::Ok::<_, p::Thrown>({
            run!(cx_c, "s", value(&log, "s", 1u32))? + run!(cx_c, "t", value(&log, "t", 1u32))?
        }) }))))?;
    Ok(a + b + c)
});

#[test]
fn a_pass_polls_only_the_branches_that_were_woken() {
    let mut whole = Sim::new();
    assert_eq!(whole.drive::<counting>().value::<u32>(), 4);
    POLLS.lock().unwrap().fill(0);
    let mut again = whole.cut_at(whole.batches.len() - 1);
    assert_eq!(again.drive::<counting>().value::<u32>(), 4);
    assert_eq!(
        *POLLS.lock().unwrap(),
        [2, 2, 3],
        "once to begin with, then once per outcome"
    );
}
