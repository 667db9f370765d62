//! Histories that are exported, kept, and replayed against the code of another day.

use workflow::replay::{FailureKind, Finished, HistoryError, ImportError, Issued, Now, Recorded};
use workflow::testing::{self, ReadError, Replay, ReplayError, Replayed, replay};
use workflow::{
    Channel, Engine, Failure, History, Kind, Location, ParkReason, checkpoint, join, race, recv,
    sleep, step, version, workflow,
};
use workflow_tests::program::Random;
use workflow_tests::{Counter, World, pass};

static PAID: Channel<String> = Channel::new("paid");

#[step]
async fn reserve(calls: &Counter, item: &str) -> u64 {
    calls.hit();
    item.len() as u64
}

#[step(retries = 1, backoff(fixed, wait = "1s"))]
async fn declined(calls: &Counter) -> Result<u64, std::io::Error> {
    calls.hit();
    Err(std::io::Error::other("no funds"))
}

#[step]
async fn ship(calls: &Counter, item: u64) -> u64 {
    calls.hit();
    item
}

async fn refund(_held: u64) {}

/// A bit of everything.
#[workflow(name = "order")]
async fn order(item: String, #[state] calls: Counter) -> Result<u64, Failure> {
    checkpoint!(begun);
    let way = version!(way, 2).await;
    #[step(undo(refund))]
    let held = reserve(&calls, &item).await?;
    let missed = declined(&calls).await;
    assert!(missed.is_err());
    'items: for item in 0..2 {
        ship(&calls, item).await?;
    }
    let won = race!(
        settle,
        paid = recv!(payment, PAID).await?.len() as u64,
        late = {
            sleep!(window, "1h").await;
            0
        }
    )
    .await?;
    let (one, two) = join!(
        both,
        one = {
            sleep!(nap, "1m").await;
            1
        },
        two = {
            #[step(name = "ship_two")]
            let two = ship(&calls, 2).await?;
            two
        }
    )
    .await?;
    // What a hostile history gives may be anything.
    let mut total = held.wrapping_add(won.value).wrapping_add(one + two % 9);
    #[carry(total)]
    'pages: loop {
        #[step(name = "page")]
        let page = ship(&calls, total).await?;
        total = total.wrapping_add(page);
        if total > 100 {
            break;
        }
        sleep!(turn, "1m").await;
    }
    sleep!(rest, "1d").await;
    Ok(total.wrapping_add(u64::from(way)))
}

#[workflow]
async fn plain(n: u32) -> u32 {
    sleep!(pause, "1h").await;
    n + 1
}

/// A history of `order`, as far as it came by then.
async fn recorded(millis: u64, paid: bool) -> History {
    let (world, calls) = (World::new(), Counter::default());
    let builder = world.engine().workflow(order).state(calls);
    let engine = builder.build().await.unwrap();
    let run = engine.start("o-1", order("book".to_owned())).await.unwrap();
    if paid {
        run.send(&PAID, &"cash".to_owned()).await.unwrap();
    }
    pass(millis).await;
    run.export().await.unwrap()
}

async fn plain_history(millis: u64) -> History {
    let world = World::new();
    let engine = world.engine().workflow(plain).build().await.unwrap();
    engine.start("p-1", plain(6)).await.unwrap();
    pass(millis).await;
    engine.export("p-1").await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_history_is_replayed_to_where_its_run_stands_and_no_step_is_run() {
    for (millis, paid, at) in [
        (500, false, &["declined"][..]),
        (5_000, false, &["settle/paid/payment", "settle/late/window"]),
        (5_000, true, &["both/one/nap"]),
        (62_000, true, &["pages[0]/turn"]),
        (130_000, true, &["pages[1]/turn"]),
        (3_600_000, true, &["rest"]),
    ] {
        let history = recorded(millis, paid).await;
        let calls = Counter::default();
        let replayed = Replay::of(order).state(calls.clone()).over(&history);
        let Replayed::Waits(waits) = replayed.unwrap() else {
            panic!("after {millis} ms");
        };
        let places: Vec<_> = waits.iter().map(|at| at.location.to_string()).collect();
        assert_eq!(places, at, "after {millis} ms");
        assert!(waits[0].site.file.ends_with("replays.rs"), "{}", waits[0]);
        assert_eq!(calls.count(), 0, "a step was run");
    }
    let waits = replay(plain, &plain_history(10).await).unwrap();
    assert!(waits.waits_at("pause") && !waits.waits_at("settle"));
}

#[tokio::test(start_paused = true)]
async fn the_history_of_a_run_that_has_ended_comes_to_the_same_end() {
    let history = plain_history(4_000_000).await;
    assert!(matches!(history.finished(), Some(Finished::Completed(_))));
    assert_eq!(replay(plain, &history).unwrap().completed(), Some(7));
    let history = recorded(100_000_000, true).await;
    let replayed = Replay::of(order)
        .state(Counter::default())
        .over(&history)
        .unwrap();
    assert_eq!(replayed.completed(), Some(178));
}

// Every prefix of a history is the history of a run that was cut off there.
#[tokio::test(start_paused = true)]
async fn a_history_that_ends_anywhere_is_replayed() {
    let history = recorded(100_000_000, true).await;
    let last = history.records().last().unwrap().seq;
    for seq in 1..=last {
        let part = history.up_to(seq).unwrap();
        let calls = Counter::default();
        let replayed = Replay::of(order).state(calls).over(&part);
        // What was pruned since is missing in a part of it: iterations that are gone.
        if let Err(error) = replayed {
            panic!("up to {seq}: {error}");
        }
    }
}

mod grown {
    use super::*;

    #[workflow(name = "plain")]
    pub async fn plain(n: u32) -> u32 {
        sleep!(pause, "1h").await;
        sleep!(extra, "1h").await;
        sleep!(more, "1h").await;
        n + 1
    }
}

mod renamed {
    use super::*;

    #[workflow(name = "plain")]
    pub async fn plain(n: u32) -> u32 {
        sleep!(wait, "1h").await;
        n + 1
    }
}

mod failing {
    use super::*;

    #[workflow(name = "plain")]
    pub async fn plain(n: u32) -> Result<u32, std::io::Error> {
        sleep!(pause, "1h").await;
        Err(std::io::Error::other(format!("{n} is too many")))
    }
}

mod widened {
    use super::*;

    #[workflow(name = "plain")]
    pub async fn plain(n: u32, more: u32) -> u32 {
        sleep!(pause, "1h").await;
        n + more
    }
}

mod panicking {
    use super::*;

    #[workflow(name = "plain")]
    pub async fn plain(n: u32) -> u32 {
        assert!(n < 5, "out of cheese");
        sleep!(pause, "1h").await;
        n
    }
}

// UA-09: of two sites too many, the first one is told, also where the run had ended.
#[tokio::test(start_paused = true)]
async fn a_site_beyond_the_end_of_a_run_is_told_and_the_first_of_them() {
    let history = plain_history(4_000_000).await;
    let error = replay(grown::plain, &history).unwrap_err();
    let divergence = error.divergence().unwrap();
    assert_eq!(divergence.recorded, Recorded::End);
    assert!(matches!(divergence.issued, Issued::Site(site) if site.name == "extra"));
    let told = error.to_string();
    assert!(
        told.contains("extra (sleep) at") && !told.contains("more"),
        "{told}"
    );
    // A run that has not ended goes on to it.
    let waits = replay(grown::plain, &plain_history(10).await).unwrap();
    assert!(waits.waits_at("pause"));
}

// UA-45
#[tokio::test(start_paused = true)]
async fn what_does_not_fit_is_a_typed_error_with_the_report() {
    let history = plain_history(10).await;
    let error = replay(renamed::plain, &history).unwrap_err();
    let divergence = error.divergence().unwrap();
    assert_eq!(divergence.now, Now::Gone);
    assert_eq!(divergence.location, Location::root().site("wait"));
    let told = error.to_string();
    for said in [
        "recorded: sleep `pause` (record 2)",
        "wait (sleep) at",
        "replays.rs:",
        "removed or renamed",
    ] {
        assert!(told.contains(said), "{said} is not in {told}");
    }
    let reason = |error| match error {
        ReplayError::Parked { reason, detail } => (reason, detail),
        other => panic!("{other:?}"),
    };
    let (why, detail) = reason(replay(widened::plain, &history).unwrap_err());
    assert_eq!(why, ParkReason::Decode);
    assert!(detail.contains("`more`"), "{detail}");
    let (why, detail) = reason(replay(panicking::plain, &history).unwrap_err());
    assert_eq!(why, ParkReason::Panicked);
    assert!(detail.contains("out of cheese"), "{detail}");

    let ended = plain_history(4_000_000).await;
    let error = replay(failing::plain, &ended).unwrap_err();
    assert!(matches!(
        &error,
        ReplayError::OtherEnd {
            recorded: "completed",
            ..
        }
    ));
    assert!(error.to_string().contains("6 is too many"), "{error}");
    let failed = replay(failing::plain, &history).unwrap();
    assert!(failed.waits_at("pause"));

    let error = Replay::of(order).over(&history).unwrap_err();
    assert!(matches!(
        error,
        ReplayError::OtherWorkflow { given: "order", .. }
    ));
    let error = Replay::of(order)
        .over(&recorded(10, false).await)
        .unwrap_err();
    assert!(matches!(
        error,
        ReplayError::MissingState {
            parameter: "calls",
            ..
        }
    ));
    assert!(error.to_string().contains("Counter"), "{error}");
}

mod failed {
    use super::*;

    async fn unreserve(_held: u64) {}

    #[workflow(name = "saga")]
    pub async fn saga(#[state] calls: Counter) -> Result<u64, Failure> {
        checkpoint!(begun);
        #[step(undo(unreserve))]
        let held = reserve(&calls, "book").await?;
        declined(&calls).await?;
        Ok(held)
    }
}

mod failed_without {
    use super::*;

    #[workflow(name = "saga")]
    pub async fn saga(#[state] calls: Counter) -> Result<u64, Failure> {
        checkpoint!(begun);
        let held = reserve(&calls, "book").await?;
        declined(&calls).await?;
        Ok(held)
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_about_to_be_undone_needs_its_undos() {
    let (world, calls) = (World::new(), Counter::default());
    let builder = world.engine().workflow(failed::saga);
    let engine = builder.state(calls.clone()).build().await.unwrap();
    let run = engine.start("s-1", failed::saga()).await.unwrap();
    assert!(run.result().await.is_err());
    let history = run.export().await.unwrap();
    let last = history.records().len();
    for (cut, needs) in [
        (last, false),
        (last - 1, false),
        (last - 2, true),
        (last - 3, true),
    ] {
        // It ended; its entry was undone; it unwinds; it has failed, and that is all that is recorded.
        let part = history.up_to(history.records()[cut - 1].seq).unwrap();
        let with = Replay::of(failed::saga).state(calls.clone()).over(&part);
        assert!(with.unwrap().failed().is_some());
        let without = Replay::of(failed_without::saga)
            .state(calls.clone())
            .over(&part);
        match without {
            Ok(replayed) => assert!(!needs && replayed.failed().is_some(), "{cut}"),
            Err(ReplayError::Parked {
                reason: ParkReason::UndoMissing,
                ..
            }) => assert!(needs, "{cut}"),
            Err(error) => panic!("{error}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_that_was_rolled_back_or_cancelled_is_replayed_to_where_its_code_was() {
    let (world, calls) = (World::new(), Counter::default());
    let builder = world.engine().workflow(failed::saga).workflow(plain);
    let engine = builder.state(calls.clone()).build().await.unwrap();
    let run = engine.start("s-1", failed::saga()).await.unwrap();
    assert!(run.result().await.is_err());
    let history = run.export().await.unwrap();
    let replayed = Replay::of(failed::saga).state(calls.clone()).over(&history);
    let failure = replayed.unwrap().failed().unwrap();
    assert_eq!(failure.kind(), FailureKind::Exhausted);
    assert!(failure.message().contains("no funds"), "{failure}");

    let run = engine.start("p-1", plain(6)).await.unwrap();
    pass(10).await;
    run.cancel().await.unwrap();
    let history = run.export().await.unwrap();
    assert!(replay(plain, &history).unwrap().waits_at("pause"));
}

#[tokio::test(start_paused = true)]
async fn a_history_is_read_back_from_its_file_as_it_was() {
    let history = recorded(130_000, true).await;
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("o-1.json");
    std::fs::write(&file, history.to_json()).unwrap();
    let read = testing::read(&file).unwrap();
    assert_eq!(read, history);
    assert_eq!(read.to_json(), history.to_json());
    assert_eq!((read.workflow(), read.id().as_str()), ("order", "o-1"));
    assert_eq!(&read.input().bytes[..], br#"{"item":"book"}"#);
    // Through serde as well, as a part of something larger.
    let value = serde_json::to_value(&history).unwrap();
    assert_eq!(serde_json::from_value::<History>(value).unwrap(), history);
    // A value is JSON in it, not text.
    let json: serde_json::Value = serde_json::from_str(&history.to_json()).unwrap();
    assert_eq!(
        json["records"][0]["body"]["begun"]["input"]["json"]["item"],
        "book"
    );

    let error = testing::read(dir.path().join("none.json")).unwrap_err();
    assert!(matches!(error, ReadError::File { .. }) && error.to_string().contains("none.json"));
    std::fs::write(&file, "{\n\"format\": 1,\n\"id\": 7}").unwrap();
    let error = testing::read(&file).unwrap_err().to_string();
    assert!(error.contains("o-1.json: line 3, column"), "{error}");
}

/// This file was written once, by the first version that wrote any.
#[test]
fn the_form_that_was_written_once_is_read_for_ever() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/v1/history.json");
    let history = testing::read(file).unwrap();
    assert_eq!(history.to_json(), std::fs::read_to_string(file).unwrap());
    let replayed = Replay::of(order).state(Counter::default()).over(&history);
    assert_eq!(replayed.unwrap().completed(), Some(178));
}

#[test]
fn what_is_no_history_says_what_is_wrong_and_where() {
    let begun = r#"{"seq":1,"at":5,"code":"1","body":{"begun":{"workflow":"plain","input":{"json":{"n":6}},"input_hash":"0","seed":"7","generation":0}}}"#;
    let told = |records: &str| {
        let json = format!("{{\"format\":1,\"id\":\"p-1\",\"records\":[{records}]}}");
        History::from_json(&json).unwrap_err()
    };
    let with = |record: &str| told(&format!("{begun},\n{record}")).to_string();
    let at =
        |body: &str| format!(r#"{{"seq":2,"at":5,"code":"1","location":["pause"],"body":{body}}}"#);

    for (error, said) in [
        (with("{}"), "line 2, column 2: missing field `seq`"),
        (with(&at(r#"{"slept":{}}"#)), "unknown variant `slept`"),
        (
            with(&at(r#"{"waiting":{"sleep":{"until":1,"or":2}}}"#)),
            "unknown field `or`",
        ),
        (
            with(&at(r#"{"waiting":{"sleep":{"until":1}}}"#).replace("\"1\"", "\"x\"")),
            "`x` is no hexadecimal number",
        ),
        (with(begun), "record 1 follows record 1"),
        (
            with(&begun.replace("\"seq\":1", "\"seq\":2")),
            "record 2 at `` cannot be there: a run begins once",
        ),
        (
            with(&at(r#"{"decided":{"branch":"a"}}"#)),
            "record 2 at `pause` cannot be there: a branch won that the race does not have",
        ),
        (
            with(&at(r#"{"carried":{"next":1,"state":{"json":1}}}"#)),
            "only an iteration has an end",
        ),
        (
            with(&at(r#""checkpoint""#).replace(r#"["pause"]"#, "[3]")),
            "its location is one that no code has",
        ),
        (
            with(&at(r#"{"waiting":"body"}"#).replace(r#""pause""#, &vec!["\"a\""; 300].join(","))),
            "its location is too deep",
        ),
        (
            with(&at(
                r#"{"armed":{"number":1,"location":["a"],"undo":"a","output":null}}"#,
            )),
            "it is an entry of the ledger, and lies elsewhere",
        ),
    ] {
        assert!(error.contains(said), "`{said}` is not in `{error}`");
    }
    assert!(matches!(
        told(""),
        ImportError::History(HistoryError::NoBeginning)
    ));
    let newer = History::from_json(r#"{"format":2,"what":"ever"}"#).unwrap_err();
    assert!(matches!(newer, ImportError::Format { found: 2 }), "{newer}");
    assert!(matches!(
        History::from_json("[").unwrap_err(),
        ImportError::Json { line: 1, .. }
    ));
}

/// Whatever a file holds, it is refused, or replayed to something: never a panic of the library's own, nor without end.
#[tokio::test(start_paused = true)]
async fn a_hostile_history_is_refused_or_replayed_and_never_a_panic() {
    let sources = [
        recorded(500, false).await,
        recorded(130_000, true).await,
        recorded(100_000_000, true).await,
    ];
    let mut random = Random::new(11);
    let (mut refused, mut diverged, mut fits) = (0, 0, 0);
    for round in 0..6_000 {
        let source = random.pick(&sources);
        let json = if round % 2 == 0 {
            mixed(&source.to_json(), &mut random)
        } else {
            scratched(&source.to_json(), &mut random)
        };
        let Ok(history) = History::from_json(&json) else {
            refused += 1;
            continue;
        };
        match Replay::of(order).state(Counter::default()).over(&history) {
            Ok(_) => fits += 1,
            // The workflow's own assertion may fail, for what it was given was never so.
            Err(ReplayError::Parked {
                reason: ParkReason::Panicked,
                detail,
            }) if !detail.contains("missed.is_err()") => {
                panic!("{detail}\n{json}")
            }
            Err(_) => diverged += 1,
        }
    }
    assert!(
        refused > 500 && diverged > 250 && fits > 100,
        "{refused} {diverged} {fits}"
    );
}

/// Records left out, doubled, exchanged, and with parts of each other.
fn mixed(json: &str, random: &mut Random) -> String {
    let mut whole: serde_json::Value = serde_json::from_str(json).unwrap();
    let records = whole["records"].as_array_mut().unwrap();
    for _ in 0..=random.below(3) {
        let (one, other) = (random.index(records.len()), random.index(records.len()));
        match random.below(6) {
            0 if records.len() > 2 => {
                records.remove(one);
            }
            1 => {
                let copy = records[one].clone();
                records.insert(other, copy);
            }
            2 => records.swap(one, other),
            3 => records[one]["body"] = records[other]["body"].clone(),
            4 => records[one]["location"] = records[other]["location"].clone(),
            _ => {
                let location = records[one]["location"].as_array_mut();
                if let Some(location) = location.filter(|location| !location.is_empty()) {
                    let at = random.index(location.len());
                    location[at] = match random.below(4) {
                        0 => serde_json::json!(u64::MAX),
                        1 => serde_json::json!(random.below(5)),
                        2 => serde_json::json!({"branch": "one"}),
                        _ => serde_json::json!("items"),
                    };
                }
            }
        }
        if random.percent(70) {
            // In order again, so that more is looked at than that.
            for (at, record) in records.iter_mut().enumerate() {
                record["seq"] = (at + 1).into();
            }
        }
    }
    for record in records.iter_mut() {
        if record["location"].is_null() {
            record.as_object_mut().unwrap().remove("location");
        }
    }
    whole.to_string()
}

/// Numbers and letters changed anywhere.
fn scratched(json: &str, random: &mut Random) -> String {
    let mut bytes = json.as_bytes().to_vec();
    for _ in 0..=random.below(3) {
        let at = random.index(bytes.len());
        if bytes[at].is_ascii_digit() {
            let digits = ["0", "9", "18446744073709551615", "9007199254740993", "1"];
            let digits = *random.pick(&digits);
            bytes.splice(at..=at, digits.bytes());
        } else if bytes[at].is_ascii_alphabetic() && random.percent(30) {
            bytes[at] = b'a' + u8::try_from(random.below(26)).unwrap();
        }
    }
    String::from_utf8(bytes).unwrap()
}

#[test]
fn a_frontier_reads_as_people_look_for_it() {
    let kind = Kind::Sleep;
    let site = workflow::Site::new("nap", kind, "nap", "src/x.rs", 3);
    let location = Location::root().site("nap");
    let at = testing::Frontier { location, site };
    assert_eq!(at.to_string(), "`nap` (sleep) at src/x.rs:3");
}

// A history is the same whatever engine it comes from: what is exported of a fork goes on under the fork's seed.
#[tokio::test(start_paused = true)]
async fn what_is_derived_comes_out_as_it_did_also_after_a_rewind() {
    let (world, calls) = (World::new(), Counter::default());
    let builder = world.engine().workflow(order).state(calls.clone());
    let engine: Engine = builder.build().await.unwrap();
    let run = engine.start("o-1", order("book".to_owned())).await.unwrap();
    pass(5_000).await;
    run.rewind("items[1]/ship").await.unwrap();
    pass(5_000).await;
    let history = run.export().await.unwrap();
    assert_eq!(history.generation(), 1);
    let replayed = Replay::of(order).state(calls).over(&history).unwrap();
    assert!(replayed.waits_at("settle/late/window"));
}
