//! A guided flow whose data does not say which it is.

use workflow::{fragment, guide, Failure};

#[derive(Clone, serde::Serialize, serde::Deserialize)]
struct Bank;

#[fragment]
async fn goes() -> Result<(), Failure> {
    guide!(billing, Bank).await?;
    Ok(())
}

fn main() {}
