//! A schedule is given to an engine, and one of an engine is asked for something.

#![deny(unused_must_use)]

use workflow::{Engine, Failure, Schedule, cron, workflow};

#[workflow]
async fn report() -> Result<(), Failure> {
    Ok(())
}

fn nightly(engine: &Engine) {
    Schedule::new("nightly", cron!("30 2 * * *"), |_| report());
    engine.schedule("nightly");
}

fn main() {}
