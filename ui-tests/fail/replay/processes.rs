//! What is another process, or asks about this one.

use std::process::{self, Command};

use workflow::workflow;

#[workflow]
async fn checkout() -> u32 {
    let _listing = Command::new("ls").output();
    let mut line = String::new();
    let _ = std::io::stdin().read_line(&mut line);
    process::id()
}

fn main() {}
