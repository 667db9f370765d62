//! A blocking step awaits nothing.

use workflow::step;

#[step(blocking)]
async fn parse(text: String) -> usize {
    std::future::ready(()).await;
    text.len()
}

fn main() {}
