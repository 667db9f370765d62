//! A step is no place for another.

use workflow::{Failure, step, workflow};

#[workflow]
async fn checkout() -> Result<u32, Failure> {
    #[step(name = "outer")]
    let n = {
        #[step(name = "inner")]
        let n = { 3 };
        n
    }?;
    Ok(n)
}

fn main() {}
