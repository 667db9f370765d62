//! Schedules over HTTP.

use std::time::Duration;

use serde_json::json;
use workflow::{Schedule, cron};

use crate::{Client, Shop, bill};

const HOUR: u64 = 3_600_000;

/// A shop that bills every hour. It is a quarter past midnight, on the first of all days.
async fn billing(shop: &Shop) -> (workflow::Engine, Client) {
    let hourly = Schedule::new("hourly", cron!("0 * * * *"), |_| bill());
    let engine = shop.builder().schedule(hourly).build().await.unwrap();
    let client = Client::of(shop.api(&engine));
    (engine, client)
}

#[tokio::test(start_paused = true)]
async fn schedules_are_shown_with_what_comes_next_and_what_was() {
    let shop = Shop::new();
    let (_engine, client) = billing(&shop).await;
    let all = client.get("/schedules").await.is(200);
    let hourly = json!({
        "name": "hourly", "cron": "0 * * * *", "zone": "UTC", "workflow": "bill", "next": HOUR,
    });
    assert_eq!(all, json!({ "schedules": [hourly] }));
    assert_eq!(client.get("/schedules/hourly").await.is(200), hourly);
    tokio::time::sleep(Duration::from_hours(1)).await;
    let shown = client.get("/schedules/hourly").await.is(200);
    assert_eq!(shown["next"], 2 * HOUR);
    assert_eq!(
        shown["last"],
        json!({ "at": HOUR, "run": "hourly@1970-01-01T01:00:00Z" })
    );
    let run = client
        .get("/runs/hourly@1970-01-01T01:00:00Z")
        .await
        .is(200);
    assert_eq!(run["workflow"], "bill");
    client
        .get("/schedules/weekly")
        .await
        .refused(404, "unknown_schedule");
    client
        .get("/schedules?limit=1")
        .await
        .refused(400, "bad_parameter");
}

#[tokio::test(start_paused = true)]
async fn a_schedule_is_paused_resumed_triggered_and_backfilled() {
    let shop = Shop::new();
    let (_engine, client) = billing(&shop).await;
    let reason = json!({ "reason": "inventory" });
    let paused = client
        .post("/schedules/hourly/pause", &reason)
        .await
        .is(200);
    assert_eq!(
        paused["paused"],
        json!({ "at": 1_000_000, "reason": "inventory" })
    );
    tokio::time::sleep(Duration::from_hours(3)).await;
    assert_eq!(client.get("/runs").await.is(200)["runs"], json!([]));
    let resumed = client.post("/schedules/hourly/resume", "").await.is(200);
    assert_eq!(
        (&resumed["next"], resumed.get("paused")),
        (&json!(4 * HOUR), None)
    );

    let times = json!({ "from": HOUR, "to": 3 * HOUR });
    let done = client
        .post("/schedules/hourly/backfill", &times)
        .await
        .is(200);
    assert_eq!(done, json!({ "started": 2, "existing": 0 }));
    let done = client
        .post("/schedules/hourly/backfill", &times)
        .await
        .is(200);
    assert_eq!(done, json!({ "started": 0, "existing": 2 }));
    let future = json!({ "from": HOUR, "to": 9 * HOUR });
    let future = client.post("/schedules/hourly/backfill", &future).await;
    future.refused(422, "bad_body");
    let nothing = client
        .post("/schedules/hourly/backfill", json!({ "from": 0 }))
        .await;
    nothing.refused(422, "bad_body");

    let answer = client.post("/schedules/hourly/trigger", "").await;
    let location = answer.headers["location"].to_str().unwrap().to_owned();
    let run = answer.is(202);
    assert_eq!(run["id"], "hourly@1970-01-01T03:16:40Z");
    assert_eq!(location, "/api/runs/hourly%401970-01-01T03%3A16%3A40Z");
    // Without a reason, and without a body.
    client.post("/schedules/hourly/pause", "").await.is(200);
    for what in ["pause", "resume", "trigger", "backfill"] {
        let there = client
            .post(&format!("/schedules/weekly/{what}"), &times)
            .await;
        there.refused(404, "unknown_schedule");
    }
}
