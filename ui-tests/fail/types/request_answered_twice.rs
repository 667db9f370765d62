//! A request has one answer, of its type. (RVT-MSG-20)

use workflow::{Channel, Failure, recv, step, workflow};

static ASK: Channel<u32, u32> = Channel::new("ask");

#[workflow]
async fn twice() -> Result<(), Failure> {
    let asked = recv!(asked, ASK).await?;
    asked.reply(1).await?;
    #[step(name = "again")]
    asked.reply(2).await?;
    Ok(())
}

#[workflow]
async fn wrong() -> Result<(), Failure> {
    let asked = recv!(asked, ASK).await?;
    asked.reply("one").await?;
    Ok(())
}

fn main() {}
