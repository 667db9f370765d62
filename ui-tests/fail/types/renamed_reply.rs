//! A call of a method of that name which is not the library's.

use workflow::{Failure, step, workflow};

struct Desk;

impl Desk {
    async fn reply(&self, _: u32) -> u32 {
        7
    }
}

#[workflow]
async fn checkout(order: u32) -> Result<u32, Failure> {
    let desk = Desk;
    #[step(name = "answer")]
    let answer = desk.reply(order).await?;
    Ok(answer)
}

fn main() {}
