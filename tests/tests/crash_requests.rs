//! The `requests` example as a process, killed with SIGKILL while requests are in flight.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "helpers of tests are tests"
)]

mod example;
#[path = "example/service.rs"]
mod service;

use std::thread;
use std::time::Duration;

use example::{Random, binary};
use service::{Service, ask, ask_once};

/// Puts one thing of a name into a cart, with that name as the key.
fn add(address: &str, user: &str, name: &str) -> Option<(u16, String)> {
    let body = format!(r#"{{"sku":"{name}","quantity":1}}"#);
    ask_once(address, "POST", &format!("/carts/{user}"), name, &body)
}

// UA-78
#[test]
fn what_was_answered_is_in_the_cart_once_and_what_was_asked_again_too() {
    const ROUNDS: usize = 10;
    const CLIENTS: usize = 12;
    binary("requests");
    let dir = tempfile::tempdir().unwrap();
    let mut random = Random::seeded();
    let (mut answered, mut cut_off) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let service = Service::start("requests", dir.path());
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| {
                let address = service.address();
                thread::spawn(move || {
                    let mut told = Vec::new();
                    for turn in 0..200 {
                        let name = format!("r{round}c{client}t{turn}");
                        let answer = add(&address, &format!("user{}", client % 4), &name);
                        let stop = answer.is_none();
                        told.push((client, name, answer));
                        if stop {
                            break;
                        }
                    }
                    told
                })
            })
            .collect();
        // The process is outside of any clock of ours.
        thread::sleep(Duration::from_millis(20 + random.below(250)));
        drop(service);
        for client in clients {
            for (client, name, answer) in client.join().unwrap() {
                match answer {
                    Some((status, cart)) => {
                        assert_eq!(status, 200, "{cart}");
                        answered.push((client, name, cart));
                    }
                    None => cut_off.push((client, name)),
                }
            }
        }
    }
    println!(
        "{} were answered, {} were cut off",
        answered.len(),
        cut_off.len()
    );
    assert!(
        answered.len() > ROUNDS && cut_off.len() > ROUNDS,
        "the kills hit nothing in flight"
    );

    let service = Service::start("requests", dir.path());
    let address = service.address();
    for (client, name) in &cut_off {
        let (status, cart) = add(&address, &format!("user{}", client % 4), name).unwrap();
        assert_eq!(status, 200, "{cart}");
    }
    // Asked again, it is the first answer that comes.
    for (client, name, first) in answered.iter().step_by(7) {
        let (_, cart) = add(&address, &format!("user{}", client % 4), name).unwrap();
        assert_eq!(cart, *first);
    }
    let mut things = 0;
    for user in 0..4 {
        let (_, cart) = ask(&address, "GET", &format!("/carts/user{user}"), "").unwrap();
        let cart: serde_json::Value = serde_json::from_str(&cart).unwrap();
        for (name, quantity) in cart["items"].as_object().unwrap() {
            assert_eq!(quantity, 1, "{name} of user {user}");
            things += 1;
        }
    }
    assert_eq!(things, answered.len() + cut_off.len());
}

#[test]
fn a_cart_is_filled_ordered_and_closed_and_says_why_it_refuses() {
    let dir = tempfile::tempdir().unwrap();
    let service = Service::start("requests", dir.path());
    let address = service.address();
    let tea = r#"{"sku":"tea","quantity":2}"#;
    let none = r#"{"sku":"tea","quantity":0}"#;
    let on = |method: &str, path: &str, body: &str| ask(&address, method, path, body).unwrap();

    let cart = r#"{"items":{"tea":2},"ordered":null}"#.to_owned();
    assert_eq!(on("POST", "/carts/ada", tea), (200, cart.clone()));
    let refused = (422, "0 of tea is nothing".to_owned());
    assert_eq!(on("POST", "/carts/ada", none), refused);
    assert_eq!(on("GET", "/carts/ada", ""), (200, cart));
    let (status, ordered) = on("POST", "/carts/ada/order", "");
    assert_eq!(status, 200);
    assert!(
        ordered.starts_with(r#"{"items":{},"ordered":"order "#),
        "{ordered}"
    );
    let refused = (422, "the cart is empty".to_owned());
    assert_eq!(on("POST", "/carts/ada/order", ""), refused);
    assert_eq!(service.log().matches("ada orders").count(), 1);

    assert_eq!(on("DELETE", "/carts/ada", ""), (200, ordered));
    // Asked while it closes, it has no reply; afterwards it takes nothing any more.
    let (status, problem) = on("POST", "/carts/ada", tea);
    assert_eq!(status, 409, "{problem}");
    let (status, problem) = on("POST", "/carts/ada", tea);
    assert_eq!(status, 409);
    assert!(problem.contains("workflow:ended"), "{problem}");
    let (status, problem) = on("POST", &format!("/carts/{}", "x".repeat(2000)), tea);
    assert_eq!(status, 400, "{problem}");
}
