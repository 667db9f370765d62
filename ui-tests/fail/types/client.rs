//! A request that is not recorded.

use workflow::workflow;

struct Request;

impl Request {
    async fn send(self) -> Result<String, std::io::Error> {
        Ok(String::new())
    }
}

#[workflow]
async fn checkout() -> Result<usize, std::io::Error> {
    let text = Request.send().await?;
    Ok(text.len())
}

fn main() {}
