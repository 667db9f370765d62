//! Nothing that could win. (RVT-RACE-10)

use workflow::{Failure, race, workflow};

#[workflow]
async fn checkout() -> Result<(), Failure> {
    race!(first).await?;
    Ok(())
}

fn main() {}
