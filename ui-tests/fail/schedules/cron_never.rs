//! A cron expression fires on some day.

use workflow::{Cron, cron};

const LAST: Cron = cron!("0 0 30 2 *");
const LEAP_DAY: Cron = cron!("0 0 29 2 *");
const THIRTY_FIRST: Cron = cron!("0 0 31 APR,JUN *");

fn main() {}
