//! Copies of a store, its size, and runs that ended long ago.

use serde_json::json;

use crate::on;
use crate::shop::{PAYMENT, Shop};

#[test]
fn a_backup_is_a_store_with_the_same_runs_and_overwrites_nothing() {
    let shop = Shop::new();
    let store = shop.store();
    let copy = shop.dir.path().join("copy.redb");
    let to = copy.to_str().unwrap();
    let made = on(&store, &["backup", to]);
    assert_eq!((made.code, &*made.err), (0, ""), "{made:?}");
    assert!(
        made.out.starts_with("copied `") && made.out.ends_with(" bytes\n"),
        "{}",
        made.out
    );
    for words in [&["list"][..], &["history", "done"], &["export", "trip"]] {
        assert_eq!(on(&copy, words).out, on(&store, words).out, "{words:?}");
    }
    let again = on(&store, &["backup", to]);
    assert_eq!((again.code, &*again.out), (1, ""));
    assert!(again.err.contains("overwrites nothing"), "{}", again.err);
    let second = shop.dir.path().join("second.redb");
    let json = on(&store, &["backup", second.to_str().unwrap(), "--json"]).json();
    let bytes = std::fs::metadata(&second).unwrap().len();
    assert_eq!(json, json!({"file": second, "bytes": bytes}));
}

#[test]
fn an_older_copy_beside_the_log_of_a_store_that_was_not_closed_is_3() {
    let shop = Shop::new();
    let dir = shop.dir.path();
    let copy = dir.join("copy.redb");
    let made = on(&shop.store(), &["backup", copy.to_str().unwrap()]);
    assert_eq!(made.code, 0, "{made:?}");
    // What is started later is only in the log, and the process is killed, as far as these files tell.
    shop.open(async |engine| {
        engine.send("later", &PAYMENT, &1).await.unwrap();
        std::fs::copy(dir.join("orders.redb-log"), dir.join("copy.redb-log")).unwrap();
    });
    let refused = on(&copy, &["list"]);
    assert_eq!((refused.code, &*refused.out), (3, ""));
    assert!(
        refused.err.contains("is an older copy of its store"),
        "{}",
        refused.err
    );
    std::fs::remove_file(dir.join("copy.redb-log")).unwrap();
    assert_eq!(on(&copy, &["list"]).code, 0);
}

#[test]
fn a_store_is_compacted() {
    let shop = Shop::new();
    let done = on(&shop.store(), &["compact"]);
    assert_eq!((done.code, &*done.err), (0, ""), "{done:?}");
    assert!(done.out.starts_with("compacted `"), "{}", done.out);
    let json = on(&shop.store(), &["compact", "--json"]).json();
    assert!(json["after"].as_u64().unwrap() > 0);
    assert!(json["after"].as_u64() <= json["before"].as_u64());
    assert_eq!(on(&shop.store(), &["doctor"]).code, 0);
}

#[test]
fn what_ended_long_ago_is_deleted_and_nothing_else() {
    let shop = Shop::new();
    let store = shop.store();
    let before = on(&store, &["list"]).out;
    // It is said what is to go, or nothing does.
    let unsaid = on(&store, &["gc"]);
    assert_eq!((unsaid.code, &*unsaid.out), (2, ""));
    assert!(unsaid.err.contains("--older-than 30d"), "{}", unsaid.err);
    assert_eq!(on(&store, &["gc", "--older-than", "yesterday"]).code, 2);
    assert_eq!(
        on(&store, &["gc", "--older-than", "1d", "--state", "waiting"]).code,
        2
    );

    // The shop's clock stands at 2035.
    let early = on(&store, &["gc", "--older-than", "2034-12-31"]);
    assert_eq!((early.code, &*early.out), (0, "deleted 0 runs\n"));
    let late = ["gc", "--older-than", "2035-01-02", "--dry-run"];
    let dry = on(&store, &late);
    assert_eq!(dry.out, "would delete 2 runs, with their children\n");
    let narrow = [&late[..], &["--state", "failed", "--json"]].concat();
    assert_eq!(
        on(&store, &narrow).json(),
        json!({"deleted": 0, "awaited": 0, "matching": 1})
    );
    let other = [&late[..], &["--workflow", "trip", "--json"]].concat();
    assert_eq!(on(&store, &other).json()["matching"], 0);
    assert_eq!(on(&store, &["list"]).out, before);

    let words = ["gc", "--older-than", "2035-01-02", "--state", "completed"];
    let done = on(&store, &words);
    assert_eq!((done.code, &*done.out), (0, "deleted 1 run\n"));
    assert_eq!(on(&store, &["show", "done"]).code, 1);
    assert_eq!(on(&store, &["show", "failed"]).code, 0);
    let rest = on(&store, &["gc", "--older-than", "2035-01-02", "--json"]).json();
    assert_eq!(rest, json!({"deleted": 1, "awaited": 0}));
    let left = on(&store, &["list", "--json"]).json();
    assert_eq!(left["runs"].as_array().unwrap().len(), 4);
}

#[test]
fn nothing_happens_in_a_file_and_tail_says_so_and_shows_what_was() {
    let shop = Shop::new();
    let store = shop.store();
    for words in [&["done"][..], &["waits", "--after", "2"]] {
        let tail = on(&store, &[&["tail"], words].concat());
        let history = on(&store, &[&["history"], words].concat());
        assert_eq!((tail.code, &tail.out), (0, &history.out));
        assert!(tail.err.starts_with("nothing happens"), "{}", tail.err);
    }
    assert_eq!(on(&store, &["tail", "nobody"]).code, 1);
}
