//! The `service` example as a process: its API, killed with SIGKILL while it is used.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    dead_code,
    reason = "helpers of tests are tests"
)]

mod example;
#[path = "example/service.rs"]
mod service;

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};
use service::{Service, ask_with};

/// Somebody with the token.
fn ask(service: &Service, method: &str, path: &str, key: &str, body: &Value) -> (u16, Value) {
    let headers = format!("authorization: Bearer secret\r\nidempotency-key: {key}\r\n");
    let body = if body.is_null() {
        String::new()
    } else {
        body.to_string()
    };
    let path = format!("/api{path}");
    let (status, answer) = ask_with(&service.address(), method, &path, &headers, &body).unwrap();
    (status, serde_json::from_str(&answer).unwrap())
}

/// The numbers of the records that a stream gives after `last`, up to `most` of them or its end; and whether it ended.
fn follow(service: &Service, last: u64, most: usize) -> (Vec<u64>, bool) {
    let mut stream = TcpStream::connect(service.address()).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    let request = format!(
        "GET /api/runs/order-1/events HTTP/1.1\r\nhost: test\r\nconnection: close\r\nlast-event-id: {last}\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut ids = Vec::new();
    for line in BufReader::new(stream).lines() {
        let Ok(line) = line else { break };
        if let Some(id) = line.strip_prefix("id: ") {
            ids.push(id.parse().unwrap());
            if ids.len() == most {
                break;
            }
        }
        if line == "event: end" {
            return (ids, true);
        }
    }
    (ids, false)
}

#[test]
fn an_order_over_the_api_outlives_kills_and_its_events_go_on_where_they_were() {
    let dir = tempfile::tempdir().unwrap();
    let service = Service::start("service", dir.path());
    let input = json!({ "order": { "item": "tea", "cents": 690 } });
    let start = "/workflows/order/runs";
    let (status, began) = ask(
        &service,
        "POST",
        &format!("{start}?wait=1"),
        "order-1",
        &input,
    );
    assert_eq!((status, began["state"].as_str()), (202, Some("waiting")));
    let (first, ended) = follow(&service, 0, 3);
    assert_eq!((first.as_slice(), ended), ([1, 2, 3].as_slice(), false));
    drop(service);

    let service = Service::start("service", dir.path());
    // Whoever got no answer asks again, with the same key.
    let (status, again) = ask(&service, "POST", start, "order-1", &input);
    assert_eq!((status, &again["created_at"]), (202, &began["created_at"]));
    let other = json!({ "order": { "item": "tea", "cents": 1 } });
    let (status, refused) = ask(&service, "POST", start, "order-1", &other);
    assert_eq!(
        (status, &refused["type"]),
        (409, &json!("workflow:other_input"))
    );
    let pay = "/runs/order-1/messages/payment";
    let payment = json!({ "reference": "tx 17" });
    let (status, sent) = ask(&service, "POST", pay, "pay-1", &payment);
    assert_eq!(status, 202, "{sent}");
    drop(service);

    let service = Service::start("service", dir.path());
    let (status, _) = ask(&service, "POST", pay, "pay-1", &payment);
    // Sent before; the run may have ended since.
    assert!(status == 202 || status == 409, "{status}");
    let (status, ended) = ask(
        &service,
        "GET",
        "/runs/order-1/result?wait=20",
        "x",
        &Value::Null,
    );
    assert_eq!((status, &ended["value"]["paid_by"]), (200, &json!("tx 17")));
    let (rest, over) = follow(&service, 3, usize::MAX);
    let (_, run) = ask(&service, "GET", "/runs/order-1", "x", &Value::Null);
    let last = run["records"].as_u64().unwrap();
    assert!(over);
    assert_eq!(rest, (4..=last).collect::<Vec<_>>());
    // Who has no token may look only.
    let cancel = "/api/runs/order-1/cancel";
    let (status, denied) = ask_with(&service.address(), "POST", cancel, "", "").unwrap();
    assert_eq!(status, 403, "{denied}");
}
