//! A `return` in a step in place would end the step only, whatever it looks like.

use workflow::{Failure, step, workflow};

#[workflow]
async fn order(n: u32) -> Result<u32, Failure> {
    #[step(name = "look")]
    let found = {
        if n == 0 {
            return Ok(0);
        }
        n + 1
    };
    found
}

#[workflow]
async fn orders(n: u32) -> Result<u32, Failure> {
    'all: for at in 0..n {
        #[step(name = "look")]
        let found = {
            if at == 3 {
                break 'all;
            }
            at
        };
        found?;
    }
    Ok(n)
}

fn main() {}
