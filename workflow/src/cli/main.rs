//! The command line: `cargo run --bin workflow --features cli -- lock`, or `workflow lock` where it is installed.
#![expect(clippy::print_stdout, reason = "what a command is for")]

mod lock;

use std::env;
use std::process::ExitCode;

const USAGE: &str = "\
usage: workflow COMMAND
  lock        write or compare workflow.lock; `workflow lock --help` says how
  --help      this";

fn main() -> ExitCode {
    let mut words = env::args().skip(1);
    match words.next().as_deref() {
        Some("lock") => lock::run(words),
        Some("--help" | "-h" | "help") => {
            println!("{USAGE}");
            ExitCode::SUCCESS
        }
        said => {
            if let Some(said) = said {
                eprintln!("`{said}` is no command of workflow");
            }
            eprintln!("{USAGE}");
            ExitCode::from(2)
        }
    }
}
