//! A step may be run more than once.

use workflow::step;

struct Stock(u32);

impl Stock {
    #[step]
    async fn reserve(self) -> u32 {
        self.0
    }
}

fn main() {}
