//! Clocks that are put forward and back.

use std::collections::BTreeSet;

use jiff::SignedDuration;
use jiff::tz::{AmbiguousOffset, TimeZone};
use workflow::{Cron, Fold, Gap, Schedule, cron};

use super::{DAY, Life, at, fired, report};

/// The clock in Paris goes from 02:00 to 03:00 on 29 March 2026, and from 03:00 to 02:00 on 25 October.
fn paris(cron: Cron) -> Schedule {
    Schedule::new("nightly", cron, |firing| report(firing.local().to_string())).zone("Europe/Paris")
}

/// The firings of the local day that begins at this instant, as the clock shows them, with the offset.
fn day(schedule: &Schedule, begins: &str, ends: &str) -> Vec<String> {
    let before = workflow::Timestamp::from_millis(at(begins).as_millis() - 1);
    let upcoming = schedule.upcoming(before).unwrap();
    upcoming
        .take_while(|firing| firing.at() < at(ends))
        .map(|firing| firing.local().strftime("%H:%M%:z").to_string())
        .collect()
}

fn in_march(schedule: &Schedule) -> Vec<String> {
    day(schedule, "2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z")
}

fn in_october(schedule: &Schedule) -> Vec<String> {
    day(schedule, "2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z")
}

// UA-63
#[test]
fn a_time_that_is_left_out_fires_once_or_as_is_said() {
    let half_past_two = || paris(cron!("30 2 * * *"));
    assert_eq!(in_march(&half_past_two()), ["03:30+02:00"]);
    assert_eq!(in_march(&half_past_two().gap(Gap::Later)), ["03:30+02:00"]);
    assert_eq!(in_march(&half_past_two().gap(Gap::AtJump)), ["03:00+02:00"]);
    assert_eq!(in_march(&half_past_two().gap(Gap::Skip)), [""; 0]);
    // What is chosen for one jump is nothing to the other.
    for gap in [Gap::Later, Gap::AtJump, Gap::Skip] {
        assert_eq!(in_october(&half_past_two().gap(gap)), ["02:30+02:00"]);
    }
}

// UA-63
#[test]
fn a_time_that_comes_twice_fires_once_or_as_is_said() {
    let half_past_two = || paris(cron!("30 2 * * *"));
    assert_eq!(in_october(&half_past_two()), ["02:30+02:00"]);
    assert_eq!(
        in_october(&half_past_two().fold(Fold::First)),
        ["02:30+02:00"]
    );
    assert_eq!(
        in_october(&half_past_two().fold(Fold::Second)),
        ["02:30+01:00"]
    );
    let both = half_past_two().fold(Fold::Both);
    assert_eq!(in_october(&both), ["02:30+02:00", "02:30+01:00"]);
    for fold in [Fold::First, Fold::Second, Fold::Both] {
        assert_eq!(in_march(&half_past_two().fold(fold)), ["03:30+02:00"]);
    }
}

// UA-63
#[test]
fn what_fires_every_hour_goes_by_the_time_that_passes() {
    let half_hours = paris(cron!("*/30 * * * *"));
    let march = in_march(&half_hours);
    assert_eq!(march.len(), 46, "a day of 23 hours");
    let night = ["01:30+01:00", "03:00+02:00", "03:30+02:00", "04:00+02:00"];
    assert_eq!(march[3..7], night);
    let october = in_october(&half_hours);
    assert_eq!(october.len(), 50, "a day of 25 hours");
    let night = [
        "02:00+02:00",
        "02:30+02:00",
        "02:00+01:00",
        "02:30+01:00",
        "03:00+01:00",
    ];
    assert_eq!(october[4..9], night);
    let once = in_october(&paris(cron!("*/30 * * * *")).fold(Fold::First));
    assert_eq!(once.len(), 48);
    assert_eq!(once[4..7], ["02:00+02:00", "02:30+02:00", "03:00+01:00"]);
    let second = in_october(&paris(cron!("*/30 * * * *")).fold(Fold::Second));
    assert_eq!(second.len(), 48);
    assert_eq!(second[3..6], ["01:30+02:00", "02:00+01:00", "02:30+01:00"]);
}

// UA-63
#[test]
fn firings_that_a_jump_brings_together_are_one() {
    let both = || paris(cron!("15,45 2,3 * * *"));
    assert_eq!(in_march(&both()), ["03:15+02:00", "03:45+02:00"]);
    let at_jump = both().gap(Gap::AtJump);
    assert_eq!(
        in_march(&at_jump),
        ["03:00+02:00", "03:15+02:00", "03:45+02:00"]
    );
    // The times left out come later than those that the clock shows meanwhile.
    let mixed = paris(cron!("40 2 * * *"));
    assert_eq!(in_march(&mixed), ["03:40+02:00"]);
    let mixed = paris(cron!("10,50 2-3 * * *"));
    assert_eq!(in_march(&mixed), ["03:10+02:00", "03:50+02:00"]);
}

#[test]
fn zones_that_jump_by_half_an_hour_over_midnight_or_over_a_day_are_right() {
    // Lord Howe Island: half an hour, at 02:00.
    let howe = Schedule::new("s", cron!("15 2 * * *"), |_| report(String::new()))
        .zone("Australia/Lord_Howe");
    let night = day(&howe, "2026-10-03T13:30:00Z", "2026-10-04T13:00:00Z");
    assert_eq!(night, ["02:45+11:00"]);
    let night = day(&howe, "2026-04-04T13:00:00Z", "2026-04-05T13:30:00Z");
    assert_eq!(night, ["02:15+10:30"]);
    // Cairo puts its clock forward at midnight, so a day begins at 01:00.
    let cairo =
        Schedule::new("s", cron!("0 0 * * *"), |_| report(String::new())).zone("Africa/Cairo");
    let night = day(&cairo, "2026-04-23T22:00:00Z", "2026-04-24T21:00:00Z");
    assert_eq!(night, ["01:00+03:00"]);
    // Samoa left out a whole day, 30 December 2011.
    let samoa =
        Schedule::new("s", cron!("0 12 30 12 *"), |_| report(String::new())).zone("Pacific/Apia");
    let mut upcoming = samoa.upcoming(at("2011-12-01T00:00:00Z")).unwrap();
    let noon = upcoming.next().unwrap();
    assert_eq!(
        noon.local().to_string(),
        "2011-12-31T12:00:00+14:00[Pacific/Apia]"
    );
    let next = upcoming.next().unwrap();
    assert_eq!(next.local().date().to_string(), "2012-12-30");
}

#[test]
fn what_only_times_left_out_would_fire_never_fires_when_they_are_skipped() {
    let never = paris(cron!("30 2 * 3 SUNL")).gap(Gap::Skip);
    assert!(
        never
            .upcoming(at("2026-01-01T00:00:00Z"))
            .unwrap()
            .next()
            .is_none()
    );
}

// UA-63
#[tokio::test(start_paused = true)]
async fn an_engine_that_runs_through_both_nights_starts_one_run_a_day() {
    let life = Life::from("2026-03-27T12:00:00Z");
    let engine = life.engine(paris(cron!("30 2 * * *"))).await;
    tokio::time::sleep(4 * DAY).await;
    assert_eq!(
        fired(&engine).await,
        [
            "2026-03-28T01:30:00Z",
            "2026-03-29T01:30:00Z",
            "2026-03-30T00:30:00Z",
            "2026-03-31T00:30:00Z",
        ]
    );
    let run = engine
        .attach::<report>("nightly@2026-03-29T01:30:00Z")
        .await
        .unwrap();
    let said = run.result().await.unwrap();
    assert_eq!(said, "2026-03-29T03:30:00+02:00[Europe/Paris]");

    let life = Life::from("2026-10-24T12:00:00Z");
    let engine = life.engine(paris(cron!("30 2 * * *"))).await;
    tokio::time::sleep(2 * DAY).await;
    assert_eq!(
        fired(&engine).await,
        ["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"]
    );
}

/// What a schedule says at a jump is what is known of each single time: when it comes, when it comes twice, and when it would have.
#[test]
fn around_each_jump_of_odd_zones_every_time_fires_when_it_does_or_would_have() {
    const NAMES: [&str; 9] = [
        // At midnight, at a minute past it, by half an hour, by two, over a whole day, often, in winter, and as most do.
        "America/Sao_Paulo",
        "America/St_Johns",
        "Australia/Lord_Howe",
        "Antarctica/Troll",
        "Pacific/Apia",
        "Africa/Casablanca",
        "Europe/Dublin",
        "Africa/Cairo",
        "America/New_York",
    ];
    let crons = [
        cron!("0 0 * * *"),
        cron!("15 0,1,2,23 * * *"),
        cron!("*/7 1-3 * * *"),
        cron!("59 23 L * *"),
    ];
    let day = SignedDuration::from_hours(24);
    let jumps_of = |zone: &TimeZone| {
        let jumps = zone.following("2005-01-01T00:00:00Z".parse().unwrap());
        let jumps = jumps.map(|jump| jump.timestamp());
        jumps
            .take_while(|jump| jump.as_second() < 1_420_070_400)
            .collect::<Vec<_>>()
    };
    for (name, cron) in NAMES
        .iter()
        .flat_map(|name| crons.map(|cron| (*name, cron)))
    {
        let zone = TimeZone::get(name).unwrap();
        let plain = Schedule::new("s", cron, |_| report(String::new()));
        for (jump, fold) in jumps_of(&zone)
            .into_iter()
            .flat_map(|jump| [Fold::First, Fold::Second, Fold::Both].map(|fold| (jump, fold)))
        {
            let around = millis(jump - day)..millis(jump + day);
            let schedule = plain.clone().zone(name).fold(fold);
            let fires: Vec<_> = schedule
                .upcoming(around.start)
                .unwrap()
                .map(|firing| firing.at())
                .take_while(|at| *at < around.end)
                .collect();
            // The times that a clock shows which never jumps, each looked up by itself.
            let mut expected = BTreeSet::new();
            let times = plain.upcoming(millis(jump - 4 * day)).unwrap();
            for time in times.take_while(|time| time.at() < millis(jump + 4 * day)) {
                let at = zone.to_ambiguous_timestamp(time.local().datetime());
                let first = at.compatible().unwrap();
                let second = match at.offset() {
                    AmbiguousOffset::Fold { .. } => at.later().unwrap(),
                    _ => first,
                };
                expected.extend((fold != Fold::Second).then(|| millis(first)));
                expected.extend((fold != Fold::First).then(|| millis(second)));
            }
            expected.retain(|at| around.start < *at && *at < around.end);
            let expected: Vec<_> = expected.into_iter().collect();
            assert_eq!(fires, expected, "{cron} {name} {fold:?} at {jump}");
        }
    }
}

fn millis(at: jiff::Timestamp) -> workflow::Timestamp {
    workflow::Timestamp::from_millis(at.as_millisecond())
}
