//! What `cron!` reads fires as another implementation says it does.

use workflow::{Cron, Schedule, cron};

use super::{at, report, utc};

/// Those on which crons agree: five fields, no `L`.
const COMMON: &[Cron] = &[
    cron!("* * * * *"),
    cron!("*/7 * * * *"),
    cron!("0,15,59 */5 * * *"),
    cron!("30 2 * * *"),
    cron!("5/20 22-23,0-4 * * *"),
    cron!("0 0 * * MON-FRI"),
    cron!("0 12 * * 0"),
    cron!("0 12 * * 7"),
    cron!("0 9 13 * FRI"),
    cron!("0 9 */2 * FRI"),
    cron!("0 9 1-31/2 * 0,6"),
    cron!("0 0 1 * *"),
    cron!("0 0 29 2 *"),
    cron!("0 0 30,31 * *"),
    cron!("59 23 31 12 *"),
    cron!("0 0 1 JAN-DEC/3 *"),
    cron!("0 8 * * MON#2"),
    cron!("0 8 * * WED#5"),
    cron!("0 8 15 * TUE#1,THU"),
    cron!("17 3 * feb,apr,jun sun"),
];

#[test]
fn an_expression_fires_when_another_implementation_says_so() {
    for cron in COMMON {
        let other = cronexpr::parse_crontab(&format!("{cron} UTC")).unwrap();
        let from = "2023-11-30T23:58:30Z";
        let mut others = other.iter_after(from).unwrap();
        let schedule = Schedule::new("s", *cron, |_| report(String::new()));
        let mut last = at(from);
        for firing in schedule.upcoming(last).unwrap().take(150) {
            last = firing.at();
            // It gives up after four years without one, and so before the end of the century.
            let Some(Ok(expected)) = others.next() else {
                break;
            };
            let expected = expected.timestamp().to_string();
            assert_eq!(utc(last), expected, "{cron}");
        }
        assert!(last > at("2023-12-01T00:05:00Z"), "{cron}");
    }
}

#[test]
fn months_end_and_last_weekdays_and_seconds_are_found_in_every_month() {
    let fires = |cron: Cron| {
        let schedule = Schedule::new("s", cron, |_| report(String::new()));
        let upcoming = schedule.upcoming(at("2027-10-30T23:59:58Z")).unwrap();
        upcoming
            .map(|firing| utc(firing.at()))
            .take(5)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        fires(cron!("0 0 L * *")),
        [
            "2027-10-31T00:00:00Z",
            "2027-11-30T00:00:00Z",
            "2027-12-31T00:00:00Z",
            "2028-01-31T00:00:00Z",
            "2028-02-29T00:00:00Z",
        ]
    );
    assert_eq!(
        fires(cron!("0 18 * * FRIL")),
        [
            "2027-11-26T18:00:00Z",
            "2027-12-31T18:00:00Z",
            "2028-01-28T18:00:00Z",
            "2028-02-25T18:00:00Z",
            "2028-03-31T18:00:00Z",
        ]
    );
    assert_eq!(
        fires(cron!("59,1 */30 * * * *"))[..3],
        [
            "2027-10-31T00:00:01Z",
            "2027-10-31T00:00:59Z",
            "2027-10-31T00:30:01Z",
        ]
    );
    // A leap day that is a Monday, which 2100 has none of.
    assert_eq!(
        fires(cron!("0 0 * 2 MON#5"))[..3],
        [
            "2044-02-29T00:00:00Z",
            "2072-02-29T00:00:00Z",
            "2112-02-29T00:00:00Z",
        ]
    );
}
