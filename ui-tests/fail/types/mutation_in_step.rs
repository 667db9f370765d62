//! A replay would not see the change. (UA-80)

use workflow::{Failure, step, workflow};

#[workflow]
async fn checkout(order: u32) -> Result<u32, Failure> {
    let mut total = 0;
    #[step(name = "add")]
    {
        total += order;
    }?;
    Ok(total)
}

fn main() {}
