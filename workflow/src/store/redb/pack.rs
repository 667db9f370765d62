//! Packing: a run that was folded again and again stands in many chunks, each with room in its page that nothing uses. Here they
//! are joined. It is not done when a run is folded: most are read once more, or never.

use bytes::Bytes;
use redb::ReadTransaction;

use super::core::Core;
use super::tables::{Failed, RECORDS};
use crate::store::StoreError;

/// A joined chunk is no larger: with its key and what stands around it, it fits in a page of 64 KiB.
const FULL: usize = 60 << 10;
/// So much is looked at for one transaction.
const SLICE: usize = 4 << 20;

/// Chunks of one run that become one: under the first one's key. There may be only one.
pub(super) struct Joined {
    pub(super) run: u64,
    pub(super) first: u64,
    others: Vec<u64>,
    pub(super) bytes: Vec<u8>,
}

impl Core {
    /// Joins the chunks of every run, a slice at a time: commits go on, folds come in between.
    pub(super) fn pack(&self) -> Result<(), StoreError> {
        let mut from = Some((0, 0));
        while let Some(at) = from {
            let folding = self.folding();
            self.recover(&folding)?;
            let (mut joined, next) = self.file.read("packing", |txn| look(txn, at))?;
            from = next;
            joined.retain(|joined| !joined.others.is_empty());
            if joined.is_empty() {
                continue;
            }
            let written = self.file.write("packing", |txn| {
                let mut records = txn.open_table(RECORDS)?;
                for joined in &joined {
                    for other in &joined.others {
                        records.remove((joined.run, *other))?;
                    }
                    records.insert((joined.run, joined.first), &joined.bytes[..])?;
                }
                Ok(())
            });
            if let Err(error) = written {
                self.break_off();
                return Err(error);
            }
        }
        Ok(())
    }
}

/// The chunks from `at` on, joined, and where to go on.
#[expect(clippy::type_complexity, reason = "named where it is taken apart")]
pub(super) fn look(
    txn: &ReadTransaction,
    at: (u64, u64),
) -> Result<(Vec<Joined>, Option<(u64, u64)>), Failed> {
    let table = txn.open_table(RECORDS)?;
    let mut joined = Vec::new();
    let mut open: Option<Joined> = None;
    let mut seen = 0;
    for entry in table.range(at..)? {
        let (key, value) = entry?;
        let (run, first) = key.value();
        let chunk = Bytes::copy_from_slice(value.value());
        let fits = |open: &Joined| open.run == run && open.bytes.len() + chunk.len() <= FULL;
        if let Some(open) = open.as_mut().filter(|open| fits(open)) {
            open.bytes.extend_from_slice(&chunk);
            open.others.push(first);
            seen += chunk.len();
            continue;
        }
        joined.extend(open.take());
        if seen >= SLICE {
            return Ok((joined, Some((run, first))));
        }
        seen += chunk.len();
        open = Some(Joined {
            run,
            first,
            others: Vec::new(),
            bytes: chunk.to_vec(),
        });
    }
    joined.extend(open);
    Ok((joined, None))
}
