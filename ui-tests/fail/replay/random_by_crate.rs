//! So do random values: a generator that is seeded by the run is none.

use std::hash::RandomState;

use workflow::{random, workflow};

mod fastrand {
    pub(crate) struct Rng(pub(crate) u64);
    impl Rng {
        pub(crate) fn with_seed(seed: u64) -> Self {
            Self(seed)
        }
    }

    pub(crate) fn u64(_: std::ops::RangeFull) -> u64 {
        4
    }
}

struct StdRng;
impl StdRng {
    fn from_os_rng() -> u64 {
        4
    }
}

macro_rules! nanoid {
    () => {
        4
    };
}

#[workflow]
async fn checkout() -> u64 {
    let _hasher = RandomState::new();
    let seeded = fastrand::Rng::with_seed(random!(seed));
    seeded.0 + fastrand::u64(..) + StdRng::from_os_rng() + nanoid!()
}

fn main() {}
