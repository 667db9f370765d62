//! Messages and requests.

use serde_json::json;

use crate::{Client, HOUR, Shop};
use workflow::Channel;
use workflow::http::{Policy, router};

#[tokio::test(start_paused = true)]
async fn a_message_wakes_the_run_and_its_key_makes_two_one() {
    let shop = Shop::new();
    let (engine, client) = shop.client().await;
    // Before the run is there: it is kept for it.
    let sent = client
        .once("/runs/b1/messages/payment", "k", 7)
        .await
        .is(202);
    assert_eq!(sent, json!({ "sent": true }));
    client
        .once("/runs/b1/messages/payment", "k", 8)
        .await
        .is(202);
    let ended = client
        .once("/workflows/bill/runs?wait=1", "b1", "{}")
        .await
        .is(200);
    assert_eq!(ended["value"], 7);
    // After its end it takes none, not even one that it had before.
    let says = client
        .post("/runs/b1/messages/payment", 9)
        .await
        .refused(409, "ended");
    assert!(says.contains("completed"), "{says}");

    client
        .once("/workflows/bill/runs", "b2", "{}")
        .await
        .is(202);
    client.post("/runs/b2/messages/payment", 9).await.is(202);
    let run = engine.attach::<crate::bill>("b2").await.unwrap();
    assert_eq!(run.result().await.unwrap(), 9);
}

#[tokio::test(start_paused = true)]
async fn a_message_is_delivered_once_for_a_key_before_and_after_the_start() {
    let shop = Shop::new();
    let (_engine, client) = shop.client().await;
    let pay = "/runs/t1/messages/payment";
    for cents in [1, 2] {
        client.once(pay, "early", cents).await.is(202);
    }
    client
        .once("/workflows/till/runs", "t1", "{}")
        .await
        .is(202);
    for cents in [3, 4] {
        client.once(pay, "late", cents).await.is(202);
    }
    client.post(pay, 5).await.is(202);
    client.post(pay, 5).await.is(202);
    let ended = client.get("/runs/t1/result?wait=9").await.is(200);
    assert_eq!(ended["value"], json!([1, 3, 5, 5]));
}

#[tokio::test(start_paused = true)]
async fn a_message_that_does_not_fit_never_lies_in_an_inbox() {
    let shop = Shop::new();
    let (engine, client) = shop.client().await;
    client
        .once("/workflows/bill/runs", "b1", "{}")
        .await
        .is(202);
    let says = client
        .post("/runs/b1/messages/payment", "\"seven\"")
        .await
        .refused(422, "message");
    assert!(says.contains("`payment` takes a `u64`"), "{says}");
    let run = engine.attach::<crate::bill>("b1").await.unwrap();
    assert!(run.dead_letters(0, 10).await.unwrap().is_empty());
    let refused = client.post("/runs/a%0Ab/messages/payment", 7).await;
    refused.refused(400, "invalid_id");
}

/// Another type than the workflow's own channel of that name has.
static OTHER_PAYMENT: Channel<String> = Channel::new("payment");

#[tokio::test(start_paused = true)]
async fn what_a_run_could_not_read_is_shown_page_by_page() {
    let shop = Shop::new();
    let (engine, client) = shop.client().await;
    client
        .once("/workflows/bill/runs", "b1", "{}")
        .await
        .is(202);
    for n in 0..3 {
        let text = format!("no number {n}");
        engine.send("b1", &OTHER_PAYMENT, &text).await.unwrap();
    }
    tokio::time::sleep(HOUR).await;
    let two = client.get("/runs/b1/dead-letters?limit=2").await.is(200);
    let letters = two["letters"].as_array().unwrap();
    assert_eq!(letters[0]["message"]["payload"]["json"], "no number 0");
    assert!(
        letters[0]["reason"]
            .as_str()
            .unwrap()
            .contains("invalid type")
    );
    let path = format!("/runs/b1/dead-letters?limit=2&after={}", two["next"]);
    let rest = client.get(&path).await.is(200);
    assert_eq!(
        rest["letters"][0]["message"]["payload"]["json"],
        "no number 2"
    );
    assert_eq!(
        (rest["letters"].as_array().unwrap().len(), rest.get("next")),
        (1, None)
    );
}

#[tokio::test(start_paused = true)]
async fn only_channels_that_the_api_was_given_are_there() {
    let shop = Shop::new();
    let (engine, client) = shop.client().await;
    client
        .once("/workflows/bill/runs", "b1", "{}")
        .await
        .is(202);
    let says = client
        .post("/runs/b1/messages/payments", 7)
        .await
        .refused(404, "unknown_channel");
    assert!(says.contains("`payment`"), "{says}");
    let says = client
        .post("/runs/b1/messages/quote", "\"a\"")
        .await
        .refused(404, "unknown_channel");
    assert!(says.contains("requests/quote"), "{says}");
    let says = client
        .post("/runs/b1/requests/payment", 7)
        .await
        .refused(404, "unknown_channel");
    assert!(says.contains("messages/payment"), "{says}");
    let bare = Client::of(router(engine).policy(Policy::open()));
    let says = bare
        .post("/runs/b1/messages/payment", 7)
        .await
        .refused(404, "unknown_channel");
    assert!(says.contains("`.channel(&CHANNEL)`"), "{says}");
}

#[tokio::test(start_paused = true)]
async fn a_request_is_answered_or_asked_for_again_with_its_key() {
    let shop = Shop::new();
    let (_engine, client) = shop.client().await;
    let input = json!({ "questions": 2 });
    client
        .once("/workflows/clerk/runs", "c1", &input)
        .await
        .is(202);
    // The clerk thinks for an hour.
    let asked = client
        .post("/runs/c1/requests/quote?wait=5", "\"book\"")
        .await;
    let key = asked.headers["idempotency-key"]
        .to_str()
        .unwrap()
        .to_owned();
    assert_eq!(asked.is(202), json!({ "answered": false, "key": key }));
    tokio::time::sleep(HOUR).await;
    for _ in 0..2 {
        let again = client
            .once("/runs/c1/requests/quote", &key, "\"book\"")
            .await;
        assert_eq!(again.is(200), json!(4));
    }
    // It answers one more, and the third it never takes.
    let asked = client
        .once("/runs/c1/requests/quote?wait=0", "k2", "\"pen\"")
        .await;
    assert_eq!(asked.is(202)["key"], "k2");
    tokio::time::sleep(2 * HOUR).await;
    let late = client.post("/runs/c1/requests/quote", "\"ink\"").await;
    late.refused(409, "ended");
    let says = client
        .post("/runs/c1/requests/quote", "7")
        .await
        .refused(422, "message");
    assert!(says.contains("String"), "{says}");
}

#[tokio::test(start_paused = true)]
async fn a_request_that_nobody_answers_says_so_at_the_end() {
    let shop = Shop::new();
    let (_engine, client) = shop.client().await;
    client
        .once("/workflows/bill/runs", "b1", "{}")
        .await
        .is(202);
    let asking = client.clone();
    let asking = tokio::spawn(async move { asking.post("/runs/b1/requests/quote", "\"a\"").await });
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    client.post("/runs/b1/messages/payment", 1).await.is(202);
    asking.await.unwrap().refused(409, "no_reply");
}
