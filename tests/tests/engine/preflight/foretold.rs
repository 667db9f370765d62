//! Which runs would stop: exactly those that then do.

use super::*;

// SEMANTICS invariant 17; UA-03: nothing of the new code's steps has run when a divergence is told.
async fn what_is_foretold_is_what_happens(runs: u64) {
    let (old, new) = (Counter::default(), Counter::default());
    let world = many(runs, &old).await;
    let before = bytes(&*world.store).await;

    let builder = reading(&world, 2).state(new.clone()).workflow(after::flow);
    let report = builder.preflight().examples(usize::MAX).await.unwrap();
    let foretold = foretold(&report);
    assert_eq!(new.count(), 0, "a step was run");
    assert_eq!(bytes(&*world.store).await, before);
    let live = rows(&world, None).await;
    let live: Vec<_> = live
        .into_iter()
        .filter(|row| !row.state.is_final())
        .collect();
    assert_eq!(report.runs, live.len() as u64);
    assert_eq!(report.fits + report.would_stop(), report.runs);
    assert_eq!(report.would_stop(), foretold.len() as u64);

    // Driven: every one of them, also those that would wait for long.
    let world = world.crash();
    let builder = world.engine().code_id(2).state(new.clone());
    let engine = builder
        .workflow(after::flow)
        .in_memory(1_000_000)
        .build()
        .await
        .unwrap();
    for row in &live {
        engine.resume(row.id.as_str()).await.unwrap();
    }
    pass(1).await;
    let mut parked = BTreeMap::new();
    for row in rows(&world, Some(RunState::Parked)).await {
        parked.insert(row.id.to_string(), row.parked.unwrap().reason);
    }
    assert_eq!(parked, foretold);
    drop(engine);

    // All of it was tried: runs that go on and runs that do not, for each reason and each kind of edit.
    if runs >= 1_000 {
        let at = |path: &str| {
            let mut findings = report.findings.iter();
            findings.any(|finding| {
                let location = finding.location.as_ref();
                location.is_some_and(|location| location.path() == path)
            })
        };
        for path in ["check", "items[]/weigh", "both/left/review", "pages[]/rest"] {
            assert!(at(path), "nothing at {path}:\n{report}");
        }
        assert!(report.fits > runs / 10, "{report}");
        assert!(
            parked
                .values()
                .any(|reason| *reason == ParkReason::Panicked)
        );
    }
}

// UA-09: the report is of the first thing that does not fit.
#[tokio::test(start_paused = true)]
async fn a_preflight_foretells_exactly_which_of_many_runs_stop() {
    what_is_foretold_is_what_happens(2_000).await;
}

#[tokio::test(start_paused = true)]
#[ignore = "takes longer: `.ci/run` runs it"]
async fn a_preflight_foretells_exactly_which_of_ten_thousand_runs_stop() {
    what_is_foretold_is_what_happens(10_000).await;
}
