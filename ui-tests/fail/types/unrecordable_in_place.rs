//! What a step gives is written down.

use workflow::{Failure, step, workflow};

struct Hold(u32);

#[workflow]
async fn checkout(order: u32) -> Result<u32, Failure> {
    #[step(name = "hold")]
    let hold = { Hold(order) }?;
    Ok(hold.0)
}

fn main() {}
