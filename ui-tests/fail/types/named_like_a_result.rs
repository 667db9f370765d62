//! Whether a step can fail is read off the name of what it returns.

use serde::{Deserialize, Serialize};
use workflow::step;

#[derive(Serialize, Deserialize)]
struct SearchResult(u32);

#[step]
async fn search(word: &str) -> SearchResult {
    SearchResult(word.len() as u32)
}

fn main() {}
