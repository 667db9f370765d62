//! An undo stands where the step is called.

use workflow::step;

async fn release(order: u32) {
    drop(order);
}

#[step(undo(release))]
async fn reserve(order: u32) -> Result<u32, std::io::Error> {
    Ok(order)
}

fn main() {}
