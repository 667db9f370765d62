//! A step is recorded as one.

use workflow::{Failure, sleep, step, workflow};

#[workflow]
async fn checkout() -> Result<(), Failure> {
    #[step(name = "slow")]
    {
        sleep!(nap, "1s").await;
    }?;
    Ok(())
}

fn main() {}
