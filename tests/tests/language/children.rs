//! Workflows that await workflows.

use workflow::{Engine, Failure, FailureKind, RunState, race, sleep, step, workflow};
use workflow_tests::{Counter, World, pass};

#[step(retries = 0)]
async fn weigh(calls: &Counter, item: &str) -> Result<u32, std::io::Error> {
    calls.hit();
    if item.is_empty() {
        return Err(std::io::Error::other("nothing to weigh"));
    }
    Ok(u32::try_from(item.len()).unwrap_or(u32::MAX))
}

#[workflow]
async fn parcel(item: String, #[state] calls: Counter) -> Result<u32, Failure> {
    let weight = weigh(&calls, &item).await?;
    sleep!(pack, "1h").await;
    Ok(weight)
}

#[workflow]
async fn order(items: Vec<String>) -> Result<u32, Failure> {
    let mut total = 0;
    'items: for item in items {
        total += parcel(item).await?;
    }
    Ok(total)
}

#[workflow]
async fn careful(item: String) -> Result<String, Failure> {
    match parcel(item).await {
        Ok(weight) => Ok(weight.to_string()),
        Err(failure) => Ok(format!(
            "{}: {}",
            failure.kind(),
            failure.branches()[0].kind()
        )),
    }
}

#[workflow]
async fn impatient(item: String) -> Result<String, Failure> {
    let won = race!(
        pack,
        packed = {
            parcel(item.clone()).await?;
            "packed".to_owned()
        },
        late = {
            sleep!(window, "1m").await;
            "late".to_owned()
        }
    )
    .await?;
    Ok(won.value)
}

#[workflow]
async fn starter(item: String) -> Result<String, Failure> {
    let id = parcel(item).id("my-parcel").detach().await?;
    Ok(id.to_string())
}

/// Each level is a run of its own.
#[workflow]
async fn countdown(from: u32) -> Result<u32, Failure> {
    if from == 0 {
        return Ok(0);
    }
    Ok(1 + countdown(from - 1).await?)
}

async fn engine(world: &World, calls: &Counter) -> Engine {
    world
        .engine()
        .state(calls.clone())
        .workflow(parcel)
        .workflow(order)
        .workflow(careful)
        .workflow(impatient)
        .workflow(starter)
        .workflow(countdown)
        .build()
        .await
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_parent_waits_for_its_children_across_crashes_and_nothing_is_done_twice() {
    let (mut world, calls) = (World::new(), Counter::default());
    let items = vec!["book".to_owned(), "pen".to_owned()];
    let first = engine(&world, &calls).await;
    first.start("o", order(items)).await.unwrap();
    pass(1_000).await;
    drop(first);
    for _ in 0..4 {
        world = world.crash();
        let engine = engine(&world, &calls).await;
        pass(25 * 60 * 1000).await;
        let child = engine.status("o/items[0]/parcel").await.unwrap();
        assert!(matches!(
            child.state,
            RunState::Waiting | RunState::Completed
        ));
        drop(engine);
    }
    world = world.crash();
    let engine = engine(&world, &calls).await;
    let run = engine.attach::<order>("o").await.unwrap();
    assert_eq!(run.result().await.unwrap(), 7);
    assert_eq!(calls.count(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_childs_failure_is_its_parents_to_handle() {
    let (world, calls) = (World::new(), Counter::default());
    let engine = engine(&world, &calls).await;
    let told = engine.run("c", careful(String::new())).await.unwrap();
    assert_eq!(told, "child: exhausted");
    let error = engine
        .run("o", order(vec![String::new()]))
        .await
        .unwrap_err();
    let workflow::Error::Failed(failure) = error else {
        panic!("{error}")
    };
    assert_eq!(failure.kind(), FailureKind::Child);
    assert_eq!(failure.location().to_string(), "items[0]/parcel");
    assert!(failure.message().contains("nothing to weigh"), "{failure}");
}

#[tokio::test(start_paused = true)]
async fn a_child_is_cancelled_with_its_parent_and_when_its_branch_loses() {
    let (world, calls) = (World::new(), Counter::default());
    let engine = engine(&world, &calls).await;
    assert_eq!(
        engine.run("i", impatient("x".into())).await.unwrap(),
        "late"
    );
    pass(1_000).await;
    let state = engine.status("i/pack/packed/parcel").await.unwrap().state;
    assert_eq!(state, RunState::Cancelled);

    let run = engine.start("o", order(vec!["x".into()])).await.unwrap();
    pass(10_000).await;
    run.cancel().await.unwrap();
    let state = engine.status("o/items[0]/parcel").await.unwrap().state;
    assert_eq!(state, RunState::Cancelled);

    // And a child that is cancelled is a failure of its parent.
    let run = engine.start("p", order(vec!["x".into()])).await.unwrap();
    pass(10_000).await;
    engine.cancel("p/items[0]/parcel").await.unwrap();
    let workflow::Error::Failed(failure) = run.result().await.unwrap_err() else {
        panic!()
    };
    assert_eq!(failure.kind(), FailureKind::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn a_detached_child_outlives_its_parent_under_an_id_of_its_own() {
    let (world, calls) = (World::new(), Counter::default());
    let engine = engine(&world, &calls).await;
    assert_eq!(
        engine.run("s", starter("x".into())).await.unwrap(),
        "my-parcel"
    );
    let child = engine.attach::<parcel>("my-parcel").await.unwrap();
    assert_eq!(child.result().await.unwrap(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_workflow_may_call_itself() {
    let (world, calls) = (World::new(), Counter::default());
    let engine = engine(&world, &calls).await;
    assert_eq!(engine.run("c", countdown(5)).await.unwrap(), 5);
    assert!(engine.status("c/countdown/countdown").await.is_ok());
}

#[workflow]
async fn adopting(id: String) -> Result<u32, Failure> {
    parcel("x".into()).id(id).await
}

#[tokio::test(start_paused = true)]
async fn a_child_whose_id_another_run_has_is_a_failure_and_not_a_wait_for_ever() {
    let (world, calls) = (World::new(), Counter::default());
    let builder = world.engine().state(calls.clone());
    let builder = builder.workflow(parcel).workflow(adopting);
    let engine = builder.build().await.unwrap();
    engine.start("taken", parcel("y".into())).await.unwrap();
    let workflow::Error::Failed(failure) =
        engine.run("a", adopting("taken".into())).await.unwrap_err()
    else {
        panic!()
    };
    assert_eq!(failure.kind(), FailureKind::Child);
    assert!(
        failure.message().contains("another run has this id"),
        "{failure}"
    );
    assert_eq!(engine.run("b", adopting("free".into())).await.unwrap(), 1);
}
