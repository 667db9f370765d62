//! A cron expression has five fields, or six.

use workflow::{Cron, cron};

const TOO_FEW: Cron = cron!("30 2 * *");
const TOO_MANY: Cron = cron!("0 30 2 * * * 2026");
const NIGHTLY: Cron = cron!("@daily");

fn main() {}
