//! What the calendar starts: looked at and paused in a file, and operated in a service.

use serde_json::json;

use crate::on;
use crate::shop::Shop;

#[test]
fn schedules_are_listed_and_paused_in_a_file_and_the_program_keeps_to_it() {
    let shop = Shop::new();
    let listed = on(&shop.store(), &["schedules"]);
    assert_eq!(
        (listed.code, &*listed.out),
        (
            0,
            "NAME  CRON       ZONE  NEXT                      LAST\n\
             rent  0 0 1 * *  UTC   2035-02-01T00:00:00.000Z  -\n"
        )
    );
    let paused = on(
        &shop.store(),
        &["schedules", "pause", "rent", "--reason", "we move"],
    );
    assert_eq!((paused.code, &*paused.out), (0, "paused `rent`\n"));
    let listed = on(&shop.store(), &["schedules", "--json"]).json();
    let rent = &listed["schedules"][0];
    assert_eq!(
        (&rent["paused"]["reason"], &rent["next"]),
        (&json!("we move"), &json!(null))
    );
    shop.open(async |engine| {
        let status = engine.schedule("rent").status().await.unwrap();
        assert_eq!(status.paused.unwrap().1, "we move");
    });
    let resumed = on(&shop.store(), &["schedules", "resume", "rent"]);
    assert_eq!(
        resumed.out,
        "resumed `rent`; it fires next at 2035-02-01T00:00:00.000Z\n"
    );
}

#[test]
fn what_needs_the_program_or_is_not_there_is_refused_on_a_file() {
    let shop = Shop::new();
    let triggered = on(&shop.store(), &["schedules", "trigger", "rent"]);
    assert_eq!(triggered.code, 1);
    assert!(
        triggered.err.contains("ask the program that has it"),
        "{}",
        triggered.err
    );
    let nothing = on(&shop.store(), &["schedules", "pause", "tax"]);
    assert_eq!(
        (nothing.code, &*nothing.err),
        (
            1,
            "error: there is no schedule `tax` here; the engine has none\n"
        )
    );
    let whenever = on(
        &shop.store(),
        &[
            "schedules",
            "backfill",
            "rent",
            "--from",
            "whenever",
            "--to",
            "2h",
        ],
    );
    assert_eq!(whenever.code, 2, "{whenever:?}");
}

#[cfg(feature = "axum")]
#[test]
fn a_service_starts_runs_now_and_for_times_that_have_passed() {
    use crate::url::{at, serving};

    let shop = Shop::new();
    serving(&shop, |url| {
        let nobody = crate::workflow(&["--url", url, "schedules", "pause", "rent"]);
        assert_eq!(
            (nobody.code, &*nobody.err),
            (1, "error: you may not do this\n")
        );
        let run = at(url, &["schedules", "trigger", "rent", "--json"]).json();
        assert_eq!(run["workflow"], "order");
        assert!(
            run["id"].as_str().unwrap().starts_with("rent@2035-01-01"),
            "{run}"
        );
        let months = [
            "schedules",
            "backfill",
            "rent",
            "--from",
            "2026-09-01",
            "--to",
            "2026-11-02",
        ];
        assert_eq!(
            at(url, &months).out,
            "backfilled `rent`: 3 runs started, 0 were there\n"
        );
        assert_eq!(
            at(url, &months).out,
            "backfilled `rent`: 0 runs started, 3 were there\n"
        );
        let run = at(url, &["show", "rent@2026-10-01T00:00:00Z", "--json"]).json();
        assert_eq!(run["input"], json!({"cents": 7}));
        let future = [
            "schedules",
            "backfill",
            "rent",
            "--from",
            "2026-09-01",
            "--to",
            "2099-01-01",
        ];
        let future = at(url, &future);
        assert!(
            future.code == 1 && future.err.contains("now at the latest"),
            "{future:?}"
        );
        assert_eq!(at(url, &["schedules", "pause", "rent"]).code, 0);
        let listed = at(url, &["schedules"]).out;
        assert!(listed.contains("paused since 2035-01-01"), "{listed}");
        let missing = at(url, &["schedules", "resume", "tax"]);
        assert_eq!(
            (missing.code, &*missing.err),
            (
                1,
                "error: there is no schedule `tax` here; there are `rent`\n"
            )
        );
    });
}
