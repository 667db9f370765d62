//! What durability costs here, beside what the disk costs anyway.
//!
//! ```text
//! cargo bench -p workflow --bench durable               the whole, some minutes
//! cargo bench -p workflow --bench durable -- --quick    under a minute
//! cargo bench -p workflow --bench durable -- sleeping   one section, or several: sequential concurrent tails replay preflight ageing
//!                                                       beside waking sleeping
//! ```
//!
//! Everything is measured in one process, at full durability, in turns: read the ratios, since the figures are those of
//! this disk at this moment. The files are made under cargo's target directory and removed at the end.

#![expect(clippy::print_stdout, reason = "this program is for its output")]

mod disk;
mod ours;
mod slow;
mod table;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use disk::{Log, Redb};
use ours::Ours;
use table::{Table, median, quantile};

/// How much is done.
struct Size {
    rounds: usize,
    /// Sequential steps a round.
    steps: usize,
    /// Concurrent steps a round, all runs together.
    crowd: usize,
    longest_replay: usize,
    sleepers: usize,
    ready: usize,
    /// How often an idle handler is called.
    ticks: usize,
}

const WHOLE: Size = Size {
    rounds: 7,
    steps: 500,
    crowd: 40_960,
    longest_replay: 100_000,
    sleepers: 10_000,
    ready: 1_000_000,
    ticks: 10_000,
};
const QUICK: Size = Size {
    rounds: 3,
    steps: 200,
    crowd: 8_192,
    longest_replay: 10_000,
    sleepers: 5_000,
    ready: 20_000,
    ticks: 3_000,
};

/// This program again, to be killed: falls asleep with some runs in this file.
const ASLEEP: &str = "--asleep";

fn main() {
    let mut words = std::env::args().skip_while(|word| word != ASLEEP).skip(1);
    if let Some(path) = words.next() {
        return asleep(Path::new(&path));
    }
    let size = if std::env::args().any(|word| word == "--quick") {
        QUICK
    } else {
        WHOLE
    };
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory can be made");
    println!("# Durable steps");
    let asked = |(name, _): &&(&str, Section)| std::env::args().any(|word| word == *name);
    let all = !SECTIONS.iter().any(|section| asked(&section));
    for section in SECTIONS.iter().filter(|section| all || asked(section)) {
        if all && section.0 == SLEEPING {
            in_a_process_of_its_own(SLEEPING);
        } else {
            (section.1)(&size, dir.path());
        }
    }
}

/// Memory is counted there, and what other sections leave behind in this process is not to be in it.
fn in_a_process_of_its_own(section: &str) {
    let this = std::env::current_exe().expect("this program has a path");
    let mut program = Command::new(this);
    program.arg(section).args(std::env::args().skip(1));
    let status = program.status().expect("this program starts once more");
    assert!(status.success(), "`{section}` ended badly: {status}");
}

type Section = fn(&Size, &Path);

const SECTIONS: [(&str, Section); 9] = [
    ("sequential", sequential),
    ("concurrent", concurrent),
    ("tails", tails),
    ("replay", replay),
    ("preflight", preflight),
    ("ageing", ageing),
    ("beside", beside),
    ("waking", waking),
    (SLEEPING, sleeping),
];

const SLEEPING: &str = "sleeping";

/// What a relaxed store lets wait for its sync.
const RELAXED: Duration = Duration::from_millis(20);

fn sequential(size: &Size, dir: &Path) {
    let mut log = Log::open(&dir.join("sequential.log"));
    let mut redb = Redb::open(&dir.join("sequential-alone.redb"));
    let ours = Ours::open(&dir.join("sequential.redb"));
    let relaxed = Ours::relaxed(&dir.join("relaxed.redb"), RELAXED);
    Table::new("One after the other", "us per step")
        .row("append + fdatasync of 128 B", || log.append(size.steps, 1))
        .row("redb alone, a commit of 128 B", || redb.append(size.steps))
        .row("a step", || ours.steps(1, size.steps))
        .row("a step, relaxed: synced every 20 ms", || {
            relaxed.steps(1, size.steps)
        })
        .measure(size.rounds);
}

fn concurrent(size: &Size, dir: &Path) {
    let ours = Ours::open(&dir.join("concurrent.redb"));
    for runs in [1, 8, 64, 512, 4096] {
        let each = (size.crowd.min(runs * 200) / runs).max(2);
        let mut log = Log::open(&dir.join("concurrent.log"));
        let title = match runs {
            1 => "1 run",
            8 => "8 runs at once",
            64 => "64 runs at once",
            512 => "512 runs at once",
            _ => "4,096 runs at once",
        };
        Table::new(title, "us per step")
            .row("a raw log, one fdatasync for all", || {
                log.append(each, runs)
            })
            .row("steps", || ours.steps(runs, each))
            .measure(size.rounds);
    }
}

/// The slow ones: of steps, while what was committed is folded, and of other tasks, while a run is replayed.
fn tails(size: &Size, dir: &Path) {
    let ours = Ours::open(&dir.join("tails.redb"));
    let rounds: Vec<_> = (0..size.rounds.min(3))
        .map(|_| {
            // More than is committed between two folds.
            let times = ours.latencies(64, size.crowd / 32);
            (quantile(&times, 0.5), quantile(&times, 0.99))
        })
        .collect();
    let of = |pick: fn(&(f64, f64)) -> f64| median(&rounds.iter().map(pick).collect::<Vec<_>>());
    println!("\n### A step as its workflow sees it, 64 runs at once\n\n| | us |\n| --- | ---: |");
    println!("| median | {:.0} |", of(|round| round.0));
    println!("| 99th percentile | {:.0} |", of(|round| round.1));
    println!(
        "| the latter to the former | {:.2}x |",
        of(|round| round.1 / round.0)
    );
    println!("\n### Another task while a run is replayed\n\n| | at most ms late |\n| --- | ---: |");
    for n in [1_000, 10_000, 100_000] {
        if n <= size.longest_replay {
            let most = (0..size.rounds.min(3))
                .map(|_| {
                    ours.lateness(|| {
                        ours.replay(n);
                    })
                })
                .collect::<Vec<_>>();
            println!("| {n} steps | {:.1} |", median(&most));
        }
    }
}

/// Runs that wake: how many a second when all are due, and how late they are when they are not.
#[expect(clippy::cast_precision_loss, reason = "counts of what was done here")]
fn waking(size: &Size, dir: &Path) {
    let ours = Ours::open(&dir.join("waking.redb"));
    let start = Duration::from_secs(2 + size.sleepers as u64 / 2_500);
    let (took, _) = ours.wake(size.sleepers, start, Duration::ZERO);
    let spread = Duration::from_secs(5);
    let (_, late) = ours.wake(size.sleepers, start, spread);
    println!(
        "\n### {} runs that wake and do a step\n\n| | |\n| --- | ---: |",
        size.sleepers
    );
    println!(
        "| a second, when all are due at once | {:.0} |",
        size.sleepers as f64 / took
    );
    println!(
        "| ms late, median, when they are due over {} s | {:.2} |",
        spread.as_secs(),
        quantile(&late, 0.5)
    );
    println!(
        "| ms late, 99th percentile | {:.2} |",
        quantile(&late, 0.99)
    );
}

fn replay(size: &Size, dir: &Path) {
    let ours = Ours::open(&dir.join("replay.redb"));
    let mut table = Table::new("Replay, from the store to the frontier", "us per step");
    for n in [1_000, 100, 10_000, 100_000] {
        if n <= size.longest_replay {
            let ours = &ours;
            table = table.row(format!("{n} steps"), move || ours.replay(n));
        }
    }
    table.measure(size.rounds.min(3));
}

#[expect(clippy::cast_precision_loss, reason = "counts of what was done here")]
fn preflight(size: &Size, dir: &Path) {
    println!(
        "\n### Preflight\n\n| | recorded steps a second | memory over that of the open store |\n| --- | ---: | ---: |"
    );
    for steps in [1, 10, 100, 1_000] {
        let runs = (size.crowd / steps).clamp(20, size.sleepers);
        let mut ours = Ours::open(&dir.join(format!("preflight-{steps}.redb")));
        ours.wait(runs, steps);
        ours.reopen();
        let memory = resident();
        let rates: Vec<_> = (0..size.rounds)
            .map(|_| {
                let (steps, took) = ours.preflight();
                steps as f64 / took
            })
            .collect();
        let grown = (resident() - memory) / 1024.0;
        println!(
            "| {runs} runs of {steps} steps | {:.0} | {grown:.0} KiB |",
            median(&rates)
        );
    }
}

fn ageing(size: &Size, dir: &Path) {
    let ours = Ours::open(&dir.join("ageing.redb"));
    let rounds: Vec<_> = (0..size.rounds.min(3))
        .map(|_| ours.ageing(100, 10_000, 500))
        .collect();
    let of = |pick: fn(&(f64, f64)) -> f64| median(&rounds.iter().map(pick).collect::<Vec<_>>());
    println!("\n### A long run\n\n| | us per step |\n| --- | ---: |");
    println!("| steps from 100 on | {:.1} |", of(|round| round.0));
    println!("| steps up to 10,000 | {:.1} |", of(|round| round.1));
    println!(
        "| the latter to the former | {:.2}x |",
        of(|round| round.1 / round.0)
    );
}

fn beside(size: &Size, dir: &Path) {
    let (alone, beside) = slow::lateness(dir, 64, size.ticks);
    println!("\n### Other tasks while a commit syncs, if a sync takes 50 ms, on two workers");
    println!("\n| | ms late, 99th percentile |\n| --- | ---: |");
    println!("| an idle handler, alone | {alone:.2} |");
    println!("| beside 64 runs that commit | {beside:.2} |");
    println!("| the latter to the former | {:.2}x |", beside / alone);
}

#[expect(clippy::cast_precision_loss, reason = "counts of what was done here")]
fn sleeping(size: &Size, dir: &Path) {
    let mut ours = Ours::open(&dir.join("sleeping.redb"));
    // What the first burst takes once is not what each run costs.
    ours.sleep(1000);
    ours.reopen();
    let (runs, memory, bytes) = (size.sleepers as f64, resident(), ours.bytes());
    let since = Instant::now();
    ours.sleep(size.sleepers);
    let took = since.elapsed().as_secs_f64();
    let live = resident() - memory;
    ours.reopen();
    let reopened = resident() - memory;
    let stored = ours.bytes().saturating_sub(bytes) as f64;
    println!(
        "\n### {} sleeping runs\n\n| | each |\n| --- | ---: |",
        size.sleepers
    );
    println!(
        "| time to start, do a step and fall asleep | {:.1} us |",
        took * 1e6 / runs
    );
    println!("| memory, where they fell asleep | {:.0} B |", live / runs);
    println!("| memory, after opening again | {:.0} B |", reopened / runs);
    println!("| in the store | {:.0} B |", stored / runs);

    ours.sleep(size.ready - size.sleepers - 1000);
    let ready: Vec<_> = (0..size.rounds).map(|_| ours.reopen() * 1e3).collect();
    println!(
        "| ready again with {} of them asleep, all together | {:.1} ms |",
        size.ready,
        median(&ready)
    );
    let pages: Vec<_> = (0..size.rounds).map(|_| ours.list()).collect();
    let of = |pick: fn(&(f64, f64)) -> f64| median(&pages.iter().map(pick).collect::<Vec<_>>());
    println!(
        "| a page of 100 of them, the first | {:.2} ms |",
        of(|page| page.0 * 1e3)
    );
    println!("| the next | {:.2} ms |", of(|page| page.1 * 1e3));
    ours.close();
    let ready: Vec<_> = (0..size.rounds.min(3))
        .map(|_| ready_after_a_kill(&dir.join("sleeping.redb")) * 1e3)
        .collect();
    println!("| the same after kill -9 | {:.1} ms |", median(&ready));
}

/// How many more fall asleep before a kill: what is not folded yet is read when the store is opened.
const BEFORE_A_KILL: usize = 10_000;

/// Has another process open the file and kills it in the middle of its work; seconds until an engine is ready then.
fn ready_after_a_kill(path: &Path) -> f64 {
    let this = std::env::current_exe().expect("this program has a path");
    let mut child = Command::new(this)
        .arg(ASLEEP)
        .arg(path)
        .stdout(Stdio::piped())
        .spawn()
        .expect("this program starts once more");
    let said = child.stdout.take().map(BufReader::new);
    let line = said.and_then(|said| said.lines().next());
    assert!(matches!(line, Some(Ok(_))), "the other process fell asleep");
    child.kill().expect("the other process can be killed");
    child.wait().expect("the other process ends");
    let mut ours = Ours::closed(path);
    let took = ours.reopen();
    ours.close();
    took
}

fn asleep(path: &Path) {
    ours::number_from(u64::from(std::process::id()) << 32);
    let ours = Ours::open(path);
    ours.sleep(BEFORE_A_KILL);
    println!("asleep");
    ours.sleep(usize::MAX);
}

/// Memory in use that is no file's; 0 where the system does not tell.
fn resident() -> f64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let mut pages = statm
        .split_whitespace()
        .skip(1)
        .map_while(|word| word.parse::<f64>().ok());
    let (all, of_files) = (pages.next().unwrap_or(0.0), pages.next().unwrap_or(0.0));
    (all - of_files) * 4096.0
}
