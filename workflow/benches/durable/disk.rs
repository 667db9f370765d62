//! What the machine can do: the same bytes, with nothing of ours around them.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::time::Instant;

use redb::{Database, TableDefinition};

/// About what a step's record takes.
const BYTES: [u8; 128] = [7; 128];
const TABLE: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("records");

/// An append-only file.
pub(crate) struct Log(File);

impl Log {
    pub(crate) fn open(path: &Path) -> Self {
        let file = OpenOptions::new().create(true).append(true).open(path);
        Self(file.expect("the log opens"))
    }

    /// Appends `times` groups of `group` records, each group with one `fdatasync`; microseconds per record.
    pub(crate) fn append(&mut self, times: usize, group: usize) -> f64 {
        let bytes = BYTES.repeat(group);
        let since = Instant::now();
        for _ in 0..times {
            self.0.write_all(&bytes).expect("the log takes a group");
            self.0.sync_data().expect("the log syncs");
        }
        micros_each(since, times * group)
    }
}

/// The database alone.
pub(crate) struct Redb {
    database: Database,
    next: u64,
}

impl Redb {
    pub(crate) fn open(path: &Path) -> Self {
        let database = Database::create(path).expect("the database opens");
        Self { database, next: 0 }
    }

    /// One durable commit for each of `times` records; microseconds per record.
    pub(crate) fn append(&mut self, times: usize) -> f64 {
        let since = Instant::now();
        for _ in 0..times {
            let txn = self.database.begin_write().expect("a transaction begins");
            {
                let mut table = txn.open_table(TABLE).expect("the table opens");
                let inserted = table.insert(self.next, &BYTES[..]);
                inserted.expect("the table takes a record");
            }
            txn.commit().expect("the transaction commits");
            self.next += 1;
        }
        micros_each(since, times)
    }
}

/// Microseconds since then, for each of `count`.
#[expect(clippy::cast_precision_loss, reason = "a count of what was done here")]
pub(crate) fn micros_each(since: Instant, count: usize) -> f64 {
    since.elapsed().as_secs_f64() * 1e6 / count as f64
}
