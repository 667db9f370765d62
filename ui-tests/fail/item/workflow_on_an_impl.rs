//! The attributes stand on functions.

struct Shop;

#[workflow::step]
impl Shop {
    async fn reserve(&self, order: u32) -> u32 {
        order
    }
}

fn main() {}
