//! What somebody sends who means no good, or whose values are enormous.

use serde_json::{Value, json};
use workflow::http::{Action, Policy, router};

use crate::{Client, Shop};

const ODD: [&str; 7] = [
    "<script>alert(1)</script>",
    "\u{202e}gnp.exe",
    "a b#c?d%2F%00",
    "\u{1f469}\u{200d}\u{1f4bb}\u{feff}",
    "..%2e",
    "'\"><img src=x onerror=alert(1)>",
    "%",
];

#[tokio::test(start_paused = true)]
async fn whatever_an_id_holds_the_run_is_found_where_it_is_said_to_be() {
    let shop = Shop::new();
    let (engine, client) = shop.client().await;
    engine.start("first", crate::bill()).await.unwrap();
    for id in ODD {
        if id.contains('/') {
            let refused = client.post("/runs/first/fork", json!({ "id": id })).await;
            refused.refused(400, "invalid_id");
            continue;
        }
        let forked = client.post("/runs/first/fork", json!({ "id": id })).await;
        let at = forked.headers["location"].to_str().unwrap().to_owned();
        assert_eq!(forked.is(201)["id"], id);
        let found = client.get(at.strip_prefix("/api").unwrap()).await;
        assert_eq!(found.is(200)["id"], id);
    }
    for nowhere in [".", ".."] {
        let forked = client.post("/runs/first/fork", json!({ "id": nowhere }));
        forked.await.refused(400, "invalid_id");
        let started = client.once("/workflows/bill/runs", nowhere, "{}");
        started.await.refused(400, "invalid_id");
    }
}

#[tokio::test(start_paused = true)]
async fn no_cache_keeps_an_answer_and_no_browser_takes_it_for_something_else() {
    let shop = Shop::new();
    let (_engine, client) = shop.client().await;
    client.start_order("o1").await.is(202);
    for path in [
        "/runs",
        "/runs/o1",
        "/runs/o1/history",
        "/runs/o1/graph?format=dot",
        "/counts",
        "/nowhere",
        "/runs/nobody",
        "/runs?limit=0",
    ] {
        let answer = client.get(path).await;
        assert_eq!(answer.headers["cache-control"], "no-store", "{path}");
        assert_eq!(
            answer.headers["x-content-type-options"], "nosniff",
            "{path}"
        );
    }
    let stream = client.respond("GET", "/changes", &[], "").await;
    assert_eq!(stream.headers()["x-content-type-options"], "nosniff");
    assert_eq!(stream.headers()["content-type"], "text/event-stream");
}

/// Who may fork only what is theirs may not take the ids of others for it.
#[tokio::test(start_paused = true)]
async fn a_policy_is_asked_for_the_id_of_a_fork() {
    let shop = Shop::new();
    let (engine, open) = shop.client().await;
    open.start_order("mine-1").await.is(202);
    let mine = |id: Option<&str>| id.is_none_or(|id| id.starts_with("mine-"));
    let policy = Policy::new(move |ask| match ask.action() {
        Action::Fork => mine(ask.run()) && mine(ask.forked_as()),
        action => !action.changes(),
    });
    let client = Client::of(router(engine).policy(policy));
    let fork = async |id: &str| {
        let body = json!({ "id": id });
        client.post("/runs/mine-1/fork", body).await
    };
    fork("theirs-1").await.refused(403, "denied");
    open.get("/runs/theirs-1").await.refused(404, "not_found");
    fork("mine-2").await.is(201);
    let allowed = client.get("/runs/mine-1/allowed").await.is(200);
    assert_eq!(allowed["controls"], json!(["fork"]));
}

/// A page has a thousand records of a megabyte each at most, and is not that large for it.
#[tokio::test(start_paused = true)]
async fn a_page_of_enormous_values_ends_early_and_nothing_is_left_out() {
    let shop = Shop::new();
    let (_engine, client) = shop.client().await;
    let item = "x".repeat(900_000);
    for n in 0..8 {
        let order = json!({ "order": { "item": item, "cents": 1 }, "note": null });
        let id = format!("o{n}");
        let started = client.once("/workflows/order/runs?wait=1", &id, order);
        started.await.is(202);
    }
    let read = async |path: &str, what: &str, from: &str| {
        let (mut all, mut pages, mut next): (Vec<Value>, _, Option<String>) = (vec![], 0, None);
        loop {
            let at = next.map_or_else(String::new, |next| format!("&{from}={next}"));
            let page = client.get(&format!("{path}?limit=1000{at}")).await.is(200);
            assert!(page.to_string().len() < 5 << 20);
            all.extend(page[what].as_array().unwrap().iter().cloned());
            pages += 1;
            next = match &page["next"] {
                Value::Null => return (all, pages),
                Value::String(text) => Some(text.clone()),
                number => Some(number.to_string()),
            };
        }
    };
    // Each has published what it packed, which is as long.
    let (runs, pages) = read("/runs", "runs", "cursor").await;
    let ids: Vec<_> = runs.iter().map(|run| run["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["o0", "o1", "o2", "o3", "o4", "o5", "o6", "o7"]);
    assert_eq!(pages, 2);

    for n in 0..12 {
        let sent = client.post("/runs/o1/messages/payment", n).await;
        sent.is(202);
    }
    let (records, _) = read("/runs/o1/history", "records", "after").await;
    let numbers: Vec<_> = records
        .iter()
        .map(|one| one["seq"].as_u64().unwrap())
        .collect();
    assert_eq!(numbers, (1..=records.len() as u64).collect::<Vec<_>>());

    // What is too large is refused as such.
    let huge = json!({ "order": { "item": "x".repeat(10 << 20), "cents": 1 } });
    let refused = client.post("/workflows/order/runs", huge).await;
    refused.refused(413, "too_large");
}
