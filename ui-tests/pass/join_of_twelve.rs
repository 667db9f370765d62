//! As many as there may be, and one only.

use workflow::{Failure, join, workflow};

#[workflow]
async fn checkout() -> Result<u32, Failure> {
    let all = join!(
        all, a = 1, b = 1, c = 1, d = 1, e = 1, f = 1, g = 1, h = 1, i = 1, j = 1, k = 1, l = 1u32
    )
    .await?;
    let (one,) = join!(one, only = 3u32).await?;
    join!(statement, a = {}, b = ()).await?;
    let _ = join!(ignored, a = 1, b = 2).await;
    Ok(all.11 + one)
}

fn main() {}
