//! What is recorded, and what the workflow sees of it.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use workflow::__private as p;
use workflow::{Codec, Failure, FailureKind, Fragment, ParkReason, Step};

use crate::driver::{End, Log, Sim, SoldOut, run, site, sold_out, step, survives, value, workflow};

workflow!(two_steps, Fallible, Result<u32, Failure>, |cx, log| {
    let a: u32 = run!(cx, "a", value(&log, "a", 20))?;
    let b: u32 = run!(cx, "b", value(&log, "b", 22))?;
    Ok(a + b)
});

#[test]
fn a_step_runs_once_and_a_replay_gives_what_it_gave() {
    let (whole, end) = survives::<two_steps>(Sim::new);
    assert_eq!(end.value::<u32>(), 42);
    assert_eq!(whole.log.take(), ["a", "b"]);
}

#[test]
fn a_step_that_was_recorded_needs_one_poll_of_the_workflow_and_no_timer() {
    let mut whole = Sim::new();
    whole.drive::<two_steps>();
    let mut again = whole.cut_at(whole.batches.len() - 1);
    assert_eq!(again.drive::<two_steps>().value::<u32>(), 42);
    assert_eq!(again.polls, 1);
    assert_eq!(
        whole
            .host
            .timers_made
            .load(std::sync::atomic::Ordering::SeqCst),
        0,
        "no body was ever pending"
    );
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Lossy {
    kept: u32,
    #[serde(skip)]
    skipped: u32,
}

workflow!(decoded, Fallible, Result<(Lossy, bool), Failure>, |cx, log| {
    let lossy = run!(cx, "lossy", value(&log, "lossy", Lossy { kept: 1, skipped: 2 }))?;
    let nested: Option<Option<u32>> = run!(cx, "nested", value(&log, "nested", Some(None)))?;
    assert_eq!(lossy.skipped, 0);
    Ok((lossy, nested.is_none()))
});

// U22
#[test]
fn the_first_run_sees_what_a_replay_sees() {
    let (_, end) = survives::<decoded>(Sim::new);
    assert_eq!(
        end.value::<(Lossy, bool)>(),
        (
            Lossy {
                kept: 1,
                skipped: 0
            },
            true
        )
    );
}

workflow!(not_a_number, Fallible, Result<u32, Failure>, |cx, log| {
    let rate: Result<f64, Failure> = run!(cx, "rate", value(&log, "rate", f64::NAN));
    let failure = rate.unwrap_err();
    assert_eq!((failure.kind(), failure.attempts()), (FailureKind::Encode, 1));
    assert!(failure.to_string().contains("f64") && failure.to_string().contains("`rate`"), "{failure}");
    let long: Result<String, Failure> = run!(cx, "long", value(&log, "long", "x".repeat(1023)));
    Err(long.unwrap_err())
});

#[test]
fn a_value_that_does_not_survive_its_encoding_or_is_too_large_fails_its_step_at_once() {
    let (whole, end) = survives::<not_a_number>(Sim::new);
    let failure = end.failure();
    assert_eq!(failure.kind(), FailureKind::Encode);
    let text = failure.to_string();
    assert!(
        text.contains("`long`") && text.contains("String") && text.contains("1025 bytes"),
        "{text}"
    );
    assert_eq!(
        whole.log.take(),
        ["rate", "long"],
        "another attempt would not mend it"
    );
}

workflow!(typed, Fallible, Result<SoldOut, Failure>, |cx, log| {
    let failure = run!(cx, "pens", sold_out(&log, "pens")).unwrap_err();
    assert_eq!(failure.type_name().rsplit("::").next(), Some("SoldOut"));
    assert_eq!(failure.message(), "out of pens");
    assert!(failure.downcast::<String>().is_none());
    Ok(failure.downcast::<SoldOut>().expect("the error is serializable"))
});

#[test]
fn a_serializable_error_comes_back_as_itself_also_on_replay() {
    let (_, end) = survives::<typed>(Sim::new);
    assert_eq!(end.value::<SoldOut>().item, "pens");
}

/// Turns every byte over.
struct Flip;

impl Codec for Flip {
    fn id(&self) -> u8 {
        9
    }
    fn seal(&self, json: Vec<u8>) -> Result<Vec<u8>, Box<dyn std::error::Error + Send + Sync>> {
        Ok(json.into_iter().map(|byte| !byte).collect())
    }
    fn open(
        &self,
        id: u8,
        sealed: Bytes,
    ) -> Result<Bytes, Box<dyn std::error::Error + Send + Sync>> {
        assert_eq!(id, 9);
        Ok(sealed.iter().map(|byte| !byte).collect())
    }
}

workflow!(secrets, Fallible, Result<String, Failure>, |cx, log| {
    let secret: String = run!(cx, "secret", value(&log, "secret", "hidden".to_owned()))?;
    let failure = run!(cx, "hidden", sold_out(&log, "hidden")).unwrap_err();
    assert_eq!(failure.downcast::<SoldOut>().unwrap().item, secret);
    Err(failure)
});

#[test]
fn a_codec_seals_values_and_errors_and_the_workflow_does_not_notice() {
    let (whole, end) = survives::<secrets>(|| Sim::with_codec(Flip));
    assert_eq!(end.failure().value().unwrap().codec, 9);
    let stored = format!("{:?}", whole.history);
    assert!(
        !stored.contains("\"hidden\"") && stored.contains("codec 9"),
        "{stored}"
    );
}

workflow!(as_number, Fallible, Result<u32, Failure>, |cx, log| {
    run!(cx, "a", value(&log, "a", 1u32))?;
    run!(cx, "b", value(&log, "b", 2u32))
});
workflow!(as_text, Fallible, Result<String, Failure>, |cx, log| {
    let text: Result<String, Failure> = run!(cx, "a", value(&log, "a", String::new()));
    assert!(text.is_ok(), "a value that does not decode is no failure");
    run!(cx, "b", value(&log, "b", String::new()))
});

#[test]
fn a_recorded_value_that_no_longer_decodes_parks_the_run() {
    let mut sim = Sim::new();
    assert_eq!(sim.drive_for::<as_number>(2), End::Cut);
    let before = sim.history.clone();
    let End::Parked(park) = sim.drive::<as_text>() else {
        panic!("{sim:?}")
    };
    assert_eq!(park.reason, ParkReason::Decode);
    assert!(
        park.detail.contains("`a`") && park.detail.contains("String"),
        "{}",
        park.detail
    );
    assert_eq!(sim.history, before);
    assert_eq!(
        sim.drive::<as_number>().value::<u32>(),
        2,
        "the right code goes on"
    );
}

workflow!(panicking, Fallible, Result<u32, Failure>, |cx, log| {
    let a: u32 = run!(cx, "a", value(&log, "a", 1))?;
    assert_eq!(a, 2, "a bug");
    Ok(a)
});
workflow!(unencodable, Infallible, f64, |cx, log| { f64::NAN });

#[test]
fn a_panic_of_the_workflow_and_a_result_that_cannot_be_recorded_park_the_run() {
    let End::Parked(park) = Sim::new().drive::<panicking>() else {
        panic!()
    };
    assert_eq!(park.reason, ParkReason::Panicked);
    assert!(park.detail.contains("a bug"), "{}", park.detail);
    let End::Parked(park) = Sim::new().drive::<unencodable>() else {
        panic!()
    };
    assert_eq!(park.reason, ParkReason::Encode);
}

workflow!(not_durable, Infallible, u32, |cx, log| {
    std::future::pending::<()>().await;
    0
});

#[test]
fn a_run_that_waits_for_nothing_durable_can_be_told() {
    assert_eq!(Sim::new().drive::<not_durable>(), End::Stuck);
}

#[derive(Debug, thiserror::Error)]
enum OrderError {
    #[error("not reserved")]
    NotReserved(#[source] Failure),
}

workflow!(own_error, Fallible, Result<u32, OrderError>, |cx, log| {
    run!(cx, "reserve", sold_out(&log, "reserve")).map_err(OrderError::NotReserved)
});
workflow!(anyhows, Fallible, anyhow::Result<u32>, |cx, log| {
    Ok(run!(cx, "reserve", sold_out(&log, "reserve"))?)
});
workflow!(returned, Fallible, Result<u32, SoldOut>, |cx, log| {
    Err(SoldOut { item: "ink".into() })
});

#[test]
fn a_run_fails_with_the_failure_of_the_step_whatever_error_carried_it_out() {
    let own = Sim::new().drive::<own_error>().failure();
    assert_eq!(
        (own.kind(), own.location().to_string()),
        (FailureKind::Exhausted, "reserve".into())
    );
    assert_eq!(own.message(), "not reserved");
    assert_eq!(own.downcast::<SoldOut>().unwrap().item, "reserve");
    let anyhow = Sim::new().drive::<anyhows>().failure();
    assert_eq!(
        (anyhow.kind(), anyhow.location().to_string()),
        (FailureKind::Exhausted, "reserve".into())
    );
    assert_eq!(anyhow.message(), "out of reserve");
    let returned = Sim::new().drive::<returned>().failure();
    assert_eq!(returned.kind(), FailureKind::Returned);
    assert!(returned.location().is_root());
    assert_eq!(returned.downcast::<SoldOut>().unwrap().item, "ink");
}

fn add<'s>(total: &'s mut u32, log: &'s Log) -> Fragment<'s, Result<u32, Failure>> {
    p::fragment(move |cx: p::Cx| {
        p::fut(async move {
            let cx = &cx;
            *total += run!(cx, "one", value(log, "one", 1u32))?;
            *total += run!(cx, "two", value(log, "two", 2u32))?;
            Ok(*total)
        })
    })
}

workflow!(with_fragment, Fallible, Result<u32, Failure>, |cx, log| {
    let mut total = 10;
    let inside = run!(cx, "add", add(&mut total, &log))?;
    assert_eq!(inside, total);
    let last = run!(cx, "last", value(&log, "last", 100u32))?;
    Ok(total + last)
});

#[test]
fn a_fragment_is_entered_again_so_what_it_changes_comes_out_right() {
    let (whole, end) = survives::<with_fragment>(Sim::new);
    assert_eq!(end.value::<u32>(), 113);
    assert!(
        whole
            .history
            .iter()
            .any(|record| record.location.to_string() == "add/two"),
        "{whole:?}"
    );
}

#[expect(clippy::unused_async, reason = "stands for one that waits")]
async fn send(to: &str, log: &Log) -> Result<usize, std::io::Error> {
    log.add(format!("sent to {to}"));
    Ok(to.len())
}

fn numbered(log: &Log, n: u32) -> Step<'_, Result<u32, SoldOut>> {
    step!(p::StepOptions::new().retries(7), Result<u32, SoldOut>, move || p::fut(async move {
        log.add(format!("try {n}"));
        Err(SoldOut { item: n.to_string() })
    }))
}

workflow!(in_place, Fallible, Result<(usize, usize, u32, u32), Failure>, |cx, log| {
    let name = String::from("bob");
    let sent = {
        #[allow(unused_imports)]
        use p::lookup::*;
        let body = || p::fut(async { p::Awaited(send(&format!("{name}!"), &log)).go(cx, site!("mail"), p::StepOptions::new()).await });
        let step = p::in_place(cx, site!("mail"), p::StepOptions::new(), &body);
        let via = (&&&&&step.tag()).via();
        step.run(via).await
    }?;
    let plain = {
        #[allow(unused_imports)]
        use p::lookup::*;
        let body = || p::fut(async { name.len() });
        let step = p::in_place(cx, site!("len"), p::StepOptions::new(), &body);
        let via = (&&&&&step.tag()).via();
        step.run(via).await
    }?;
    let renamed: Result<u32, Failure> = {
        #[allow(unused_imports)]
        use p::lookup::*;
        let options = p::StepOptions::new().retries(1);
        let body = || p::fut(async { p::Awaited(numbered(&log, 5)).go(cx, site!("second"), options).await });
        let step = p::in_place(cx, site!("second"), options, &body);
        let via = (&&&&&step.tag()).via();
        step.run(via).await
    };
    let renamed = renamed.unwrap_err();
    let block = {
        #[allow(unused_imports)]
        use p::lookup::*;
        let retry = |_: &p::Thrown| false;
        let body = || p::fut(async {
            let sent = send("eve", &log).await?;
            numbered(&log, u32::try_from(sent)?).await?;
            Ok::<_, p::Thrown>(1)
        });
        let step = p::in_place(cx, site!("block"), p::StepOptions::new(), &body).retry_if(&retry);
        let via = (&&&&&step.tag()).via();
        step.run(via).await
    }
    .unwrap_err();
    assert_eq!((block.kind(), block.message()), (FailureKind::Critical, "out of 3"));
    Ok((sent, plain, renamed.attempts(), block.attempts()))
});

#[test]
fn a_step_in_place_borrows_and_one_over_a_step_renames_and_reconfigures_it() {
    let (whole, end) = survives::<in_place>(Sim::new);
    assert_eq!(end.value::<(usize, usize, u32, u32)>(), (4, 3, 2, 1));
    assert_eq!(
        whole.log.take(),
        ["sent to bob!", "try 5", "try 5", "sent to eve", "try 3"]
    );
}
