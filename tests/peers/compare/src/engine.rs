//! The engines under comparison, and how one is put through a scenario.

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use tempfile::TempDir;

pub type Error = Box<dyn std::error::Error + Send + Sync>;

/// An engine with its settings: a row of a table.
pub struct Engine {
    pub name: &'static str,
    program: &'static str,
    settings: &'static [(&'static str, &'static str)],
    /// The variable that takes the address of its database, for one on Postgres.
    database: Option<&'static str>,
    /// Whether a step can be timed from within its workflow.
    pub timed: bool,
}

const fn engine(
    name: &'static str,
    program: &'static str,
    settings: &'static [(&'static str, &'static str)],
) -> Engine {
    Engine {
        name,
        program,
        settings,
        database: None,
        timed: true,
    }
}

/// The first row is what all others are compared with.
const ENGINES: [Engine; 9] = [
    engine("workflow", "peer-ours", &[]),
    engine("workflow, relaxed", "peer-ours", &[("OURS_RELAXED", "1")]),
    engine("memable (redb)", "peer-memable", &[]),
    engine(
        "durare (SQLite, FULL)",
        "peer-durare",
        &[("DURARE_STORE", "sqlite-full")],
    ),
    engine("durare (SQLite, NORMAL, its default)", "peer-durare", &[]),
    Engine {
        timed: false,
        ..engine(
            "duroxide (SQLite, NORMAL, its default)",
            "peer-duroxide",
            &[],
        )
    },
    Engine {
        timed: false,
        ..engine(
            "duroxide, tuned",
            "peer-duroxide",
            &[("DUROXIDE_TUNED", "1")],
        )
    },
    Engine {
        database: Some("DURARE_STORE"),
        ..engine("durare (Postgres)", "peer-durare", &[])
    },
    Engine {
        database: Some("DBOS_STORE"),
        ..engine("dbos (Postgres)", "peer-dbos", &[])
    },
];

/// The engines to compare: those of whom `only` has a word, and of those on Postgres none without a server.
pub fn engines(only: &[String], postgres: bool) -> Vec<Engine> {
    let named = |engine: &Engine| {
        only.is_empty() || only.iter().any(|word| engine.name.contains(word.as_str()))
    };
    ENGINES
        .into_iter()
        .filter(|engine| named(engine) && (postgres || engine.database.is_none()))
        .collect()
}

/// Where programs and stores are.
pub struct Place {
    pub programs: PathBuf,
    pub dir: PathBuf,
    pub postgres: Option<String>,
}

/// What a scenario gave.
pub struct Outcome {
    figures: HashMap<String, f64>,
    /// Processor time of the whole process, in seconds.
    pub processor: f64,
}

impl Outcome {
    /// The figure of that name.
    pub fn get(&self, name: &str) -> Result<f64, Error> {
        let figure = self.figures.get(name).copied();
        figure.ok_or_else(|| format!("the scenario gave no `{name}`").into())
    }
}

/// An engine's store, and its database if it has one; both are gone when this is.
pub struct Store<'a> {
    engine: &'a Engine,
    place: &'a Place,
    dir: TempDir,
    database: Option<String>,
}

impl<'a> Store<'a> {
    pub fn fresh(engine: &'a Engine, place: &'a Place) -> Result<Self, Error> {
        static DATABASES: AtomicUsize = AtomicUsize::new(0);
        let database = match (&engine.database, &place.postgres) {
            (Some(_), Some(server)) => {
                let number = DATABASES.fetch_add(1, Ordering::Relaxed);
                let name = format!("peers_{}_{number}", std::process::id());
                psql(server, &format!("create database {name}"))?;
                Some(name)
            }
            _ => None,
        };
        Ok(Self {
            engine,
            place,
            dir: TempDir::with_prefix_in("store-", &place.dir)?,
            database,
        })
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Bytes of its files; none that are a server's.
    pub fn bytes(&self) -> Option<u64> {
        if self.database.is_some() {
            return None;
        }
        let files = self.path().read_dir().ok()?;
        Some(
            files
                .flatten()
                .filter_map(|file| Some(file.metadata().ok()?.len()))
                .sum(),
        )
    }

    /// Puts the engine through a scenario.
    pub fn run(&self, scenario: &str, numbers: &[u64], limit: Duration) -> Result<Outcome, Error> {
        let before = processor()?;
        let mut child = self.start(scenario, numbers)?;
        let lines = lines(&mut child)?;
        let end = Instant::now() + limit;
        let mut figures = HashMap::new();
        loop {
            match lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(line) => figures.extend(result(&line)?),
                Err(mpsc::RecvTimeoutError::Disconnected) => break,
                Err(mpsc::RecvTimeoutError::Timeout) => {
                    child.kill()?;
                    child.wait()?;
                    return Err(format!("more than {} s", limit.as_secs()).into());
                }
            }
        }
        let status = child.wait()?;
        // `fill` ends by a signal, and says nothing.
        if !status.success() && scenario != "fill" {
            return Err(format!("it ended with {status}").into());
        }
        Ok(Outcome {
            figures,
            processor: processor()? - before,
        })
    }

    /// Starts the engine on a scenario.
    pub fn start(&self, scenario: &str, numbers: &[u64]) -> Result<Child, Error> {
        let mut command = Command::new(self.place.programs.join(self.engine.program));
        command
            .arg(scenario)
            .arg(self.path())
            .args(numbers.iter().map(u64::to_string))
            .envs(self.engine.settings.iter().copied())
            .env("RUST_LOG", "off")
            .stdout(Stdio::piped());
        if let (Some(variable), Some(name), Some(server)) =
            (self.engine.database, &self.database, &self.place.postgres)
        {
            command.env(variable, format!("{server}/{name}"));
        }
        Ok(command.spawn()?)
    }
}

impl Drop for Store<'_> {
    fn drop(&mut self) {
        if let (Some(name), Some(server)) = (&self.database, &self.place.postgres) {
            // One that stays is the server's.
            let _ = psql(
                server,
                &format!("drop database if exists {name} with (force)"),
            );
        }
    }
}

/// What a child prints, line by line, until it closes its output.
pub fn lines(child: &mut Child) -> Result<mpsc::Receiver<String>, Error> {
    let output = child
        .stdout
        .take()
        .ok_or("the child's output is not piped")?;
    let (send, lines) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if send.send(line).is_err() {
                break;
            }
        }
    });
    Ok(lines)
}

/// `RESULT key=value ..`
fn result(line: &str) -> Result<HashMap<String, f64>, Error> {
    let Some(words) = line.strip_prefix("RESULT ") else {
        return Ok(HashMap::new());
    };
    let mut figures = HashMap::new();
    for word in words.split(' ') {
        let (name, value) = word.split_once('=').ok_or("a figure without a value")?;
        figures.insert(name.to_owned(), value.parse()?);
    }
    Ok(figures)
}

fn psql(server: &str, statement: &str) -> Result<(), Error> {
    let output = Command::new("psql")
        .args([&format!("{server}/postgres"), "-qc", statement])
        .output()?;
    if output.status.success() {
        return Ok(());
    }
    Err(String::from_utf8_lossy(&output.stderr).into())
}

/// Seconds that ended children have had of the processor.
#[allow(clippy::cast_precision_loss)]
fn processor() -> Result<f64, Error> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let times = [usage.user_time(), usage.system_time()];
    Ok(times
        .iter()
        .map(|time| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6)
        .sum())
}
