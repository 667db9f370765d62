//! Kills an engine at work, twice, and counts what its steps have done.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::engine::{Engine, Error, Place, Store, lines};
use crate::table::{maybe, median};

/// How long an engine may take for a third of its work, and for the rest of it.
const LIMIT: Duration = Duration::from_secs(120);

/// What the steps of all rounds have done.
#[derive(Default)]
pub struct Counted {
    rounds: usize,
    completed: usize,
    effects: usize,
    /// Effects that had been had before.
    twice: usize,
    /// Those of them whose run had gone on to the next step, so that the first was recorded.
    wrong: usize,
    missing: usize,
    secs: Vec<f64>,
}

impl Counted {
    pub fn cells(&self) -> [String; 6] {
        [
            format!("{} of {}", self.completed, self.rounds),
            self.effects.to_string(),
            self.twice.to_string(),
            self.wrong.to_string(),
            self.missing.to_string(),
            maybe(median(&self.secs)),
        ]
    }

    fn count(&mut self, effects: &str, expected: u64) {
        let mut had: HashMap<(&str, u64), u64> = HashMap::new();
        let mut highest: HashMap<&str, u64> = HashMap::new();
        for line in effects.lines() {
            let mut words = line.split(' ');
            let (Some(run), Some(Ok(step))) = (words.next(), words.next().map(str::parse)) else {
                continue;
            };
            let times = had.entry((run, step)).or_default();
            *times += 1;
            self.effects += 1;
            let highest = highest.entry(run).or_insert(step);
            if *times > 1 {
                self.twice += 1;
                self.wrong += usize::from(*highest > step);
            }
            *highest = step.max(*highest);
        }
        let expected = usize::try_from(expected).unwrap_or(usize::MAX);
        self.missing += expected.saturating_sub(had.len());
    }
}

/// In each round the engine is killed when a third of the effects are there, started again, killed at two thirds, and then goes on
/// to the end.
pub fn rounds(
    engine: &Engine,
    place: &Place,
    rounds: usize,
    runs: u64,
    steps: u64,
) -> Result<Counted, Error> {
    let mut counted = Counted::default();
    for _ in 0..rounds {
        let store = Store::fresh(engine, place)?;
        let effects = store.path().join("effects");
        for (third, scenario) in [(1, "crash"), (2, "recover")] {
            kill_at(
                &store,
                scenario,
                [runs, steps],
                &effects,
                runs * steps * third / 3,
            )?;
        }
        counted.rounds += 1;
        match store.run("recover", &[runs, steps], LIMIT) {
            Ok(outcome) => {
                counted.completed += 1;
                counted.secs.push(outcome.get("secs")?);
            }
            Err(error) => eprintln!("{}: {error}", engine.name),
        }
        counted.count(&fs::read_to_string(&effects)?, runs * steps);
    }
    Ok(counted)
}

/// Starts a scenario and kills it when so many effects are there, and no sooner than all runs are stored.
fn kill_at(
    store: &Store,
    scenario: &str,
    numbers: [u64; 2],
    effects: &Path,
    wanted: u64,
) -> Result<(), Error> {
    let mut child = store.start(scenario, &numbers)?;
    let lines = lines(&mut child)?;
    let end = Instant::now() + LIMIT;
    if scenario == "crash" {
        let left = || end.saturating_duration_since(Instant::now());
        while lines
            .recv_timeout(left())
            .is_ok_and(|line| line != "STARTED")
        {}
    }
    while Instant::now() < end && child.try_wait()?.is_none() && count(effects) < wanted {
        std::thread::sleep(Duration::from_micros(300));
    }
    child.kill()?;
    child.wait()?;
    Ok(())
}

fn count(effects: &Path) -> u64 {
    let text = fs::read(effects).unwrap_or_default();
    text.iter().filter(|byte| **byte == b'\n').count() as u64
}
