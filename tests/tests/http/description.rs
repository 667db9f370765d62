//! What the API says of itself.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::Shop;

#[tokio::test(start_paused = true)]
async fn the_api_says_what_may_be_started_sent_and_led() {
    let shop = Shop::new();
    let (_engine, client) = shop.client().await;
    let there = client.get("/workflows").await.is(200);
    assert_eq!(
        there["workflows"],
        json!([
            "bill", "broken", "clerk", "order", "parent", "saga", "shaky", "till"
        ])
    );
    assert_eq!(
        there["channels"],
        json!([{ "name": "payment", "answers": false }, { "name": "quote", "answers": true }])
    );
    assert_eq!(there["flows"], json!(["signup"]));
}

#[tokio::test(start_paused = true)]
async fn the_description_has_every_path_where_it_is_served_with_the_types_it_was_given() {
    let shop = Shop::new();
    let (_engine, client) = shop.client().await;
    let document = client.get("/openapi.json").await.is(200);
    assert!(document["openapi"].as_str().unwrap().starts_with("3."));
    assert_eq!(document["servers"], json!([{ "url": "/api" }]));
    let paths = document["paths"].as_object().unwrap();
    for path in [
        "/workflows",
        "/workflows/order/runs",
        "/runs",
        "/runs/{run}",
        "/runs/{run}/result",
        "/runs/{run}/history",
        "/runs/{run}/export",
        "/runs/{run}/events",
        "/runs/{run}/graph",
        "/runs/{run}/dead-letters",
        "/runs/{run}/messages/payment",
        "/runs/{run}/requests/quote",
        "/runs/{run}/cancel",
        "/runs/{run}/recover",
        "/runs/{run}/rewind",
        "/runs/{run}/fork",
        "/runs/{run}/resume",
        "/runs/{run}/skip-undo",
        "/guides/signup/{run}",
        "/guides/signup/{run}/edit",
        "/schedules",
        "/schedules/{schedule}",
        "/schedules/{schedule}/pause",
        "/schedules/{schedule}/resume",
        "/schedules/{schedule}/trigger",
        "/schedules/{schedule}/backfill",
        "/openapi.json",
    ] {
        assert!(paths.contains_key(path), "{path} is not described");
    }
    let start = &paths["/workflows/order/runs"]["post"];
    let input = &start["requestBody"]["content"]["application/json"]["schema"];
    assert_eq!(input["required"], json!(["order"]));
    assert_eq!(
        input["properties"]["order"]["properties"]["item"]["type"],
        "string"
    );
    let output = &start["responses"]["200"]["content"]["application/json"]["schema"];
    assert_eq!(output["properties"]["value"]["type"], "string");
    let message = &paths["/runs/{run}/messages/payment"]["post"]["requestBody"];
    assert_eq!(
        message["content"]["application/json"]["schema"]["type"],
        "integer"
    );

    // Every name that is referred to is there, and no operation has the id of another.
    let (mut names, mut ids) = (BTreeSet::new(), Vec::new());
    visit(&document, &mut |key, value| match (key, value) {
        ("$ref", Value::String(name)) => {
            names.insert(name.rsplit('/').next().unwrap().to_owned());
        }
        ("operationId", Value::String(id)) => ids.push(id.clone()),
        _ => {}
    });
    for name in names {
        assert!(
            document["components"]["schemas"].get(&name).is_some(),
            "{name}"
        );
    }
    let unique: BTreeSet<_> = ids.iter().collect();
    assert_eq!(unique.len(), ids.len());
}

fn visit(value: &Value, see: &mut impl FnMut(&str, &Value)) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                see(name, value);
                visit(value, see);
            }
        }
        Value::Array(values) => values.iter().for_each(|value| visit(value, see)),
        _ => {}
    }
}
