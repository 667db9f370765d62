//! How many runs there are, and that something has changed.

use std::time::Duration;

use serde_json::json;

use crate::events::Stream;
use crate::{Client, Shop};

#[tokio::test(start_paused = true)]
async fn runs_are_counted_by_workflow_and_state() {
    let shop = Shop::new();
    let (_engine, client) = shop.client().await;
    let none = client.get("/counts").await.is(200);
    assert_eq!(none, json!({ "runs": 0, "states": {}, "workflows": {} }));
    for n in 0..3 {
        client.start_order(&format!("o{n}")).await.is(202);
    }
    client
        .once("/workflows/bill/runs?wait=1", "b0", "{}")
        .await
        .is(202);
    client.post("/runs/o1/cancel", "").await.is(200);
    assert_eq!(
        client.get("/counts").await.is(200),
        json!({
            "runs": 4,
            "states": { "waiting": 3, "cancelled": 1 },
            "workflows": { "bill": { "waiting": 1 }, "order": { "waiting": 2, "cancelled": 1 } },
        })
    );
    client
        .get("/counts?of=order")
        .await
        .refused(400, "bad_parameter");
}

#[tokio::test(start_paused = true)]
async fn a_stream_of_changes_tells_that_something_has_changed_and_ends_with_the_engine() {
    let shop = Shop::new();
    let (engine, client) = shop.client().await;
    let mut stream = Stream::open(&client, "/changes", None).await;
    let first = stream.next().await.unwrap();
    assert_eq!(first.kind, "changed");
    assert_eq!(first.data["runs"], 0);
    client.start_order("o1").await.is(202);
    // Begun, packed, at rest: told as one, or as several.
    let mut last = stream.next().await.unwrap();
    while last.data["states"] != json!({ "waiting": 1 }) {
        last = stream.next().await.unwrap();
    }
    // The same counts, and yet a change: a message lies there now.
    client.post("/runs/o1/messages/payment", "7").await.is(202);
    let same = stream.next().await.unwrap();
    assert_eq!(same, last);
    engine.shutdown(Duration::ZERO).await.unwrap();
    assert_eq!(stream.next().await, None);
}

#[tokio::test(start_paused = true)]
async fn what_is_allowed_is_what_the_policy_says_of_this_run() {
    use workflow::http::{Action, Policy, router};
    let shop = Shop::new();
    let (engine, open) = shop.client().await;
    for run in ["o1", "o2"] {
        open.start_order(run).await.is(202);
    }
    assert_eq!(
        open.get("/runs/o1/allowed").await.is(200),
        json!({
            "controls": ["cancel", "recover", "resume", "rewind", "fork", "skip-undo"],
            "messages": ["payment"],
            "requests": ["quote"],
        })
    );
    let closed = router(engine.clone()).channel(&crate::PAYMENT);
    assert_eq!(
        Client::of(closed).get("/runs/o1/allowed").await.is(200),
        json!({ "controls": [], "messages": [], "requests": [] })
    );
    let policy = Policy::new(|ask| match ask.action() {
        Action::Cancel => ask.run() == Some("o2"),
        Action::Send => ask.channel() == Some("payment"),
        Action::Start => ask.workflow() == Some("bill"),
        action => !action.changes(),
    });
    let some = router(engine).channel(&crate::PAYMENT).policy(policy);
    let some = Client::of(some);
    assert_eq!(
        some.get("/runs/o1/allowed").await.is(200),
        json!({ "controls": [], "messages": ["payment"], "requests": [] })
    );
    let other = some.get("/runs/o2/allowed").await.is(200);
    assert_eq!(other["controls"], json!(["cancel"]));
    let described = some.get("/workflows").await.is(200);
    assert_eq!(described["may_start"], json!(["bill"]));
}
