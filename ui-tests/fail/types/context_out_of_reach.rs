//! A branch cannot reach the context around it: it has no name that can be written. (RVT-JOIN-11)

use workflow::{Failure, join, workflow};

#[workflow]
async fn checkout() -> Result<(), Failure> {
    join!(both, a = { let _ = __workflow_cx; }, b = 2).await?;
    Ok(())
}

fn main() {}
