//! A cron expression stands there as it is.

use workflow::{Cron, cron};

const AT: &str = "30 2 * * *";
const NAMED: Cron = cron!(AT);
const NUMBER: Cron = cron!(5);
const NOTHING: Cron = cron!();
const TWO: Cron = cron!("30 2 * * *", "Europe/Paris");

fn main() {}
