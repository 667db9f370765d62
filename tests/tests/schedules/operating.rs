//! What somebody does to a schedule: pausing, resuming, starting now, making up for.

use std::time::Duration;

use workflow::{AnyWorkflow, Engine, Limit, Missed, Schedule, ScheduleError, cron};

use super::{DAY, HOUR, Life, MINUTE, at, fired, report, slow, utc};

fn hourly() -> Schedule {
    Schedule::new("hourly", cron!("0 * * * *"), |firing| {
        report(utc(firing.at()))
    })
    .missed(Missed::All)
}

#[tokio::test(start_paused = true)]
async fn while_it_is_paused_nothing_is_started_and_nothing_is_made_up_after() {
    let life = Life::from("2026-01-01T09:30:00Z");
    let engine = life.engine(hourly()).await;
    tokio::time::sleep(HOUR).await;
    let schedule = engine.schedule("hourly");
    schedule.pause("the disk is full").await.unwrap();
    // Once more is not another pause.
    tokio::time::sleep(MINUTE).await;
    schedule.pause("really").await.unwrap();
    tokio::time::sleep(HOUR).await;
    // It stays so over a restart.
    let life = life.killed(engine);
    tokio::time::sleep(HOUR).await;
    let engine = life.engine(hourly()).await;
    tokio::time::sleep(HOUR).await;
    let schedule = engine.schedule("hourly");
    let status = schedule.status().await.unwrap();
    let paused = (at("2026-01-01T10:30:00Z"), "the disk is full".to_owned());
    assert_eq!((status.next, status.paused), (None, Some(paused)));
    assert_eq!(fired(&engine).await, ["2026-01-01T10:00:00Z"]);
    // 13:31.
    schedule.resume().await.unwrap();
    schedule.resume().await.unwrap();
    let status = schedule.status().await.unwrap();
    assert_eq!(
        (status.next, status.paused),
        (Some(at("2026-01-01T14:00:00Z")), None)
    );
    let life = life.killed(engine);
    let engine = life.engine(hourly()).await;
    tokio::time::sleep(HOUR).await;
    assert_eq!(
        fired(&engine).await,
        ["2026-01-01T10:00:00Z", "2026-01-01T14:00:00Z"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_run_is_started_now_also_while_it_is_paused_and_is_no_firing() {
    let life = Life::from("2026-01-01T09:30:00.250Z");
    let engine = life.engine(hourly()).await;
    let schedule = engine.schedule("hourly");
    schedule.pause("").await.unwrap();
    let run = schedule.trigger().await.unwrap();
    assert_eq!(run.id().as_str(), "hourly@2026-01-01T09:30:00.25Z");
    assert_eq!(
        run.result().await.unwrap().get(),
        r#""2026-01-01T09:30:00.25Z""#
    );
    assert_eq!(
        schedule.trigger().await.unwrap().id(),
        run.id(),
        "the same instant"
    );
    let status = schedule.status().await.unwrap();
    assert_eq!((status.last, status.paused.is_some()), (None, true));
}

#[tokio::test(start_paused = true)]
async fn a_backfill_starts_what_has_no_run_and_nothing_twice() {
    let life = Life::from("2026-01-01T09:30:00Z");
    let engine = life.engine(hourly()).await;
    tokio::time::sleep(2 * HOUR).await;
    let schedule = engine.schedule("hourly");
    let (from, to) = (at("2026-01-01T08:00:00Z"), at("2026-01-01T11:00:00Z"));
    let done = schedule.backfill(from, to).await.unwrap();
    assert_eq!(
        (done.started, done.existing),
        (2, 1),
        "08:00 and 09:00; 10:00 was"
    );
    let done = schedule.backfill(from, to).await.unwrap();
    assert_eq!((done.started, done.existing), (0, 3));
    let done = schedule.backfill(to, from).await.unwrap();
    assert_eq!((done.started, done.existing), (0, 0));
    let error = schedule
        .backfill(from, at("2026-01-01T11:30:00.001Z"))
        .await;
    assert!(matches!(error, Err(ScheduleError::NotYet)));
    let mut all = fired(&engine).await;
    all.sort();
    let expected = [8, 9, 10, 11].map(|hour| format!("2026-01-01T{hour:02}:00:00Z"));
    assert_eq!(all, expected);
    let run = engine
        .attach::<report>("hourly@2026-01-01T08:00:00Z")
        .await
        .unwrap();
    assert_eq!(run.result().await.unwrap(), "2026-01-01T08:00:00Z");
}

#[tokio::test(start_paused = true)]
async fn a_backfill_that_was_before_the_firing_is_that_firing() {
    // It fires at 12:00 and later, by some; a backfill of 12:00 comes between.
    let spread = || hourly().spread(10 * MINUTE);
    let life = Life::from("2026-01-01T11:30:00Z");
    let engine = life.engine(spread()).await;
    tokio::time::sleep(30 * MINUTE + Duration::from_millis(2)).await;
    let schedule = engine.schedule("hourly");
    let (from, to) = (at("2026-01-01T12:00:00Z"), at("2026-01-01T12:00:00.001Z"));
    assert_eq!(schedule.backfill(from, to).await.unwrap().started, 1);
    tokio::time::sleep(HOUR).await;
    assert_eq!(fired(&engine).await, ["2026-01-01T12:00:00Z"]);
    assert_eq!(schedule.status().await.unwrap().last.unwrap().0, from);
}

#[tokio::test(start_paused = true)]
async fn runs_of_schedules_keep_to_the_limit_of_their_workflow() {
    let life = Life::from("2026-01-01T00:00:30Z");
    let minutely = Schedule::new("minutely", cron!("* * * * *"), |_| slow(300));
    let builder = life.builder().limit(slow, Limit::unfinished(1));
    let engine = builder.schedule(minutely).build().await.unwrap();
    tokio::time::sleep(3 * MINUTE).await;
    assert_eq!(fired(&engine).await.len(), 3);
    let last = engine
        .attach::<AnyWorkflow>("minutely@2026-01-01T00:03:00Z")
        .await
        .unwrap();
    assert_eq!(last.status().await.unwrap().queued.unwrap().ahead, 1);
}

#[tokio::test(start_paused = true)]
async fn an_operators_engine_sees_and_pauses_what_it_was_not_given() {
    let life = Life::from("2026-01-01T09:30:00Z");
    let engine = life.engine(hourly()).await;
    tokio::time::sleep(HOUR).await;
    let life = life.killed(engine);
    let operator = Engine::builder()
        .shared_store(life.store.clone())
        .clock(life.clock)
        .drives_nothing();
    let operator = operator.build().await.unwrap();
    let all = operator.schedules().await.unwrap();
    let [hourly_now] = &all[..] else {
        panic!("{all:?}")
    };
    assert_eq!(
        (&*hourly_now.name, &*hourly_now.cron, hourly_now.workflow),
        ("hourly", "0 * * * *", None)
    );
    assert_eq!(hourly_now.next, Some(at("2026-01-01T11:00:00Z")));
    let schedule = operator.schedule("hourly");
    schedule.pause("maintenance").await.unwrap();
    assert!(matches!(
        schedule.trigger().await,
        Err(ScheduleError::NotGiven { .. })
    ));
    let nothing = operator.schedule("weekly").pause("").await.unwrap_err();
    assert!(
        nothing.to_string().contains("no schedule `weekly`"),
        "{nothing}"
    );
    let engine = life.engine(hourly()).await;
    tokio::time::sleep(DAY).await;
    assert_eq!(fired(&engine).await, ["2026-01-01T10:00:00Z"]);
    // What the library keeps is not among the application's values.
    let values: Vec<(String, String)> = engine.values("", None, 100).await.unwrap();
    assert_eq!(values, []);
}

#[tokio::test(start_paused = true)]
async fn a_pause_stops_what_is_being_made_up() {
    let secondly = || {
        let all = Schedule::new("hourly", cron!("* * * * * *"), |firing| {
            report(utc(firing.at()))
        });
        all.missed(Missed::All)
    };
    let life = Life::from("2026-01-01T09:30:00Z");
    let engine = life.engine(secondly()).await;
    let life = life.killed(engine);
    tokio::time::sleep(HOUR).await;
    let engine = life.engine(secondly()).await;
    while fired(&engine).await.len() < 3 {
        tokio::task::yield_now().await;
    }
    engine.schedule("hourly").pause("not these").await.unwrap();
    let started = fired(&engine).await.len();
    assert!(started < 1_000, "{started}");
    tokio::time::sleep(HOUR).await;
    assert_eq!(fired(&engine).await.len(), started);
}

#[tokio::test(start_paused = true)]
async fn what_comes_due_after_a_pause_is_started_also_when_its_time_was_before() {
    let spread = || hourly().spread(30 * MINUTE);
    let life = Life::from("2026-01-01T09:50:00Z");
    let engine = life.engine(spread()).await;
    let schedule = engine.schedule("hourly");
    // Nothing is due in these seconds: the firing of 10:00 is some minutes later.
    tokio::time::sleep(10 * MINUTE + Duration::from_secs(1)).await;
    schedule.pause("").await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(fired(&engine).await, [""; 0]);
    schedule.resume().await.unwrap();
    let status = schedule.status().await.unwrap();
    assert_eq!(status.next, Some(at("2026-01-01T10:00:00Z")));
    tokio::time::sleep(30 * MINUTE).await;
    assert_eq!(fired(&engine).await, ["2026-01-01T10:00:00Z"]);
    // That of 11:00 comes due while it is paused.
    schedule.pause("").await.unwrap();
    tokio::time::sleep(HOUR).await;
    schedule.resume().await.unwrap();
    tokio::time::sleep(HOUR).await;
    assert_eq!(
        fired(&engine).await,
        ["2026-01-01T10:00:00Z", "2026-01-01T12:00:00Z"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_started_at_the_instant_of_a_firing_is_not_that_firing() {
    let life = Life::from("2026-01-01T11:30:00Z");
    let engine = life.engine(hourly().spread(30 * MINUTE)).await;
    tokio::time::sleep(30 * MINUTE).await;
    let run = engine.schedule("hourly").trigger().await.unwrap();
    assert_eq!(run.id().as_str(), "hourly@2026-01-01T12:00:00.001Z");
    tokio::time::sleep(30 * MINUTE).await;
    assert_eq!(
        fired(&engine).await,
        ["2026-01-01T12:00:00.001Z", "2026-01-01T12:00:00Z"]
    );
}
