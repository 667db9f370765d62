//! Steps with type parameters, `impl Trait` arguments and where clauses.

use serde::{Serialize, de::DeserializeOwned};
use workflow::{Failure, step, workflow};

#[step]
async fn store<T>(value: &T) -> T
where
    T: Serialize + DeserializeOwned + Clone + Send + Sync,
{
    value.clone()
}

#[step]
async fn shown(value: impl std::fmt::Display + Clone + Send + Sync) -> String {
    value.to_string()
}

#[workflow]
async fn checkout(order: u32) -> Result<String, Failure> {
    let order = store(&order).await?;
    Ok(shown(order).await?)
}

fn main() {}
