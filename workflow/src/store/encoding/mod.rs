//! How records and rows are written down: versioned, checksummed, read without copying.
//!
//! For implementers of a [`Store`](super::Store). What this module ever wrote it reads for ever; the bytes of every kind
//! are kept in the repository and compared in the tests.
//!
//! # A record
//!
//! ```text
//! version u8 | kind u8 | flags u8 | seq | at | code u64 | location | body | crc32 u32
//! ```
//!
//! 1. In every version, the first byte is the version and the last four are the checksum of all before them (CRC-32,
//!    little endian). So damage can be told from news.
//! 2. Tags are numbers of a table, never the order of a declaration. A number is never given twice.
//! 3. What has a good checksum and an unknown version, kind, flag or tag was written by a newer program:
//!    [`StoreError::Newer`]. The bytes stay where they are, and the run waits for that program.
//! 4. What has a good checksum and does not decode all the same is [`StoreError::Corrupt`], as is a bad checksum.
//! 5. Numbers that are mostly small are varints (7 bits a byte, low first; signed ones zigzag); fingerprints and seeds
//!    have their full width, little endian. Text and bytes have their length before them, a list its count.
//!
//! # A row
//!
//! ```text
//! version u8 | fields in fixed order | crc32 u32
//! ```
//!
//! As a record, with one difference: bytes between the last known field and the checksum are skipped. A field that an
//! older program may ignore (and lose when it rewrites the row) is added at the end under the same version; any other
//! change gives the row a new version.

mod body;
mod failure;
mod mail;
mod read;
mod record;
mod row;
mod tags;
mod write;

pub use mail::{
    decode_answer, decode_dead_letter, decode_finished, decode_message, encode_answer,
    encode_dead_letter, encode_finished, encode_message,
};
pub use record::{Peek, decode_record, encode_record, peek_record};
pub use row::{decode_row, encode_row};

#[cfg(feature = "redb")]
pub(crate) use self::{
    mail::{decode_value, encode_value, get_effect, put_effect},
    read::Reader,
    row::{
        RowPeek, get_more, get_new_run, get_new_terms, get_patch, has_more, has_terms, put_more,
        put_new_run, put_new_terms, put_patch,
    },
    write::{Writer, seal},
};

use super::StoreError;

/// The newest version of records and rows that this program writes, and the only one so far.
const VERSION: u8 = 1;

/// Why bytes did not decode. Small, so that the way where they do is fast.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// They come from a newer program.
    Newer(&'static str, u8),
    /// They are not what they should be.
    Malformed(&'static str),
}

impl Fault {
    pub(crate) fn of(self, what: &'static str) -> StoreError {
        match self {
            Self::Newer(part, found) => StoreError::Newer {
                what,
                detail: format!("{part} {found} is not known here"),
            },
            Self::Malformed(detail) => StoreError::Corrupt {
                what,
                detail: detail.to_owned(),
            },
        }
    }
}
