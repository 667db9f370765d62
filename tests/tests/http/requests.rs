//! What cannot be read, and what is not there.

use std::time::Duration;

use serde_json::json;

use crate::{Client, Shop};

#[tokio::test(start_paused = true)]
async fn a_body_has_to_be_json_say_so_and_be_small_enough() {
    let shop = Shop::new();
    let engine = shop.engine().await;
    let client = Client::of(shop.api(&engine).body_limit(200));
    let path = "/workflows/order/runs";
    let says = client
        .post(path, "{\"order\": ")
        .await
        .refused(400, "bad_json");
    assert!(says.contains("line 1"), "{says}");
    let typed = [("content-type", "text/plain")];
    let says = client
        .ask("POST", path, &typed, "{}")
        .await
        .refused(415, "unsupported_media_type");
    assert!(says.contains("content-type: application/json"), "{says}");
    let typed = [("content-type", "Application/JSON; charset=utf-8")];
    client
        .ask("POST", "/workflows/bill/runs", &typed, "{}")
        .await
        .is(202);
    let large = json!({ "order": { "item": "x".repeat(200) } });
    let says = client.post(path, large).await.refused(413, "too_large");
    assert!(says.contains("200 bytes"), "{says}");
    client
        .post("/runs/x/messages/payment", "")
        .await
        .refused(400, "bad_json");
    // Over the engine's own limit, where the body may be larger.
    let engine = shop.builder().payload_limit(100).build().await.unwrap();
    let client = Client::of(shop.api(&engine));
    let large = json!({ "order": { "item": "x".repeat(200) } });
    let says = client.post(path, large).await.refused(422, "input");
    assert!(says.contains("the limit is 100"), "{says}");
}

#[tokio::test(start_paused = true)]
async fn a_key_that_cannot_be_one_is_refused() {
    let shop = Shop::new();
    let (_engine, client) = shop.client().await;
    for key in ["", "\"\"", "a/b", "a b", "\"a", &"x".repeat(513)] {
        let refused = client.once("/workflows/bill/runs", key, "{}").await;
        let says = refused.refused(400, "bad_key");
        assert!(says.contains("1 to 512"), "{says}");
    }
    client
        .once("/workflows/bill/runs", &"x".repeat(512), "{}")
        .await
        .is(202);
}

#[tokio::test(start_paused = true)]
async fn a_wrong_path_or_method_is_a_problem_too() {
    let shop = Shop::new();
    let (_engine, client) = shop.client().await;
    let says = client.get("/nothing/here").await.refused(404, "no_route");
    assert!(says.contains("`/nothing/here`"), "{says}");
    let wrong = client.ask("DELETE", "/runs/o1", &[], "").await;
    assert_eq!(wrong.headers["allow"], "GET,HEAD");
    wrong.refused(405, "method_not_allowed");
    client.get("/runs/%ff").await.refused(400, "bad_path");
    client
        .get("/runs/o1?x=1")
        .await
        .refused(400, "bad_parameter");
    client
        .get("/runs/o1/result?wait=soon")
        .await
        .refused(400, "bad_parameter");
    let says = client
        .get("/runs/o1/result?wait=61")
        .await
        .refused(400, "bad_parameter");
    assert!(says.contains("60 seconds"), "{says}");
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_is_shut_down_asks_to_come_again() {
    let shop = Shop::new();
    let (engine, client) = shop.client().await;
    client.start_order("o1").await.is(202);
    let waiting = client.clone();
    let waiting = tokio::spawn(async move { waiting.get("/runs/o1/result?wait=60").await });
    tokio::time::sleep(Duration::from_millis(1)).await;
    engine.shutdown(Duration::ZERO).await.unwrap();
    let let_go = waiting.await.unwrap();
    assert_eq!(let_go.headers["retry-after"], "1");
    let_go.refused(503, "shutting_down");
    client.start_order("o2").await.refused(503, "shutting_down");
    let says = client.get("/runs/o1").await.refused(503, "storage");
    assert!(
        !says.contains("closed"),
        "what the store failed by is not the client's business"
    );
}
