//! Who may do what.

use std::sync::{Arc, Mutex};

use axum::Extension;
use serde_json::json;
use workflow::http::{Action, Policy, Verdict, router};

use crate::{Client, Shop};

/// Every call that changes something.
const CHANGES: &[(&str, &str)] = &[
    ("/workflows/bill/runs", "{}"),
    ("/runs/o1/messages/payment", "7"),
    ("/runs/o1/requests/quote", "\"a\""),
    ("/runs/o1/cancel", ""),
    ("/runs/o1/cancel?undo=true", ""),
    ("/runs/o1/recover", ""),
    ("/runs/o1/rewind", r#"{"to":""}"#),
    ("/runs/o1/fork", r#"{"id":"o2"}"#),
    ("/runs/o1/resume", ""),
    ("/runs/o1/skip-undo", r#"{"entry":1,"reason":"r"}"#),
    (
        "/guides/signup/g/start",
        r#"{"state":{"name":"","size":1}}"#,
    ),
    ("/guides/signup/g/next", ""),
    ("/schedules/hourly/pause", ""),
    ("/schedules/hourly/resume", ""),
    ("/schedules/hourly/trigger", ""),
    ("/schedules/hourly/backfill", r#"{"from":0,"to":0}"#),
    ("/gc", ""),
];

#[tokio::test(start_paused = true)]
async fn without_a_policy_everybody_may_look_and_nobody_may_change_anything() {
    let shop = Shop::new();
    let (engine, open) = shop.client().await;
    open.start_order("o1").await.is(202);
    let before = open.get("/runs/o1").await.is(200);
    let api = router(engine.clone())
        .channel(&crate::PAYMENT)
        .channel(&crate::QUOTE)
        .guided(&shop.flow);
    let client = Client::of(api);
    for (path, body) in CHANGES {
        let says = client.post(path, body).await.refused(403, "denied");
        assert!(says.contains("`.policy(..)`"), "{path}: {says}");
    }
    // Before anything is read: what is said does not matter.
    let nonsense = client.post("/workflows/none/runs", "{").await;
    nonsense.refused(403, "denied");
    assert_eq!(client.get("/runs/o1").await.is(200), before);
    assert_eq!(
        client.get("/runs").await.is(200)["runs"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    client.get("/workflows").await.is(200);
    client.get("/openapi.json").await.is(200);
    // What would be done is only looked at.
    let to = json!({ "to": "rest" });
    let dry = client
        .post("/runs/o1/rewind?dry_run=true", to)
        .await
        .is(200);
    assert_eq!(dry["dry_run"], true);
}

#[derive(Clone, PartialEq, Debug)]
struct User(&'static str);

#[tokio::test(start_paused = true)]
async fn a_policy_is_asked_with_what_is_to_be_done_and_who_asks() {
    type Heard = (
        Action,
        Option<String>,
        Option<String>,
        Option<String>,
        Option<User>,
    );
    let shop = Shop::new();
    let engine = shop.engine().await;
    let asked: Arc<Mutex<Vec<Heard>>> = Arc::default();
    let hears = Arc::clone(&asked);
    let policy = Policy::new(move |ask| {
        let text = |text: Option<&str>| text.map(str::to_owned);
        hears.lock().unwrap().push((
            ask.action(),
            text(ask.workflow()),
            text(ask.run()),
            text(ask.channel()),
            ask.extension::<User>().cloned(),
        ));
        if ask.headers().contains_key("x-deny") {
            return Verdict::Deny("not you".to_owned());
        }
        Verdict::Allow
    });
    let client = Client::of(shop.api(&engine).policy(policy));
    let client = Client(client.0.layer(Extension(User("ann"))));
    client.start_order("o1").await.is(202);
    client
        .once("/runs/b1/messages/payment", "k", 7)
        .await
        .is(202);
    client.get("/runs?workflow=order").await.is(200);
    client
        .get("/guides/signup/g")
        .await
        .refused(404, "not_found");
    client.post("/runs/o1/cancel", "").await.is(200);
    let denied = client.ask("GET", "/runs/o1", &[("x-deny", "1")], "").await;
    assert_eq!(denied.refused(403, "denied"), "not you");

    let asked = asked.lock().unwrap();
    let some = |text: &str| Some(text.to_owned());
    let ann = || Some(User("ann"));
    assert_eq!(
        *asked,
        [
            (Action::Start, some("order"), some("o1"), None, ann()),
            (Action::Send, None, some("b1"), some("payment"), ann()),
            (Action::List, some("order"), None, None, ann()),
            (Action::Read, some("signup"), some("g"), None, ann()),
            (Action::Cancel, None, some("o1"), None, ann()),
            (Action::Read, None, some("o1"), None, ann()),
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_policy_that_only_says_yes_or_no_is_one() {
    let shop = Shop::new();
    let engine = shop.engine().await;
    let policy = Policy::new(|ask| ask.run().is_none_or(|run| run.starts_with("mine-")));
    let client = Client::of(shop.api(&engine).policy(policy));
    client.start_order("mine-1").await.is(202);
    client.start_order("yours-1").await.refused(403, "denied");
    client.get("/runs/yours-1").await.refused(403, "denied");
}
