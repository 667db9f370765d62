//! What a preflight finds, how it is grouped, and what it says of what it cannot judge.

use super::*;

mod other {
    use super::*;

    #[workflow]
    pub async fn other(n: u64) -> u64 {
        sleep!(pause, "1h").await;
        n
    }

    #[workflow]
    pub async fn done(n: u64) -> u64 {
        n
    }
}

mod gated {
    use super::*;

    #[workflow]
    pub async fn gate(newest: u32) -> u32 {
        let way = version!(way, 3).await;
        sleep!(pause, "1h").await;
        way + newest
    }
}

mod ungated {
    use super::*;

    #[workflow(name = "gate")]
    pub async fn gate(newest: u32) -> u32 {
        let way = version!(way, 2).await;
        sleep!(pause, "1h").await;
        way + newest
    }
}

// UA-43 UA-45
#[tokio::test(start_paused = true)]
async fn the_report_groups_by_cause_and_says_where_in_the_source() {
    let calls = Counter::default();
    let world = World::new();
    let builder = world.engine().state(calls.clone()).workflow(before::flow);
    let engine = builder.build().await.unwrap();
    for n in [1, 5, 9, 13, 2, 6] {
        // All in the first gap: of one iteration or another.
        engine
            .start(format!("o-{n}"), before::flow(n))
            .await
            .unwrap();
        pass(400_000).await;
    }
    drop(engine);
    let world = world.crash();
    let counted = calls.count();
    let run = || reading(&world, 2).state(calls.clone());

    let report = run()
        .workflow(retyped::flow)
        .preflight()
        .examples(2)
        .await
        .unwrap();
    let finding = only(&report);
    assert_eq!((finding.reason, finding.runs), (ParkReason::Decode, 6));
    assert_eq!(finding.examples.len(), 2);
    assert_eq!(finding.location.as_ref().unwrap().to_string(), "open");
    let site = finding.site.unwrap();
    assert!(
        (site.name, site.kind) == ("open", Kind::Call) && site.file.ends_with("preflight/mod.rs")
    );
    assert!(
        finding.detail.contains("alloc::vec::Vec<u64>"),
        "{}",
        finding.detail
    );

    let report = run().workflow(widened::flow).preflight().await.unwrap();
    let finding = only(&report);
    assert_eq!((finding.reason, finding.runs), (ParkReason::Decode, 6));
    assert!(finding.detail.contains("`more`"), "{}", finding.detail);

    let report = run().workflow(other_gap::flow).preflight().await.unwrap();
    let finding = only(&report);
    assert_eq!((finding.reason, finding.runs), (ParkReason::Diverged, 6));
    let divergence = finding.divergence.as_ref().unwrap();
    assert_eq!(divergence.location.path(), "items[]/pause");
    let told = report.to_string();
    for said in [
        "this code stops 6 runs (6 live runs",
        "0 runs go on with this code",
        "6 runs of `flow` would stop: diverged at `items[]/pause`",
        "preflight/report.rs:",
        "o-1, o-5, o-9 and 3 more",
        "recorded: sleep `items[0]/gap`",
        "it is now: nowhere in the code",
        "ways out:",
    ] {
        assert!(told.contains(said), "`{said}` is not in:\n{told}");
    }
    assert_eq!((report.code(), report.is_clean()), (2, false));
    assert_eq!(calls.count(), counted, "a step was run");
}

mod other_gap {
    use super::*;

    #[workflow(name = "flow")]
    pub async fn flow(n: u64, #[state] calls: Counter) -> Result<u64, Failure> {
        let mut total = open(&calls, n).await?;
        'items: for item in 0..n % 4 {
            total += ship(&calls, item).await?;
            sleep!(pause, "10m").await;
        }
        Ok(total)
    }
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_judged_is_said_and_has_a_code_of_its_own() {
    let calls = Counter::default();
    let world = World::new();
    let builder = world.engine().state(calls.clone()).workflow(before::flow);
    let engine = builder
        .workflow(other::other)
        .workflow(other::done)
        .build()
        .await
        .unwrap();
    engine.start("a", before::flow(1)).await.unwrap();
    engine.start("b", other::other(1)).await.unwrap();
    engine.run("c", other::done(1)).await.unwrap();
    pass(10).await;
    drop(engine);
    let world = world.crash();

    // `done` has no live run, and need not be there.
    let report = reading(&world, 2)
        .workflow(before::flow)
        .preflight()
        .await
        .unwrap();
    assert_eq!((report.runs, report.code(), report.would_stop()), (2, 3, 1));
    assert!(!report.is_clean() && !report.is_whole());
    let [missing] = &report.missing_states[..] else {
        panic!("{report}");
    };
    assert_eq!(
        (missing.workflow, missing.parameter, missing.runs),
        ("flow", "calls", 1)
    );
    assert_eq!(only(&report).reason, ParkReason::Unregistered);
    let told = report.to_string();
    for said in [
        "not every run could be judged",
        "1 run of `flow` not looked at: it needs `calls: workflow_tests::Counter`",
        "1 run of `other` would stop: unregistered",
        "workflow `other` is not registered",
    ] {
        assert!(told.contains(said), "`{said}` is not in:\n{told}");
    }

    let builder = reading(&world, 2).state(calls).workflow(before::flow);
    let report = builder.workflow(other::other).preflight().await.unwrap();
    assert_eq!(
        (report.code(), report.fits, report.is_clean()),
        (0, 2, true)
    );
    assert!(
        report.to_string().contains("this code stops no run"),
        "{report}"
    );
    assert!(report.findings.is_empty() && report.missing_states.is_empty());

    // What is wrong with the description itself.
    let none = Engine::builder().preflight().await.unwrap_err();
    assert!(matches!(none, Error::Build(BuildError::NoStore)));
    let twice = reading(&world, 2)
        .workflow(before::flow)
        .workflow(after::flow);
    let twice = twice.preflight().await.unwrap_err();
    assert!(matches!(twice, Error::Build(BuildError::SameName { .. })));
}

#[tokio::test(start_paused = true)]
async fn a_history_that_cannot_be_read_is_a_finding_and_a_store_that_fails_is_an_error() {
    let world = World::new();
    let engine = world.engine().workflow(other::other).build().await.unwrap();
    engine.start("a", other::other(1)).await.unwrap();
    pass(10).await;
    drop(engine);
    let slow = SlowStore::over(&world.store);
    slow.newer.store(true, Ordering::SeqCst);
    let ask = |store| {
        Engine::builder()
            .store(store)
            .workflow(other::other)
            .preflight()
    };
    let report = ask(slow.clone()).await.unwrap();
    let finding = only(&report);
    assert_eq!((finding.reason, finding.runs), (ParkReason::NewerFormat, 1));
    assert_eq!(
        (report.code(), report.is_whole(), report.is_clean()),
        (3, false, false)
    );
    slow.newer.store(false, Ordering::SeqCst);
    assert!(ask(slow).await.unwrap().is_clean());

    let closed = Arc::new(world.store.crash());
    closed.close().await.unwrap();
    let builder = Engine::builder()
        .shared_store(closed)
        .workflow(other::other);
    assert!(matches!(
        builder.preflight().await.unwrap_err(),
        Error::Store(_)
    ));
}

#[tokio::test(start_paused = true)]
async fn runs_that_are_parked_already_are_told_apart_and_do_not_hold_a_deploy_back() {
    let (calls, world) = (Counter::default(), World::new());
    let builder = world.engine().state(calls.clone()).workflow(before::flow);
    let engine = builder.build().await.unwrap();
    for n in [1, 5, 4] {
        engine
            .start(format!("o-{n}"), before::flow(n))
            .await
            .unwrap();
    }
    // Those that stand in the loop have shipped something.
    pass(200_000).await;
    drop(engine);
    // The code of build 2 parks those that stand in the loop.
    let world = world.crash();
    let builder = world.engine().code_id(2).state(calls.clone());
    let engine = builder.workflow(other_gap::flow).build().await.unwrap();
    for n in [1, 5] {
        engine.resume(format!("o-{n}")).await.unwrap();
    }
    pass(10).await;
    drop(engine);
    let world = world.crash();

    let ask = |code| reading(&world, code).state(calls.clone());
    // Another build with the same fault. What is parked stays so; `o-4` fits neither.
    let report = ask(3).workflow(other_gap::flow).preflight().await.unwrap();
    assert_eq!(
        (report.stay_parked(), report.would_stop(), report.code()),
        (2, 1, 2)
    );
    let parked: Vec<_> = report
        .findings
        .iter()
        .filter(|finding| finding.parked > 0)
        .collect();
    assert_eq!(
        (parked.len(), parked[0].runs, parked[0].reason),
        (1, 0, ParkReason::Diverged)
    );
    let told = report.to_string();
    assert!(
        told.contains("2 parked runs of `flow` would stay so: diverged"),
        "{told}"
    );

    // One that is right: they are taken up again.
    let report = ask(3).workflow(before::flow).preflight().await.unwrap();
    assert_eq!((report.revived, report.resumable, report.fits), (2, 0, 1));
    assert_eq!((report.code(), report.is_clean()), (0, true));
    assert!(
        report
            .to_string()
            .contains("2 parked runs will be taken up"),
        "{report}"
    );
    // The build that parked them does not try them again by itself.
    let report = ask(2).workflow(before::flow).preflight().await.unwrap();
    assert_eq!((report.revived, report.resumable, report.code()), (0, 2, 0));
    assert!(report.to_string().contains("when resumed"), "{report}");

    // With only parked runs left that do not fit, nothing holds the deploy back: this code stops none.
    let engine = world.engine().code_id(2).state(calls.clone());
    let engine = engine.workflow(other_gap::flow).build().await.unwrap();
    engine.cancel("o-4").await.unwrap();
    drop(engine);
    let world = world.crash();
    let report = reading(&world, 3).state(calls.clone());
    let report = report.workflow(other_gap::flow).preflight().await.unwrap();
    assert_eq!((report.would_stop(), report.stay_parked()), (0, 2));
    assert_eq!((report.code(), report.is_clean()), (0, true));
    assert!(
        report.to_string().contains("this code stops no run"),
        "{report}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_version_that_this_code_does_not_know_is_told() {
    let world = World::new();
    let engine = world.engine().workflow(gated::gate).build().await.unwrap();
    engine.start("g", gated::gate(1)).await.unwrap();
    pass(10).await;
    drop(engine);
    let world = world.crash();
    let report = reading(&world, 2)
        .workflow(ungated::gate)
        .preflight()
        .await
        .unwrap();
    let finding = only(&report);
    assert_eq!(finding.reason, ParkReason::Version);
    let site = finding.site.unwrap();
    assert_eq!((site.name, site.kind), ("way", Kind::Version));
    assert!(
        finding.detail.contains("version 3 of `way`"),
        "{}",
        finding.detail
    );
}

macro_rules! smuggle {
    () => {
        std::future::pending::<()>().await
    };
}

mod smuggling {
    use super::*;

    #[workflow(name = "done")]
    pub async fn done(n: u64) -> u64 {
        smuggle!();
        n
    }
}

mod slow {
    use super::*;

    #[step(timeout = "none")]
    async fn wait() {
        pass(3_600_000).await;
    }

    #[workflow(name = "done")]
    pub async fn done(n: u64) -> Result<u64, Failure> {
        wait().await?;
        Ok(n)
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_that_nothing_recorded_can_wake_is_told() {
    let world = World::new();
    let engine = world.engine().workflow(slow::done).build().await.unwrap();
    engine.start("d", slow::done(1)).await.unwrap();
    drop(engine);
    let world = world.crash();
    let report = reading(&world, 2)
        .workflow(smuggling::done)
        .preflight()
        .await
        .unwrap();
    let finding = only(&report);
    assert_eq!((finding.reason, finding.runs), (ParkReason::NotDurable, 1));
    // As the next drive finds.
    let engine = world
        .engine()
        .code_id(2)
        .workflow(smuggling::done)
        .build()
        .await
        .unwrap();
    pass(10).await;
    let parked = engine.status("d").await.unwrap().parked.unwrap();
    assert_eq!(
        (parked.reason, &parked.detail),
        (finding.reason, &finding.detail)
    );
}
