//! Starting runs and looking at them.

use std::time::Duration;

use serde_json::json;
use workflow::{History, Limit, Rate};
use workflow_tests::pass;

use crate::{Client, Shop, bill, order};

#[tokio::test(start_paused = true)]
async fn a_run_is_started_followed_and_read() {
    let shop = Shop::new();
    let (_engine, client) = shop.client().await;
    let started = client.start_order("o1").await;
    assert_eq!(started.headers["location"], "/api/runs/o1");
    let started = started.is(202);
    assert_eq!(
        (&started["id"], &started["workflow"]),
        (&json!("o1"), &json!("order"))
    );

    // Long polls: one that is over before the run is, and one that the run ends.
    let waits = client.get("/runs/o1/result?wait=60").await.is(202);
    assert_eq!(waits["state"], "waiting");
    assert_eq!(waits["progress"], json!({ "packed": "book packed" }));
    tokio::time::sleep(Duration::from_secs(3_530)).await;
    let began = tokio::time::Instant::now();
    let ended = client.get("/runs/o1/result?wait=60").await.is(200);
    assert!(
        began.elapsed() < Duration::from_secs(11),
        "{:?}",
        began.elapsed()
    );
    assert_eq!(
        ended,
        json!({ "id": "o1", "state": "completed", "value": "book packed" })
    );

    let status = client.get("/runs/o1").await.is(200);
    assert_eq!(status["state"], "completed");
    assert!(status["finished_at"].as_i64() > status["created_at"].as_i64());

    let all = client.get("/runs/o1/history").await.is(200);
    let records = all["records"].as_array().unwrap();
    assert_eq!(records.len() as u64, status["records"].as_u64().unwrap());
    assert!(all.get("next").is_none());
    let some = client.get("/runs/o1/history?after=1&limit=2").await.is(200);
    assert_eq!(some["records"], json!(records[1..3]));
    assert_eq!(some["next"], 3);

    let export = client.get("/runs/o1/export").await.is(200);
    let history = History::from_json(&export.to_string()).unwrap();
    assert_eq!(history.records().len(), records.len());
}

#[tokio::test(start_paused = true)]
async fn a_start_that_waits_is_answered_with_the_result() {
    let shop = Shop::new();
    let (_engine, client) = shop.client().await;
    let input = json!({ "order": { "item": "stone" } });
    let failed = client
        .once("/workflows/order/runs?wait=5", "o1", input)
        .await
        .is(200);
    assert_eq!(failed["state"], "failed");
    assert_eq!(failed["failure"]["location"], "pack");
    assert!(
        failed["failure"]["message"]
            .as_str()
            .unwrap()
            .contains("too heavy")
    );

    let parked = client
        .once("/workflows/broken/runs?wait=5", "b1", "")
        .await
        .is(202);
    assert_eq!(parked["state"], "parked");
    assert_eq!(parked["parked"]["reason"], "panicked");
    let waited = client.get("/runs/b1/result?wait=60").await.is(202);
    assert_eq!(waited["state"], "parked");
}

#[tokio::test(start_paused = true)]
async fn a_start_that_is_made_again_with_its_key_is_the_same_run() {
    let shop = Shop::new();
    let (_engine, client) = shop.client().await;
    client.start_order("o1").await.is(202);
    // The quoted form, other white space, another order of fields.
    let again = r#"{ "order": { "cents": 7, "item": "book" } }"#;
    let again = client.once("/workflows/order/runs", "\"o1\"", again).await;
    assert_eq!(again.is(202)["id"], "o1");
    client.get("/runs/o1/result?wait=1").await.is(202);
    assert_eq!(shop.calls.count(), 1);

    let other = json!({ "order": { "item": "book", "cents": 8 } });
    let other = client.once("/workflows/order/runs", "o1", other).await;
    let says = other.refused(409, "other_input");
    assert!(says.contains("use another id"), "{says}");
    let other = client.once("/workflows/bill/runs", "o1", "{}").await;
    other.refused(409, "other_workflow");
}

#[tokio::test(start_paused = true)]
async fn a_start_may_say_when_the_run_begins_and_before_whom() {
    let shop = Shop::new();
    let (_engine, client) = shop.client().await;
    let input = json!({ "order": { "item": "book" } });
    let path = "/workflows/order/runs?delay=3600&priority=-7";
    let started = client.once(path, "o1", &input).await.is(202);
    let created = started["created_at"].as_i64().unwrap();
    assert_eq!(started["state"], "waiting");
    assert_eq!(started["priority"], -7);
    assert_eq!(started["not_before"], created + 3_600_000);
    assert_eq!(started["wake_at"], started["not_before"]);
    let listed = client.get("/runs").await.is(200);
    assert_eq!(listed["runs"][0], started);
    // Made again, whatever it says of the time, it is the same run.
    let again = client.once("/workflows/order/runs", "o1", &input).await;
    assert_eq!(again.is(202)["not_before"], started["not_before"]);
    tokio::time::sleep(Duration::from_secs(3_599)).await;
    assert_eq!(shop.calls.count(), 0);
    client.get("/runs/o1/result?wait=30").await.is(202);
    assert_eq!(shop.calls.count(), 1);

    let path = format!("/workflows/order/runs?not_before={}", created + 9_000_000);
    let at = client.once(&path, "o2", &input).await.is(202);
    assert_eq!(at["not_before"], created + 9_000_000);
    client.post("/runs/o2/cancel", "").await.is(200);
    for (path, seconds) in [
        ("delay=9000&not_before=0", 9_000),
        ("delay=1&not_before=9999999999999", 0),
    ] {
        let both = client
            .once(&format!("/workflows/bill/runs?{path}"), path, "{}")
            .await
            .is(202);
        let later = match seconds {
            0 => json!(9_999_999_999_999_u64),
            _ => json!(both["created_at"].as_i64().unwrap() + seconds * 1_000),
        };
        assert_eq!(both["not_before"], later, "{path}");
        client
            .post(
                &format!("/runs/{}/cancel", both["id"].as_str().unwrap()),
                "",
            )
            .await;
    }
    let past = client.once("/workflows/order/runs?not_before=0", "o3", &input);
    let past = past.await.is(202);
    assert_eq!(
        (past.get("not_before"), &past["priority"]),
        (None, &json!(0))
    );

    for wrong in [
        "delay=-1",
        "delay=1.5",
        "delay=4294967296",
        "priority=2147483648",
        "not_before=soon",
        "prio=1",
    ] {
        let path = format!("/workflows/order/runs?{wrong}");
        let wrong = client.once(&path, "o4", &input).await;
        wrong.refused(400, "bad_parameter");
    }
    client.get("/runs/o4").await.refused(404, "not_found");
}

#[tokio::test(start_paused = true)]
async fn a_run_that_waits_says_for_what() {
    let shop = Shop::new();
    let minute = Duration::from_mins(1);
    let builder = shop.builder().limit(bill, Limit::unfinished(1));
    let engine = builder
        .rate(order, Rate::per(1, minute))
        .build()
        .await
        .unwrap();
    let client = Client::of(shop.api(&engine));
    for id in ["b1", "b2"] {
        client.once("/workflows/bill/runs", id, "").await.is(202);
    }
    let first = client.start_order("o1").await.is(202);
    client.start_order("o2").await.is(202);
    let (bill, order) = (client.get("/runs/b2").await, client.get("/runs/o2").await);
    assert_eq!(bill.is(200)["queued"], json!({ "limit": 1, "ahead": 0 }));
    let created = first["created_at"].as_i64().unwrap();
    let rate = json!({ "begins": 1, "interval": 60_000 });
    assert_eq!(
        order.is(200)["queued"],
        json!({ "rate": rate, "ahead": 0, "not_before": created + 60_000 })
    );
    pass(61_000).await;
    assert!(client.get("/runs/o2").await.is(200).get("queued").is_none());
}

#[tokio::test(start_paused = true)]
async fn a_start_without_a_key_gets_an_id_of_its_own() {
    let shop = Shop::new();
    let (_engine, client) = shop.client().await;
    let one = client.post("/workflows/bill/runs", "{}").await.is(202);
    let other = client.post("/workflows/bill/runs", "").await.is(202);
    assert_ne!(one["id"], other["id"]);
    let at = format!("/runs/{}", one["id"].as_str().unwrap());
    assert_eq!(
        client.get(&at).await.is(200)["waits_for"],
        json!(["payment"])
    );
}

#[tokio::test(start_paused = true)]
async fn what_does_not_fit_the_workflow_is_refused_with_where() {
    let shop = Shop::new();
    let (_engine, client) = shop.client().await;
    let refused = client
        .post("/workflows/order/runs", json!({ "order": { "item": 7 } }))
        .await;
    let says = refused.refused(422, "input");
    assert!(
        says.contains("`order`") && says.contains("expected a string"),
        "{says}"
    );
    let refused = client
        .post(
            "/workflows/order/runs",
            json!({ "order": { "item": "a" }, "x": 1 }),
        )
        .await;
    let says = refused.refused(422, "input");
    assert!(
        says.contains("`x`") && says.contains("`order`, `note`"),
        "{says}"
    );
    let refused = client.post("/workflows/ordre/runs", "{}").await;
    let says = refused.refused(404, "unknown_workflow");
    assert!(says.contains("`order`"), "{says}");
    // A flow is led, and not started as a workflow is.
    client
        .post("/workflows/signup/runs", "{}")
        .await
        .refused(404, "unknown_workflow");
    let listed = client.get("/runs").await.is(200);
    assert_eq!(listed["runs"], json!([]));
}

#[tokio::test(start_paused = true)]
async fn runs_are_listed_by_workflow_and_state_page_by_page() {
    let shop = Shop::new();
    let (_engine, client) = shop.client().await;
    for n in 0..5 {
        client.start_order(&format!("o{n}")).await.is(202);
    }
    client
        .once("/workflows/bill/runs", "b0", "{}")
        .await
        .is(202);
    client.post("/runs/o3/cancel", "").await.is(200);

    let ids = |page: &serde_json::Value| -> Vec<String> {
        let runs = page["runs"].as_array().unwrap().iter();
        runs.map(|run| run["id"].as_str().unwrap().to_owned())
            .collect()
    };
    let first = client.get("/runs?workflow=order&limit=3").await.is(200);
    assert_eq!(ids(&first), ["o0", "o1", "o2"]);
    let cursor = first["next"].as_str().unwrap();
    let second = client
        .get(&format!("/runs?workflow=order&limit=3&cursor={cursor}"))
        .await
        .is(200);
    assert_eq!(ids(&second), ["o3", "o4"]);
    assert!(second.get("next").is_none());
    let cancelled = client.get("/runs?state=cancelled").await.is(200);
    assert_eq!(ids(&cancelled), ["o3"]);

    let says = client
        .get("/runs?cursor=xyz")
        .await
        .refused(400, "bad_cursor");
    assert!(says.contains("next"), "{says}");
    let says = client
        .get("/runs?state=finished")
        .await
        .refused(400, "bad_parameter");
    assert!(says.contains("`completed`"), "{says}");
    client
        .get("/runs?limit=0")
        .await
        .refused(400, "bad_parameter");
    client
        .get("/runs?limit=1001")
        .await
        .refused(400, "bad_parameter");
    client
        .get("/runs?sate=failed")
        .await
        .refused(400, "bad_parameter");
}

#[tokio::test(start_paused = true)]
async fn runs_are_found_by_states_ids_and_times_the_newest_first() {
    let shop = Shop::new();
    let (_engine, client) = shop.client().await;
    for n in 0..4 {
        client.start_order(&format!("order-{n}")).await.is(202);
        tokio::time::sleep(Duration::from_mins(1)).await;
    }
    client
        .once("/workflows/bill/runs", "bill-1", "{}")
        .await
        .is(202);
    client.post("/runs/order-2/cancel", "").await.is(200);
    let list = async |query: &str| -> Vec<String> {
        let page = client.get(&format!("/runs?{query}")).await.is(200);
        let runs = page["runs"].as_array().unwrap().iter();
        runs.map(|run| run["id"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(list("order=newest&limit=2").await, ["bill-1", "order-3"]);
    let page = client.get("/runs?order=newest&limit=2").await.is(200);
    let next = page["next"].as_str().unwrap();
    assert_eq!(
        list(&format!("order=newest&limit=2&cursor={next}")).await,
        ["order-2", "order-1"]
    );
    assert_eq!(
        list("id_prefix=order-&order=oldest&limit=1").await,
        ["order-0"]
    );
    assert_eq!(list("id_contains=-1").await, ["order-1", "bill-1"]);
    assert_eq!(
        list("state=cancelled,waiting&id_prefix=order&order=newest").await,
        ["order-3", "order-2", "order-1", "order-0"]
    );
    assert_eq!(list("state=").await.len(), 5);
    let created = client.get("/runs/order-1").await.is(200)["created_at"].clone();
    assert_eq!(list(&format!("created_until={created}")).await, ["order-0"]);
    assert_eq!(
        list(&format!("created_from={created}&workflow=order")).await,
        ["order-1", "order-2", "order-3"]
    );
    let changed = client.get("/runs/order-2").await.is(200)["updated_at"].clone();
    assert_eq!(
        list(&format!("changed_from={changed}&state=cancelled")).await,
        ["order-2"]
    );
    for wrong in [
        "state=cancelled,gone",
        "order=up",
        "created_from=-1",
        "changed_from=9007199254740993",
    ] {
        client
            .get(&format!("/runs?{wrong}"))
            .await
            .refused(400, "bad_parameter");
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_is_drawn_over_its_workflow() {
    let shop = Shop::new();
    let (engine, client) = shop.client().await;
    client.start_order("o1").await.is(202);
    tokio::time::sleep(Duration::from_secs(9)).await;
    let run = engine.attach::<order>("o1").await.unwrap();
    let graph = run.graph().await.unwrap();
    let drawn = client.get("/runs/o1/graph?format=mermaid").await;
    assert_eq!(drawn.headers["content-type"], "text/vnd.mermaid");
    assert_eq!(drawn.is(200), graph.mermaid());
    assert_eq!(
        client.get("/runs/o1/graph?format=dot").await.is(200),
        graph.dot()
    );
    let json: serde_json::Value = serde_json::from_str(&graph.json()).unwrap();
    assert_eq!(client.get("/runs/o1/graph").await.is(200), json);
    let says = client
        .get("/runs/o1/graph?format=png")
        .await
        .refused(400, "bad_parameter");
    assert!(says.contains("`mermaid`"), "{says}");
}

#[tokio::test(start_paused = true)]
async fn a_child_is_found_under_its_escaped_id() {
    let shop = Shop::new();
    let (_engine, client) = shop.client().await;
    client
        .once("/workflows/parent/runs?wait=1", "p", "{}")
        .await
        .is(202);
    let child = client.get("/runs/p%2Fboth%2Fship%2Forder").await.is(200);
    assert_eq!(
        child["parent"],
        json!({ "id": "p", "location": "both/ship/order" })
    );
    client.get("/runs/p/both").await.refused(404, "no_route");
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_not_there_is_not_found_anywhere() {
    let shop = Shop::new();
    let (_engine, client) = shop.client().await;
    for path in [
        "",
        "/result",
        "/allowed",
        "/history",
        "/export",
        "/events",
        "/graph",
        "/dead-letters",
    ] {
        let says = client
            .get(&format!("/runs/none{path}"))
            .await
            .refused(404, "not_found");
        assert!(says.contains("`none`"), "{says}");
    }
    for (path, body) in [
        ("cancel", ""),
        ("recover", ""),
        ("resume", ""),
        ("rewind", r#"{"to":""}"#),
        ("fork", r#"{"id":"f"}"#),
        ("skip-undo", r#"{"entry":1,"reason":"r"}"#),
        ("requests/quote", r#""a""#),
    ] {
        let path = format!("/runs/none/{path}");
        client.post(&path, body).await.refused(404, "not_found");
    }
}
