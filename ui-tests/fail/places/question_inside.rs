//! Only a trailing `?` belongs to the workflow.

use workflow::{Failure, step, workflow};

async fn get() -> Result<String, std::io::Error> {
    Ok(String::new())
}

#[workflow]
async fn checkout() -> Result<usize, Failure> {
    #[step(name = "length")]
    let length = get().await?.len();
    Ok(length)
}

fn main() {}
