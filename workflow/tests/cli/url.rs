//! The same commands on a service that runs.

use std::future::IntoFuture;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use axum::Router;
use serde_json::json;
use workflow::RunState;
use workflow::http::{Policy, router};

use crate::shop::{ODD, PAYMENT, Shop, until};
use crate::{Said, command, on, said, workflow};

/// Serves the shop's API at `/api` while `work` talks to it. Whoever changes something needs a token.
pub(crate) fn serving(shop: &Shop, work: impl FnOnce(&str) + Send + 'static) {
    shop.open(async |engine| {
        let policy = Policy::new(|ask| {
            let token = ask.headers().get("authorization");
            !ask.action().changes() || token.is_some_and(|token| token == "Bearer secret")
        });
        let api = router(engine)
            .policy(policy)
            .channel(&PAYMENT)
            .into_router();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/api/", listener.local_addr().unwrap());
        let served = axum::serve(listener, Router::new().nest("/api", api));
        let served = tokio::spawn(served.into_future());
        tokio::task::spawn_blocking(move || work(&url))
            .await
            .unwrap();
        served.abort();
        let _ = served.await;
    });
}

pub(crate) fn at(url: &str, words: &[&str]) -> Said {
    let mut command = command(words);
    said(
        &command
            .env("WORKFLOW_URL", url)
            .env("WORKFLOW_TOKEN", "secret")
            .output()
            .unwrap(),
    )
}

#[test]
fn what_is_shown_of_a_service_is_what_is_shown_of_its_file() {
    let shop = Shop::new();
    let commands: [&[&str]; 8] = [
        &["list"],
        &[
            "list",
            "--json",
            "--state",
            "waiting",
            "--workflow",
            "order",
            "--limit",
            "1",
        ],
        &["list", "--json", "--all"],
        &["show", ODD, "--json"],
        &["show", "broken"],
        &["history", "done", "--json", "--after", "2"],
        &["graph", ODD],
        &["export", "trip"],
    ];
    let of_file = commands.map(|words| on(&shop.store(), words).out);
    serving(&shop, move |url| {
        for (words, of_file) in commands.into_iter().zip(of_file) {
            let of_service = at(url, words);
            assert_eq!(
                (of_service.code, &*of_service.out),
                (0, &*of_file),
                "{words:?} {of_service:?}"
            );
        }
        let missing = at(url, &["show", "nobody"]);
        assert_eq!(
            (missing.code, &*missing.err),
            (1, "error: there is no run `nobody`\n")
        );
        assert_eq!(at(url, &["doctor"]).code, 2);
        let elsewhere = format!("{url}nowhere");
        let said = at(&elsewhere, &["list"]);
        assert_eq!(said.code, 1, "{said:?}");
    });
}

#[test]
fn what_is_done_over_a_service_takes_effect_at_once_and_needs_its_token() {
    let shop = Shop::new();
    let charged = shop.charged();
    serving(&shop, |url| {
        let refused = workflow(&["--url", url, "cancel", "waits"]);
        assert_eq!(
            (refused.code, &*refused.err),
            (1, "error: you may not do this\n")
        );
        let dry = at(url, &["rewind", "done", "settle", "--dry-run", "--json"]).json();
        assert_eq!(
            (&dry["dry_run"], &dry["returned"][0]["channel"]),
            (&json!(true), &json!("payment"))
        );

        let sent = at(url, &["send", ODD, "payment", "8", "--key", "k"]);
        assert_eq!((sent.code, &*sent.err), (0, ""));
        let misfit = at(url, &["send", "waits", "payment", "\"text\""]);
        assert_eq!(misfit.code, 1, "the service reads it by the channel's type");
        assert_eq!(
            at(url, &["cancel", "waits"]).out,
            "cancelled `waits`: cancelled\n"
        );
        assert_eq!(
            at(url, &["fork", "trip", "trip-2", "--json"]).json()["id"],
            "trip-2"
        );
        assert_eq!(at(url, &["recover", "failed"]).code, 0);
        assert_eq!(
            at(url, &["rewind", "trip", "charge", "--json"]).json()["generation"],
            1
        );
        assert_eq!(at(url, &["resume", "broken"]).code, 0);
        let again = at(url, &["recover", "done"]);
        assert_eq!(
            (again.code, &*again.err),
            (
                1,
                "error: run `done` is completed, so it cannot be recovered\n"
            )
        );
    });
    shop.open(async |engine| {
        until(&engine, ODD, RunState::Completed).await;
        until(&engine, "failed", RunState::Failed).await;
        until(&engine, "trip", RunState::Waiting).await;
    });
    assert!(shop.charged() >= charged + 2, "recovered and rewound");
}

#[test]
fn a_run_of_a_service_is_followed_to_its_end() {
    let shop = Shop::new();
    let of_file = on(&shop.store(), &["history", "done"]).out;
    serving(&shop, move |url| {
        let words = |text: &str| {
            let lines = text.lines().filter(|line| !line.ends_with("deleted since"));
            let words = lines.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
            words.collect::<Vec<_>>()
        };
        let ended = at(url, &["tail", "done"]);
        assert_eq!(
            (ended.code, &*ended.err),
            (0, "`done` is completed\n"),
            "{ended:?}"
        );
        assert!(ended.out.contains("\n4  deleted since\n"), "{}", ended.out);
        assert_eq!(words(&ended.out), words(&of_file));
        let past = at(url, &["tail", "done", "--after", "99"]);
        assert_eq!((past.code, &*past.out), (0, ""), "{past:?}");
        assert_eq!(at(url, &["tail", "nobody"]).code, 1);

        let mut follows = command(&["tail", ODD, "--json"]);
        let follows = follows.env("WORKFLOW_URL", url).stdout(Stdio::piped());
        let mut follows = follows.spawn().unwrap();
        let mut lines = BufReader::new(follows.stdout.take().unwrap()).lines();
        let mut next = || -> serde_json::Value {
            serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap()
        };
        // It is told what was, and waits.
        let mut line = next();
        assert_eq!((&line["event"], &line["id"]), (&json!("record"), &json!(1)));
        while line["data"]["body"].get("waiting").is_none() {
            line = next();
        }
        assert_eq!(at(url, &["send", ODD, "payment", "8"]).code, 0);
        while line["event"] != "end" {
            line = next();
        }
        assert_eq!(line["data"]["state"], "completed");
        assert!(follows.wait().unwrap().success());
    });
}

#[test]
fn a_service_deletes_what_it_keeps_no_longer_and_no_more_than_that() {
    let shop = Shop::new();
    serving(&shop, |url| {
        let refused = workflow(&["--url", url, "gc"]);
        assert_eq!(refused.code, 1, "{refused:?}");
        let said = at(url, &["gc"]);
        assert_eq!((said.code, &*said.out), (0, "deleted 0 runs\n"), "{said:?}");
        for words in [
            &["gc", "--older-than", "1d"][..],
            &["gc", "--dry-run"],
            &["gc", "--state", "failed"],
            &["compact"],
            &["backup", "copy.redb"],
        ] {
            assert_eq!(at(url, words).code, 2, "{words:?}");
        }
    });
}

#[test]
fn a_service_that_is_not_there_is_3_and_an_address_that_is_none_is_2() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", free.local_addr().unwrap());
    drop(free);
    let gone = workflow(&["list", "--url", &url]);
    assert_eq!(gone.code, 3, "{gone:?}");
    assert!(gone.err.contains("cannot be reached"), "{}", gone.err);
    assert_eq!(workflow(&["list", "--url", "localhost:3000"]).code, 2);
    let shop = Shop::new();
    assert_eq!(on(&shop.store(), &["list", "--url", &url]).code, 2);
}
