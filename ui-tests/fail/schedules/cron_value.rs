//! A field of a cron expression takes its own values only.

use workflow::{Cron, cron};

const HOUR: Cron = cron!("30 25 * * *");
const DAY: Cron = cron!("30 2 0 * *");
const MONTH: Cron = cron!("30 2 1 JANUARY *");
const WEEKDAY: Cron = cron!("30 2 * * MON,8");
const NTH: Cron = cron!("30 2 * * MON#6");
const SECOND: Cron = cron!("60 30 2 * * *");

fn main() {}
