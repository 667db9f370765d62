//! A preflight asked of a running engine, and of a file.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_running_engine_is_asked_and_nothing_of_it_changes() {
    let (calls, world) = (Counter::default(), World::new());
    let builder = world.engine().state(calls.clone()).workflow(before::flow);
    let engine = builder.build().await.unwrap();
    for n in 0..20 {
        engine
            .start(format!("o-{n}"), before::flow(n))
            .await
            .unwrap();
        pass(100_000).await;
    }
    // What is due at this very instant is done first.
    pass(10).await;
    let before = bytes(&*world.store).await;
    let counted = calls.count();
    let report = engine.preflight().await.unwrap();
    assert!(
        report.is_clean() && report.fits == report.runs && report.runs > 5,
        "{report}"
    );
    assert_eq!(calls.count(), counted);
    assert_eq!(bytes(&*world.store).await, before);
    // Nor does it hold anything back.
    pass(100_000_000).await;
    assert!(
        rows(&world, None)
            .await
            .iter()
            .all(|row| row.state == RunState::Completed)
    );
}

#[tokio::test(start_paused = true)]
async fn how_far_it_is_is_told_up_to_the_end() {
    let calls = Counter::default();
    let world = many(600, &calls).await;
    let told = Arc::new(std::sync::Mutex::new(Vec::new()));
    let hook = Arc::clone(&told);
    let builder = reading(&world, 2).state(calls).workflow(after::flow);
    let report = builder
        .preflight()
        .on_progress(move |progress| hook.lock().unwrap().push(*progress))
        .await
        .unwrap();
    let told = told.lock().unwrap();
    let last = told.last().unwrap();
    assert_eq!(
        (last.runs, last.of, last.records),
        (report.runs, report.runs, report.records)
    );
    assert_eq!(last.found, report.would_stop());
    assert!(told.is_sorted_by_key(|progress| (progress.runs, progress.records)));
    assert!(told.iter().all(|progress| progress.runs <= progress.of));
}

#[tokio::test]
async fn the_file_of_a_store_is_the_same_byte_for_byte() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("runs.redb");
    let calls = Counter::default();
    let builder = Engine::builder()
        .state(calls.clone())
        .workflow(before::flow);
    let engine = builder.open(&file).await.unwrap();
    for n in 0..50 {
        engine
            .start(format!("o-{n}"), before::flow(n))
            .await
            .unwrap();
    }
    engine.shutdown(Duration::ZERO).await.unwrap();
    let store = Arc::new(RedbStore::open(&file).unwrap());
    // Opening it counts one more opening; that settles before anything is asked.
    store.fold().unwrap();
    let before = std::fs::read(&file).unwrap();
    let counted = calls.count();
    let shared: Arc<dyn Store> = Arc::<RedbStore>::clone(&store);
    let builder = Engine::builder().state(calls.clone()).shared_store(shared);
    let report = builder.workflow(after::flow).preflight().await.unwrap();
    assert_eq!(report.runs, 50);
    assert!(report.would_stop() > 0, "{report}");
    assert!(std::fs::read(&file).unwrap() == before, "the file changed");
    assert_eq!(calls.count(), counted);
}
