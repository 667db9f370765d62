//! A blocking step, async or not.

use workflow::{Failure, step, workflow};

#[step(blocking)]
fn hash(text: String) -> usize {
    text.len()
}

#[step(blocking, timeout = "1s")]
async fn parse(text: String) -> Result<u32, std::num::ParseIntError> {
    text.parse()
}

#[workflow]
async fn checkout(text: String) -> Result<u32, Failure> {
    let n = hash(text.clone()).await?;
    Ok(parse(text).await? + n as u32)
}

fn main() {}
