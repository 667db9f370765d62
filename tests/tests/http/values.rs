//! Values of the application, and the deletion of old runs.

use std::time::Duration;

use serde_json::json;
use workflow::http::{Action, Policy, router};
use workflow::{Engine, Failure, PutError, Retention, step, workflow};

use crate::{Client, PAYMENT, Shop};

#[step]
async fn note(key: &str, seats: u32) -> Result<(), PutError> {
    workflow::current_step().put(key, &seats)
}

/// Notes so many seats under each of the keys.
#[workflow]
async fn book(keys: Vec<String>) -> Result<(), Failure> {
    'keys: for (number, key) in (1..).zip(keys) {
        note(&key, number).await?;
    }
    Ok(())
}

async fn booked(shop: &Shop) -> Engine {
    let engine = shop.builder().workflow(book).build().await.unwrap();
    let keys = ["bookings/a", "bookings/b/1", "bookings/ć", "secret"];
    let keys = keys.map(str::to_owned).to_vec();
    engine.run("b", book(keys)).await.unwrap();
    engine
}

#[tokio::test(start_paused = true)]
async fn values_are_read_by_their_keys_and_page_by_page() {
    let shop = Shop::new();
    let engine = booked(&shop).await;
    let client = Client::of(router(engine).values("bookings/").values("others/"));
    let one = client.get("/values/bookings%2Fb%2F1").await.is(200);
    assert_eq!(one, json!({ "key": "bookings/b/1", "value": 2 }));
    let odd = client.get("/values/bookings%2F%C4%87").await.is(200);
    assert_eq!(odd["value"], 3);
    let all = client.get("/values?prefix=bookings/").await.is(200);
    let keys = |page: &serde_json::Value| {
        let rows = page["values"].as_array().unwrap().iter();
        rows.map(|row| row["key"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(keys(&all), ["bookings/a", "bookings/b/1", "bookings/ć"]);
    assert_eq!(all.get("next"), None);
    let page = client.get("/values?prefix=bookings/&limit=2").await.is(200);
    assert_eq!(keys(&page), ["bookings/a", "bookings/b/1"]);
    let next = format!(
        "/values?prefix=bookings/&limit=2&after={}",
        page["next"].as_str().unwrap()
    );
    let page = client.get(&next).await.is(200);
    assert_eq!((keys(&page).len(), page.get("next")), (1, None));
    let none = client.get("/values?prefix=others/").await.is(200);
    assert_eq!(none, json!({ "values": [] }));

    let says = client
        .get("/values/bookings%2Fz")
        .await
        .refused(404, "not_found");
    assert_eq!(says, "there is no value `bookings/z`");
    for path in ["/values?prefix=bookings/&limit=0", "/values?suffix=a"] {
        client.get(path).await.refused(400, "bad_parameter");
    }
}

#[tokio::test(start_paused = true)]
async fn nobody_reads_a_value_that_the_api_was_not_given_or_the_policy_refuses() {
    let shop = Shop::new();
    let engine = booked(&shop).await;
    // However open it is otherwise.
    let client = Client::of(router(engine.clone()).policy(Policy::open()));
    for path in ["/values/secret", "/values", "/values?prefix=bookings/"] {
        let says = client.get(path).await.refused(404, "unknown_values");
        assert!(says.contains("`.values("), "{says}");
    }
    let document = client.get("/openapi.json").await.is(200);
    assert!(document["paths"].get("/values").is_none());

    let client = Client::of(router(engine.clone()).values("bookings/"));
    // A part of what it was given is less; what is not whole is more.
    client.get("/values?prefix=bookings/b").await.is(200);
    for path in [
        "/values/secret",
        "/values",
        "/values?prefix=",
        "/values?prefix=book",
        "/values?prefix=secret",
        "/values/bookings",
    ] {
        let says = client.get(path).await.refused(404, "unknown_values");
        assert!(says.contains("`bookings/`"), "{says}");
    }
    let document = client.get("/openapi.json").await.is(200);
    for path in ["/values", "/values/{key}", "/gc"] {
        assert!(document["paths"].get(path).is_some(), "{path}");
    }

    let policy = Policy::new(|ask| match ask.action() {
        Action::Values => ask.key().is_some_and(|key| key.starts_with("bookings/a")),
        action => !action.changes(),
    });
    assert!(!Action::Values.changes() && Action::Gc.changes());
    let client = Client::of(router(engine).values("").policy(policy));
    client.get("/values/bookings%2Fa").await.is(200);
    for path in ["/values/secret", "/values?prefix=bookings/", "/values"] {
        client.get(path).await.refused(403, "denied");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_kept_no_longer_is_deleted_when_it_is_asked_for() {
    let shop = Shop::new();
    let keep = Retention::forever().completed(Duration::ZERO);
    let engine = shop.builder().retention(keep).build().await.unwrap();
    let client = Client::of(shop.api(&engine));
    for id in ["b1", "b2"] {
        client.once("/workflows/bill/runs", id, "{}").await.is(202);
    }
    engine.send("b1", &PAYMENT, &7).await.unwrap();
    client.get("/runs/b1/result?wait=9").await.is(200);
    let swept = client.post("/gc", "").await.is(200);
    assert_eq!(swept, json!({ "deleted": 1, "awaited": 0 }));
    client.get("/runs/b1").await.refused(404, "not_found");
    client.get("/runs/b2").await.is(200);
}
