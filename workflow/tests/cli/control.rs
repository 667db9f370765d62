//! Operating runs: what is done with the program goes on in the shop's own.

use std::io::Write;
use std::process::Stdio;

use serde_json::json;
use workflow::{RunState, testing};

use crate::shop::{ODD, Shop, order, trip, until};
use crate::{command, on, said};

#[test]
fn a_message_that_was_sent_is_taken_when_the_program_is_there() {
    let shop = Shop::new();
    let sent = on(&shop.store(), &["send", ODD, "payment", "80", "--key", "a"]);
    assert_eq!((sent.code, &*sent.err), (0, ""));
    // Once for a key.
    let twice = on(
        &shop.store(),
        &["send", ODD, "payment", "81", "--key", "a", "--json"],
    );
    assert_eq!(twice.json(), json!({"run": ODD, "channel": "payment"}));
    let mut piped = command(&["send", "waits", "payment", "-"]);
    let mut piped = piped.env("WORKFLOW_STORE", shop.store());
    piped = piped
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut piped = piped.spawn().unwrap();
    piped.stdin.take().unwrap().write_all(b" 60\n").unwrap();
    assert_eq!(
        said(&piped.wait_with_output().unwrap()).out,
        "sent to `waits` on `payment`\n"
    );
    shop.open(async |engine| {
        for (id, value) in [(ODD, 80), ("waits", 60)] {
            let run = engine.attach::<order>(id).await.unwrap();
            assert_eq!(run.result().await.unwrap(), value, "{id}");
        }
    });
    let late = on(&shop.store(), &["send", "waits", "payment", "1"]);
    assert_eq!(
        (late.code, &*late.err),
        (
            1,
            "error: run `waits` is completed and takes no more messages\n"
        )
    );
}

#[test]
fn a_run_is_cancelled_once_and_undone_by_the_program() {
    let shop = Shop::new();
    let cancelled = on(&shop.store(), &["cancel", "waits"]);
    assert_eq!(
        (cancelled.code, &*cancelled.out),
        (0, "cancelled `waits`: cancelled\n")
    );
    assert_eq!(
        on(&shop.store(), &["cancel", "waits", "--json"]).json()["state"],
        "cancelled"
    );
    let ended = on(&shop.store(), &["cancel", "done"]);
    assert_eq!((ended.code, &*ended.out), (1, ""));
    assert!(ended.err.contains("`done` is completed"), "{}", ended.err);

    let charged = shop.charged();
    let undone = on(&shop.store(), &["cancel", "trip", "--undo"]);
    assert_eq!(
        undone.out,
        "cancelled `trip`: rolling_back; it goes on when its program opens the store\n"
    );
    assert_eq!(shop.charged(), charged);
    shop.open(async |engine| until(&engine, "trip", RunState::Cancelled).await);
    assert_eq!(shop.charged(), charged + 100, "it was undone once");
}

#[test]
fn a_failed_run_is_recovered_and_a_parked_one_resumed() {
    let shop = Shop::new();
    let charged = shop.charged();
    assert_eq!(
        on(&shop.store(), &["recover", "failed", "--json"]).json()["state"],
        "pending"
    );
    assert_eq!(
        on(&shop.store(), &["resume", "broken", "--json"]).json()["state"],
        "pending"
    );
    let refused = on(&shop.store(), &["recover", "done"]);
    assert_eq!(
        (refused.code, &*refused.err),
        (
            1,
            "error: run `done` is completed, so it cannot be recovered\n"
        )
    );
    let refused = on(&shop.store(), &["resume", "waits"]);
    assert_eq!(refused.code, 1);
    assert!(refused.err.contains("nothing to resume"), "{}", refused.err);
    assert_eq!(shop.charged(), charged);
    shop.open(async |engine| {
        until(&engine, "failed", RunState::Failed).await;
        until(&engine, "broken", RunState::Parked).await;
    });
    assert_eq!(
        shop.charged(),
        charged + 1,
        "the charge that failed was tried again"
    );
}

#[test]
fn a_rewind_says_what_it_would_do_and_does_it() {
    let shop = Shop::new();
    let before = shop.runs();
    let dry = on(&shop.store(), &["rewind", "done", "settle", "--dry-run"]);
    assert_eq!(dry.code, 0);
    assert!(
        dry.out
            .starts_with("would rewind `done` to `settle`, and delete "),
        "{}",
        dry.out
    );
    assert!(
        dry.out
            .contains("back into the inbox: a message on `payment`"),
        "{}",
        dry.out
    );
    assert_eq!(shop.runs(), before);

    let json = on(&shop.store(), &["rewind", "waits", "--json"]).json();
    assert_eq!(
        (&json["dry_run"], &json["to"], &json["generation"]),
        (&json!(false), &json!(""), &json!(1))
    );
    let charged = shop.charged();
    shop.open(async |engine| until(&engine, "waits", RunState::Waiting).await);
    assert_eq!(shop.charged(), charged + 1);
    let nowhere = on(&shop.store(), &["rewind", "waits", "nowhere"]);
    assert_eq!(nowhere.code, 1);
    assert!(nowhere.err.contains("nowhere"), "{}", nowhere.err);
}

#[test]
fn a_fork_is_a_run_of_its_own() {
    let shop = Shop::new();
    let forked = on(&shop.store(), &["fork", "trip", "trip-2"]);
    assert_eq!(
        forked.out,
        "forked `trip-2`: pending; it goes on when its program opens the store\n"
    );
    let taken = on(&shop.store(), &["fork", "trip", "waits", "--json"]);
    assert_eq!((taken.code, &*taken.out), (1, ""));
    let error: serde_json::Value = serde_json::from_str(&taken.err).unwrap();
    assert_eq!(error["error"], "refused");
    shop.open(async |engine| {
        until(&engine, "trip-2", RunState::Waiting).await;
        engine.attach::<trip>("trip-2").await.unwrap();
    });
    let shown = on(&shop.store(), &["show", "trip-2", "--json"]).json();
    assert_eq!(shown["forked_from"], "trip");
}

#[test]
fn an_exported_history_is_imported_where_a_replay_test_reads_it() {
    let shop = Shop::new();
    let dir = shop.dir.path().join("tests/histories");
    let file = shop.dir.path().join("exported.json");
    let path = |path: &std::path::Path| path.to_str().unwrap().to_owned();
    let exported = on(&shop.store(), &["export", ODD, "-o", &path(&file)]);
    assert_eq!(exported.code, 0, "{exported:?}");
    let again = on(&shop.store(), &["export", ODD, "-o", &path(&file)]);
    assert_eq!(again.code, 1);
    assert!(again.err.contains("--force"), "{}", again.err);
    assert_eq!(
        on(&shop.store(), &["export", ODD]).out,
        std::fs::read_to_string(&file).unwrap()
    );

    let words = ["import", &path(&file), "--into", &path(&dir), "--json"];
    let imported = said(&command(&words).output().unwrap()).json();
    let into = imported["file"].as_str().unwrap();
    let history = testing::read(into).unwrap();
    assert_eq!(history.id().as_str(), ODD);
    let replayed = testing::Replay::of(order)
        .state(shop.till.clone())
        .over(&history)
        .unwrap();
    assert!(replayed.waits_at("settle/paid/payment"), "{replayed:?}");

    std::fs::write(&file, "{\"format\": 1,\n \"id\": 7}").unwrap();
    let wrong = said(
        &command(&["import", &path(&file), "--into", &path(&dir)])
            .output()
            .unwrap(),
    );
    assert_eq!(wrong.code, 1);
    assert!(wrong.err.contains("line 2"), "{}", wrong.err);
}
