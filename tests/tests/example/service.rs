//! An example that serves, as a process, and a client that speaks just enough HTTP.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// A running service. Killed with SIGKILL when dropped.
pub(crate) struct Service {
    child: Child,
    address: String,
    log: PathBuf,
}

impl Service {
    /// Starts it on the data in `dir`, and waits until it listens.
    pub(crate) fn start(example: &'static str, dir: &Path) -> Self {
        let log = dir.join("log");
        let child = Command::new(crate::example::binary(example))
            .env("PORT", "0")
            .env("DATA", dir.join("runs.redb"))
            .stdout(File::create(&log).unwrap())
            .spawn()
            .unwrap();
        let mut service = Self {
            child,
            address: String::new(),
            log,
        };
        let began = Instant::now();
        while service.address.is_empty() {
            assert!(
                began.elapsed() < Duration::from_secs(20),
                "it does not listen"
            );
            assert_eq!(service.child.try_wait().unwrap(), None, "it ended");
            std::thread::sleep(Duration::from_millis(2));
            let log = service.log();
            if let Some((_, rest)) = log.split_once("listening on ")
                && let Some((address, _)) = rest.split_once(',')
            {
                address.clone_into(&mut service.address);
            }
        }
        service
    }

    pub(crate) fn address(&self) -> String {
        self.address.clone()
    }

    /// What it printed so far.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Asks; `None` when no whole answer came.
pub(crate) fn ask(address: &str, method: &str, path: &str, body: &str) -> Option<(u16, String)> {
    ask_once(address, method, path, "", body)
}

/// Asks with an idempotency key.
pub(crate) fn ask_once(
    address: &str,
    method: &str,
    path: &str,
    key: &str,
    body: &str,
) -> Option<(u16, String)> {
    let key = match key {
        "" => String::new(),
        key => format!("idempotency-key: {key}\r\n"),
    };
    ask_with(address, method, path, &key, body)
}

/// Asks with more headers, each with its line break.
pub(crate) fn ask_with(
    address: &str,
    method: &str,
    path: &str,
    headers: &str,
    body: &str,
) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream
        .set_read_timeout(Some(Duration::from_secs(20)))
        .ok()?;
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {length}\r\n{headers}\r\n{body}"
    );
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let mut lines = head.lines();
    let promised = lines.find_map(|line| line.strip_prefix("content-length: "))?;
    (promised == body.len().to_string()).then(|| (status, body.to_owned()))
}
