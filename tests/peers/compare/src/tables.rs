//! The tables: which scenarios, how often, and what is made of their figures.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use tempfile::{NamedTempFile, TempDir};

use crate::Options;
use crate::crash;
use crate::engine::{Engine, Error, Outcome, Place, Store, engines};
use crate::table::{failed, figure, head, maybe, median, row};

/// What an engine has time for. The slowest take about a minute for the longest scenarios.
const LIMIT: Duration = Duration::from_secs(240);

pub struct Bench {
    engines: Vec<Engine>,
    place: Place,
    rounds: usize,
    quick: bool,
    /// Holds the stores.
    _dir: TempDir,
}

/// What a scenario of steps gave in each round.
#[derive(Default)]
struct Rounds {
    /// Microseconds a step.
    step: Vec<f64>,
    /// The same, against the raw log.
    against_raw: Vec<f64>,
    /// Microseconds of processor a step, of the whole process.
    processor: Vec<f64>,
    failed: Option<String>,
}

impl Bench {
    pub fn new(options: &Options) -> Result<Self, Error> {
        let programs = std::env::current_exe()?;
        let programs = programs.parent().ok_or("this program is in no directory")?;
        let dir = match &options.dir {
            Some(dir) => {
                fs::create_dir_all(dir)?;
                TempDir::with_prefix_in("peers-", dir)?
            }
            None => TempDir::with_prefix_in("peers-", programs)?,
        };
        Ok(Self {
            engines: engines(&options.only, options.postgres.is_some()),
            place: Place {
                programs: programs.to_owned(),
                dir: dir.path().to_owned(),
                postgres: options.postgres.clone(),
            },
            rounds: if options.quick { 1 } else { options.rounds },
            quick: options.quick,
            _dir: dir,
        })
    }

    pub fn steps(&self) -> Result<(), Error> {
        self.table_of_steps("One run of 100 steps", "seq", &[100], 100)
    }

    pub fn crowd(&self) -> Result<(), Error> {
        let (runs, steps) = if self.quick { (100, 10) } else { (1_000, 10) };
        let title = format!(
            "{} runs of {steps} steps, all at once",
            figure(as_f64(runs))
        );
        self.table_of_steps(&title, "conc", &[runs, steps], runs * steps)
    }

    fn table_of_steps(
        &self,
        title: &str,
        scenario: &str,
        numbers: &[u64],
        steps: u64,
    ) -> Result<(), Error> {
        let mut all: Vec<Rounds> = self.engines.iter().map(|_| Rounds::default()).collect();
        for _ in 0..self.rounds {
            for (engine, rounds) in self.engines.iter().zip(&mut all) {
                if rounds.failed.is_some() {
                    continue;
                }
                let raw = raw_append(&self.place.dir)?;
                match self.once(engine, scenario, numbers) {
                    Ok(outcome) => {
                        let step = outcome.get("secs")? * 1e6 / as_f64(steps);
                        rounds.step.push(step);
                        rounds.against_raw.push(step / raw);
                        rounds
                            .processor
                            .push(outcome.processor * 1e6 / as_f64(steps));
                    }
                    Err(error) => rounds.failed = Some(error.to_string()),
                }
            }
        }
        let columns = [
            "µs a step",
            "steps a second",
            "x workflow",
            "x append + fdatasync",
            "µs of processor a step",
        ];
        head(
            &format!("{title} ({} rounds, medians)", self.rounds),
            &columns,
        );
        let ours = all.first().and_then(|ours| median(&ours.step));
        for (engine, rounds) in self.engines.iter().zip(&all) {
            if let Some(why) = &rounds.failed {
                failed(engine.name, why, columns.len());
                continue;
            }
            let step = median(&rounds.step);
            let cells = [
                step,
                step.map(|step| 1e6 / step),
                step.zip(ours).map(|(step, ours)| step / ours),
                median(&rounds.against_raw),
                median(&rounds.processor),
            ];
            row(engine.name, &cells.map(maybe));
        }
        Ok(())
    }

    pub fn latency(&self) -> Result<(), Error> {
        let names = ["p50", "p99", "tick50", "tick99", "tickmax"];
        let crowds: &[(u64, u64)] = if self.quick {
            &[(8, 50)]
        } else {
            &[(8, 200), (64, 100)]
        };
        for &(runs, steps) in crowds {
            let columns = [
                "steps a second",
                "step p50 µs",
                "p99 µs",
                "p99 / p50",
                "ticker late p50 µs",
                "p99 µs",
                "most µs",
            ];
            head(
                &format!(
                    "{runs} runs of {steps} steps: latency ({} rounds, medians)",
                    self.rounds
                ),
                &columns,
            );
            for engine in self.engines.iter().filter(|engine| engine.timed) {
                let rounds: Result<Vec<Outcome>, Error> = (0..self.rounds)
                    .map(|_| self.once(engine, "lat", &[runs, steps]))
                    .collect();
                let rounds = match rounds {
                    Ok(rounds) => rounds,
                    Err(error) => {
                        failed(engine.name, &error.to_string(), columns.len());
                        continue;
                    }
                };
                let middle = |name: &str| -> Result<Option<f64>, Error> {
                    let figures: Result<Vec<f64>, Error> =
                        rounds.iter().map(|round| round.get(name)).collect();
                    Ok(median(&figures?))
                };
                let [p50, p99, tick50, tick99, most] = names.map(middle);
                let (p50, p99) = (p50?, p99?);
                let secs = middle("secs")?;
                let cells = [
                    secs.map(|secs| as_f64(runs * steps) / secs),
                    p50,
                    p99,
                    p99.zip(p50).map(|(p99, p50)| p99 / p50),
                    tick50?,
                    tick99?,
                    most?,
                ];
                row(engine.name, &cells.map(maybe));
            }
        }
        Ok(())
    }

    pub fn replay(&self) -> Result<(), Error> {
        let (few, many) = if self.quick {
            (100, 1_000)
        } else {
            (1_000, 10_000)
        };
        let few_ms = format!("{} steps, ms", figure(as_f64(few)));
        let many_ms = format!("{} steps, ms", figure(as_f64(many)));
        let columns = [
            few_ms.as_str(),
            many_ms.as_str(),
            "µs for each further step",
            "x workflow",
        ];
        head(
            &format!(
                "A new process opens the store and brings a run of recorded steps to its end ({} rounds, medians)",
                self.rounds
            ),
            &columns,
        );
        let mut ours = None;
        for engine in &self.engines {
            let cells = (|| {
                let few_ms = self.resumed(engine, few)?;
                let many_ms = self.resumed(engine, many)?;
                let step = (many_ms - few_ms) * 1e3 / as_f64(many - few);
                let ours = *ours.get_or_insert(step);
                Ok::<_, Error>([few_ms, many_ms, step, step / ours])
            })();
            match cells {
                Ok(cells) => row(engine.name, &cells.map(figure)),
                Err(error) => failed(engine.name, &error.to_string(), columns.len()),
            }
        }
        Ok(())
    }

    /// Milliseconds from the opening of a store to the end of the one run in it, of `steps` recorded steps.
    fn resumed(&self, engine: &Engine, steps: u64) -> Result<f64, Error> {
        let mut all = Vec::new();
        for _ in 0..self.rounds.min(3) {
            let store = Store::fresh(engine, &self.place)?;
            store.run("fill", &[steps], LIMIT)?;
            let outcome = store.run("resume", &[], LIMIT)?;
            all.push((outcome.get("open_secs")? + outcome.get("secs")?) * 1e3);
        }
        median(&all).ok_or_else(|| "no rounds".into())
    }

    pub fn asleep(&self) -> Result<(), Error> {
        let runs = if self.quick { 500 } else { 10_000 };
        let columns = [
            "s until all sleep",
            "memory each",
            "s to open the store again",
            "memory each then",
            "bytes each in the store",
        ];
        head(
            &format!(
                "{} runs: one step, and a sleep of an hour",
                figure(as_f64(runs))
            ),
            &columns,
        );
        for engine in &self.engines {
            let cells = (|| {
                let store = Store::fresh(engine, &self.place)?;
                let park = store.run("park", &[runs], LIMIT)?;
                let unpark = store.run("unpark", &[runs], LIMIT)?;
                let bytes = store.bytes().map(|bytes| as_f64(bytes) / as_f64(runs));
                let figures = [
                    park.get("secs")?,
                    park.get("bytes_each")?,
                    unpark.get("secs")?,
                    unpark.get("bytes_each")?,
                ];
                let [secs, each, again, each_again] = figures.map(figure);
                Ok::<_, Error>([secs, each, again, each_again, maybe(bytes)])
            })();
            match cells {
                Ok(cells) => row(engine.name, &cells),
                Err(error) => failed(engine.name, &error.to_string(), columns.len()),
            }
        }
        Ok(())
    }

    pub fn crash(&self) -> Result<(), Error> {
        let (runs, steps) = if self.quick { (20, 10) } else { (100, 30) };
        let columns = [
            "rounds completed",
            "steps",
            "had twice",
            "twice though the next had begun",
            "missing",
            "s from restart to end",
        ];
        head(
            &format!("{runs} runs of {steps} steps, killed with -9 twice and started again"),
            &columns,
        );
        for engine in &self.engines {
            match crash::rounds(engine, &self.place, self.rounds.min(3), runs, steps) {
                Ok(counted) => row(engine.name, &counted.cells()),
                Err(error) => failed(engine.name, &error.to_string(), columns.len()),
            }
        }
        Ok(())
    }

    fn once(&self, engine: &Engine, scenario: &str, numbers: &[u64]) -> Result<Outcome, Error> {
        Store::fresh(engine, &self.place)?.run(scenario, numbers, LIMIT)
    }
}

/// Microseconds of an append of 128 bytes to a growing file with fdatasync, now.
fn raw_append(dir: &Path) -> Result<f64, Error> {
    const APPENDS: u32 = 100;
    let mut file: NamedTempFile<File> = NamedTempFile::new_in(dir)?;
    let since = Instant::now();
    for _ in 0..APPENDS {
        file.write_all(&[7; 128])?;
        file.as_file().sync_data()?;
    }
    Ok(since.elapsed().as_secs_f64() * 1e6 / f64::from(APPENDS))
}

#[allow(clippy::cast_precision_loss)]
fn as_f64(number: u64) -> f64 {
    number as f64
}
