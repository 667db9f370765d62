//! Runs that roll back, and those whose undos are gone.

use super::*;

mod saga {
    use super::*;

    async fn take_back(_n: u64) -> Result<(), std::io::Error> {
        Err(std::io::Error::other("not now"))
    }

    #[workflow]
    pub async fn saga(#[state] calls: Counter) -> Result<u64, Failure> {
        checkpoint!(begun);
        #[step(undo(take_back))]
        let n = open(&calls, 3).await?;
        #[step(name = "never", retries = 0)]
        std::future::ready(Err::<u64, std::io::Error>(std::io::Error::other("full"))).await?;
        Ok(n)
    }
}

mod saga_without {
    use super::*;

    #[workflow(name = "saga")]
    pub async fn saga(#[state] calls: Counter) -> Result<u64, Failure> {
        checkpoint!(begun);
        let n = open(&calls, 3).await?;
        // What is new after the gate is not foretold: here it does not end.
        #[step(name = "never", retries = 0, timeout = "none")]
        std::future::pending::<Result<u64, std::io::Error>>().await?;
        Ok(n)
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_that_rolls_back_needs_its_undos_and_not_its_code() {
    let (calls, world) = (Counter::default(), World::new());
    let builder = world.engine().state(calls.clone()).workflow(saga::saga);
    let engine = builder.build().await.unwrap();
    engine.start("s", saga::saga()).await.unwrap();
    // Between two attempts to undo.
    pass(300).await;
    drop(engine);
    let world = world.crash();
    let [row] = &rows(&world, None).await[..] else {
        panic!()
    };
    assert_eq!(row.state, RunState::RollingBack);
    let ask = || reading(&world, 2).state(calls.clone());
    let report = ask().workflow(saga::saga).preflight().await.unwrap();
    assert_eq!((report.fits, report.code()), (1, 0));
    let report = ask()
        .workflow(saga_without::saga)
        .preflight()
        .await
        .unwrap();
    let finding = only(&report);
    assert_eq!((finding.reason, finding.runs), (ParkReason::UndoMissing, 1));
    assert_eq!(finding.site.unwrap().name, "open");

    // As the next drive finds.
    let engine = world.engine().code_id(2).state(calls.clone());
    let engine = engine.workflow(saga_without::saga).build().await.unwrap();
    pass(10).await;
    let parked = engine.status("s").await.unwrap().parked.unwrap();
    assert_eq!(
        (parked.reason, &parked.detail),
        (finding.reason, &finding.detail)
    );
}

// Cut off after each of its commits: also between the failure that ends it and the beginning of its undoing.
#[tokio::test(start_paused = true)]
async fn a_saga_is_judged_by_what_its_next_drive_needs_wherever_it_was_cut_off() {
    let mut found = Vec::new();
    for commit in 0..6 {
        let (calls, world) = (Counter::default(), World::new());
        let slow = SlowStore::over(&world.store);
        // Written, and never told.
        late(&slow.appends, (0..commit).map(|_| 0).chain([3_600_000]));
        let builder = Engine::builder()
            .store(slow)
            .clock(world.clock())
            .code_id(1);
        let builder = builder.state(calls.clone()).workflow(saga::saga);
        let engine = builder.build().await.unwrap();
        let start = engine.start("s", saga::saga());
        // Whether it was told of its start does not matter.
        let _ = tokio::time::timeout(Duration::from_millis(300), start).await;
        pass(100).await;
        drop(engine);
        let world = world.crash();
        let report = reading(&world, 2).state(calls.clone());
        let report = report
            .workflow(saga_without::saga)
            .preflight()
            .await
            .unwrap();
        let foretold = foretold(&report);

        let engine = world.engine().code_id(2).state(calls.clone());
        let engine = engine.workflow(saga_without::saga).build().await.unwrap();
        pass(10_000).await;
        let parked = engine.status("s").await.unwrap().parked;
        let parked = parked.map(|parked| ("s".to_owned(), parked.reason));
        assert_eq!(
            parked.clone().into_iter().collect::<BTreeMap<_, _>>(),
            foretold,
            "{commit}"
        );
        found.push(parked.is_some());
        if engine.status("s").await.unwrap().state.is_final() {
            // Nothing was armed yet, or all of it was done.
            found.pop();
        }
    }
    assert!(
        found.iter().filter(|parked| **parked).count() >= 2,
        "{found:?}"
    );
}

mod rolling {
    use super::*;

    async fn put_back(_n: u64) {
        pass(10_000).await;
    }

    #[workflow(name = "rolling")]
    pub async fn with(#[state] calls: Counter) -> Result<u64, Failure> {
        checkpoint!(begun);
        #[step(undo(put_back))]
        let n = open(&calls, 3).await?;
        rollback!(back, to = begun).await;
        Ok(n)
    }

    #[workflow(name = "rolling")]
    pub async fn without(#[state] calls: Counter) -> Result<u64, Failure> {
        checkpoint!(begun);
        let n = open(&calls, 3).await?;
        rollback!(back, to = begun).await;
        Ok(n)
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_at_a_rollback_needs_the_undo_that_comes_first() {
    let (calls, world) = (Counter::default(), World::new());
    let builder = world.engine().state(calls.clone()).workflow(rolling::with);
    let engine = builder.build().await.unwrap();
    engine.start("r", rolling::with()).await.unwrap();
    pass(100).await;
    drop(engine);
    let world = world.crash();
    let ask = || reading(&world, 2).state(calls.clone());
    let report = ask().workflow(rolling::with).preflight().await.unwrap();
    assert_eq!((report.fits, report.code()), (1, 0), "{report}");
    let report = ask().workflow(rolling::without).preflight().await.unwrap();
    let finding = only(&report);
    assert_eq!((finding.reason, finding.runs), (ParkReason::UndoMissing, 1));

    // As the next drive finds.
    let engine = world.engine().code_id(2).state(calls.clone());
    let engine = engine.workflow(rolling::without).build().await.unwrap();
    pass(10).await;
    let parked = engine.status("r").await.unwrap().parked.unwrap();
    assert_eq!(
        (parked.reason, &parked.detail),
        (finding.reason, &finding.detail)
    );
}
