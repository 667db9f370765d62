//! A blocking step runs on another thread.

use workflow::step;

#[step(blocking)]
fn parse(text: &str) -> usize {
    text.len()
}

fn main() {}
