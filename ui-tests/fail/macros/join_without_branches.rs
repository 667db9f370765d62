//! Nothing to wait for. (RVT-JOIN-10)

use workflow::{Failure, join, workflow};

#[workflow]
async fn checkout() -> Result<(), Failure> {
    join!(both).await?;
    Ok(())
}

fn main() {}
