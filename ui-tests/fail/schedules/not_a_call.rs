//! A schedule is told which workflow to start, and does not start it.

use workflow::{Failure, Schedule, cron, workflow};

#[workflow]
async fn report(day: String) -> Result<usize, Failure> {
    Ok(day.len())
}

fn main() {
    let _ = Schedule::new("nightly", cron!("30 2 * * *"), |firing| {
        firing.local().date().to_string()
    });
}
