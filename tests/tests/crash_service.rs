//! The `axum` example as a process, killed with SIGKILL while requests are in flight.

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
use service::{Service, ask};

/// What a client asked for, and what it was told before the service died.
struct Client {
    id: String,
    waits: bool,
    answer: Option<(u16, String)>,
}

impl Client {
    fn body(id: &str) -> String {
        format!(r#"{{"item":"{id}","cents":690}}"#)
    }

    fn ask(address: &str, id: String, waits: bool) -> Self {
        let path = if waits {
            format!("/orders/{id}")
        } else {
            format!("/orders/{id}/later")
        };
        let answer = ask(address, "POST", &path, &Self::body(&id));
        Self { id, waits, answer }
    }

    fn was_answered(&self) -> bool {
        self.answer.is_some()
    }

    /// Finds the result where the service said, or asks again with the same number.
    fn check(&self, address: &str) {
        let id = &self.id;
        if let Some((status, told)) = &self.answer {
            assert_eq!(*status, if self.waits { 200 } else { 202 }, "{id}: {told}");
            let found = ask(address, "GET", &format!("/orders/{id}/receipt"), "");
            let (status, receipt) = found.expect("an answer");
            assert_eq!(status, 200, "{id} was accepted: {receipt}");
            assert!(receipt.contains(id.as_str()), "{id}: {receipt}");
            if self.waits {
                assert_eq!(receipt, *told, "{id}: another receipt than it was told");
            }
        } else {
            let again = ask(address, "POST", &format!("/orders/{id}"), &Self::body(id));
            let (status, receipt) = again.expect("an answer");
            assert_eq!(status, 200, "{id} asked again: {receipt}");
        }
    }
}

/// All at once, each on its own thread.
fn at_once<T: Send + 'static>(
    count: usize,
    work: impl Fn(usize) -> T + Clone + Send + 'static,
) -> Vec<thread::JoinHandle<T>> {
    let each = |number| {
        let work = work.clone();
        thread::spawn(move || work(number))
    };
    (0..count).map(each).collect()
}

// RVT-FIX-68, UA-78
#[test]
fn every_client_that_got_a_2xx_finds_its_result_after_the_service_was_killed() {
    const ROUNDS: usize = 20;
    const CLIENTS: usize = 24;
    binary("axum");
    let dir = tempfile::tempdir().unwrap();
    let mut random = Random::seeded();
    let (mut answered, mut cut_off) = (Vec::new(), 0);
    for round in 0..ROUNDS {
        let service = Service::start("axum", dir.path());
        let address = service.address();
        let clients = at_once(CLIENTS, move |number| {
            Client::ask(&address, format!("r{round}c{number}"), number % 2 == 0)
        });
        // The process is outside of any clock of ours.
        thread::sleep(Duration::from_millis(random.below(500)));
        drop(service);
        let clients: Vec<Client> = clients
            .into_iter()
            .map(|client| client.join().unwrap())
            .collect();

        let service = Service::start("axum", dir.path());
        let address = service.address();
        let checks: Vec<_> = clients
            .into_iter()
            .map(|client| {
                let address = address.clone();
                thread::spawn(move || {
                    client.check(&address);
                    client
                })
            })
            .collect();
        for check in checks {
            let client = check.join().unwrap();
            if client.was_answered() {
                answered.push(client);
            } else {
                cut_off += 1;
            }
        }
    }
    println!("{} were answered, {cut_off} were cut off", answered.len());
    assert!(
        answered.len() > ROUNDS && cut_off > ROUNDS,
        "the kills hit nothing in flight"
    );
    // Of all the rounds, after all the kills.
    let service = Service::start("axum", dir.path());
    for client in &answered {
        client.check(&service.address());
    }
}

// UA-40
#[test]
fn fifty_concurrent_posts_of_one_order_charge_once_and_all_get_the_same_receipt() {
    let dir = tempfile::tempdir().unwrap();
    let service = Service::start("axum", dir.path());
    let address = service.address();
    let posts = at_once(50, move |_| {
        ask(
            &address,
            "POST",
            "/orders/one",
            r#"{"item":"tea","cents":690}"#,
        )
        .expect("an answer")
    });
    let answers: Vec<(u16, String)> = posts.into_iter().map(|post| post.join().unwrap()).collect();
    let (status, receipt) = &answers[0];
    assert_eq!(*status, 200, "{receipt}");
    assert!(
        answers.iter().all(|answer| answer == &answers[0]),
        "{answers:?}"
    );
    let charges = service.log().matches("charging 690 for order one").count();
    assert_eq!(charges, 1, "{}", service.log());
}
