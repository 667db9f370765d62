//! What a step changes would not be changed on replay.

use workflow::step;

struct Stock(u32);

impl Stock {
    #[step]
    async fn reserve(&mut self) -> u32 {
        self.0 += 1;
        self.0
    }
}

fn main() {}
