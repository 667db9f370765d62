//! Who sent a request waits for its answer.

#![deny(unused_must_use)]

use workflow::{Channel, Failure, recv, workflow};

static ASK: Channel<u32, u32> = Channel::new("ask");

#[workflow]
async fn never_answered() -> Result<(), Failure> {
    recv!(asked, ASK).await?;
    Ok(())
}

#[workflow]
async fn not_awaited() -> Result<(), Failure> {
    let asked = recv!(asked, ASK).await?;
    let answer = *asked + 1;
    asked.reply(answer);
    Ok(())
}

fn main() {}
