//! Long waits, children that are left behind, and what is given to a test twice.

use std::time::{Duration, Instant};

use workflow::testing::{Broken, Steps, crash_everywhere};
use workflow::{Failure, checkpoint, join, race, sleep, step, workflow};
use workflow_tests::Counter;

#[step]
async fn ring(bell: &Counter) -> u64 {
    bell.hit() as u64
}

#[workflow]
async fn reminder(days: u64, #[state] bell: Counter) -> Result<(), Failure> {
    sleep!(until, Duration::from_secs(days * 86_400)).await;
    ring(&bell).await?;
    Ok(())
}

#[workflow]
async fn signup() -> Result<String, Failure> {
    let id = reminder(300).id("reminder").detach().await?;
    Ok(id.to_string())
}

#[tokio::test]
async fn a_child_that_sleeps_for_months_after_its_parent_costs_no_time() -> Result<(), Broken> {
    let began = Instant::now();
    let crashes = crash_everywhere(signup())
        .workflow(reminder)
        .fresh(Counter::default)
        .await?;
    assert!(crashes.points().iter().any(|at| at.contains("`ring`")));
    assert!(began.elapsed() < Duration::from_secs(10));
    Ok(())
}

#[tokio::test]
async fn who_sleeps_for_longer_than_a_year_is_told_how_to_wait_for_that() -> Result<(), Broken> {
    let patient = || crash_everywhere(reminder(400)).fresh(Counter::default);
    let broken = patient().await.unwrap_err().to_string();
    assert!(
        broken.contains("after 366 days it is waiting at `until`; if it is to take so long, give it more time by `.within(..)`"),
        "{broken}"
    );
    patient()
        .within(Duration::from_hours(500 * 24))
        .await?
        .assert_all_sites();
    Ok(())
}

/// What a crash doubles is counted where the runs have it.
#[tokio::test]
async fn of_two_worlds_of_one_type_the_later_one_is_counted_in() {
    let broken = crash_everywhere(reminder(1))
        .fresh(|| Counter::default().clone())
        .fresh(Counter::default)
        .effect("rings", Counter::count)
        .await
        .unwrap_err();
    assert_eq!(broken.location(), Some("ring"));
}

#[workflow]
async fn days(#[state] bell: Counter) -> Result<u64, Failure> {
    let mut rung = 0;
    'days: for _ in 0..2 {
        'hours: for _ in 0..2 {
            rung += ring(&bell).await?;
        }
    }
    Ok(rung)
}

#[tokio::test]
async fn all_inner_iterations_of_one_outer_are_meant_by_its_number() {
    let steps = Steps::of(days)
        .mock("days/hours/ring", |_| Ok(1_u64))
        .mock("days[1]/hours/ring", |_| Ok(10_u64));
    let engine = workflow::testing::engine()
        .workflow(days)
        .state(Counter::default())
        .steps(&steps);
    let engine = engine.build().await.unwrap();
    assert_eq!(engine.run("d", days()).await.unwrap(), 22);
    assert_eq!(steps.attempts("days[1]/hours/ring"), 2);
    assert_eq!(steps.attempts("days/hours[0]/ring"), 2);
}

#[test]
#[should_panic(expected = "no step at `days/hours/ring[3]`")]
fn an_iteration_of_a_step_that_is_in_no_loop_is_not_there() {
    let _ = Steps::of(days).fail("days/hours/ring[3]", 1, "never");
}

#[step(ephemeral)]
async fn look(bell: &Counter) -> bool {
    bell.count() < 100
}

#[step(retries = 2, timeout = "2s", backoff(fixed, wait = "1m"))]
async fn slow(bell: &Counter, seconds: u64) -> Result<u64, std::io::Error> {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    if bell.hit() == 0 {
        return Err(std::io::Error::other("never"));
    }
    Ok(seconds)
}

#[workflow]
async fn busy(#[state] bell: Counter) -> Result<u64, Failure> {
    let seen = look(&bell).await?;
    let (one, two) = join!(
        both,
        one = slow(&bell, 1).await?,
        two = {
            sleep!(rest, "1s").await;
            #[step(name = "late")]
            slow(&bell, 1).await?
        }
    )
    .await?;
    let won = race!(
        first,
        fast = {
            #[step(name = "quick")]
            slow(&bell, 1).await?
        },
        never = {
            #[step(name = "hopeless")]
            slow(&bell, 60).await?
        }
    )
    .await?;
    Ok(u64::from(seen) + one + two + won.value)
}

#[tokio::test]
async fn branches_timeouts_and_what_is_not_recorded_cry_no_wolf() -> Result<(), Broken> {
    crash_everywhere(busy())
        .fresh(Counter::default)
        .fail("both/one/slow", 1, "busy")
        .await?;
    Ok(())
}

/// An attempt that a crash cut off, or may have, counts: that is so, and no fault of code outside of steps.
#[tokio::test]
async fn a_step_whose_last_attempt_a_crash_takes_is_told_of_as_one() {
    let broken = crash_everywhere(busy())
        .fresh(Counter::default)
        .fail("both/one/slow", 2, "busy")
        .await
        .unwrap_err()
        .to_string();
    assert!(broken.contains("exhausted after 3 attempts"), "{broken}");
    assert!(
        broken.contains("help: an attempt that a crash cut off counts"),
        "{broken}"
    );
}

async fn unring(_rung: u64, bell: Counter) {
    bell.hit();
}

/// Its undo counts twice when it is cut off.
#[workflow]
async fn goes_back(#[state] bell: Counter) -> Result<u64, Failure> {
    checkpoint!(begun);
    #[step(undo(unring))]
    let rung = look_once().await?;
    hopeless().await?;
    Ok(rung)
}

#[step]
async fn look_once() -> u64 {
    7
}

#[step(retries = 0)]
async fn hopeless() -> Result<(), std::io::Error> {
    Err(std::io::Error::other("never"))
}

#[tokio::test]
async fn an_undo_that_counts_twice_is_found_in_it() {
    let broken = crash_everywhere(goes_back())
        .fresh(Counter::default)
        .effect("unrung", Counter::count)
        .await
        .unwrap_err();
    let said = broken.to_string();
    assert!(said.contains("the undo of `look_once`"), "{said}");
    assert!(said.contains("unrung: 2"), "{said}");
}

/// The child's effect counts twice, and its parent knows nothing of that.
#[workflow]
async fn careless_parent() -> Result<(), Failure> {
    reminder(1).await?;
    Ok(())
}

#[tokio::test]
async fn an_effect_that_counts_twice_in_a_child_is_found_there() {
    let broken = crash_everywhere(careless_parent())
        .workflow(reminder)
        .fresh(Counter::default)
        .effect("rings", Counter::count)
        .await
        .unwrap_err();
    println!("{broken}");
    assert_eq!(broken.location(), Some("ring"));
}
