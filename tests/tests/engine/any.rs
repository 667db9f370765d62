//! Runs whose workflow is known by its name only.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use workflow::{AnyWorkflow, Engine, Error, Failure, RunState, StartError, sleep, step, workflow};
use workflow_tests::World;

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Order {
    item: String,
    #[serde(default)]
    gift: bool,
}

#[step]
async fn label(order: Order) -> String {
    format!("{} {}", order.item, order.gift)
}

#[workflow]
async fn parcel(order: Order, note: Option<String>) -> Result<String, Failure> {
    let label = label(order).await?;
    sleep!(packing, "1h").await;
    Ok(match note {
        Some(note) => format!("{label}: {note}"),
        None => label,
    })
}

#[workflow]
async fn nothing() {
    sleep!(nap, "1ms").await;
}

async fn engine(world: &World) -> Engine {
    let engine = world.engine().workflow(parcel).workflow(nothing);
    engine.payload_limit(1_000).build().await.unwrap()
}

fn order(item: &str) -> Order {
    Order {
        item: item.to_owned(),
        gift: false,
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_started_by_name_is_the_one_that_its_own_types_start() {
    let world = World::new();
    let engine = engine(&world).await;
    assert_eq!(engine.workflows(), ["nothing", "parcel"]);
    // Fields in another order, one that has a default, an argument that is left out.
    let json = r#" {"order": {"item": "book"}} "#;
    let by_name = engine.start_json("o1", "parcel", json).await.unwrap();
    let by_type = engine.start("o1", parcel(order("book"), None)).await;
    let by_type = by_type.unwrap();
    assert_eq!(by_type.result().await.unwrap(), "book false");
    assert_eq!(by_name.result().await.unwrap().get(), r#""book false""#);
    let again = engine.start_json("o1", "parcel", json).await.unwrap();
    assert_eq!(again.result().await.unwrap().get(), r#""book false""#);
    let other = r#"{"order": {"item": "book", "gift": true}}"#;
    let other = engine.start_json("o1", "parcel", other).await;
    assert!(matches!(other, Err(StartError::OtherInput { .. })));
    let other = engine.start_json("o1", "nothing", "{}").await;
    assert!(matches!(other, Err(StartError::OtherWorkflow { .. })));
}

#[tokio::test(start_paused = true)]
async fn an_input_that_does_not_fit_starts_nothing_and_says_where() {
    let world = World::new();
    let engine = engine(&world).await;
    let large = format!(r#"{{"order":{{"item":"{}"}}}}"#, "x".repeat(1_000));
    for (input, says) in [
        (r#"{"order": {"item": 7}}"#, "`order`"),
        (r#"{"order": {"item": 7}}"#, "expected a string"),
        ("{}", "`order`"),
        (
            r#"{"order": {"item": "a"}, "nota": "b"}"#,
            "no parameter `nota`; it takes `order`, `note`",
        ),
        ("[]", "map"),
        ("", "EOF"),
        (large.as_str(), "the limit is 1000"),
    ] {
        let refused = engine.start_json("o1", "parcel", input).await;
        let Err(StartError::Input { workflow, detail }) = refused else {
            panic!("{input} gave {refused:?}");
        };
        assert_eq!(workflow, "parcel");
        assert!(detail.contains(says), "{input} gave {detail}");
    }
    assert!(engine.status("o1").await.is_err());
    let unknown = engine.start_json("o1", "parsel", "{}").await.unwrap_err();
    assert_eq!(
        unknown.to_string(),
        "there is no workflow `parsel` here; there are `nothing`, `parcel`"
    );
    let bad = engine.start_json("a/b", "nothing", "{}").await;
    assert!(matches!(bad, Err(StartError::InvalidId(_))));
}

#[tokio::test(start_paused = true)]
async fn a_handle_on_any_run_watches_draws_and_cancels_it() {
    let world = World::new();
    let engine = engine(&world).await;
    let parcel = engine
        .start("o1", parcel(order("book"), None))
        .await
        .unwrap();
    let run = engine.attach::<AnyWorkflow>("o1").await.unwrap();
    let mut watch = run.watch(1);
    assert!(watch.next().await.unwrap().is_some());
    assert_eq!(
        run.graph().await.unwrap().mermaid(),
        parcel.graph().await.unwrap().mermaid()
    );
    assert!(run.graph().await.unwrap().mermaid().contains("packing"));
    run.cancel().await.unwrap();
    assert!(matches!(run.result().await, Err(Error::Cancelled(_))));
    engine.start_json("n1", "nothing", " {} ").await.unwrap();
    engine.run("n1", nothing()).await.unwrap();
    let run = engine.attach::<AnyWorkflow>("n1").await.unwrap();
    assert_eq!(run.result().await.unwrap().get(), "null");
    assert!(engine.attach::<AnyWorkflow>("n2").await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_start_by_name_whose_process_died_goes_on() {
    let world = World::new();
    let first = engine(&world).await;
    let json = r#"{"order": {"item": "book"}, "note": "hi"}"#;
    first.start_json("o1", "parcel", json).await.unwrap();
    let world = world.crash();
    drop(first);
    let second = engine(&world).await;
    let run = second.attach::<AnyWorkflow>("o1").await.unwrap();
    assert_eq!(run.result().await.unwrap().get(), r#""book false: hi""#);
    let status = run.status().await.unwrap();
    assert_eq!((status.state, status.generation), (RunState::Completed, 0));
    second.shutdown(Duration::ZERO).await.unwrap();
}
