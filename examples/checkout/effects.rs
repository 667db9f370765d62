//! What the shop did to the world, one line each, in a file that the library knows nothing of.
//!
//! Each line holds a nonce that no other line has, and the step's recorded value holds it too. So the file and the
//! histories can be laid side by side.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};
use workflow::{Kind, Record, current_step, replay::Body};

/// Proof that something was done: what a step records.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Effect {
    pub(crate) nonce: String,
}

/// The file, open for appending.
#[derive(Debug)]
pub(crate) struct Effects {
    file: File,
    process: u64,
    count: AtomicU64,
}

impl Effects {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self {
            file: OpenOptions::new().create(true).append(true).open(path)?,
            process: RandomState::new().hash_one(std::process::id()),
            count: AtomicU64::new(0),
        })
    }

    /// Has the effect of the step whose body calls this. One `write` of one line: a kill leaves all of it or nothing.
    pub(crate) fn have(&self) -> io::Result<Effect> {
        let step = current_step();
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        let nonce = format!("{:016x}-{number}", self.process);
        let line = format!(
            "{} {} {} {nonce}\n",
            step.run_id(),
            step.location(),
            step.attempt()
        );
        (&self.file).write_all(line.as_bytes())?;
        Ok(Effect { nonce })
    }
}

#[cfg(test)]
impl Effects {
    /// In a file that has no name, for a test.
    pub(crate) fn nameless() -> Self {
        Self {
            file: tempfile::tempfile().expect("a file"),
            process: 0,
            count: AtomicU64::new(0),
        }
    }

    /// Where effects were had, once or more.
    pub(crate) fn places(&self) -> std::collections::BTreeSet<String> {
        use std::io::{Read, Seek};

        let mut text = String::new();
        (&self.file).rewind().expect("it is a file");
        (&self.file)
            .read_to_string(&mut text)
            .expect("it was written as text");
        let words = text.lines().filter_map(|line| line.split(' ').nth(1));
        words.map(str::to_owned).collect()
    }
}

/// The file as read back: the nonces of each step of each run, in order.
#[derive(Debug)]
pub(crate) struct Written(HashMap<(String, String), Vec<String>>);

/// What a comparison found.
#[derive(Debug, Default)]
pub(crate) struct Count {
    /// Steps with a recorded success.
    pub(crate) recorded: usize,
    /// Steps whose recorded effect is missing, double, or was had again after it was recorded.
    pub(crate) wrong: Vec<String>,
}

impl Written {
    pub(crate) fn read(path: &Path) -> io::Result<Self> {
        let mut steps: HashMap<_, Vec<_>> = HashMap::new();
        for line in std::fs::read_to_string(path)?.lines() {
            let mut words = line.split(' ');
            if let (Some(run), Some(location), Some(_attempt), Some(nonce)) =
                (words.next(), words.next(), words.next(), words.next())
            {
                let step = (run.to_owned(), location.to_owned());
                steps.entry(step).or_default().push(nonce.to_owned());
            }
        }
        Ok(Self(steps))
    }

    pub(crate) fn lines(&self) -> usize {
        self.0.values().map(Vec::len).sum()
    }

    /// Lays a run's history beside the file.
    pub(crate) fn compare(&self, run: &str, history: &[Record], count: &mut Count) {
        for record in history {
            let Body::Ended(ended) = &record.body else {
                continue;
            };
            let (Kind::Step, Ok(value)) = (ended.kind, &ended.outcome) else {
                continue;
            };
            let Ok(Effect { nonce }) = serde_json::from_slice(&value.bytes) else {
                continue;
            };
            count.recorded += 1;
            let step = (run.to_owned(), record.location.to_string());
            let had = self.0.get(&step).map_or(&[][..], Vec::as_slice);
            let once = had.iter().filter(|had| **had == nonce).count() == 1;
            if !once || had.last() != Some(&nonce) {
                count.wrong.push(format!("{run} {}", record.location));
            }
        }
    }
}
