//! Steps that are stood in for and made to fail, and what histories have to say of it.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use workflow::testing::{self, Fault, Steps, crash_everywhere, expect};
use workflow::{
    Engine, Error, Failure, FailureKind, checkpoint, fragment, join, race, sleep, step, workflow,
};
use workflow_tests::{Counter, pass};

#[derive(Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
enum BankError {
    #[error("declined")]
    Declined,
}

#[step(retries = 2, backoff(fixed, wait = "1m"), timeout = "10s")]
async fn charge(bank: &Counter, cents: u32) -> Result<String, BankError> {
    bank.hit();
    tokio::time::sleep(Duration::from_secs(1)).await;
    Ok(format!("took {cents}"))
}

#[step]
async fn ship(bank: &Counter) -> u32 {
    bank.hit();
    7
}

async fn refund(_receipt: String, bank: Counter) {
    bank.hit();
}

#[fragment]
async fn tell(bank: &Counter) -> Result<u32, Failure> {
    #[step(name = "mail")]
    ship(bank).await
}

#[workflow]
async fn order(items: u64, #[state] bank: Counter) -> Result<String, Failure> {
    checkpoint!(begun);
    #[step(undo(refund))]
    let receipt = charge(&bank, 5).await?;
    'items: for _ in 0..items {
        ship(&bank).await?;
    }
    tell(&bank).await?;
    Ok(receipt)
}

async fn engine(bank: &Counter, steps: &Steps) -> Engine {
    let builder = testing::engine().workflow(order).state(bank.clone());
    builder.steps(steps).build().await.unwrap()
}

#[tokio::test]
async fn a_mock_runs_in_place_of_the_body() {
    let bank = Counter::default();
    let steps = Steps::of(order)
        .mock("charge", |step| {
            Ok(format!("{} by a mock", step.location()))
        })
        .mock("items/ship", |_| Ok(1))
        .mock("tell/mail", |_| Ok(1));
    let engine = engine(&bank, &steps).await;
    let receipt = engine.run("o", order(2)).await.unwrap();
    assert_eq!(receipt, "charge by a mock");
    assert_eq!(bank.count(), 0, "a body ran");
    assert_eq!(steps.attempts("items/ship"), 2);
    assert_eq!(steps.attempts("items[1]/ship"), 1);
    expect(&engine.export("o").await.unwrap())
        .steps(["charge", "items[0]/ship", "items[1]/ship", "tell/mail"])
        .in_order("charge", "tell/mail")
        .succeeded("charge")
        .completed();
}

#[tokio::test]
async fn faults_come_first_and_are_attempts() {
    let bank = Counter::default();
    let steps = Steps::of(order)
        .fail("charge", 1, "the line is dead")
        .fault("charge", 1, Fault::Panic("oh".to_owned()));
    let engine = engine(&bank, &steps).await;
    assert_eq!(engine.run("o", order(0)).await.unwrap(), "took 5");
    expect(&engine.export("o").await.unwrap()).attempts("charge", 3);
    // The third attempt's body, and the mail.
    assert_eq!(bank.count(), 2);
}

#[tokio::test]
async fn a_step_that_hangs_ends_by_its_timeout() {
    let bank = Counter::default();
    let steps = Steps::of(order).fault("charge", 1, Fault::Hangs);
    let engine = engine(&bank, &steps).await;
    let error = engine.run("o", order(0)).await.unwrap_err();
    assert_eq!(error.failure().unwrap().kind(), FailureKind::TimedOut);
    assert_eq!(bank.count(), 0);
    let late = Steps::of(order).fault("charge", 1, Fault::Delay(Duration::from_secs(9)));
    let again = self::engine(&bank, &late).await;
    // Nine seconds late, and one of its own: at its time's end.
    assert!(again.run("o", order(0)).await.is_err());
}

#[tokio::test]
async fn an_answer_that_is_lost_has_had_its_effect() {
    let bank = Counter::default();
    let steps = Steps::of(order).fault("charge", 1, Fault::Unanswered("no answer".to_owned()));
    let engine = engine(&bank, &steps).await;
    engine.run("o", order(0)).await.unwrap();
    // Twice charged, and a mail.
    assert_eq!(bank.count(), 3);
}

#[tokio::test]
async fn errors_of_mocks_are_errors_of_the_step() {
    let bank = Counter::default();
    let steps = Steps::of(order).mock("charge", |_| {
        Err::<String, _>(testing::typed(BankError::Declined))
    });
    let declined = engine(&bank, &steps).await.run("o", order(0)).await;
    let Err(Error::Failed(failure)) = declined else {
        panic!("{declined:?}")
    };
    assert_eq!(failure.downcast::<BankError>(), Some(BankError::Declined));
    assert_eq!((failure.attempts(), failure.message()), (3, "declined"));
    let critical = Steps::of(order).fault("charge", 9, Fault::Critical("closed".to_owned()));
    let closed = engine(&bank, &critical).await.run("o", order(0)).await;
    assert_eq!(closed.unwrap_err().failure().unwrap().attempts(), 1);
}

#[tokio::test]
async fn a_mock_of_another_type_says_so() {
    let bank = Counter::default();
    let steps = Steps::of(order).mock("charge", |_| Ok(5));
    let error = engine(&bank, &steps).await.run("o", order(0)).await;
    let text = error.unwrap_err().to_string();
    assert!(
        text.contains("`5` was given in place of its value, and is no `alloc::string::String`"),
        "{text}"
    );
}

#[tokio::test]
async fn undos_are_mocked_and_fail() {
    let bank = Counter::default();
    let steps = Steps::of(order)
        .fault(
            "tell/mail",
            9,
            Fault::Critical("nobody is there".to_owned()),
        )
        .fault_undo("charge", 1, Fault::Error("busy".to_owned()))
        .mock_undo("charge", |_| Ok(()));
    let engine = engine(&bank, &steps).await;
    assert!(engine.run("o", order(0)).await.is_err());
    assert_eq!(steps.undo_attempts("charge"), 2);
    // Charged, and nothing else: the undo is a mock.
    assert_eq!(bank.count(), 1);
    expect(&engine.export("o").await.unwrap())
        .failed_with("tell/mail", "nobody is there")
        .undone(["charge"])
        .failed("nobody is there");
}

#[test]
#[should_panic(
    expected = "workflow `order` has no step at `chrage`; near are `charge`, `items/ship`"
)]
fn a_location_that_is_not_there_is_refused_at_once() {
    let _ = Steps::of(order).mock("chrage", |_| Ok(1));
}

#[tokio::test]
async fn mocks_and_faults_hold_in_crashes() {
    let crashes = crash_everywhere(order(1))
        .fresh(Counter::default)
        .mock("charge", |_| Ok("mocked"))
        .fail("items/ship", 1, "no van")
        .await
        .unwrap();
    assert!(crashes.crashes() > 10, "{crashes}");
}

#[workflow]
async fn naps() -> Result<u32, Failure> {
    let won = race!(
        first,
        long = {
            sleep!(long, "30d").await;
            1
        },
        short = {
            sleep!(short, "1d").await;
            2
        }
    )
    .await?;
    let (one, other) = join!(
        both,
        one = {
            sleep!(nap, "365d").await;
            1
        },
        other = 2
    )
    .await?;
    Ok(won.value + one + other)
}

#[tokio::test(start_paused = true)]
async fn time_jumps_also_where_it_was_paused_before() {
    let began = std::time::Instant::now();
    let engine = testing::engine().workflow(naps).build().await.unwrap();
    let run = engine.start("n", naps()).await.unwrap();
    pass(3_600_000).await;
    expect(&run.export().await.unwrap())
        .waits_at("first/short/short")
        .open();
    assert_eq!(run.result().await.unwrap(), 5);
    expect(&run.export().await.unwrap())
        .won("first", "short")
        .nothing_at("first/long");
    let took = run.status().await.unwrap();
    let took = took.finished_at.unwrap().since(testing::BEGINNING);
    assert_eq!(took.as_secs(), 366 * 86_400);
    assert!(
        began.elapsed() < Duration::from_secs(59),
        "{:?}",
        began.elapsed()
    );
}

#[tokio::test]
async fn what_a_history_does_not_say_is_told_with_what_it_says() {
    let bank = Counter::default();
    let steps = Steps::of(order).fail("charge", 1, "the line is dead");
    let engine = engine(&bank, &steps).await;
    engine.run("o", order(1)).await.unwrap();
    let history = engine.export("o").await.unwrap();
    let said = std::panic::catch_unwind(|| {
        expect(&history).steps(["charge", "tell/mail"]);
    });
    let said = *said.unwrap_err().downcast::<String>().unwrap();
    for text in [
        "in this order: charge, tell/mail",
        "these did:                               charge, items[0]/ship, tell/mail",
        "the history of `o`, a run of `order`:",
        "charge: attempt 1 fails: the line is dead",
        "charge: step ends after 2 attempts",
        "the run completes",
    ] {
        assert!(said.contains(text), "`{text}` is not in:\n{said}");
    }
}
