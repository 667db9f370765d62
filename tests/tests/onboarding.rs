//! The `onboarding` example as a process, with two tabs.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    dead_code,
    reason = "helpers of tests are tests"
)]

mod example;
#[path = "example/service.rs"]
mod service;

use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use service::{Service, ask};

/// A tab: what it was shown last.
struct Tab {
    address: String,
    view: Value,
}

impl Tab {
    fn open(address: &str) -> Self {
        let (status, view) = ask(address, "GET", "/guides/acme", "").unwrap();
        assert_eq!(status, 200, "{view}");
        Self {
            address: address.to_owned(),
            view: serde_json::from_str(&view).unwrap(),
        }
    }

    fn revision(&self) -> u64 {
        self.view["revision"].as_u64().unwrap()
    }

    fn at(&self) -> &str {
        self.view["at"].as_str().unwrap()
    }

    /// Presses a button as of what is shown, and shows what came of it.
    fn press(&mut self, button: &str, mut body: Value) -> (u16, Value) {
        body["revision"] = json!(self.revision());
        let path = format!("/guides/acme/{button}");
        let (status, said) = ask(&self.address, "POST", &path, &body.to_string()).unwrap();
        let said: Value = serde_json::from_str(&said).unwrap();
        self.view = said.get("view").unwrap_or(&said).clone();
        (status, said)
    }

    /// Waits for what others do.
    fn follow(&mut self) {
        let path = format!("/guides/acme?after={}", self.revision());
        let (_, view) = ask(&self.address, "GET", &path, "").unwrap();
        self.view = serde_json::from_str(&view).unwrap();
    }
}

// GDE-CON-08
#[test]
fn of_two_tabs_the_one_that_saw_an_older_revision_is_refused_and_shown_the_newer_one() {
    let dir = tempfile::tempdir().unwrap();
    let service = Service::start("onboarding", dir.path());
    let (mut one, mut other) = (Tab::open(&service.address()), Tab::open(&service.address()));
    let seen = one.revision();
    assert_eq!((one.at(), other.revision()), ("name", seen));
    let (status, said) = one.press("next", json!({}));
    assert_eq!((status, said["refused"].as_str()), (422, Some("invalid")));

    let (status, _) = one.press("edit", json!({ "set": { "name": "acme" } }));
    assert_eq!(status, 200);
    // The other tab has not looked since.
    let (status, said) = other.press("edit", json!({ "set": { "name": "emca" } }));
    assert_eq!(
        (status, said["refused"].as_str()),
        (409, Some("stale")),
        "{said}"
    );
    assert_eq!(other.view, one.view);
    assert_eq!(one.view["project"]["name"], "acme");

    // Both press the same button at what both see: one moves.
    let presses = [Tab::open(&service.address()), Tab::open(&service.address())];
    let presses = presses.map(|mut tab| thread::spawn(move || tab.press("next", json!({})).0));
    let mut came = presses.map(|press| press.join().unwrap());
    came.sort_unstable();
    assert_eq!(came, [200, 409]);
    one.follow();
    assert_eq!(one.at(), "hosting");

    // What one does, the other is shown.
    let follower = thread::spawn(move || {
        other.follow();
        other
    });
    one.press("back", json!({}));
    let other = follower.join().unwrap();
    assert!(other.revision() > seen);
}

#[test]
fn a_button_whose_answer_was_lost_is_pressed_again_with_its_key_and_moves_once() {
    let dir = tempfile::tempdir().unwrap();
    let service = Service::start("onboarding", dir.path());
    let mut tab = Tab::open(&service.address());
    tab.press("edit", json!({ "set": { "name": "acme" } }));
    let shown = tab.view.clone();
    assert_eq!(tab.press("next", json!({ "key": "k" })).0, 200);
    drop(service);
    let service = Service::start("onboarding", dir.path());
    let (address, view) = (service.address(), shown);
    let mut again = Tab { address, view };
    assert_eq!(again.press("next", json!({ "key": "k" })).0, 200);
    assert_eq!((again.at(), again.revision()), ("hosting", tab.revision()));
}

#[test]
fn the_whole_way_through_a_restart_and_back() {
    let dir = tempfile::tempdir().unwrap();
    let service = Service::start("onboarding", dir.path());
    let (_, page) = ask(&service.address(), "GET", "/", "").unwrap();
    assert!(page.contains("<title>Onboarding</title>"), "{page}");
    let mut tab = Tab::open(&service.address());
    tab.press("edit", json!({ "set": { "name": "acme", "cloud": true } }));
    tab.press("next", json!({}));
    tab.press("next", json!({}));
    assert_eq!(tab.at(), "region");
    drop(service);

    let service = Service::start("onboarding", dir.path());
    let mut tab = Tab::open(&service.address());
    assert_eq!(tab.at(), "region");
    let began = Instant::now();
    // The answer comes when the body has ended.
    assert_eq!(tab.press("skip", json!({})).0, 200);
    assert!(began.elapsed() > Duration::from_millis(300));
    assert_eq!(tab.at(), "create");
    assert_eq!(tab.view["project"]["repository"], "git.example/acme");
    assert_eq!(tab.press("cancel", json!({})).0, 409);
    assert_eq!(tab.press("rollback", json!({})).0, 200);
    assert_eq!(tab.view["status"], "idle");
    assert!(service.log().contains("deleting the repository of `acme`"));
    assert_eq!(tab.press("start", json!({})).0, 200);
    assert_eq!(
        (tab.at(), tab.view["status"].as_str()),
        ("name", Some("waiting"))
    );
    assert_eq!(
        ask(
            &service.address(),
            "POST",
            "/guides/acme/jump",
            r#"{"revision":1}"#
        )
        .unwrap()
        .0,
        404
    );
}
