//! What operators do to runs.

use serde_json::json;

use crate::{HOUR, Shop};

#[tokio::test(start_paused = true)]
async fn cancelling_twice_is_once_and_what_has_ended_cannot_be_cancelled() {
    let shop = Shop::new();
    let (_engine, client) = shop.client().await;
    client.start_order("o1").await.is(202);
    let cancelled = client.post("/runs/o1/cancel", "").await.is(200);
    assert_eq!(cancelled["state"], "cancelled");
    assert_eq!(client.post("/runs/o1/cancel", "").await.is(200), cancelled);
    let result = client.get("/runs/o1/result?wait=60").await.is(200);
    assert_eq!(result, json!({ "id": "o1", "state": "cancelled" }));
    client.start_order("o2").await.is(202);
    tokio::time::sleep(2 * HOUR).await;
    let says = client
        .post("/runs/o2/cancel", "")
        .await
        .refused(409, "ended");
    assert!(says.contains("completed"), "{says}");
}

#[tokio::test(start_paused = true)]
async fn a_cancellation_undoes_what_was_done_if_that_is_asked_for() {
    let shop = Shop::new();
    let (_engine, client) = shop.client().await;
    for (id, undo) in [("s1", ""), ("s2", "?undo=true")] {
        client.once("/workflows/saga/runs", id, "{}").await.is(202);
        tokio::time::sleep(HOUR).await;
        client
            .post(&format!("/runs/{id}/cancel{undo}"), "")
            .await
            .is(200);
        let ended = client
            .get(&format!("/runs/{id}/result?wait=9"))
            .await
            .is(200);
        assert_eq!(ended["state"], "cancelled");
    }
    assert_eq!(
        (shop.switch.made.count(), shop.switch.unmade.count()),
        (2, 1)
    );
    client
        .post("/runs/s2/cancel?undo=maybe", "")
        .await
        .refused(400, "bad_parameter");
}

#[tokio::test(start_paused = true)]
async fn a_run_that_failed_is_recovered_rewound_and_forked() {
    let shop = Shop::new();
    let (_engine, client) = shop.client().await;
    let failed = client
        .once("/workflows/shaky/runs?wait=9", "s1", "{}")
        .await
        .is(200);
    assert_eq!(failed["failure"]["message"], "not today");
    assert_eq!(
        client.post("/runs/s1/recover", "").await.is(200)["id"],
        "s1"
    );
    let ended = client.get("/runs/s1/result?wait=9").await.is(200);
    assert_eq!(ended["value"], 11);
    let says = client
        .post("/runs/s1/recover", "")
        .await
        .refused(409, "state");
    assert!(says.contains("completed"), "{says}");

    // What a rewind would do is not done.
    let before = client.get("/runs/s1/history").await.is(200);
    let to = json!({ "to": "fails" });
    let dry = client
        .post("/runs/s1/rewind?dry_run=true", &to)
        .await
        .is(200);
    assert_eq!(
        (&dry["dry_run"], &dry["to"], &dry["generation"]),
        (&json!(true), &json!("fails"), &json!(1))
    );
    assert!(!dry["removed"].as_array().unwrap().is_empty());
    assert_eq!(client.get("/runs/s1/history").await.is(200), before);
    let done = client.post("/runs/s1/rewind", &to).await.is(200);
    assert_eq!(
        (&done["dry_run"], &done["removed"]),
        (&json!(false), &dry["removed"])
    );
    let again = client.get("/runs/s1/result?wait=9").await.is(200);
    assert_eq!((&again["value"], shop.switch.made.count()), (&json!(11), 1));
    let says = client
        .post("/runs/s1/rewind", json!({ "to": "nowhere" }))
        .await
        .refused(409, "history");
    assert!(says.contains("`nowhere`"), "{says}");
    client
        .post("/runs/s1/rewind", json!({ "too": "x" }))
        .await
        .refused(422, "bad_body");

    let fork = client
        .post("/runs/s1/fork", json!({ "id": "s 2", "at": "make" }))
        .await;
    assert_eq!(fork.headers["location"], "/api/runs/s%202");
    assert_eq!(fork.is(201)["id"], "s 2");
    let ended = client.get("/runs/s%202/result?wait=9").await.is(200);
    assert_eq!((&ended["value"], shop.switch.made.count()), (&json!(12), 2));
    let says = client
        .post("/runs/s1/fork", json!({ "id": "s 2" }))
        .await
        .refused(409, "exists");
    assert!(says.contains("another id"), "{says}");
    client
        .post("/runs/s1/fork", json!({ "id": "a/b" }))
        .await
        .refused(400, "invalid_id");
}

#[tokio::test(start_paused = true)]
async fn a_parked_run_is_resumed_and_an_undo_that_is_not_stuck_cannot_be_skipped() {
    let shop = Shop::new();
    let (_engine, client) = shop.client().await;
    client
        .once("/workflows/broken/runs?wait=9", "b1", "{}")
        .await
        .is(202);
    let resumed = client.post("/runs/b1/resume", "").await.is(200);
    assert_eq!(resumed["workflow"], "broken");
    let body = json!({ "entry": 1, "reason": "gone" });
    let says = client
        .post("/runs/b1/skip-undo", body)
        .await
        .refused(409, "state");
    assert!(says.contains("undo"), "{says}");
    client
        .post("/runs/b1/skip-undo", json!({ "entry": 1 }))
        .await
        .refused(422, "bad_body");
}
