//! Starts the `axum` example, kills it with requests in flight, and asks the next process for what was answered.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

struct Service {
    child: Child,
    address: String,
}

impl Service {
    fn start(program: &Path, data: &Path) -> Self {
        let mut command = Command::new(program);
        command
            .env("PORT", "0")
            .env("DATA", data)
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = command.spawn().expect("the example starts");
        let mut line = String::new();
        let output = child.stdout.take().expect("its output is piped");
        BufReader::new(output)
            .read_line(&mut line)
            .expect("it says where it listens");
        let address = line
            .trim()
            .rsplit('/')
            .next()
            .unwrap_or_default()
            .to_owned();
        Self { child, address }
    }

    fn kill(mut self) {
        self.child.kill().expect("it can be killed");
        self.child.wait().expect("it ends");
    }
}

/// The status and body of an answer; nothing when there was none.
fn ask(address: &str, method: &str, path: &str, body: &str) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect(address).ok()?;
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let status = answer.split(' ').nth(1)?.parse().ok()?;
    Some((
        status,
        answer
            .split("\r\n\r\n")
            .nth(1)
            .unwrap_or_default()
            .to_owned(),
    ))
}

fn example() -> PathBuf {
    let status = Command::new(env!("CARGO"))
        .args([
            "build",
            "-q",
            "-p",
            "workflow-examples",
            "--example",
            "axum",
        ])
        .status()
        .expect("cargo runs");
    assert!(status.success());
    let this = std::env::current_exe().expect("a test has a path");
    this.ancestors()
        .nth(2)
        .expect("a test lies in deps")
        .join("examples/axum")
}

#[test]
fn every_client_that_was_answered_finds_its_order_after_a_kill() {
    let program = example();
    let place = tempfile::tempdir().expect("a directory");
    let data = place.path().join("service.redb");
    let answered: Arc<Mutex<Vec<(String, u16)>>> = Arc::default();
    for round in 0..5 {
        let service = Service::start(&program, &data);
        let clients: Vec<_> = (0..8)
            .map(|client| {
                let (address, answered) = (service.address.clone(), Arc::clone(&answered));
                thread::spawn(move || {
                    for turn in 0.. {
                        let id = format!("r{round}-c{client}-{turn}");
                        let path = if turn % 2 == 0 {
                            format!("/orders/{id}")
                        } else {
                            format!("/orders/{id}/wait")
                        };
                        let Some((status, _)) =
                            ask(&address, "POST", &path, r#"{"item":"lamp","seconds":0}"#)
                        else {
                            return;
                        };
                        answered
                            .lock()
                            .expect("no client panics")
                            .push((id, status));
                    }
                })
            })
            .collect();
        while answered.lock().expect("no client panics").len() < (round + 1) * 60 {
            thread::yield_now();
        }
        service.kill();
        for client in clients {
            client
                .join()
                .expect("clients end when their service is gone");
        }
    }
    let service = Service::start(&program, &data);
    let answered = answered.lock().expect("no client panics");
    assert!(answered.len() >= 300);
    for (id, status) in answered.iter() {
        assert!((200..300).contains(status), "{id}: {status}");
        // Asking again with the same body attaches, and waits for its end.
        let again = ask(
            &service.address,
            "POST",
            &format!("/orders/{id}/wait"),
            r#"{"item":"lamp","seconds":0}"#,
        );
        assert_eq!(
            again,
            Some((200, "\"parcel for hold-lamp\"".to_owned())),
            "{id}"
        );
        let (status, _) = ask(
            &service.address,
            "POST",
            &format!("/orders/{id}/wait"),
            r#"{"item":"desk","seconds":0}"#,
        )
        .expect("the service answers");
        assert_eq!(status, 409, "{id} is the same run: it knows its input");
    }
    service.kill();
}

// UA-40
#[test]
fn fifty_starts_of_one_id_at_once_are_one_run() {
    let program = example();
    let place = tempfile::tempdir().expect("a directory");
    let service = Service::start(&program, &place.path().join("service.redb"));
    let clients: Vec<_> = (0..50)
        .map(|_| {
            let address = service.address.clone();
            thread::spawn(move || {
                ask(
                    &address,
                    "POST",
                    "/orders/one/wait",
                    r#"{"item":"lamp","seconds":0}"#,
                )
            })
        })
        .collect();
    for client in clients {
        let answer = client.join().expect("no client panics");
        assert_eq!(answer, Some((200, "\"parcel for hold-lamp\"".to_owned())));
    }
    service.kill();
}
