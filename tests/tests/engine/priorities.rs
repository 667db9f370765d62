//! Who goes first of those that wait for the same.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use workflow::store::RunFilter;
use workflow::{Call, Engine, EngineBuilder, Failure, Limit, Rate, sleep, step, workflow};
use workflow_tests::{World, pass};

use crate::either::Either;

type Order = Arc<Mutex<Vec<String>>>;

#[step(timeout = "none")]
async fn work(order: &Order, run: &str) {
    order.lock().unwrap().push(run.to_owned());
    pass(1_000).await;
}

#[workflow]
async fn job(#[state] order: Order, run: String) -> Result<(), Failure> {
    work(&order, &run).await
}

#[workflow]
async fn sleeps(#[state] order: Order, run: String) -> Result<(), Failure> {
    work(&order, &run).await?;
    sleep!(rest, "10s").await;
    #[step(name = "again")]
    work(&order, &run).await
}

#[workflow]
async fn parent(runs: Vec<String>) -> Result<(), Failure> {
    'each: for (number, run) in runs.into_iter().enumerate() {
        let call = job(run);
        let call = if number == 0 { call.priority(-1) } else { call };
        #[step(name = "job")]
        call.detach().await?;
    }
    Ok(())
}

fn all(builder: EngineBuilder, order: &Order) -> EngineBuilder {
    builder
        .workflow(job)
        .workflow(sleeps)
        .workflow(parent)
        .state(Arc::clone(order))
}

fn call(run: &str) -> Call<job> {
    job(run.to_owned())
}

/// What makes runs wait for each other.
fn narrow(builder: EngineBuilder, how: &str) -> EngineBuilder {
    match how {
        "working" => builder.limit(job, Limit::working(1)),
        "unfinished" => builder.limit(job, Limit::unfinished(1)),
        "rate" => builder.rate(job, Rate::per(1, Duration::from_secs(2))),
        _ => builder.in_memory(1),
    }
}

const HOW: [&str; 4] = ["working", "unfinished", "rate", "room"];

async fn start(engine: &Engine) {
    for (run, priority) in [
        ("first", 0),
        ("b", 0),
        ("low", -1),
        ("high", 9),
        ("c", 0),
        ("higher", 10),
        ("high too", 9),
        ("lowest", i32::MIN),
    ] {
        let call = call(run).priority(priority);
        engine.start(run, call).await.unwrap();
    }
}

const ORDER: [&str; 8] = [
    "first", "higher", "high", "high too", "b", "c", "low", "lowest",
];

#[tokio::test(start_paused = true)]
async fn the_higher_goes_first_and_then_who_was_started_first() {
    for how in HOW {
        let order = Order::default();
        let builder = narrow(all(World::new().engine(), &order), how);
        let engine = builder.build().await.unwrap();
        start(&engine).await;
        let row = engine
            .list(&RunFilter::default())
            .await
            .unwrap()
            .rows
            .remove(3);
        assert_eq!((row.id.as_str(), row.priority), ("high", 9));
        assert_eq!(engine.status("high").await.unwrap().priority, 9);
        if how != "room" {
            let queued = engine.status("b").await.unwrap().queued.unwrap();
            assert_eq!(queued.ahead, 3);
        }
        pass(60_000).await;
        assert_eq!(*order.lock().unwrap(), ORDER, "{how}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_restart_keeps_the_order() {
    for how in HOW {
        for either in Either::each() {
            let order = Order::default();
            let build = |either: &Either| narrow(all(either.engine(), &order), how);
            let engine = build(&either).build().await.unwrap();
            start(&engine).await;
            pass(500).await;
            let left = either.crash();
            drop(engine);
            pass(1).await;
            order.lock().unwrap().clear();
            let engine = build(&left).build().await.unwrap();
            pass(60_000).await;
            let order = order.lock().unwrap().clone();
            if matches!(how, "room" | "working") {
                // Whoever was at work has no more right than others to go on.
                let mut expected = ORDER.map(str::to_owned).to_vec();
                let first = expected.remove(0);
                expected.insert(3, first);
                assert_eq!(order, expected, "{how}");
            } else {
                assert_eq!(order, ORDER, "{how}");
            }
            engine.shutdown(Duration::ZERO).await.unwrap();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_long_backlog_is_read_while_there_is_no_room_and_forgets_nobody() {
    let (world, order) = (World::new(), Order::default());
    let operator = all(world.engine(), &order).drives_nothing();
    let operator = operator.build().await.unwrap();
    for number in 0..3_000 {
        let run = number.to_string();
        let priority = match number {
            2_900 => 5,
            10 => -5,
            _ => 0,
        };
        let call = call(&run).priority(priority);
        operator.start(&*run, call).await.unwrap();
    }
    drop(operator);
    pass(1).await;
    let engine = all(world.engine(), &order).in_memory(2).build();
    let engine = engine.await.unwrap();
    pass(3_000 * 1_000).await;
    let order = order.lock().unwrap().clone();
    assert_eq!(order.len(), 3_000);
    assert_eq!(order[..4], ["0", "1", "2900", "2"]);
    assert_eq!(order[2_998..], ["2999", "10"]);
    assert_eq!(engine.in_memory(), 0);
}

#[tokio::test(start_paused = true)]
async fn one_that_goes_on_stands_where_its_priority_says() {
    let order = Order::default();
    let world = World::new();
    let builder = all(world.engine(), &order).limit(sleeps, Limit::working(1));
    let engine = builder.build().await.unwrap();
    let call = |run: &str| sleeps(run.to_owned());
    engine.start("a", call("a").priority(-1)).await.unwrap();
    pass(9_500).await;
    for run in ["b", "c"] {
        engine.start(run, call(run)).await.unwrap();
    }
    pass(60_000).await;
    assert_eq!(*order.lock().unwrap(), ["a", "b", "c", "a", "b", "c"]);
}

#[tokio::test(start_paused = true)]
async fn a_child_has_the_priority_of_its_parent_unless_its_call_says_another() {
    let (world, order) = (World::new(), Order::default());
    let builder = all(world.engine(), &order).limit(job, Limit::working(1));
    let engine = builder.build().await.unwrap();
    engine.start("now", call("now")).await.unwrap();
    engine.start("other", call("other")).await.unwrap();
    let runs = ["last", "child"].map(str::to_owned).to_vec();
    engine.start("p", parent(runs).priority(5)).await.unwrap();
    pass(60_000).await;
    assert_eq!(*order.lock().unwrap(), ["now", "child", "other", "last"]);
    let page = engine.list(&RunFilter::default()).await.unwrap();
    let priorities: Vec<_> = page.rows.iter().map(|row| row.priority).collect();
    assert_eq!(priorities, [0, 0, 5, -1, 5]);
}

#[tokio::test(start_paused = true)]
async fn a_fork_has_the_priority_of_its_run() {
    let (world, order) = (World::new(), Order::default());
    let engine = all(world.engine(), &order).build().await.unwrap();
    engine.run("a", call("a").priority(7)).await.unwrap();
    engine.fork("a", "b", Some("work")).await.unwrap();
    assert_eq!(engine.status("b").await.unwrap().priority, 7);
}
