//! The world outside: an append-only file, a line per effect. It knows nothing of the store, so anyone can check the
//! one against the other.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use workflow::current_step;

/// Where effects go. Clones write to one file.
#[derive(Debug, Clone)]
pub struct World {
    file: Arc<File>,
    next: Arc<AtomicU64>,
}

impl World {
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        Ok(Self {
            file: Arc::new(file),
            next: Arc::default(),
        })
    }

    /// Does something to the world, from within a step: leaves a line behind. Gives the line's number, which no other
    /// line has; the step returns it, so that the record tells which effect it is about.
    pub fn act(&self, what: &str) -> io::Result<String> {
        let step = current_step();
        let count = self.next.fetch_add(1, Ordering::Relaxed);
        let receipt = format!("{}-{count}", std::process::id());
        let line = format!(
            "{} {} {} {receipt} {what}\n",
            step.run_id(),
            step.location(),
            step.attempt()
        );
        // One write of one line: a kill leaves whole lines only.
        (&*self.file).write_all(line.as_bytes())?;
        Ok(receipt)
    }
}

/// A line of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effect {
    pub run: String,
    pub location: String,
    pub receipt: String,
}

/// Reads the file.
pub fn read(path: &Path) -> io::Result<Vec<Effect>> {
    let text = std::fs::read_to_string(path)?;
    let effect = |line: &str| {
        let mut words = line.split(' ').map(ToOwned::to_owned);
        let (run, location, _attempt, receipt) =
            (words.next()?, words.next()?, words.next()?, words.next()?);
        Some(Effect {
            run,
            location,
            receipt,
        })
    };
    Ok(text.lines().filter_map(effect).collect())
}
