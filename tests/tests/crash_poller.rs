//! The `poller` example as a process, killed with SIGKILL at random while it is sent messages: for fifteen seconds, or as many as
//! `CRASH_SECONDS` says.
//!
//! What it does to the world are the lines it prints, in a file that is only appended to. Each ends with the idempotency key of its
//! step, so a step that was cut off and done again is told from a message that was taken twice.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "helpers of tests are tests"
)]

mod example;

use std::collections::{BTreeSet, HashMap};
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use example::{Process, Random, binary};

/// What was published, in order: name and key.
fn published(printed: &str) -> Vec<(&str, &str)> {
    let lines = printed.lines();
    lines
        .filter_map(|line| line.strip_prefix("published ")?.split_once(' '))
        .collect()
}

/// The numbers of names like `item-7`, with the given prefix.
fn numbers(published: &[(&str, &str)], prefix: &str) -> Vec<u64> {
    let names = published
        .iter()
        .filter_map(|(name, _)| name.strip_prefix(prefix));
    names.map(|number| number.parse().unwrap()).collect()
}

/// Follows the file while it grows, so that no more is sent than the poller can do.
struct Follower {
    file: File,
    /// The beginning of a line.
    rest: String,
    acknowledged: usize,
    published: BTreeSet<String>,
}

impl Follower {
    fn new(printed: &Path) -> Self {
        Self {
            file: File::options()
                .create(true)
                .append(true)
                .read(true)
                .open(printed)
                .unwrap(),
            rest: String::new(),
            acknowledged: 0,
            published: BTreeSet::new(),
        }
    }

    fn look(&mut self) {
        self.file.read_to_string(&mut self.rest).unwrap();
        while let Some((line, rest)) = self.rest.split_once('\n') {
            if line.starts_with("sent push ") {
                self.acknowledged += 1;
            } else if let Some(rest) = line.strip_prefix("published message-") {
                self.published
                    .extend(rest.split(' ').next().map(ToOwned::to_owned));
            }
            self.rest = rest.to_owned();
        }
    }

    /// How many messages lie in the inbox, about.
    fn backlog(&self) -> usize {
        self.acknowledged.saturating_sub(self.published.len())
    }
}

// UA-78
#[test]
fn killed_at_random_under_load_no_message_is_lost_or_doubled_and_the_file_stays_small() {
    let seconds = std::env::var("CRASH_SECONDS").map_or(15, |seconds| seconds.parse().unwrap());
    binary("poller");
    let dir = tempfile::tempdir().unwrap();
    let mut random = Random::seeded();
    let (began, time) = (Instant::now(), Duration::from_secs(seconds));
    let (mut sent, mut kills, mut sizes) = (0, 0, Vec::new());
    let mut follower = Follower::new(&dir.path().join("printed"));
    while began.elapsed() < time {
        let mut poller = Process::start("poller", dir.path(), &[]);
        if kills == 0 {
            assert!(poller.types("every 3ms"));
        }
        // The process is outside of any clock of ours.
        let kill = Instant::now() + Duration::from_millis(20 + random.below(400));
        let before = (sent, follower.acknowledged);
        while Instant::now() < kill {
            follower.look();
            let under_way = (sent - before.0) - (follower.acknowledged - before.1);
            if under_way < 32 && follower.backlog() < 64 {
                sent += 1;
                assert!(poller.types(&format!("push message-{sent}")));
            }
            thread::sleep(Duration::from_micros(random.below(4_000)));
        }
        poller.kill();
        follower.look();
        kills += 1;
        let files = ["runs.redb", "runs.redb-log"].map(|name| fs::metadata(dir.path().join(name)));
        sizes.push(
            files
                .into_iter()
                .map(|file| file.unwrap().len())
                .sum::<u64>(),
        );
    }
    let mut poller = Process::start("poller", dir.path(), &[]);
    sent += 1;
    assert!(poller.types(&format!("push message-{sent}")));
    poller.prints(&format!("published message-{sent} "));
    assert!(poller.types("stop"));
    let last = poller.finish();

    let printed = fs::read_to_string(dir.path().join("printed")).unwrap();
    let lines = published(&printed);
    let acknowledged: BTreeSet<&str> = printed
        .lines()
        .filter_map(|line| line.strip_prefix("sent push "))
        .collect();
    let mut keys: HashMap<&str, BTreeSet<&str>> = HashMap::new();
    for (name, key) in &lines {
        keys.entry(name).or_default().insert(key);
    }
    let again = lines.len() - keys.len();
    println!(
        "{kills} kills; {sent} messages sent, {} acknowledged; {} effects, {again} of them had again",
        acknowledged.len(),
        lines.len()
    );
    println!("the files: {sizes:?}");

    for name in &acknowledged {
        assert!(
            keys.contains_key(name),
            "{name} was acknowledged, and is lost"
        );
    }
    for (name, keys) in &keys {
        assert_eq!(keys.len(), 1, "{name} was published at two places");
    }
    assert!(again <= kills, "a kill cuts off one step at most");
    assert!(acknowledged.len() > kills * 4, "there was no load");
    assert_eq!(
        firsts(numbers(&lines, "message-")),
        sorted(&lines, "message-")
    );
    let items = sorted(&lines, "item-");
    assert_eq!(firsts(numbers(&lines, "item-")), items);
    assert_eq!(items, (0..items.len() as u64).collect::<Vec<_>>());
    let messages = sorted(&lines, "message-").len();
    let sum = format!("{} items were found, {messages} were pushed", items.len());
    assert!(last.contains(&sum), "{sum}, but\n{last}");

    // Flat: however long it goes on. Unfolded, two minutes are more than this.
    assert!(
        sizes.iter().all(|size| *size < 8 << 20),
        "it grows: {sizes:?}"
    );
    let (kept, all) = records(&last);
    println!("{kept} records of {all} are kept");
    // Those of the last forty iterations at most, each with sixteen messages at most.
    assert!(kept < 1_000, "{kept} records of {all} are kept");
}

/// Each number once, in the order in which they were first there.
fn firsts(numbers: Vec<u64>) -> Vec<u64> {
    let mut seen = BTreeSet::new();
    numbers
        .into_iter()
        .filter(|number| seen.insert(*number))
        .collect()
}

fn sorted(lines: &[(&str, &str)], prefix: &str) -> Vec<u64> {
    let numbers: BTreeSet<u64> = numbers(lines, prefix).into_iter().collect();
    numbers.into_iter().collect()
}

/// `the history has 115 records; 271 were written`
fn records(printed: &str) -> (u64, u64) {
    let line = printed
        .lines()
        .find_map(|line| line.strip_prefix("the history has "));
    let (kept, all) = line.unwrap().split_once(" records; ").unwrap();
    let all = all.strip_suffix(" were written").unwrap();
    (kept.parse().unwrap(), all.parse().unwrap())
}
