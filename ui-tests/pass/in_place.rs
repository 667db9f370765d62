//! Steps in place: on a `let`, a statement, an expression, a block with `?`.

use workflow::{Failure, step, workflow};

#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Odd(u32);

struct Client;

impl Client {
    async fn get(&self, path: &str) -> Result<String, std::io::Error> {
        Ok(path.to_owned())
    }

    async fn put(&self, path: &str) -> Result<(), std::io::Error> {
        self.get(path).await.map(drop)
    }
}

async fn plain(order: u32) -> u32 {
    order
}

#[workflow]
async fn checkout(order: u32, title: String) -> Result<u32, Failure> {
    let client = Client;
    #[step]
    let text = client.get(&title).await?;
    #[step(retries = 2, timeout = "1s")]
    client.put(&text).await?;
    #[step(name = "other")]
    client.put(&text).await?;
    let value = #[step]
    plain(order).await?;
    let failed = #[step(name = "third")]
    client.get("x").await;
    #[step(name = "block", retry_if(|error: &Odd| error.0 > 3))]
    let n = {
        let text = client.get(&title).await.map_err(|_| Odd(1))?;
        if text.is_empty() {
            Err(Odd(2))?;
        }
        Ok::<_, Odd>(text.len() as u32)
    }?;
    #[step(name = "loose")]
    let m = {
        let text = client.get(&title).await?;
        let number: u32 = text.parse()?;
        Ok(number)
    }?;
    Ok(value + n + m + failed.map_or(0, |text| text.len() as u32))
}

fn main() {}
