//! A range of a cron expression runs forwards, in steps, between two values.

use workflow::{Cron, cron};

const NIGHT: Cron = cron!("0 22-4 * * *");
const NO_STEP: Cron = cron!("*/0 * * * *");
const TOO_WIDE: Cron = cron!("0 */24 * * *");
const MISSING: Cron = cron!("0 1,,3 * * *");
const WHATEVER: Cron = cron!("0 1 ? * MON");

fn main() {}
