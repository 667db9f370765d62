//! How a step is tried.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use workflow::__private as p;
use workflow::context::StepOptions;
use workflow::replay::{AttemptState, Body};
use workflow::{Backoff, Failure, FailureKind, Step, current_step, try_current_step};

use crate::driver::{End, Log, Sim, SoldOut, run, site, step, survives, via, workflow};

/// Fails until attempt `until`, which succeeds.
fn flaky(log: &Log, until: u32, options: StepOptions) -> Step<'_, Result<u32, SoldOut>> {
    step!(options, Result<u32, SoldOut>, move || p::fut(async move {
        let step = current_step();
        log.add(format!("attempt {}", step.attempt()));
        if step.attempt() < until {
            return Err(SoldOut { item: format!("try {}", step.attempt()) });
        }
        assert_eq!(step.last_failure().unwrap().message(), format!("out of try {}", until - 1));
        Ok(step.attempt())
    }))
}

workflow!(jittery, Fallible, Result<u32, Failure>, |cx, log| {
    let backoff = Backoff { jitter: 0.5, ..Backoff::DEFAULT };
    run!(cx, "flaky", flaky(&log, 2, StepOptions::new().backoff(backoff)))
});

#[test]
fn jitter_is_added_when_the_time_is_chosen_and_recorded() {
    let (whole, _) = survives::<jittery>(Sim::new);
    assert_eq!(waits(&whole), [250]);
}

workflow!(third_time, Fallible, Result<u32, Failure>, |cx, log| {
    run!(cx, "flaky", flaky(&log, 3, StepOptions::new()))
});
workflow!(never, Fallible, Result<u32, Failure>, |cx, log| {
    run!(cx, "flaky", flaky(&log, 9, StepOptions::new().retries(2).backoff(Backoff::fixed(Duration::from_secs(1)))))
});

fn waits(sim: &Sim) -> Vec<i64> {
    let failed = |record: &workflow::Record| match &record.body {
        Body::Attempt {
            state: AttemptState::Failed { wake_at, .. },
            ..
        } => Some(wake_at.as_millis()),
        _ => None,
    };
    sim.history.iter().filter_map(failed).collect()
}

// RVT-STEP-22
#[test]
fn a_failed_attempt_is_recorded_with_the_time_of_the_next() {
    let (whole, end) = survives::<third_time>(Sim::new);
    assert_eq!(end.value::<u32>(), 3);
    assert_eq!(waits(&whole), [200, 600]);
    assert_eq!(whole.log.take(), ["attempt 1", "attempt 2", "attempt 3"]);
}

#[test]
fn a_crash_between_attempts_does_not_start_them_anew() {
    let mut whole = Sim::new();
    whole.drive::<third_time>();
    // After the record of the first failed attempt.
    let mut again = whole.cut_at(1);
    assert_eq!(again.drive::<third_time>().value::<u32>(), 3);
    assert_eq!(again.log.take(), ["attempt 2", "attempt 3"]);
}

#[test]
fn when_all_attempts_failed_the_failure_says_how_many_there_were() {
    let (_, end) = survives::<never>(Sim::new);
    let failure = end.failure();
    assert_eq!(
        (failure.kind(), failure.attempts()),
        (FailureKind::Exhausted, 3)
    );
    assert_eq!(failure.downcast::<SoldOut>().unwrap().item, "try 3");
}

fn broken(log: &Log) -> Step<'_, anyhow::Result<u32>> {
    step!(StepOptions::new(), anyhow::Result<u32>, move || p::fut(
        async move {
            log.add("broken");
            let error = anyhow::Error::from(workflow::critical(SoldOut {
                item: "luck".into(),
            }));
            Err(error)
        }
    ))
}
fn judged(log: &Log) -> Step<'_, Result<u32, SoldOut>> {
    flaky(log, 9, StepOptions::new()).retry_if(|error| error.item != "try 2")
}

workflow!(criticals, Fallible, Result<(u32, u32), Failure>, |cx, log| {
    let broken = run!(cx, "broken", broken(&log)).unwrap_err();
    assert_eq!((broken.kind(), broken.message()), (FailureKind::Critical, "out of luck"));
    let judged = run!(cx, "judged", judged(&log)).unwrap_err();
    assert_eq!(judged.kind(), FailureKind::Critical);
    Ok((broken.attempts(), judged.attempts()))
});

#[test]
fn a_critical_error_and_retry_if_end_the_retries() {
    let (_, end) = survives::<criticals>(Sim::new);
    assert_eq!(end.value::<(u32, u32)>(), (1, 2));
}

fn panics(log: &Log, options: StepOptions) -> Step<'_, u32, p::Infallible> {
    step!(options, u32, move || p::fut(async move {
        log.add("panics");
        panic!("no such {}", "thing")
    }))
}

workflow!(panicking, Fallible, Result<u32, Failure>, |cx, log| {
    run!(cx, "p", panics(&log, StepOptions::new().retries(1)))
});

#[test]
fn a_panic_of_a_body_is_a_failed_attempt() {
    let (whole, end) = survives::<panicking>(Sim::new);
    let failure = end.failure();
    assert_eq!(
        (failure.kind(), failure.attempts()),
        (FailureKind::Panicked, 2)
    );
    assert_eq!(failure.message(), "no such thing");
    assert_eq!(whole.log.take(), ["panics", "panics"]);
}

/// Says when it is dropped, and whether its token knew.
struct Dropped<'l>(&'l Log, workflow::Cancellation);

impl Drop for Dropped<'_> {
    fn drop(&mut self) {
        self.0
            .add(format!("dropped, cancelled: {}", self.1.is_cancelled()));
    }
}

fn hangs(log: &Log, options: StepOptions) -> Step<'_, u32, p::Infallible> {
    step!(options, u32, move || p::fut(async move {
        let step = current_step();
        log.add(format!("until {}", step.deadline().unwrap()));
        let _dropped = Dropped(log, step.cancellation().clone());
        std::future::pending().await
    }))
}

workflow!(hanging, Fallible, Result<u32, Failure>, |cx, log| {
    let first = run!(cx, "first", hangs(&log, StepOptions::new().timeout(p::millis(50)))).unwrap_err();
    assert_eq!((first.kind(), first.attempts()), (FailureKind::TimedOut, 1));
    run!(cx, "again", hangs(&log, StepOptions::new().timeout(p::millis(70)).retries(1).retry_on_timeout(true)))
});

// W-23
#[test]
fn a_timeout_drops_the_body_and_is_terminal_unless_asked_otherwise() {
    let mut whole = Sim::new();
    let failure = whole.drive::<hanging>().failure();
    assert_eq!(
        (failure.kind(), failure.attempts()),
        (FailureKind::TimedOut, 2)
    );
    let dropped = "dropped, cancelled: true";
    assert_eq!(
        whole.log.take(),
        [
            "until @50",
            dropped,
            "until @120",
            dropped,
            "until @390",
            dropped
        ]
    );
}

fn polled(log: &Log) -> Step<'_, Result<u32, SoldOut>> {
    step!(StepOptions::new(), Result<u32, SoldOut>, move || p::fut(async move {
        log.add("poll");
        crate::driver::after_polls(1).await;
        log.add("poll");
        if current_step().attempt() == 1 {
            return Err(SoldOut { item: "x".into() });
        }
        Ok(1)
    }))
}
workflow!(spanned, Fallible, Result<u32, Failure>, |cx, log| { run!(cx, "s", polled(&log)) });

#[test]
fn every_poll_of_a_body_is_inside_its_attempts_span() {
    let mut sim = Sim::new();
    *sim.host.spans.lock().unwrap() = Some(sim.log.clone());
    assert_eq!(sim.drive::<spanned>().value::<u32>(), 1);
    // It is made, polled twice and dropped in its span.
    let attempt = |n| {
        [
            &*format!("s attempt {n}"),
            "in",
            "out",
            "in",
            "poll",
            "out",
            "in",
            "poll",
            "out",
            "in",
            "out",
        ]
        .map(str::to_owned)
    };
    assert_eq!(sim.log.take(), [attempt(1), attempt(2)].concat());
}

fn once(log: &Log) -> Step<'_, Result<u32, SoldOut>> {
    step!(StepOptions::new().at_most_once(true), Result<u32, SoldOut>, move || p::fut(async move {
        log.add("once");
        Err(SoldOut { item: "x".into() })
    }))
}
workflow!(at_most_once, Fallible, Result<u32, Failure>, |cx, log| { run!(cx, "once", once(&log)) });

// U18
#[test]
fn an_at_most_once_step_is_announced_and_not_run_again_after_a_crash() {
    let mut whole = Sim::new();
    let failure = whole.drive::<at_most_once>().failure();
    assert_eq!(
        (failure.kind(), failure.attempts()),
        (FailureKind::Exhausted, 1)
    );
    assert_eq!(whole.log.count("once"), 1);
    let started = whole
        .history
        .iter()
        .position(|record| matches!(record.body, Body::Attempt { .. }))
        .unwrap()
        + 1;
    let batch = whole
        .batches
        .iter()
        .position(|end| *end == started)
        .unwrap()
        + 1;
    let mut again = whole.cut_at(batch);
    let failure = again.drive::<at_most_once>().failure();
    assert_eq!(failure.kind(), FailureKind::Interrupted);
    assert_eq!(again.log.count("once"), 0);
}

fn riding(log: &Log) -> Step<'_, u32, p::Infallible> {
    step!(StepOptions::new().ephemeral(true), u32, move || p::fut(
        async move {
            log.add("riding");
            1
        }
    ))
}
workflow!(ephemeral, Fallible, Result<u32, Failure>, |cx, log| {
    let a = run!(cx, "riding", riding(&log))?;
    let b = run!(cx, "firm", crate::driver::value(&log, "firm", 2u32))?;
    Ok(a + b)
});

#[test]
fn an_ephemeral_outcome_rides_on_the_next_commit() {
    let (whole, end) = survives::<ephemeral>(Sim::new);
    assert_eq!(end.value::<u32>(), 3);
    // Begun (or it with the step's), the two outcomes together, the end.
    let with_outcomes = whole
        .history
        .iter()
        .filter(|record| record.body.is_outcome())
        .count();
    assert_eq!(with_outcomes, 2);
    assert!(whole.batches.len() <= 3, "{:?}", whole.batches);
}

fn keyed(log: &Log) -> Step<'_, Result<String, SoldOut>> {
    step!(StepOptions::new(), Result<String, SoldOut>, move || p::fut(async move {
        let step = current_step();
        log.add(step.idempotency_key());
        if step.attempt() == 1 {
            return Err(SoldOut { item: "x".into() });
        }
        Ok(step.idempotency_key())
    }))
}
workflow!(keys, Fallible, Result<(String, String), Failure>, |cx, log| {
    Ok((run!(cx, "one", keyed(&log))?, run!(cx, "two", keyed(&log))?))
});

// W-39
#[test]
fn an_idempotency_key_is_the_same_for_every_attempt_and_differs_between_steps() {
    let (whole, end) = survives::<keys>(Sim::new);
    let (one, two) = end.value::<(String, String)>();
    assert_ne!(one, two);
    assert_eq!(one.len(), 32);
    assert_eq!(whole.log.take(), [one.clone(), one, two.clone(), two]);
    assert!(try_current_step().is_none());
}

fn thread(log: Log, runs: Arc<AtomicU32>) -> Step<'static, Result<u32, SoldOut>> {
    p::blocking_step(
        StepOptions::new().retry_on_timeout(true),
        via!(Result<u32, SoldOut>),
        Arc::new(move || {
            let (log, runs) = (log.clone(), runs.clone());
            log.add(format!(
                "{} attempt {}",
                current_step().location(),
                current_step().attempt()
            ));
            assert_ne!(runs.fetch_add(1, Ordering::SeqCst), 0, "first");
            Ok(7)
        }),
    )
}
workflow!(blocking, Fallible, Result<u32, Failure>, |cx, log| {
    run!(cx, "thread", thread(log.clone(), Arc::default()))
});

#[test]
fn a_blocking_body_runs_on_a_thread_of_the_host_and_knows_its_step() {
    let mut sim = Sim::new();
    assert_eq!(sim.drive::<blocking>().value::<u32>(), 7);
    assert_eq!(sim.log.take(), ["thread attempt 1", "thread attempt 2"]);
}

workflow!(given_up, Fallible, Result<u32, Failure>, |cx, log| {
    let hanging: Step<'_, u32, p::Infallible> = {
        let log = log.clone();
        p::blocking_step(
            StepOptions::new().timeout(p::millis(5)).retries(1).retry_on_timeout(true),
            via!(u32),
            Arc::new(move || {
                let step = current_step();
                log.add(format!("attempt {} cancelled {}", step.attempt(), step.cancellation().is_cancelled()));
                step.attempt()
            }),
        )
    };
    run!(cx, "hanging", hanging)
});

// W-23
#[test]
fn a_blocking_body_that_was_given_up_frees_its_thread_before_the_next_attempt() {
    let mut sim = Sim::new();
    sim.host.hold_jobs(true);
    // It times out before it gets a thread, and then its time for the next attempt comes: it waits for the thread.
    assert_eq!(sim.drive::<given_up>(), End::Waits(None));
    assert_eq!(sim.log.take(), [""; 0]);
    sim.host.hold_jobs(false);
    // A new drive knows of the failed attempt.
    assert_eq!(sim.drive::<given_up>().value::<u32>(), 2);
    assert_eq!(sim.log.take(), ["attempt 2 cancelled false"]);
}

#[test]
fn a_step_outside_of_workflows_runs_once_and_gives_what_its_code_gives() {
    let log = Log::default();
    let mut task = std::task::Context::from_waker(std::task::Waker::noop());
    let mut step = std::pin::pin!(IntoFuture::into_future(flaky(&log, 2, StepOptions::new())));
    let std::task::Poll::Ready(given) = step.as_mut().poll(&mut task) else {
        panic!()
    };
    assert_eq!(
        given,
        Err(SoldOut {
            item: "try 1".into()
        })
    );
    let mut step = std::pin::pin!(IntoFuture::into_future(thread(
        log.clone(),
        Arc::new(AtomicU32::new(1))
    )));
    assert_eq!(step.as_mut().poll(&mut task), std::task::Poll::Ready(Ok(7)));
    assert_eq!(log.take().len(), 2);
}

workflow!(sleepy, Infallible, u32, |cx, log| {
    workflow::sleep!(@site cx site!("nap", Sleep); Duration::from_mins(1));
    workflow::sleep!(@site cx site!("past", Sleep); until = workflow::Timestamp::from_millis(5));
    let at = workflow::now!(@site cx site!("then", Now););
    u32::try_from(at.as_millis()).unwrap()
});

#[test]
fn a_sleep_keeps_its_recorded_deadline_and_now_its_instant() {
    let (_, end) = survives::<sleepy>(Sim::new);
    assert_eq!(end.value::<u32>(), 60_000);
    let mut sim = Sim::new();
    sim.patient = false;
    assert_eq!(
        sim.drive::<sleepy>(),
        End::Waits(Some(workflow::Timestamp::from_millis(60_000)))
    );
    sim.host.set_now(90_000);
    sim.patient = true;
    assert_eq!(sim.drive::<sleepy>().value::<u32>(), 90_000);
}
