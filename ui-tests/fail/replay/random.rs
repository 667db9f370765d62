//! Another value on every replay.

use workflow::{Failure, workflow};

mod rand {
    pub fn random() -> u32 {
        4
    }

    pub fn thread_rng() -> u32 {
        4
    }
}

struct Uuid;

impl Uuid {
    fn new_v4() -> u32 {
        4
    }
}

#[workflow]
async fn checkout() -> Result<u32, Failure> {
    use rand::thread_rng;
    Ok(rand::random() + thread_rng() + Uuid::new_v4())
}

fn main() {}
