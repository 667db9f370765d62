//! Telling a file whose creation was cut off from one that is something else.

use std::fs;
use std::io::{self, Read};
use std::path::Path;
use std::sync::{Arc, OnceLock};

use redb::backends::InMemoryBackend;
use redb::{Database, StorageBackend};

/// No creation makes a file as long as this.
const NEW: u64 = 64 << 20;

/// Whether the creation of a database was cut off before the file says that it is one. The database sets the file's
/// length, writes its header without the first bytes, and these last: until then a file holds zeros, and of the header
/// what got there.
pub(super) fn was_cut_off(path: &Path) -> bool {
    let read = || -> io::Result<bool> {
        let mut bytes = Vec::new();
        fs::File::open(path)?.take(NEW).read_to_end(&mut bytes)?;
        if bytes.len() as u64 == NEW {
            return Ok(false);
        }
        let header = unfinished_header().into_iter().chain(std::iter::repeat(0));
        Ok(bytes
            .into_iter()
            .zip(header)
            .all(|(byte, written)| byte == 0 || byte == written))
    };
    read().unwrap_or(false)
}

/// What the database writes first into a new file. It is the same each time; nothing when it cannot be had.
fn unfinished_header() -> Vec<u8> {
    let first = Arc::new(OnceLock::new());
    let witness = Witness {
        memory: InMemoryBackend::new(),
        first: Arc::clone(&first),
    };
    let created = Database::builder().create_with_backend(witness);
    drop(created);
    first.get().cloned().unwrap_or_default()
}

/// Memory that remembers what was written to its beginning first.
#[derive(Debug)]
struct Witness {
    memory: InMemoryBackend,
    first: Arc<OnceLock<Vec<u8>>>,
}

impl StorageBackend for Witness {
    fn len(&self) -> io::Result<u64> {
        self.memory.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.memory.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.memory.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.memory.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        if offset == 0 {
            self.first.get_or_init(|| data.to_vec());
        }
        self.memory.write(offset, data)
    }
}
