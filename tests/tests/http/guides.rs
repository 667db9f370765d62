//! Guides that clients lead.

use std::time::Duration;

use serde_json::json;

use crate::Shop;

#[tokio::test(start_paused = true)]
async fn a_guide_is_started_filled_in_and_led_to_its_end() {
    let shop = Shop::new();
    let (_engine, client) = shop.client().await;
    let says = client
        .get("/guides/signup/g1")
        .await
        .refused(404, "not_found");
    assert!(says.contains("`start`"), "{says}");
    client
        .post("/guides/signup/g1/next", "")
        .await
        .refused(404, "not_found");
    let state = json!({ "state": { "name": "", "size": 1 } });
    let started = client.post("/guides/signup/g1/start", &state).await.is(200);
    assert_eq!(
        (&started["view"]["at"], &started["view"]["status"]),
        (&json!("name"), &json!("waiting"))
    );
    assert_eq!(started["view"]["actions"]["next"], true);

    // The checks say what is wrong, and the view shows it.
    let wrong = client.post("/guides/signup/g1/next", "").await;
    assert_eq!(wrong.body["refused"], "invalid");
    assert_eq!(wrong.body["view"]["problems"][0]["field"], "name");
    wrong.refused(422, "invalid");
    let edited = client
        .post(
            "/guides/signup/g1/edit",
            json!({ "set": { "name": "ann" } }),
        )
        .await
        .is(200);
    assert_eq!(edited["view"]["state"], json!({ "name": "ann", "size": 1 }));
    let found = client.post("/guides/signup/g1/check", "").await.is(200);
    assert_eq!(found["problems"], json!([]));
    let moved = client.post("/guides/signup/g1/next", "").await.is(200);
    assert_eq!(moved["moved"], json!({ "to": "size" }));
    client.post("/guides/signup/g1/back", "").await.is(200);
    client.post("/guides/signup/g1/next", "{}").await.is(200);
    let moved = client.post("/guides/signup/g1/skip", "").await.is(200);
    assert_eq!(moved["view"]["skipped"], json!(["size"]));
    let ended = client.post("/guides/signup/g1/next", "").await.is(200);
    assert_eq!(ended["moved"], json!({ "finished": true }));
    let refused = client.post("/guides/signup/g1/next", "").await;
    assert_eq!(refused.body["refused"], "finished");
    refused.refused(409, "refused");
    // Its run is one like others.
    assert_eq!(client.get("/runs/g1").await.is(200)["state"], "completed");
}

#[tokio::test(start_paused = true)]
async fn a_button_that_is_pressed_twice_moves_once() {
    let shop = Shop::new();
    let (_engine, client) = shop.client().await;
    let state = json!({ "state": { "name": "ann", "size": 1 } });
    let started = client.post("/guides/signup/g1/start", &state).await.is(200);
    let seen = json!({ "revision": started["view"]["revision"] });
    let moved = client
        .once("/guides/signup/g1/next", "k", &seen)
        .await
        .is(200);
    // The same again, whose answer was lost.
    let again = client
        .once("/guides/signup/g1/next", "k", &seen)
        .await
        .is(200);
    assert_eq!(again["view"], moved["view"]);
    // Another tab that saw the same.
    let stale = client.once("/guides/signup/g1/next", "other", &seen).await;
    assert_eq!(stale.body["view"], moved["view"]);
    stale.refused(409, "stale");
    let other = client.post("/guides/signup/g1/start", &state).await;
    assert_eq!(other.body["refused"], "already_started");
    other.refused(409, "refused");
}

#[tokio::test(start_paused = true)]
async fn what_takes_longer_than_is_waited_goes_on_and_is_shown() {
    let shop = Shop::new();
    let (_engine, client) = shop.client().await;
    let state = json!({ "state": { "name": "slow", "size": 1 } });
    client.post("/guides/signup/g1/start", &state).await.is(200);
    let goes = client
        .post("/guides/signup/g1/next?wait=1", "")
        .await
        .is(202);
    assert_eq!(
        (&goes["view"]["status"], &goes["view"]["busy"]),
        (&json!("working"), &json!(true))
    );
    let revision = &goes["view"]["revision"];
    let path = format!("/guides/signup/g1?after={revision}&wait=60");
    let done = client.get(&path).await.is(200);
    assert_eq!(
        (&done["at"], &done["busy"]),
        (&json!("size"), &json!(false))
    );
}

#[tokio::test(start_paused = true)]
async fn what_does_not_give_the_persons_data_changes_nothing() {
    let shop = Shop::new();
    let (_engine, client) = shop.client().await;
    let says = client
        .post("/guides/signup/g1/start", json!({ "state": { "size": 1 } }))
        .await
        .refused(422, "bad_body");
    assert!(says.contains("missing field `name`"), "{says}");
    client
        .get("/guides/signup/g1")
        .await
        .refused(404, "not_found");
    let state = json!({ "state": { "name": "ann", "size": 1 } });
    client.post("/guides/signup/g1/start", &state).await.is(200);
    let before = client.get("/guides/signup/g1").await.is(200);
    for (body, says) in [
        (json!({ "set": { "size": "large" } }), "invalid type"),
        (json!({ "set": { "name": null } }), "missing field `name`"),
        (json!({}), "an edit says what to change"),
        (json!({ "sett": {} }), "unknown field"),
    ] {
        let said = client
            .post("/guides/signup/g1/edit", body)
            .await
            .refused(422, "bad_body");
        assert!(said.contains(says), "{said}");
    }
    let said = client
        .post("/guides/signup/g1/next", &state)
        .await
        .refused(422, "bad_body");
    assert!(said.contains("`start`"), "{said}");
    assert_eq!(client.get("/guides/signup/g1").await.is(200), before);
    let says = client
        .post("/guides/signup/g1/jump", "")
        .await
        .refused(404, "unknown_flow");
    assert!(says.contains("`next`"), "{says}");
    let says = client
        .get("/guides/sign/g1")
        .await
        .refused(404, "unknown_flow");
    assert!(says.contains("`signup`"), "{says}");
    client.start_order("o1").await.is(202);
    client
        .get("/guides/signup/o1")
        .await
        .refused(409, "other_workflow");
}

#[tokio::test(start_paused = true)]
async fn a_view_is_waited_for_and_a_guide_outlives_the_process() {
    let shop = Shop::new();
    let (engine, client) = shop.client().await;
    let state = json!({ "state": { "name": "ann", "size": 1 } });
    let started = client.post("/guides/signup/g1/start", &state).await.is(200);
    let seen = started["view"]["revision"].as_u64().unwrap();
    let path = format!("/guides/signup/g1?after={seen}&wait=30");
    let began = tokio::time::Instant::now();
    let same = client.get(&path).await.is(200);
    assert_eq!(
        (&same["revision"], began.elapsed().as_secs()),
        (&json!(seen), 30)
    );
    let waiting = client.clone();
    let waiting = tokio::spawn(async move { waiting.get(&path).await.is(200) });
    tokio::time::sleep(Duration::from_secs(2)).await;
    client.post("/guides/signup/g1/next", "").await.is(200);
    assert_eq!(waiting.await.unwrap()["at"], "size");
    assert_eq!(began.elapsed().as_secs(), 32);

    let shop = shop.crash();
    drop((engine, client));
    let (_engine, client) = shop.client().await;
    let view = client.get("/guides/signup/g1").await.is(200);
    assert_eq!(
        (&view["at"], &view["state"]["name"]),
        (&json!("size"), &json!("ann"))
    );
    let back = client.post("/guides/signup/g1/rollback", "").await.is(200);
    assert_eq!(back["view"]["status"], "idle");
    client.post("/guides/signup/g1/start", &state).await.is(200);
    client.post("/guides/signup/g1/cancel", "").await.is(200);
}

#[tokio::test(start_paused = true)]
async fn what_a_guide_does_not_stand_at_is_refused_by_its_word() {
    let shop = Shop::new();
    let (_engine, client) = shop.client().await;
    let state = json!({ "state": { "name": "ann", "size": 1 } });
    let started = client.post("/guides/signup/g1/start", &state).await.is(200);
    assert_eq!(started["view"]["operations"], json!([]));
    assert_eq!(started["view"]["actions"]["release"], false);
    for (command, body, word) in [
        ("retry", json!({}), "nothing_to_retry"),
        ("resume", json!({}), "nothing_to_resume"),
        ("release", json!({ "with": "go" }), "not_blocked"),
        ("skip-undo", json!({ "reason": "by hand" }), "no_undo_fails"),
    ] {
        let said = client
            .post(&format!("/guides/signup/g1/{command}"), body)
            .await;
        assert_eq!(said.body["refused"], word, "{command}");
        said.refused(409, "refused");
    }
    let why = client.post("/guides/signup/g1/skip-undo", "{}").await;
    assert!(why.refused(422, "bad_body").contains("reason"));
    let misplaced = json!({ "with": 1 });
    let misplaced = client.post("/guides/signup/g1/next", misplaced).await;
    assert!(misplaced.refused(422, "bad_body").contains("`release`"));
}
