//! Nothing to run.

use workflow::{Failure, join_all, workflow};

#[workflow]
async fn checkout() -> Result<(), Failure> {
    join_all!(every, limit = 3).await?;
    Ok(())
}

fn main() {}
