//! What a step changes would not be changed on replay. (UA-80)

use workflow::step;

#[step]
async fn reserve(stock: &mut Vec<u32>, name: &str) -> u32 {
    stock.push(1);
    name.len() as u32
}

fn main() {}
