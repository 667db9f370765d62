//! Records as server-sent events.

use std::time::Duration;

use axum::response::Response;
use http_body_util::BodyExt;
use serde_json::{Value, json};

use crate::{Client, HOUR, Shop};

/// One event, as a browser reads it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Event {
    pub(crate) kind: String,
    pub(crate) id: Option<u64>,
    pub(crate) data: Value,
}

/// A stream of events that is read as it comes.
pub(crate) struct Stream {
    response: Response,
    text: String,
}

impl Stream {
    pub(crate) async fn open(client: &Client, path: &str, last: Option<u64>) -> Self {
        let last = last.map(|last| last.to_string());
        let last = last.as_deref().map(|last| ("last-event-id", last));
        let headers: Vec<_> = last.into_iter().collect();
        let response = client.respond("GET", path, &headers, "").await;
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self {
            response,
            text: String::new(),
        }
    }

    /// The next event; comments are passed over.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        loop {
            while let Some((event, rest)) = self.text.split_once("\n\n") {
                let read = read(event);
                self.text = rest.into();
                if read.is_some() {
                    return read;
                }
            }
            let frame = self.response.body_mut().frame().await?;
            let data = frame.unwrap().into_data().unwrap();
            self.text.push_str(std::str::from_utf8(&data).unwrap());
        }
    }

    async fn rest(&mut self) -> Vec<Event> {
        let mut all = Vec::new();
        while let Some(event) = self.next().await {
            all.push(event);
        }
        all
    }
}

fn read(text: &str) -> Option<Event> {
    let field = |name: &str| {
        let mut lines = text.lines();
        lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    };
    Some(Event {
        kind: field("event")?.to_owned(),
        id: field("id").map(|id| id.parse().unwrap()),
        data: serde_json::from_str(field("data")?).unwrap(),
    })
}

#[tokio::test(start_paused = true)]
async fn a_stream_gives_each_record_as_it_comes_and_then_the_end() {
    let shop = Shop::new();
    let (_engine, client) = shop.client().await;
    client.start_order("o1").await.is(202);
    let mut stream = Stream::open(&client, "/runs/o1/events", None).await;
    let first = stream.next().await.unwrap();
    assert_eq!((first.kind.as_str(), first.id), ("record", Some(1)));
    assert_eq!(first.data["body"]["begun"]["workflow"], "order");
    // Hours of nothing do not end it.
    let rest = stream.rest().await;
    let ids: Vec<_> = rest.iter().filter_map(|event| event.id).collect();
    let records = client.get("/runs/o1/history").await.is(200)["records"].clone();
    let expected: Vec<_> = (2..=records.as_array().unwrap().len() as u64).collect();
    assert_eq!(ids, expected);
    let (last, told) = rest.split_last().unwrap();
    assert_eq!((last.kind.as_str(), last.id), ("end", None));
    assert_eq!(last.data["state"], "completed");
    let told: Vec<_> = told.iter().map(|event| event.data.clone()).collect();
    assert_eq!(json!(told), json!(records.as_array().unwrap()[1..]));
}

#[tokio::test(start_paused = true)]
async fn a_quiet_stream_says_that_it_lives() {
    let shop = Shop::new();
    let (_engine, client) = shop.client().await;
    client
        .once("/workflows/bill/runs", "b1", "{}")
        .await
        .is(202);
    let mut stream = Stream::open(&client, "/runs/b1/events", None).await;
    while tokio::time::timeout(Duration::from_secs(1), stream.next())
        .await
        .is_ok()
    {}
    let frame = tokio::time::timeout(Duration::from_secs(15), stream.response.body_mut().frame());
    let frame = frame.await.unwrap().unwrap().unwrap();
    assert!(frame.into_data().unwrap().starts_with(b":"));
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_the_process_took_along_goes_on_after_the_last_event() {
    let shop = Shop::new();
    let (engine, client) = shop.client().await;
    client.start_order("o1").await.is(202);
    let mut stream = Stream::open(&client, "/runs/o1/events", None).await;
    let mut last = None;
    while let Ok(event) = tokio::time::timeout(Duration::from_secs(1), stream.next()).await {
        last = event.unwrap().id;
    }
    assert!(last.unwrap() > 1);
    let shop = shop.crash();
    drop((stream, client, engine));

    let (_engine, client) = shop.client().await;
    let mut stream = Stream::open(&client, "/runs/o1/events", last).await;
    let rest = stream.rest().await;
    assert_eq!(rest[0].id, last.map(|last| last + 1));
    assert_eq!(rest.last().unwrap().kind, "end");
    // Who has them all is told to stop.
    let last = rest[rest.len() - 2].id.unwrap();
    let path = format!("/runs/o1/events?after={last}");
    client.get(&path).await.is(204);
    let header = [("last-event-id", &*last.to_string())];
    client
        .ask("GET", "/runs/o1/events", &header, "")
        .await
        .is(204);
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_is_shut_down_ends_its_streams_without_an_end() {
    let shop = Shop::new();
    let (engine, client) = shop.client().await;
    client.start_order("o1").await.is(202);
    let mut stream = Stream::open(&client, "/runs/o1/events", None).await;
    stream.next().await.unwrap();
    engine.shutdown(Duration::ZERO).await.unwrap();
    let rest = stream.rest().await;
    assert!(rest.iter().all(|event| event.kind == "record"), "{rest:?}");
}

#[tokio::test(start_paused = true)]
async fn records_that_are_gone_are_told_as_a_gap() {
    let shop = Shop::new();
    let (_engine, client) = shop.client().await;
    client.start_order("o1").await.is(202);
    tokio::time::sleep(2 * HOUR).await;
    let to = json!({ "to": "rest" });
    client.post("/runs/o1/rewind", to).await.is(200);
    tokio::time::sleep(2 * HOUR).await;
    let mut stream = Stream::open(&client, "/runs/o1/events", None).await;
    let all = stream.rest().await;
    let gap = all.iter().find(|event| event.kind == "gap").unwrap();
    assert_eq!(gap.id, gap.data["to"].as_u64());
    assert_eq!(all.last().unwrap().data["state"], "completed");
}

#[tokio::test(start_paused = true)]
async fn a_place_that_is_none_is_refused() {
    let shop = Shop::new();
    let (_engine, client) = shop.client().await;
    client.start_order("o1").await.is(202);
    let header = [("last-event-id", "o1-7")];
    let says = client
        .ask("GET", "/runs/o1/events", &header, "")
        .await
        .refused(400, "bad_cursor");
    assert!(says.contains("number of a record"), "{says}");
}
