//! Eight trips, each a saga: hotel, car, flight, payment, and whatever was had is undone if the trip fails.
//!
//! ```text
//! cargo run --example saga               # books the trips; a few seconds
//! kill -9 $(pgrep -x saga)               # from another terminal, at any moment, also while something is undone
//! cargo run --example saga -- --verify   # goes on where it was, and counts what was done and undone
//! cargo run --example saga -- --fresh    # from the beginning
//! SAGA_KILL_AT_COMMIT=9 cargo run --example saga   # killed right after its ninth commit
//! ```
//!
//! Every third trip ends well. Of the others one half is refused by the airline after all was paid, the other half by the
//! bank, which does not say whether it took the money: there the undo of the payment is called with `None`.
//!
//! Everything the travel agency does to the world is a line in `effects.log`, outside the store. `--verify` lays that file beside
//! the histories: what was recorded of a trip that failed is undone, newest first, and nothing else is.
#![expect(clippy::print_stdout, reason = "what the program is for")]

// Only the crash test needs it.
#[path = "../checkout/crash.rs"]
mod crash;
mod travel;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use workflow::{Engine, RedbStore};

use travel::{Travel, trip};

const USAGE: &str = "\
usage: cargo run --example saga -- [OPTIONS]
  --dir DIR   where the store and the effects file are (default: saga-data in the temporary directory)
  --trips N   how many trips (default: 8)
  --fresh     forget what was done before
  --verify    at the end, lay the effects file beside the histories; exits with 1 when they disagree
  --help      this";

struct Args {
    dir: PathBuf,
    trips: u32,
    fresh: bool,
    verify: bool,
}

impl Args {
    /// `None` when it is not understood, or help is asked for.
    fn read(mut words: impl Iterator<Item = String>) -> Option<Self> {
        let mut args = Self {
            dir: std::env::temp_dir().join("saga-data"),
            trips: 8,
            fresh: false,
            verify: false,
        };
        while let Some(word) = words.next() {
            match word.as_str() {
                "--dir" => args.dir = words.next()?.into(),
                "--trips" => args.trips = words.next()?.parse().ok()?,
                "--fresh" => args.fresh = true,
                "--verify" => args.verify = true,
                _ => return None,
            }
        }
        Some(args)
    }
}

#[tokio::main]
async fn main() -> Result<ExitCode, Box<dyn Error>> {
    let Some(args) = Args::read(std::env::args().skip(1)) else {
        println!("{USAGE}");
        return Ok(ExitCode::from(2));
    };
    let effects = args.dir.join("effects.log");
    if args.fresh && effects.exists() {
        std::fs::remove_dir_all(&args.dir)?;
    }
    std::fs::create_dir_all(&args.dir)?;

    let engine = open(&args.dir, &effects).await?;
    let mut right = true;
    for number in 1..=args.trips {
        let id = format!("trip-{number}");
        match engine.run(&id, trip(number)).await {
            Ok(total) => println!("{id}: booked, for {total}"),
            Err(workflow::Error::Failed(failure)) => println!("{id}: undone, because {failure}"),
            Err(error) => {
                println!("{id}: stuck: {error}");
                right = false;
            }
        }
    }
    if args.verify {
        let mut total = travel::Verified::default();
        for number in 1..=args.trips {
            let run = engine.attach::<trip>(format!("trip-{number}")).await?;
            total.lay_beside(&run.history().await?, run.id().as_str(), &effects)?;
        }
        println!("  effects recorded  {:>6}", total.recorded);
        println!("  effects undone    {:>6}", total.undone);
        println!("  wrong             {:>6}", total.wrong.len());
        for wrong in &total.wrong {
            println!("  {wrong}");
        }
        right &= total.wrong.is_empty();
    }
    engine.shutdown(Duration::from_secs(5)).await?;
    Ok(ExitCode::from(u8::from(!right)))
}

async fn open(dir: &Path, effects: &Path) -> Result<Engine, Box<dyn Error>> {
    let builder = Engine::builder()
        .workflow(trip)
        .state(Travel::open(effects)?);
    let path = dir.join("saga.redb");
    let Ok(appends) = std::env::var("SAGA_KILL_AT_COMMIT") else {
        return Ok(builder.open(path).await?);
    };
    let store = crash::Crashing {
        store: RedbStore::open(path)?,
        left: appends.parse::<u64>()?.into(),
    };
    Ok(builder.store(store).build().await?)
}
