//! Another time on replay.

use std::time::{Instant, SystemTime};

use workflow::workflow;

#[workflow]
async fn checkout() {
    let _a = SystemTime::now();
    let _b = Instant::now();
}

fn main() {}
