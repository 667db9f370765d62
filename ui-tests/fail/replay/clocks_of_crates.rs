//! Clocks go under many names.

use workflow::workflow;

struct Utc;
impl Utc {
    fn now() -> u32 {
        4
    }
}

struct OffsetDateTime;
impl OffsetDateTime {
    fn now_utc() -> u32 {
        4
    }
}

mod jiff {
    pub(crate) struct Zoned;
    impl Zoned {
        pub(crate) fn now() -> u32 {
            4
        }
    }
}

#[workflow]
async fn checkout() -> u32 {
    Utc::now() + OffsetDateTime::now_utc() + jiff::Zoned::now()
}

fn main() {}
