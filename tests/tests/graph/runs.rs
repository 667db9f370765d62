//! A run laid over its picture, at several points of its life.

use workflow::graph::{RunGraph, State};
use workflow::{
    Engine, Failure, Kind, RunHandle, RunState, join, join_all, race, recv, sleep, step, workflow,
};
use workflow_tests::{World, pass};

use super::order::{NEWS, PAYMENT, Shop, VOUCHER, ask, ledger, order, parcel};
use super::pictures::assert_is;

async fn engine(world: &World, shop: &Shop) -> Engine {
    let builder = world.engine().state(shop.clone());
    let builder = builder.workflow(order).workflow(parcel).workflow(ledger);
    builder.build().await.unwrap()
}

fn state(run: &RunGraph, path: &str) -> State {
    run.site(path).unwrap_or_else(|| panic!("no {path}")).state
}

fn assert_states(run: &RunGraph, expected: &[(&str, State)]) {
    let found: Vec<_> = expected
        .iter()
        .map(|(path, _)| (*path, state(run, path)))
        .collect();
    assert_eq!(found, expected);
}

fn said(run: &RunGraph, path: &str) -> String {
    run.site(path)
        .unwrap_or_else(|| panic!("no {path}"))
        .to_string()
}

const MINUTE: u64 = 60_000;

#[tokio::test(start_paused = true)]
async fn a_run_is_drawn_while_it_waits_in_a_race_and_goes_on_and_ends() {
    let (world, shop) = (World::new(), Shop::default());
    let engine = engine(&world, &shop).await;
    shop.refuse("lottery");
    shop.refuse("3");
    engine.start("ledger", ledger()).await.unwrap();
    let run = engine
        .start("a", order(vec![1, 2, 3], false))
        .await
        .unwrap();

    pass(MINUTE / 2).await;
    let now = run.graph().await.unwrap();
    assert_states(
        &now,
        &[
            ("greet", State::NotReached),
            ("placed", State::Done),
            ("token", State::Untold),
            ("begun", State::Done),
            ("hold", State::Done),
            ("decline", State::Skipped),
            ("settle", State::Running),
            ("settle/paid/payment", State::Waiting),
            ("settle/paid/book-in", State::NotReached),
            ("settle/expired/window", State::Waiting),
            ("settle/free/lottery", State::Retrying { attempt: 2 }),
            ("pricing", State::NotReached),
            ("lines[]/pick", State::NotReached),
        ],
    );
    assert_eq!(now.ended(), None);
    assert_is("waiting.mmd", &now.mermaid());
    assert_is("waiting.dot", &now.dot());

    run.send(&VOUCHER, &5).await.unwrap();
    pass(MINUTE / 2).await;
    // It picks the second line.
    pass(MINUTE).await;
    let now = run.graph().await.unwrap();
    assert_states(
        &now,
        &[
            ("settle", State::Done),
            ("settle/paid/payment", State::Done),
            ("settle/paid/book-in", State::Done),
            ("settle/expired/window", State::Lost),
            ("settle/free/lottery", State::Lost),
            ("pricing", State::Done),
            ("pricing/check", State::Done),
            ("back", State::Skipped),
            ("paid", State::Done),
            ("lines", State::Waiting),
            ("lines[]/wrap", State::Done),
            ("lines[]/breath", State::Waiting),
            // It may still come there.
            ("lines[]/hurry", State::NotReached),
            ("drain", State::NotReached),
        ],
    );
    assert_eq!(said(&now, "lines"), "waiting, 2 iterations");
    assert_eq!(said(&now, "lines[]/pick"), "done 2 times");
    assert_eq!(said(&now, "lines[]/breath"), "waiting, 1 done");
    let places = &now.site("lines[]/breath").unwrap().places;
    let places: Vec<_> = places
        .iter()
        .map(|(at, state)| (at.to_string(), *state))
        .collect();
    assert_eq!(
        places,
        [
            ("lines[0]/breath".to_owned(), State::Done),
            ("lines[1]/breath".to_owned(), State::Waiting)
        ]
    );

    // The third line is refused at first.
    pass(MINUTE).await;
    let now = run.graph().await.unwrap();
    assert_eq!(said(&now, "lines[]/pick"), "retrying, attempt 2, 2 done");
    assert_eq!(said(&now, "lines"), "running, 3 iterations");
    shop.allow();
    pass(4 * MINUTE).await;
    let now = run.graph().await.unwrap();
    assert_states(
        &now,
        &[
            ("lines", State::Done),
            ("lines[]/hurry", State::Skipped),
            ("drain", State::Done),
            ("parcels", State::Waiting),
            ("parcels[]/both", State::Waiting),
            ("parcels[]/both/sent/parcel", State::Waiting),
            // What else its body does is not known here.
            ("parcels[]/both/told/notify", State::Running),
            ("thanks", State::NotReached),
            ("notify", State::NotReached),
        ],
    );
    assert_eq!(said(&now, "drain"), "done, 2 iterations");
    assert_eq!(said(&now, "parcels"), "waiting, 3 items");
    let kind = |path| now.site(path).unwrap().kind;
    assert_eq!(kind("parcels[]/both/sent/parcel"), Kind::Child);
    assert_eq!(kind("parcels[]/both/told/notify"), Kind::Fragment);
    assert_eq!(kind("notify"), Kind::Call);

    assert_eq!(run.result().await.unwrap(), 5);
    let now = run.graph().await.unwrap();
    assert_eq!(now.ended(), Some(RunState::Completed));
    assert_eq!(now.unknown(), []);
    for site in now.sites() {
        assert!(
            !site.state.is_active() && site.state != State::Failed,
            "{site:?}"
        );
    }
    assert_states(
        &now,
        &[
            ("parcels", State::Done),
            ("parcels[]/both", State::Done),
            ("thanks", State::Done),
            ("notify", State::Done),
            ("tell", State::Done),
            ("poll", State::Done),
            ("poll[]/tick", State::Done),
            ("rest", State::Done),
        ],
    );
    assert_eq!(
        said(&now, "parcels[]/both/told/notify"),
        "done, entered 3 times"
    );
    assert_eq!(said(&now, "parcels[]/both/sent/parcel"), "done 3 times");
    assert_is("done.mmd", &now.mermaid());
    assert_is("done.json", &format!("{:#}\n", without_lines(&now.json())));
}

/// The data of a picture, but for where its sites are written: that changes with every edit.
pub(crate) fn without_lines(json: &str) -> serde_json::Value {
    let mut data: serde_json::Value = serde_json::from_str(json).unwrap();
    for site in data["sites"].as_array_mut().unwrap() {
        let site = site.as_object_mut().unwrap();
        assert!(site.remove("line").is_some() && site.remove("file").is_some());
    }
    data
}

#[tokio::test(start_paused = true)]
async fn what_an_attempt_caught_and_what_was_undone_is_drawn() {
    let (world, shop) = (World::new(), Shop::default());
    let engine = engine(&world, &shop).await;
    shop.refuse("quote");
    let run = engine.start("a", order(vec![3], false)).await.unwrap();
    run.send(&PAYMENT, &5).await.unwrap();
    // Three attempts, a minute apart. Then it rolls back, and goes on.
    pass(2 * MINUTE + MINUTE / 2).await;
    let now = run.graph().await.unwrap();
    assert_states(
        &now,
        &[
            ("pricing", State::Done),
            ("pricing/quote", State::Failed),
            ("pricing/check", State::Skipped),
            ("hold", State::Undone),
            ("back", State::Done),
            ("lines", State::Done),
        ],
    );
    assert_eq!(now.ended(), None);
    assert_eq!(now.failure(), None);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_failed_is_drawn_with_what_it_failed_by_and_how_far_it_is_undone() {
    let (world, shop) = (World::new(), Shop::default());
    let engine = engine(&world, &shop).await;
    shop.refuse("decline");
    shop.refuse("take back hold");
    let run = engine.start("a", order(Vec::new(), false)).await.unwrap();
    pass(2 * MINUTE + 500).await;
    let now = run.graph().await.unwrap();
    assert_eq!(now.ended(), Some(RunState::RollingBack));
    assert_eq!(now.failure().unwrap().location().to_string(), "decline");
    assert_eq!(state(&now, "hold"), State::Undoing { attempt: 3 });
    assert_states(
        &now,
        &[
            ("decline", State::Failed),
            ("settle", State::NotReached),
            ("lines", State::NotReached),
        ],
    );
    assert!(
        now.mermaid()
            .contains("end<br/>rolling back at decline: exhausted")
    );
    shop.allow();
    assert!(run.result().await.is_err());
    let now = run.graph().await.unwrap();
    assert_eq!(now.ended(), Some(RunState::Failed));
    assert_states(&now, &[("hold", State::Undone), ("decline", State::Failed)]);
    assert!(
        now.dot()
            .contains(r#"label="end\nfailed at decline: exhausted""#)
    );
    let data: serde_json::Value = serde_json::from_str(&now.json()).unwrap();
    assert_eq!(data["run"]["ended"], "failed");
    assert_eq!(data["run"]["failure"]["location"], "decline");
    // Its message is not for everybody who sees the picture.
    assert!(!now.json().contains("refused"));
}

#[tokio::test(start_paused = true)]
async fn what_a_cancelled_run_was_at_is_cut_off() {
    let (world, shop) = (World::new(), Shop::default());
    let engine = engine(&world, &shop).await;
    shop.refuse("lottery");
    let run = engine.start("a", order(vec![1], false)).await.unwrap();
    pass(MINUTE / 2).await;
    run.cancel().await.unwrap();
    let now = run.graph().await.unwrap();
    assert_eq!(now.ended(), Some(RunState::Cancelled));
    assert_states(
        &now,
        &[
            ("hold", State::Done),
            ("settle", State::CutOff),
            ("settle/paid/payment", State::CutOff),
            ("settle/free/lottery", State::CutOff),
            ("settle/paid/book-in", State::NotReached),
            ("pricing", State::NotReached),
        ],
    );
}

/// The order as the next deploy has it.
mod deployed {
    use super::*;

    #[workflow(name = "order")]
    pub(super) async fn order(items: Vec<u32>, #[state] shop: Shop) -> Result<u32, Failure> {
        recv!(hold, PAYMENT).await?;
        let won = race!(
            settle,
            paid = recv!(payment, PAYMENT).await?,
            late = {
                sleep!(window, "15m").await;
                0
            },
        )
        .await?;
        'lines: for item in items {
            #[step(name = "fetch")]
            ask(&shop, &item.to_string()).await?;
        }
        Ok(won.value)
    }
}

#[tokio::test(start_paused = true)]
async fn what_other_code_has_recorded_is_told_of_and_drawn_nowhere() {
    let (world, shop) = (World::new(), Shop::default());
    let engine = engine(&world, &shop).await;
    let run: RunHandle<order> = engine.start("a", order(vec![1], false)).await.unwrap();
    run.send(&PAYMENT, &5).await.unwrap();
    pass(MINUTE / 2).await;
    let over = deployed::order::GRAPH.of_run(&run.history().await.unwrap());
    let unknown: Vec<_> = over.unknown().iter().map(ToString::to_string).collect();
    let hold = deployed::order::SITES[0];
    assert_eq!(
        unknown[..4],
        [
            "`placed` (now) is recorded, and not in the code".to_owned(),
            "`begun` (checkpoint) is recorded, and not in the code".to_owned(),
            format!("`hold` (step) is recorded, and the code has {hold}"),
            "`settle/free/lottery` (step) is recorded, and not in the code".to_owned(),
        ]
    );
    let rest: Vec<_> = over.unknown()[4..]
        .iter()
        .map(|unknown| unknown.location.to_string())
        .collect();
    let expected = [
        "pricing/quote",
        "pricing/check",
        "paid",
        "lines[0]/pick",
        "lines[0]/wrap",
        "lines[0]/breath",
    ];
    assert_eq!(rest, expected);
    assert_eq!(state(&over, "settle"), State::Done);
    // The step is not taken for the message that this code waits for.
    assert_eq!(state(&over, "hold"), State::Skipped);
}

#[step]
async fn given(value: u32) -> u32 {
    value
}

#[workflow]
async fn rounds(times: u32) -> Result<u32, Failure> {
    let mut sum = 0;
    'rounds: for number in 0..times {
        let won = race!(
            first,
            wins = given(number).await?,
            waits = {
                sleep!(long, "1d").await;
                0
            },
        )
        .await?;
        let (a, b) = join!(both, a = given(won.value).await?, b = given(1).await?).await?;
        sum += a + b;
        sleep!(rest, "1m").await;
    }
    recv!(news, NEWS).await?;
    Ok(sum)
}

#[tokio::test(start_paused = true)]
async fn a_block_that_an_iteration_has_left_behind_is_done() {
    let world = World::new();
    let engine = world.engine().workflow(rounds).build().await.unwrap();
    let run = engine.start("a", rounds(3)).await.unwrap();
    pass(MINUTE + MINUTE / 2).await;
    let now = run.graph().await.unwrap();
    assert_states(
        &now,
        &[
            ("rounds", State::Waiting),
            ("rounds[]/first", State::Done),
            ("rounds[]/first/waits/long", State::Lost),
            ("rounds[]/both", State::Done),
            ("rounds[]/rest", State::Waiting),
            ("news", State::NotReached),
        ],
    );
    pass(2 * MINUTE).await;
    let now = run.graph().await.unwrap();
    assert_eq!(said(&now, "rounds"), "done, 3 iterations");
    assert_eq!(said(&now, "rounds[]/rest"), "done 3 times");
    assert_eq!(said(&now, "news"), "waiting");
}

#[tokio::test(start_paused = true)]
async fn a_loop_without_an_iteration_is_skipped() {
    let world = World::new();
    let engine = world.engine().workflow(rounds).build().await.unwrap();
    let run = engine.start("a", rounds(0)).await.unwrap();
    pass(MINUTE).await;
    let now = run.graph().await.unwrap();
    assert_states(
        &now,
        &[
            ("rounds", State::Skipped),
            ("rounds[]/both/a/given", State::Skipped),
            ("news", State::Waiting),
        ],
    );
}

#[step(timeout = "none")]
async fn hang() -> u32 {
    std::future::pending().await
}

#[workflow]
async fn arms(left: bool) -> Result<(), Failure> {
    if left {
        sleep!(is_left, "1d").await;
    } else {
        sleep!(is_right, "1d").await;
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn an_arm_that_was_not_taken_is_skipped_while_the_other_one_waits() {
    let world = World::new();
    let engine = world.engine().workflow(arms).build().await.unwrap();
    let run = engine.start("a", arms(false)).await.unwrap();
    pass(MINUTE).await;
    let now = run.graph().await.unwrap();
    assert_states(
        &now,
        &[("is_left", State::Skipped), ("is_right", State::Waiting)],
    );
}

#[workflow]
async fn wins() -> Result<u32, Failure> {
    let (won, _) = join!(
        both,
        raced = {
            let won = race!(
                first,
                wins = {
                    let one = given(1).await?;
                    if one > 1 {
                        sleep!(never, "1d").await;
                    }
                    one
                },
                waits = {
                    sleep!(long, "1d").await;
                    0
                },
            )
            .await?;
            hang().await?;
            won.value
        },
        beside = {
            sleep!(nap, "1s").await;
            given(2).await?
        },
    )
    .await?;
    Ok(won)
}

#[tokio::test(start_paused = true)]
async fn a_race_that_is_won_is_done_also_before_something_after_it_is_recorded() {
    let world = World::new();
    let engine = world.engine().workflow(wins).build().await.unwrap();
    let run = engine.start("a", wins()).await.unwrap();
    pass(MINUTE).await;
    assert_states(
        &run.graph().await.unwrap(),
        &[
            ("both", State::Running),
            ("both/raced/first", State::Done),
            ("both/raced/first/wins/never", State::Skipped),
            ("both/raced/first/waits/long", State::Lost),
            // Its body runs: that leaves no record.
            ("both/raced/hang", State::NotReached),
            ("both/beside/given", State::Done),
        ],
    );
}

#[workflow]
async fn counts() -> Result<u32, Failure> {
    let mut left = 60_u32;
    #[carry(left)]
    'drain: while left > 0 {
        given(left).await?;
        left -= 1;
    }
    join_all!(
        naps,
        limit = 1,
        for nap in 0..3u32 {
            sleep!(doze, "1m").await;
            nap
        }
    )
    .await?;
    Ok(left)
}

#[tokio::test(start_paused = true)]
async fn what_was_pruned_or_has_not_begun_is_counted() {
    let world = World::new();
    let engine = world.engine().workflow(counts).build().await.unwrap();
    let run = engine.start("a", counts()).await.unwrap();
    pass(MINUTE / 2).await;
    let now = run.graph().await.unwrap();
    assert_eq!(said(&now, "drain"), "done, 60 iterations");
    assert!(now.site("drain[]/given").unwrap().times < 60);
    assert_eq!(said(&now, "naps"), "waiting, 3 items");
    assert_eq!(now.site("naps[]/doze").unwrap().places.len(), 1);
}

#[workflow]
async fn fails_in_a_branch(#[state] shop: Shop) -> Result<u32, Failure> {
    let (sum, _) = join!(both, fine = given(1).await?, bad = ask(&shop, "bad").await?).await?;
    sleep!(rest, "1m").await;
    Ok(sum)
}

#[tokio::test(start_paused = true)]
async fn a_block_that_the_run_failed_by_has_failed() {
    let (world, shop) = (World::new(), Shop::default());
    shop.refuse("bad");
    let builder = world.engine().state(shop).workflow(fails_in_a_branch);
    let engine = builder.build().await.unwrap();
    let run = engine.start("a", fails_in_a_branch()).await.unwrap();
    assert!(run.result().await.is_err());
    assert_states(
        &run.graph().await.unwrap(),
        &[
            ("both", State::Failed),
            ("both/fine/given", State::Done),
            ("both/bad/ask", State::Failed),
            ("rest", State::NotReached),
        ],
    );
}
