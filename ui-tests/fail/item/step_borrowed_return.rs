//! The result comes back from the record, and so borrows nothing.

use workflow::step;

#[step]
async fn first(line: &str) -> &str {
    line.split(' ').next().unwrap_or("")
}

fn main() {}
