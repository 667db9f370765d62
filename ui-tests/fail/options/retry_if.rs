//! The error's type is written out.

use workflow::step;

#[step(retry_if(|error| true))]
async fn reserve(order: u32) -> Result<u32, std::io::Error> {
    Ok(order)
}

fn main() {}
