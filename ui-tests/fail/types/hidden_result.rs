//! Whether a step can fail is read off its return type.

use workflow::step;

type Held = Result<u32, std::io::Error>;

#[step]
async fn reserve(order: u32) -> Held {
    Ok(order)
}

fn main() {}
