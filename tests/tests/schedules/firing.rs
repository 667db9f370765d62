//! What is started when: in time, after a stop, beside a run that has not ended, and after a deploy.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::time::Duration;

use workflow::{
    BuildError, Clock, Cron, Engine, Missed, Overlap, RedbStore, Retention, RunState, Schedule,
    ScheduleStatus, Timestamp, TokioClock, cron,
};

use workflow_tests::{Fault, FaultStore};

use super::{DAY, HOUR, Life, MINUTE, at, fired, report, slow, utc};

fn hourly() -> Schedule {
    reports(cron!("0 * * * *"))
}

fn reports(cron: Cron) -> Schedule {
    Schedule::new("hourly", cron, |firing| report(utc(firing.at())))
}

fn every_minute(seconds: u64) -> Schedule {
    Schedule::new("minutely", cron!("* * * * *"), move |_| slow(seconds))
}

async fn status(engine: &Engine) -> ScheduleStatus {
    engine.schedule("hourly").status().await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_run_is_started_at_each_time_with_that_time() {
    let life = Life::from("2026-01-01T09:30:00Z");
    let engine = life.engine(hourly()).await;
    assert_eq!(status(&engine).await.next, Some(at("2026-01-01T10:00:00Z")));
    tokio::time::sleep(2 * HOUR).await;
    assert_eq!(
        fired(&engine).await,
        ["2026-01-01T10:00:00Z", "2026-01-01T11:00:00Z"]
    );
    let run = engine
        .attach::<report>("hourly@2026-01-01T11:00:00Z")
        .await
        .unwrap();
    assert_eq!(run.result().await.unwrap(), "2026-01-01T11:00:00Z");
    let now = status(&engine).await;
    assert_eq!(
        (now.workflow, &*now.cron, &*now.zone),
        (Some("report"), "0 * * * *", "UTC")
    );
    assert_eq!(now.next, Some(at("2026-01-01T12:00:00Z")));
    let (last, run) = now.last.unwrap();
    assert_eq!(
        (last, run.as_str()),
        (at("2026-01-01T11:00:00Z"), "hourly@2026-01-01T11:00:00Z")
    );
}

#[tokio::test(start_paused = true)]
async fn of_what_came_due_while_nothing_ran_is_started_what_is_said() {
    let hours = |hours: &[u32]| {
        let hours = hours
            .iter()
            .map(|hour| format!("2026-01-01T{hour:02}:00:00Z"));
        hours.collect::<Vec<_>>()
    };
    for (schedule, expected) in [
        (hourly(), hours(&[10, 14, 15])),
        (hourly().missed(Missed::Latest), hours(&[10, 14, 15])),
        (hourly().missed(Missed::Skip), hours(&[10, 15])),
        (
            hourly().missed(Missed::All),
            hours(&[10, 11, 12, 13, 14, 15]),
        ),
        (
            hourly().missed(Missed::All).missed_within(2 * HOUR),
            hours(&[10, 13, 14, 15]),
        ),
        (hourly().missed_within(10 * MINUTE), hours(&[10, 15])),
    ] {
        let life = Life::from("2026-01-01T09:30:00Z");
        let engine = life.engine(schedule.clone()).await;
        tokio::time::sleep(HOUR).await;
        let life = life.killed(engine);
        // 10:30 to 14:30.
        tokio::time::sleep(4 * HOUR).await;
        let engine = life.engine(schedule.clone()).await;
        tokio::time::sleep(HOUR).await;
        assert_eq!(fired(&engine).await, expected, "{schedule:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_not_fired_before_the_first_stop_is_missed_too() {
    let life = Life::from("2026-01-01T09:30:00Z");
    let engine = life.engine(hourly()).await;
    // Killed at once.
    let life = life.killed(engine);
    tokio::time::sleep(HOUR).await;
    let engine = life.engine(hourly()).await;
    tokio::time::sleep(MINUTE).await;
    assert_eq!(fired(&engine).await, ["2026-01-01T10:00:00Z"]);
}

#[tokio::test(start_paused = true)]
async fn the_latest_of_millions_that_were_missed_is_found() {
    let secondly = || reports(cron!("* * * * * *"));
    let life = Life::from("2026-01-01T00:00:00.500Z");
    let engine = life.engine(secondly()).await;
    let life = life.killed(engine);
    tokio::time::sleep(200 * DAY).await;
    let engine = life.engine(secondly()).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(fired(&engine).await, ["2026-07-20T00:00:00Z"]);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_was_deleted_is_not_started_again() {
    let life = Life::from("2026-01-01T09:30:00Z");
    let engine = life.engine(hourly()).await;
    tokio::time::sleep(HOUR).await;
    engine.delete("hourly@2026-01-01T10:00:00Z").await.unwrap();
    let life = life.killed(engine);
    let builder = life.builder().retention(Retention::all(MINUTE));
    let engine = builder.schedule(hourly()).build().await.unwrap();
    tokio::time::sleep(HOUR).await;
    assert_eq!(fired(&engine).await, [""; 0].to_vec(), "kept for a minute");
    let (last, _) = status(&engine).await.last.unwrap();
    assert_eq!(last, at("2026-01-01T11:00:00Z"));
}

#[tokio::test(start_paused = true)]
async fn a_run_that_has_not_ended_lets_the_next_start_go_or_wait_as_is_said() {
    // Each takes a little over two minutes, and one is to be started every minute.
    let ran = async |schedule: Schedule| {
        let life = Life::from("2026-01-01T00:00:30Z");
        let engine = life.engine(schedule).await;
        tokio::time::sleep(10 * MINUTE).await;
        let fired = fired(&engine).await;
        let minutes = fired.iter().map(|id| id[14..16].parse::<u32>().unwrap());
        minutes.collect::<Vec<_>>()
    };
    let minutely = || every_minute(130);
    assert_eq!(ran(minutely()).await, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    let skips = minutely().overlap(Overlap::Skip);
    assert_eq!(ran(skips).await, [1, 4, 7, 10]);
    let waits = minutely().overlap(Overlap::Wait);
    let latest = [1, 3, 5, 7, 9];
    assert_eq!(ran(waits).await, latest, "of those that came to wait");
    let all = minutely().overlap(Overlap::Wait).missed(Missed::All);
    assert_eq!(ran(all).await, [1, 2, 3, 4, 5], "one after the other");
}

#[tokio::test(start_paused = true)]
async fn what_waits_for_a_run_that_is_killed_waits_for_it_still() {
    let waits = || every_minute(1_800).overlap(Overlap::Wait);
    let life = Life::from("2026-01-01T00:00:30Z");
    let engine = life.engine(waits()).await;
    tokio::time::sleep(5 * MINUTE).await;
    let life = life.killed(engine);
    let engine = life.engine(waits()).await;
    tokio::time::sleep(20 * MINUTE).await;
    assert_eq!(fired(&engine).await, ["2026-01-01T00:01:00Z"]);
    engine
        .cancel("minutely@2026-01-01T00:01:00Z")
        .await
        .unwrap();
    tokio::time::sleep(MINUTE / 6).await;
    assert_eq!(
        fired(&engine).await,
        ["2026-01-01T00:01:00Z", "2026-01-01T00:25:00Z"]
    );
}

#[tokio::test(start_paused = true)]
async fn another_expression_takes_effect_and_makes_nothing_up() {
    let life = Life::from("2026-01-01T09:30:00Z");
    let engine = life.engine(hourly()).await;
    tokio::time::sleep(HOUR).await;
    let life = life.killed(engine);
    tokio::time::sleep(DAY).await;
    // 10:30 of the next day: a deploy. Of neither expression anything is made up.
    let life = Life { ..life };
    let engine = life
        .engine(reports(cron!("*/20 * * * *")).missed(Missed::All))
        .await;
    tokio::time::sleep(35 * MINUTE).await;
    let life = life.killed(engine);
    let engine = life
        .engine(
            reports(cron!("*/20 * * * *"))
                .missed(Missed::All)
                .zone("Asia/Kolkata"),
        )
        .await;
    tokio::time::sleep(30 * MINUTE).await;
    assert_eq!(
        fired(&engine).await,
        [
            "2026-01-01T10:00:00Z",
            "2026-01-02T10:40:00Z",
            "2026-01-02T11:00:00Z",
            // 16:40 and 17:00 in Kolkata.
            "2026-01-02T11:10:00Z",
            "2026-01-02T11:30:00Z",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_schedule_that_is_spread_starts_later_with_the_time_that_was_said() {
    let spread = hourly().spread(10 * MINUTE);
    let life = Life::from("2026-01-01T09:30:00Z");
    let engine = life.engine(spread.clone()).await;
    tokio::time::sleep(30 * MINUTE + Duration::from_millis(5)).await;
    assert_eq!(fired(&engine).await, [""; 0]);
    tokio::time::sleep(10 * MINUTE).await;
    assert_eq!(fired(&engine).await, ["2026-01-01T10:00:00Z"]);
    let started = engine
        .status("hourly@2026-01-01T10:00:00Z")
        .await
        .unwrap()
        .created_at;
    tokio::time::sleep(HOUR).await;
    let again = engine
        .status("hourly@2026-01-01T11:00:00Z")
        .await
        .unwrap()
        .created_at;
    assert_eq!(again.since(started), HOUR, "always by as much");
}

#[tokio::test(start_paused = true)]
async fn what_panics_instead_of_an_input_is_tried_again_and_lost_by_no_restart() {
    let broken = Arc::new(AtomicBool::new(true));
    let calls = Arc::new(AtomicUsize::new(0));
    let schedule = || {
        let (broken, calls) = (Arc::clone(&broken), Arc::clone(&calls));
        Schedule::new("hourly", cron!("0 * * * *"), move |firing| {
            calls.fetch_add(1, Ordering::SeqCst);
            assert!(!broken.load(Ordering::SeqCst), "no such customer");
            report(utc(firing.at()))
        })
    };
    let life = Life::from("2026-01-01T09:30:00Z");
    let engine = life.engine(schedule()).await;
    tokio::time::sleep(35 * MINUTE).await;
    assert_eq!(fired(&engine).await, [""; 0]);
    let now = status(&engine).await;
    assert!(now.trouble.unwrap().contains("no such customer"));
    assert_eq!(now.next, Some(at("2026-01-01T10:00:00Z")), "it is due");
    let tried = calls.load(Ordering::SeqCst);
    assert!((2..20).contains(&tried), "{tried} times");
    let life = life.killed(engine);
    broken.store(false, Ordering::SeqCst);
    let engine = life.engine(schedule()).await;
    tokio::time::sleep(MINUTE).await;
    assert_eq!(fired(&engine).await, ["2026-01-01T10:00:00Z"]);
    assert_eq!(status(&engine).await.trouble, None);
}

#[tokio::test(start_paused = true)]
async fn a_firing_that_the_store_refused_or_was_silent_about_is_started_once_and_driven() {
    for fault in [Fault::Before, Fault::After] {
        let life = Life::from("2026-01-01T09:30:00Z");
        let store = Arc::new(FaultStore::over(&life.store, [fault]));
        let builder = life.builder().schedule(hourly());
        let engine = builder.shared_store(store).build().await.unwrap();
        tokio::time::sleep(31 * MINUTE).await;
        assert_eq!(fired(&engine).await, ["2026-01-01T10:00:00Z"], "{fault:?}");
        let run = engine.status("hourly@2026-01-01T10:00:00Z").await.unwrap();
        assert_eq!(run.state, RunState::Completed, "{fault:?}");
        let now = status(&engine).await;
        assert_eq!(
            (now.trouble, now.next),
            (None, Some(at("2026-01-01T11:00:00Z")))
        );
    }
}

#[tokio::test(start_paused = true)]
async fn two_of_one_name_a_zone_that_is_none_and_a_workflow_that_is_not_there_are_refused() {
    let life = Life::from("2026-01-01T09:30:00Z");
    let twice = life.builder().schedule(hourly()).schedule(hourly());
    let error = twice.build().await.unwrap_err();
    assert!(
        matches!(&error, BuildError::SameSchedule { name } if name == "hourly"),
        "{error}"
    );
    let nowhere = life.builder().schedule(hourly().zone("Europe/Atlantis"));
    let error = nowhere.build().await.unwrap_err().to_string();
    assert!(
        error.contains("`hourly`") && error.contains("`Europe/Atlantis`"),
        "{error}"
    );
    for name in ["", "a/b", "a\nb", &"x".repeat(500)] {
        let named = Schedule::new(name, cron!("0 * * * *"), |_| slow(1));
        let error = life.builder().schedule(named).build().await.unwrap_err();
        assert!(matches!(error, BuildError::Schedule(_)), "{error}");
    }
    let engine = Engine::builder()
        .shared_store(life.store.clone())
        .schedule(hourly());
    let error = engine.build().await.unwrap_err();
    assert!(matches!(
        error,
        BuildError::NotRegistered {
            workflow: "report",
            what: "schedule"
        }
    ));
}

#[tokio::test]
async fn a_file_keeps_how_far_a_schedule_has_fired() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("runs.redb");
    let secondly = || {
        let said = Schedule::new("secondly", cron!("* * * * * *"), |_| slow(0));
        said.missed(Missed::All)
    };
    let build = async || {
        let store = RedbStore::open(&path).unwrap();
        let builder = Engine::builder()
            .workflow(slow)
            .store(store)
            .schedule(secondly());
        builder.build().await.unwrap()
    };
    let engine = build().await;
    let due = engine
        .schedule("secondly")
        .status()
        .await
        .unwrap()
        .next
        .unwrap();
    engine.shutdown(Duration::from_secs(1)).await.unwrap();
    let engine = build().await;
    let run = loop {
        let status = engine.schedule("secondly").status().await.unwrap();
        if status.next.unwrap() > due {
            break format!("secondly@{}", utc(due));
        }
        tokio::task::yield_now().await;
    };
    let run = engine.attach::<slow>(run).await.unwrap();
    run.result().await.unwrap();
    assert_eq!(run.status().await.unwrap().state, RunState::Completed);
    engine.shutdown(Duration::from_secs(1)).await.unwrap();
}

/// A clock that somebody sets.
#[derive(Debug, Clone)]
struct Set(TokioClock, Arc<AtomicI64>);

impl Clock for Set {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.now().as_millis() + self.1.load(Ordering::SeqCst))
    }
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_set_back_repeats_nothing_and_one_that_is_set_forward_misses_what_it_leaves_out()
 {
    const HOURS: i64 = 3_600_000;
    let life = Life::from("2026-01-01T09:30:00Z");
    let clock = Set(life.clock, Arc::default());
    let set = Arc::clone(&clock.1);
    let builder = life.builder().clock(clock);
    let engine = builder.schedule(hourly()).build().await.unwrap();
    tokio::time::sleep(HOUR).await;
    assert_eq!(fired(&engine).await, ["2026-01-01T10:00:00Z"]);
    engine.delete("hourly@2026-01-01T10:00:00Z").await.unwrap();
    // 08:30 again.
    set.store(-2 * HOURS, Ordering::SeqCst);
    tokio::time::sleep(2 * HOUR).await;
    assert_eq!(fired(&engine).await, [""; 0]);
    tokio::time::sleep(HOUR).await;
    assert_eq!(fired(&engine).await, ["2026-01-01T11:00:00Z"]);
    // From 11:30 to 15:30.
    set.store(2 * HOURS, Ordering::SeqCst);
    tokio::time::sleep(MINUTE).await;
    assert_eq!(
        fired(&engine).await,
        ["2026-01-01T11:00:00Z", "2026-01-01T15:00:00Z"]
    );
}
