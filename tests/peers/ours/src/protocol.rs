//! What the scenarios share: arguments, the result line, the trivial step's body, and what is measured.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

/// The command line: `SCENARIO DIR [A [B]]`.
pub struct Args {
    pub scenario: String,
    pub dir: PathBuf,
    /// How many runs, or how many steps where there is one run.
    pub a: u64,
    /// How many steps each.
    pub b: u64,
}

impl Args {
    /// Reads the command line and makes the directory; `None` when the line is not of the protocol.
    pub fn read() -> Option<Self> {
        let mut words = std::env::args().skip(1);
        let (scenario, dir) = (words.next()?, PathBuf::from(words.next()?));
        let mut number = || match words.next() {
            Some(word) => word.parse().ok(),
            None => Some(0),
        };
        let (a, b) = (number()?, number()?);
        std::fs::create_dir_all(&dir).expect("the data directory can be made");
        Some(Self {
            scenario,
            dir,
            a,
            b,
        })
    }

    /// From here on each step leaves a line in `DIR/effects`.
    pub fn log_effects(&self) {
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.dir.join("effects"))
            .expect("the effects file opens");
        EFFECTS.get_or_init(|| file);
    }
}

/// The trivial step's body: gives the step's number back.
pub fn effect(run: u64, step: u64) -> u64 {
    if let Some(mut file) = EFFECTS.get() {
        let line = format!("{run} {step} {}\n", std::process::id());
        file.write_all(line.as_bytes())
            .expect("the effect is logged");
    }
    EXECUTED.fetch_add(1, Ordering::Relaxed);
    step
}

/// How many step bodies have run in this process.
pub fn executed() -> usize {
    EXECUTED.load(Ordering::Relaxed)
}

/// Prints the result line.
pub fn result(figures: &[(&str, f64)]) {
    let words: Vec<String> = figures
        .iter()
        .map(|(name, value)| format!("{name}={value:.6}"))
        .collect();
    say(&format!("RESULT {}", words.join(" ")));
}

/// Prints one line at once.
pub fn say(line: &str) {
    println!("{line}");
    std::io::stdout().flush().expect("stdout takes a line");
}

/// From here on a run that ends `then_die` ends the process as `kill -9` does.
pub fn arm() {
    ARMED.store(true, Ordering::Relaxed);
}

/// Called at a run's end.
pub fn die_if_armed() {
    if ARMED.load(Ordering::Relaxed) {
        let _ = Command::new("kill")
            .args(["-9", &std::process::id().to_string()])
            .status();
        std::process::abort();
    }
}

/// Anonymous memory in use, after things have settled.
pub fn anonymous_bytes() -> f64 {
    std::thread::sleep(Duration::from_millis(300));
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux has /proc");
    status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"))
        .and_then(|rest| rest.trim().strip_suffix(" kB"))
        .and_then(|kib| kib.trim().parse::<f64>().ok())
        .map_or(0.0, |kib| kib * 1024.0)
}

/// From here on steps and ticks are timed.
pub fn time_steps() {
    TIMED.store(true, Ordering::Relaxed);
}

/// When a step began, if steps are timed.
pub fn step_begins() -> Option<Instant> {
    TIMED.load(Ordering::Relaxed).then(Instant::now)
}

/// The step that began at `since` was handed to its workflow.
pub fn step_ended(since: Option<Instant>) {
    if let Some(since) = since {
        push(&STEPS, since.elapsed());
    }
}

/// A ticker woke this much too late.
pub fn tick(late: Duration) {
    push(&TICKS, late);
}

/// Prints the result line of scenario `lat`.
pub fn latencies(secs: f64) {
    let (steps, ticks) = (sorted(&STEPS), sorted(&TICKS));
    result(&[
        ("secs", secs),
        ("p50", quantile(&steps, 50)),
        ("p99", quantile(&steps, 99)),
        ("tick50", quantile(&ticks, 50)),
        ("tick99", quantile(&ticks, 99)),
        ("tickmax", quantile(&ticks, 100)),
    ]);
}

fn push(to: &Mutex<Vec<f64>>, time: Duration) {
    let micros = time.as_secs_f64() * 1e6;
    to.lock().expect("no holder panics").push(micros);
}

fn sorted(of: &Mutex<Vec<f64>>) -> Vec<f64> {
    let mut all = of.lock().expect("no holder panics").clone();
    all.sort_by(f64::total_cmp);
    all
}

fn quantile(sorted: &[f64], percent: usize) -> f64 {
    let last = sorted.len().saturating_sub(1);
    sorted.get(last * percent / 100).copied().unwrap_or(0.0)
}

static EFFECTS: OnceLock<File> = OnceLock::new();
static EXECUTED: AtomicUsize = AtomicUsize::new(0);
static ARMED: AtomicBool = AtomicBool::new(false);
static TIMED: AtomicBool = AtomicBool::new(false);
static STEPS: Mutex<Vec<f64>> = Mutex::new(Vec::new());
static TICKS: Mutex<Vec<f64>> = Mutex::new(Vec::new());
