//! Two arms under two conditions share a name.

use workflow::{Failure, sleep, step, workflow};

#[step]
async fn reserve(order: u32) -> u32 {
    order
}

#[workflow]
async fn checkout(order: u32) -> Result<u32, Failure> {
    #[cfg(windows)]
    let held = reserve(order + 1).await?;
    #[cfg(not(windows))]
    let held = reserve(order).await?;
    match held {
        #[cfg(windows)]
        3 => sleep!(nap, "1s").await,
        #[cfg(not(windows))]
        4 => sleep!(nap, "2s").await,
        _ => {}
    }
    Ok(held)
}

fn main() {
    assert_eq!(checkout::SITES.len(), 2);
}
