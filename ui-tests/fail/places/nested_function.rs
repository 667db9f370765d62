//! A function in a workflow's body is no part of it.

use workflow::{Failure, fragment, sleep, step, workflow};

#[workflow]
async fn checkout(order: u32) -> Result<u32, Failure> {
    async fn wait() {
        sleep!(nap, "1s").await;
    }
    struct Clock;
    impl Clock {
        async fn read(&self) -> String {
            let at = workflow::now!(at).await;
            at.to_string()
        }
    }
    #[fragment]
    async fn pause() -> Result<(), Failure> {
        sleep!(nap, "1s").await;
        Ok(())
    }
    pause().await?;
    #[step(name = "both")]
    let read = {
        wait().await;
        Clock.read().await
    }?;
    Ok(order + read.len() as u32)
}

fn main() {}
