//! Starts two runs and leaves each where it waits, or ends what is live.

use shop::{GO, Order, PAID, checkout};
use std::time::Duration;
use workflow::{Engine, Watched};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let (act, file) = (words.next().unwrap(), words.next().unwrap());
    let engine = Engine::builder().workflow(checkout).open(&file).await?;
    if act == "start" {
        for (id, last) in [("early", "settle"), ("late", "go")] {
            let order = Order {
                items: vec!["pen".to_owned(), "ink".to_owned()],
            };
            let run = engine.start(id, checkout(order)).await?;
            if last == "go" {
                run.send(&PAID, &7).await?;
            }
            let mut events = run.watch(1);
            while let Some(seen) = events.next().await? {
                if let Watched::Record(record) = seen
                    && record.location.to_string().starts_with(last)
                {
                    break;
                }
            }
        }
    } else {
        for id in ["early", "late"] {
            let run = engine.attach::<checkout>(id).await?;
            if id == "early" {
                run.send(&PAID, &8).await?;
            }
            run.send(&GO, &true).await?;
            let ended = tokio::time::timeout(Duration::from_secs(20), run.result()).await;
            match ended {
                Ok(ended) => println!("{id} ended with {}", ended?),
                Err(_) => println!("{id} is {:?}", run.status().await?),
            }
        }
    }
    engine.shutdown(Duration::from_secs(5)).await?;
    Ok(())
}
