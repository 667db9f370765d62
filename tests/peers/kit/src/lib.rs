//! What the engines under comparison do, written once: an engine is a [`Peer`], and [`main`] puts it through a scenario and
//! prints one line of figures, so that `compare` can run the engines' programs in turn.
//!
//! ```text
//! peer seq DIR STEPS          one run of STEPS trivial steps on a fresh store     secs
//! peer conc DIR RUNS STEPS    RUNS runs of STEPS trivial steps, all at once       secs
//! peer lat DIR RUNS STEPS     as conc: a step as its workflow sees it, and how late a 1 ms ticker beside the engine wakes (us)
//!                                                                                 secs p50 p99 tick50 tick99 tickmax
//! peer fill DIR STEPS         leaves one run with STEPS recorded steps, unfinished (dies by SIGKILL)
//! peer resume DIR             brings the run left by `fill` to its end            open_secs secs
//! peer park DIR RUNS          RUNS runs: one step, then a sleep of an hour        secs bytes_each
//! peer unpark DIR RUNS        opens the store left by `park`                      secs bytes_each
//! peer crash DIR RUNS STEPS   as conc; steps log to DIR/effects; prints STARTED; `compare` kills it
//! peer recover DIR RUNS STEPS finishes what `crash` left                          secs workflows
//! ```
//!
//! The line is `RESULT key=value ..`. Each scenario wants an empty DIR, but for those that go on with another's.

mod step;

use std::fmt::Display;
use std::future::Future;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
pub use step::{at_the_end, effect, executed, step_begins, step_ended};

/// Whatever went wrong: a scenario that fails prints it, and has no figures.
pub type Error = Box<dyn std::error::Error + Send + Sync>;

/// An engine over a store in a directory, with two workflows: one of trivial steps, and one that sleeps.
///
/// The step's body is [`effect`], called with the run's number and the step's; a workflow of steps calls [`step_begins`] and
/// [`step_ended`] around each, and [`at_the_end`] when it has done them all.
pub trait Peer: Sized {
    /// A run under way.
    type Run;

    /// Opens the store and starts the engine. What an earlier process left may go on by itself from here.
    fn open(dir: &Path) -> impl Future<Output = Result<Self, Error>>;

    /// Starts run `run` of `steps` steps. It is stored when this is done.
    fn start(&self, run: u64, steps: u64) -> impl Future<Output = Result<Self::Run, Error>>;

    /// Waits for the end of a run, which has to be a success.
    fn end(&self, run: Self::Run) -> impl Future<Output = Result<(), Error>>;

    /// Starts run `run` of one step and a sleep of an hour. `park` is done when all of them have done their step; an engine that can
    /// tell that a run has gone to sleep waits for that here or in [`parked`](Self::parked).
    fn park(&self, run: u64) -> impl Future<Output = Result<(), Error>>;

    /// Waits until all `runs` sleep.
    fn parked(&self, runs: u64) -> impl Future<Output = Result<(), Error>> {
        async move {
            while executed() < runs {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            Ok(())
        }
    }

    /// Makes ready for what is asleep, where opening did not.
    fn wake(&self) -> impl Future<Output = Result<(), Error>> {
        async { Ok(()) }
    }

    /// Brings the first `runs` runs of steps of an earlier process to their ends; how many of them there were.
    fn resume(&self, runs: u64) -> impl Future<Output = Result<u64, Error>>;
}

/// Puts `P` through the scenario on the command line, on a runtime of two threads.
pub fn main<P: Peer>() -> ExitCode {
    let Some(task) = Task::of_command_line() else {
        eprintln!("usage: peer SCENARIO DIR [A [B]]");
        return ExitCode::from(2);
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    match runtime {
        Ok(runtime) => match runtime.block_on(task.work::<P>()) {
            // What closing takes is no part of any scenario.
            Ok(()) => std::process::exit(0),
            Err(error) => failed(error),
        },
        Err(error) => failed(error),
    }
}

fn failed(error: impl Display) -> ExitCode {
    eprintln!("{error}");
    ExitCode::FAILURE
}

/// The command line: `SCENARIO DIR [A [B]]`.
struct Task {
    scenario: String,
    dir: PathBuf,
    /// How many runs, or how many steps where there is one run.
    a: u64,
    /// How many steps each.
    b: u64,
}

impl Task {
    fn of_command_line() -> Option<Self> {
        let mut words = std::env::args().skip(1);
        let (scenario, dir) = (words.next()?, PathBuf::from(words.next()?));
        let mut number = || match words.next() {
            Some(word) => word.parse().ok(),
            None => Some(0),
        };
        let (a, b) = (number()?, number()?);
        Some(Self {
            scenario,
            dir,
            a,
            b,
        })
    }

    async fn work<P: Peer>(&self) -> Result<(), Error> {
        std::fs::create_dir_all(&self.dir)?;
        match self.scenario.as_str() {
            "seq" => self.sequential::<P>().await,
            "conc" => self.crowd::<P>().await,
            "lat" => self.latencies::<P>().await,
            "fill" => self.fill::<P>().await,
            "resume" => self.resume::<P>().await,
            "park" => self.park::<P>().await,
            "unpark" => self.unpark::<P>().await,
            "crash" => self.crash::<P>().await,
            "recover" => self.recover::<P>().await,
            other => Err(format!("no scenario `{other}`").into()),
        }
    }

    async fn sequential<P: Peer>(&self) -> Result<(), Error> {
        let peer = P::open(&self.dir).await?;
        warm_up(&peer).await?;
        let since = Instant::now();
        let run = peer.start(0, self.a).await?;
        peer.end(run).await?;
        result(&[("secs", since.elapsed().as_secs_f64())])
    }

    async fn crowd<P: Peer>(&self) -> Result<(), Error> {
        let peer = P::open(&self.dir).await?;
        warm_up(&peer).await?;
        let secs = self.all_at_once(&peer).await?;
        result(&[("secs", secs)])
    }

    async fn latencies<P: Peer>(&self) -> Result<(), Error> {
        step::time_steps();
        tokio::spawn(async {
            let wait = Duration::from_millis(1);
            loop {
                let since = Instant::now();
                tokio::time::sleep(wait).await;
                step::tick(since.elapsed().saturating_sub(wait));
            }
        });
        let peer = P::open(&self.dir).await?;
        let secs = self.all_at_once(&peer).await?;
        let mut figures = vec![("secs", secs)];
        figures.extend(step::latencies());
        result(&figures)
    }

    async fn fill<P: Peer>(&self) -> Result<(), Error> {
        step::die_at_the_end();
        let peer = P::open(&self.dir).await?;
        let run = peer.start(0, self.a).await?;
        peer.end(run).await?;
        Err("the run outlived its process".into())
    }

    async fn resume<P: Peer>(&self) -> Result<(), Error> {
        let since = Instant::now();
        let peer = P::open(&self.dir).await?;
        let open_secs = since.elapsed().as_secs_f64();
        let since = Instant::now();
        let found = peer.resume(1).await?;
        let secs = since.elapsed().as_secs_f64();
        if (found, executed()) != (1, 0) {
            let again = executed();
            return Err(
                format!("{found} runs were found, and {again} recorded steps ran again").into(),
            );
        }
        result(&[("open_secs", open_secs), ("secs", secs)])
    }

    async fn park<P: Peer>(&self) -> Result<(), Error> {
        let peer = P::open(&self.dir).await?;
        let before = anonymous_bytes().await?;
        let since = Instant::now();
        try_join_all((0..self.a).map(|run| peer.park(run))).await?;
        peer.parked(self.a).await?;
        self.memory(since.elapsed(), before).await
    }

    async fn unpark<P: Peer>(&self) -> Result<(), Error> {
        let before = anonymous_bytes().await?;
        let since = Instant::now();
        let peer = P::open(&self.dir).await?;
        peer.wake().await?;
        self.memory(since.elapsed(), before).await
    }

    async fn crash<P: Peer>(&self) -> Result<(), Error> {
        step::log_effects(&self.dir)?;
        let peer = P::open(&self.dir).await?;
        self.all_at_once(&peer).await.map(drop)
    }

    async fn recover<P: Peer>(&self) -> Result<(), Error> {
        step::log_effects(&self.dir)?;
        let since = Instant::now();
        let peer = P::open(&self.dir).await?;
        let found = peer.resume(self.a).await?;
        let secs = since.elapsed().as_secs_f64();
        #[allow(clippy::cast_precision_loss)]
        result(&[("secs", secs), ("workflows", found as f64)])
    }

    /// Runs `a` runs of `b` steps; seconds from the first start to the last end.
    async fn all_at_once<P: Peer>(&self, peer: &P) -> Result<f64, Error> {
        let since = Instant::now();
        let runs = try_join_all((0..self.a).map(|run| peer.start(run, self.b))).await?;
        say("STARTED")?;
        try_join_all(runs.into_iter().map(|run| peer.end(run))).await?;
        Ok(since.elapsed().as_secs_f64())
    }

    async fn memory(&self, took: Duration, before: f64) -> Result<(), Error> {
        #[allow(clippy::cast_precision_loss)]
        let each = (anonymous_bytes().await? - before) / self.a.max(1) as f64;
        result(&[("secs", took.as_secs_f64()), ("bytes_each", each)])
    }
}

/// The first steps of a process pay for what is made once.
async fn warm_up<P: Peer>(peer: &P) -> Result<(), Error> {
    let run = peer.start(u64::MAX, 5).await?;
    peer.end(run).await
}

fn result(figures: &[(&str, f64)]) -> Result<(), Error> {
    let words: Vec<String> = figures
        .iter()
        .map(|(name, value)| format!("{name}={value:.6}"))
        .collect();
    say(&format!("RESULT {}", words.join(" ")))
}

/// Prints one line at once.
fn say(line: &str) -> Result<(), Error> {
    println!("{line}");
    Ok(std::io::stdout().flush()?)
}

/// Anonymous memory in use, after things have settled.
async fn anonymous_bytes() -> Result<f64, Error> {
    tokio::time::sleep(Duration::from_secs(2)).await;
    let status = std::fs::read_to_string("/proc/self/status")?;
    let kib = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:")?.trim().strip_suffix(" kB"))
        .ok_or("/proc/self/status tells no RssAnon")?;
    Ok(kib.trim().parse::<f64>()? * 1024.0)
}
