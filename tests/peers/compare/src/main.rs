//! Runs the engines' programs in turn on the same work, and prints the tables of the comparison:
//!
//! ```text
//! tests/peers/run                     builds all and prints every table
//! tests/peers/run steps crowd         some of them
//! tests/peers/run --only ours,memable --rounds 3
//! ```
//!
//! Each engine has a fresh store each time. In every round each engine has its turn, after a raw log has shown what an append with
//! fdatasync costs at that moment, so that figures of one table are of the same minutes of a machine.

mod crash;
mod engine;
mod table;
mod tables;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, ValueEnum};

/// The library beside other engines for durable execution.
#[derive(Parser)]
pub struct Options {
    /// Which tables; all of them if none is named.
    tables: Vec<Table>,
    /// How often each engine has its turn.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Only engines whose names have one of these words in them.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Less of everything, to see that it works.
    #[arg(long)]
    quick: bool,
    /// The address of a Postgres server at which databases may be made and dropped, without a database's name. Without one the engines
    /// that need it are left out.
    #[arg(long, env = "PEERS_POSTGRES")]
    postgres: Option<String>,
    /// Where the stores are made: a disk, as fdatasync costs nothing in memory.
    #[arg(long)]
    dir: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Table {
    /// One run of 100 steps.
    Steps,
    /// 1,000 runs of 10 steps, all at once.
    Crowd,
    /// How long a step takes its workflow under load, and how late other tasks are.
    Latency,
    /// A new process brings a run of many recorded steps to its end.
    Replay,
    /// 10,000 runs that sleep.
    Asleep,
    /// Killed twice, and counted.
    Crash,
}

fn main() -> ExitCode {
    let options = Options::parse();
    let wanted = |table| options.tables.is_empty() || options.tables.contains(&table);
    match tables::Bench::new(&options) {
        Ok(bench) => {
            type Show = fn(&tables::Bench) -> Result<(), engine::Error>;
            let all: [(Table, Show); 6] = [
                (Table::Steps, tables::Bench::steps),
                (Table::Crowd, tables::Bench::crowd),
                (Table::Latency, tables::Bench::latency),
                (Table::Replay, tables::Bench::replay),
                (Table::Asleep, tables::Bench::asleep),
                (Table::Crash, tables::Bench::crash),
            ];
            for (table, show) in all {
                if wanted(table)
                    && let Err(error) = show(&bench)
                {
                    eprintln!("{error}");
                    return ExitCode::FAILURE;
                }
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
