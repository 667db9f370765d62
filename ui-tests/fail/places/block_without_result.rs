//! A block with `?` ends in a `Result`.

use workflow::{Failure, step, workflow};

async fn get() -> Result<String, std::io::Error> {
    Ok(String::new())
}

#[workflow]
async fn checkout() -> Result<(), Failure> {
    #[step(name = "fetch")]
    {
        get().await?;
    }?;
    Ok(())
}

fn main() {}
