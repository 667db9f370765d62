//! A tuple ends somewhere.

use workflow::{Failure, join, workflow};

#[workflow]
async fn checkout() -> Result<(), Failure> {
    join!(
        all, a = 1, b = 1, c = 1, d = 1, e = 1, f = 1, g = 1, h = 1, i = 1, j = 1, k = 1, l = 1, m = 1
    )
    .await?;
    Ok(())
}

fn main() {}
