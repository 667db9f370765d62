//! The trivial step, and what is measured of it.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use crate::Error;

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
pub fn executed() -> u64 {
    EXECUTED.load(Ordering::Relaxed)
}

/// When a step began, where the scenario takes the time of steps.
pub fn step_begins() -> Option<Instant> {
    TIMED.load(Ordering::Relaxed).then(Instant::now)
}

/// The step that began at `since` was handed to its workflow.
pub fn step_ended(since: Option<Instant>) {
    if let Some(since) = since {
        push(&STEPS, since.elapsed());
    }
}

/// A run of steps has done them all, and has not ended.
pub fn at_the_end() {
    if DIES.load(Ordering::Relaxed) {
        let _ = Command::new("kill")
            .args(["-9", &std::process::id().to_string()])
            .status();
        std::process::abort();
    }
}

/// From here on [`at_the_end`] ends the process as `kill -9` does.
pub(crate) fn die_at_the_end() {
    DIES.store(true, Ordering::Relaxed);
}

/// From here on each step leaves a line in `DIR/effects`.
pub(crate) fn log_effects(dir: &Path) -> Result<(), Error> {
    let path = dir.join("effects");
    let file = OpenOptions::new().create(true).append(true).open(path)?;
    EFFECTS.get_or_init(|| file);
    Ok(())
}

/// From here on steps are timed.
pub(crate) fn time_steps() {
    TIMED.store(true, Ordering::Relaxed);
}

/// A ticker woke this much too late.
pub(crate) fn tick(late: Duration) {
    push(&TICKS, late);
}

/// Of steps and of the ticker, in microseconds.
pub(crate) fn latencies() -> [(&'static str, f64); 5] {
    let (steps, ticks) = (sorted(&STEPS), sorted(&TICKS));
    [
        ("p50", quantile(&steps, 50)),
        ("p99", quantile(&steps, 99)),
        ("tick50", quantile(&ticks, 50)),
        ("tick99", quantile(&ticks, 99)),
        ("tickmax", quantile(&ticks, 100)),
    ]
}

fn push(to: &Mutex<Vec<f64>>, time: Duration) {
    let mut to = to.lock().unwrap_or_else(PoisonError::into_inner);
    to.push(time.as_secs_f64() * 1e6);
}

fn sorted(of: &Mutex<Vec<f64>>) -> Vec<f64> {
    let mut all = of.lock().unwrap_or_else(PoisonError::into_inner).clone();
    all.sort_by(f64::total_cmp);
    all
}

fn quantile(sorted: &[f64], percent: usize) -> f64 {
    let last = sorted.len().saturating_sub(1);
    sorted.get(last * percent / 100).copied().unwrap_or(0.0)
}

static EFFECTS: OnceLock<File> = OnceLock::new();
static EXECUTED: AtomicU64 = AtomicU64::new(0);
static DIES: AtomicBool = AtomicBool::new(false);
static TIMED: AtomicBool = AtomicBool::new(false);
static STEPS: Mutex<Vec<f64>> = Mutex::new(Vec::new());
static TICKS: Mutex<Vec<f64>> = Mutex::new(Vec::new());
