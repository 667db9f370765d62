//! Looking at runs: list, show, history, graph, timeline.

use std::time::Duration;

use console::measure_text_width;
use serde_json::json;

use crate::on;
use crate::shop::{ODD, Shop, order};

#[test]
fn runs_are_listed_in_start_order_with_what_they_wait_for() {
    let shop = Shop::new();
    let listed = on(&shop.store(), &["list"]);
    assert_eq!((listed.code, &*listed.err), (0, ""));
    assert_eq!(
        listed.out,
        "\
ID                         WORKFLOW  STATE      CHANGED
done                       order     completed  2035-01-01T00:00:00.000Z
waits                      order     waiting    2035-01-01T00:00:00.000Z  for payment, or until 2035-01-31T00:00:00.000Z
failed                     order     failed     2035-01-01T00:00:00.000Z
broken                     broken    parked     2035-01-01T00:00:00.000Z  PARKED
trip                       trip      waiting    2035-01-01T00:00:00.000Z  until 2035-01-31T00:00:00.000Z
żółw 'n $(x) 龜🐢\\u{202e}  order     waiting    2035-01-01T00:00:00.000Z  for payment, or until 2035-01-31T00:00:00.000Z
"
        .replace("PARKED", parked(&listed.out))
    );
    assert!(
        !listed.out.contains('\u{1b}'),
        "a run coloured the terminal"
    );

    let json = on(
        &shop.store(),
        &[
            "list",
            "--json",
            "--state",
            "waiting",
            "--workflow",
            "order",
        ],
    )
    .json();
    let ids: Vec<_> = json["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|run| &run["id"])
        .collect();
    assert_eq!(ids, [&json!("waits"), &json!(ODD)]);
    assert_eq!(
        json["runs"][0],
        json!({
            "id": "waits", "workflow": "order", "state": "waiting", "records": 5, "generation": 0,
            "created_at": 2_051_222_400_000_u64, "updated_at": 2_051_222_400_000_u64,
            "wake_at": 2_053_814_400_000_u64, "waits_for": ["payment"], "priority": 0,
        })
    );
}

#[test]
fn a_run_that_is_to_begin_later_says_when_and_before_whom() {
    let shop = Shop::new();
    shop.open(async |engine| {
        let call = order(3).delay(Duration::from_hours(24)).priority(-4);
        engine.start("later", call).await.unwrap();
    });
    let listed = on(&shop.store(), &["list"]).out;
    let line = listed.lines().find(|line| line.starts_with("later "));
    let line = line.unwrap();
    assert!(line.contains("waiting"), "{line}");
    assert!(line.ends_with("until 2035-01-02T00:00:00.000Z"), "{line}");
    let json = on(&shop.store(), &["list", "--json", "--state", "waiting"]).json();
    let later = json["runs"].as_array().unwrap().last().unwrap().clone();
    assert_eq!(
        (&later["id"], &later["priority"]),
        (&json!("later"), &json!(-4))
    );
    assert_eq!(later["not_before"], later["wake_at"]);
    let shown = on(&shop.store(), &["show", "later"]).out;
    for part in ["not before", "2035-01-02T00:00:00.000Z", "priority", "-4"] {
        assert!(shown.contains(part), "{shown}");
    }
}

/// What is said of why a run is parked: the words are the engine's.
fn parked(listed: &str) -> &str {
    let (_, rest) = listed
        .split_once("parked     2035-01-01T00:00:00.000Z  ")
        .unwrap();
    let (detail, _) = rest.split_once('\n').unwrap();
    assert!(
        detail.starts_with("panicked: ") && detail.contains("out of cheese\\u{1b}[31m"),
        "{detail}"
    );
    detail
}

#[test]
fn a_list_goes_on_where_the_page_before_ended() {
    let shop = Shop::new();
    let mut ids = Vec::new();
    let mut after: Option<String> = None;
    loop {
        let mut words = vec!["list", "--json", "--limit", "2"];
        if let Some(after) = &after {
            words.extend(["--after", after]);
        }
        let page = on(&shop.store(), &words).json();
        for run in page["runs"].as_array().unwrap() {
            ids.push(run["id"].as_str().unwrap().to_owned());
        }
        match page.get("next") {
            Some(next) => after = Some(next.as_str().unwrap().to_owned()),
            None => break,
        }
    }
    assert_eq!(ids, ["done", "waits", "failed", "broken", "trip", ODD]);
    let text = on(&shop.store(), &["list", "--limit", "1"]);
    assert!(
        text.err.starts_with("there are more: --after "),
        "{}",
        text.err
    );
    let since = |when| on(&shop.store(), &["list", "--json", "--since", when]).json();
    assert_eq!(
        since("2035-01-01T00:00:00Z")["runs"]
            .as_array()
            .unwrap()
            .len(),
        6
    );
    assert_eq!(since("2035-01-01T00:00:01Z"), json!({"runs": []}));
}

#[test]
fn a_run_is_shown_with_its_input_and_how_it_stands_or_ended() {
    let shop = Shop::new();
    let shown = on(&shop.store(), &["show", "failed"]);
    assert_eq!(
        shown.out,
        "\
run         failed
workflow    order
state       failed
input       {\"cents\":0}
failure     charge: nothing to charge (exhausted)
started     2035-01-01T00:00:00.000Z
changed     2035-01-01T00:00:00.000Z
ended       2035-01-01T00:00:00.000Z
records     3
"
    );
    let done = on(&shop.store(), &["show", "done", "--json"]).json();
    assert_eq!(
        (&done["input"], &done["value"]),
        (&json!({"cents": 5}), &json!(5))
    );
    let failed = on(&shop.store(), &["--json", "show", "failed"]).json();
    assert_eq!(failed["failure"]["location"], "charge");
    let broken = on(&shop.store(), &["show", "broken"]);
    for part in [
        "panicked: ",
        "ways out    deploy code that is mended",
        "workflow resume broken",
    ] {
        assert!(broken.out.contains(part), "{part}\n{}", broken.out);
    }
    let odd = on(&shop.store(), &["show", ODD]);
    assert!(
        odd.out
            .starts_with("run         żółw 'n $(x) 龜🐢\\u{202e}\n"),
        "{}",
        odd.out
    );
}

#[test]
fn a_history_is_a_line_for_each_record_and_the_same_as_json() {
    let shop = Shop::new();
    let history = on(&shop.store(), &["history", "done", "--at", "settle"]);
    let lines: Vec<_> = history.out.lines().collect();
    assert!(
        lines[0].ends_with("settle               race of paid, expired"),
        "{}",
        history.out
    );
    assert!(
        history
            .out
            .contains("settle/paid/payment  took payment 5\n"),
        "{}",
        history.out
    );
    assert!(
        history.out.contains("settle               won by paid\n"),
        "{}",
        history.out
    );
    assert!(!history.out.contains("charge"));

    let first = on(
        &shop.store(),
        &["history", "done", "--json", "--limit", "2"],
    )
    .json();
    assert_eq!((&first["id"], &first["next"]), (&json!("done"), &json!(2)));
    let second: workflow::Record = serde_json::from_value(first["records"][1].clone()).unwrap();
    assert_eq!(second.location.to_string(), "charge");
    let rest = on(
        &shop.store(),
        &["history", "done", "--json", "--after", "2"],
    )
    .json();
    assert_eq!(rest["records"][0]["seq"], 3);
    assert!(rest.get("next").is_none());
}

#[test]
fn a_run_is_a_tree_of_its_locations() {
    let shop = Shop::new();
    let tree = on(&shop.store(), &["graph", "waits"]);
    assert_eq!(
        tree.out,
        "\
order
  charge       step done
  settle       race
    paid       branch
      payment  recv waiting for payment
    expired    branch
      window   sleep waiting until 2035-01-31T00:00:00.000Z
"
    );
    let json = on(&shop.store(), &["graph", "done", "--json", "--depth", "2"]).json();
    assert_eq!(json["locations"][1]["name"], "settle");
    assert_eq!(json["locations"][1]["note"], "won by paid");
    assert_eq!(json["locations"][1]["under"][0]["location"], "settle/paid");
    assert!(json["locations"][1]["under"][0].get("under").is_none());
}

#[test]
fn nothing_that_is_shown_is_wider_than_the_terminal() {
    let shop = Shop::new();
    let commands: [&[&str]; 7] = [
        &["list"],
        &["history", ODD],
        &["graph", ODD],
        &["timeline", ODD],
        &["timeline", "done"],
        &["show", "failed"],
        &["rewind", "waits", "charge", "--dry-run"],
    ];
    for width in ["0", "1", "2", "7", "13", "20", "39", "80", "4000"] {
        for command in commands {
            let mut words = command.to_vec();
            words.extend(["--width", width]);
            let shown = on(&shop.store(), &words);
            assert_eq!(shown.code, 0, "{words:?} {shown:?}");
            if command[0] == "rewind" {
                // Its first line is a sentence.
                continue;
            }
            for line in shown.out.lines() {
                assert!(
                    measure_text_width(line) <= width.parse().unwrap(),
                    "{words:?}: {line}"
                );
            }
        }
    }
}

#[test]
fn looking_changes_nothing_and_drives_nothing() {
    let shop = Shop::new();
    let (before, charged) = (shop.runs(), shop.charged());
    for words in [
        &["list"][..],
        &["show", "waits"],
        &["timeline", "trip"],
        &["graph", "broken"],
        &["doctor"],
        &["export", "done"],
    ] {
        assert_eq!(on(&shop.store(), words).code, 0, "{words:?}");
    }
    assert_eq!((shop.runs(), shop.charged()), (before, charged));
}
