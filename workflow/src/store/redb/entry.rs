//! A batch as it stands in the log.
//!
//! ```text
//! entry:         header length | header | (record length | record)*
//! header:        version u8 | run | epoch | number | expected seq | new run? | deletes | patch | effects (from version 2) | removed, rest of the patch (from version 3) | rest of the new run? (from version 4) | crc32
//! body of a frame: (entry length | entry)*
//! ```
//!
//! It is logical: it says what changes, not what the row is afterwards. So a step costs its record and a few bytes, and
//! a fold and an opening get at the row by the same arithmetic as the commit did.

use bytes::Bytes;

use crate::replay::{Record, RunKey};
use crate::store::encoding::{
    Fault, Reader, Writer, encode_record, get_effect, get_more, get_new_run, get_new_terms,
    get_patch, has_more, has_terms, put_effect, put_more, put_new_run, put_new_terms, put_patch,
    seal,
};
use crate::store::transition::Transition;
use crate::store::{StoreError, encoding::Peek, encoding::peek_record};

/// A batch that is to be written: its transition, and itself as it is written.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) transition: Transition,
    pub(super) bytes: Vec<u8>,
}

/// A batch as it was written, read again.
#[derive(Debug)]
pub(super) struct Logged {
    pub(super) transition: Transition,
    /// Its records as they stand in a chunk, too: each with its length before it.
    pub(super) records: Bytes,
}

/// Of a header of a batch that does nothing to messages: as it was before there were any.
const VERSION: u8 = 1;
/// Of one that does.
const WITH_EFFECTS: u8 = 2;
/// Of one that says more: which single records it deletes, or what was added to a patch later.
const WITH_MORE: u8 = 3;
/// Of one that creates a run of which it says when it may begin, or before whom.
const WITH_TERMS: u8 = 4;

fn version(transition: &Transition) -> u8 {
    if transition.create.as_ref().is_some_and(has_terms) {
        WITH_TERMS
    } else if !transition.removed.is_empty() || has_more(&transition.patch) {
        WITH_MORE
    } else if !transition.effects.is_empty() {
        WITH_EFFECTS
    } else {
        VERSION
    }
}

impl Entry {
    pub(super) fn new(transition: Transition, records: &[Record]) -> Self {
        let mut bytes = Vec::with_capacity(64 + 128 * records.len());
        put_measured(&mut bytes, |out| {
            let start = out.len();
            put_header(&mut Writer(out), &transition);
            seal(out, start);
        });
        for record in records {
            put_measured(&mut bytes, |out| encode_record(record, out));
        }
        Self { transition, bytes }
    }

    /// An entry of records that are written already, each with its length before it.
    pub(super) fn compose(transition: Transition, records: &[u8]) -> Self {
        let mut bytes = Vec::with_capacity(256 + records.len());
        put_measured(&mut bytes, |out| {
            let start = out.len();
            put_header(&mut Writer(out), &transition);
            seal(out, start);
        });
        bytes.extend_from_slice(records);
        Self { transition, bytes }
    }

    /// Its records as they are written.
    pub(super) fn records(&self) -> Result<Bytes, StoreError> {
        Ok(Logged::read(&Bytes::copy_from_slice(&self.bytes))?.records)
    }

    pub(super) fn run(&self) -> RunKey {
        self.transition.run
    }
}

/// The batches of a commit, as they are written.
pub(super) fn split(value: &Bytes) -> Result<Vec<Bytes>, StoreError> {
    let mut entries = Vec::new();
    framed(value, &mut entries, "batch")?;
    Ok(entries)
}

/// The run that a written batch is of.
pub(super) fn run_of(entry: &Bytes) -> Result<RunKey, StoreError> {
    let mut input = Reader::new(entry);
    let mut run = || {
        // Length and version of the header stand before it.
        input.varint()?;
        input.u8()?;
        input.varint()
    };
    run().map(RunKey).map_err(|fault| fault.of("batch"))
}

impl Logged {
    pub(super) fn read(entry: &Bytes) -> Result<Self, StoreError> {
        Self::get(entry).map_err(|fault| fault.of("batch"))
    }

    fn get(entry: &Bytes) -> Result<Self, Fault> {
        let mut input = Reader::new(entry);
        let mut header = input.sealed_part()?;
        let records = entry.slice(input.at()..);
        let mut count = 0;
        while !input.is_empty() {
            input.skip()?;
            count += 1;
        }
        let transition = get_header(&mut header, count)?;
        Ok(Self {
            transition,
            records,
        })
    }
}

/// Records as they are written, each with its length before it.
pub(super) fn put_records(records: &[Record]) -> Vec<u8> {
    let mut out = Vec::with_capacity(128 * records.len());
    for record in records {
        put_measured(&mut out, |out| encode_record(record, out));
    }
    out
}

/// Writes something with its length before it. That is a byte for what is short, as most is.
fn put_measured(out: &mut Vec<u8>, put: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.push(0);
    put(out);
    let len = out.len() - start - 1;
    if let (Ok(short @ ..0x80), Some(prefix)) = (u8::try_from(len), out.get_mut(start)) {
        *prefix = short;
    } else {
        let mut prefix = Vec::with_capacity(10);
        Writer(&mut prefix).varint(len as u64);
        out.splice(start..=start, prefix);
    }
}

fn put_header(out: &mut Writer<'_>, transition: &Transition) {
    let version = version(transition);
    out.u8(version);
    out.varint(transition.run.0);
    out.varint(transition.epoch);
    out.varint(transition.number);
    out.varint(transition.expected_seq);
    out.option(transition.create.as_ref(), put_new_run);
    out.list(&transition.deletes, Writer::location);
    put_patch(out, &transition.patch);
    if version >= WITH_EFFECTS {
        out.list(&transition.effects, put_effect);
    }
    if version >= WITH_MORE {
        out.list(&transition.removed, |out, seq| out.varint(*seq));
        put_more(out, &transition.patch);
    }
    if version >= WITH_TERMS {
        out.option(transition.create.as_ref(), put_new_terms);
    }
}

fn get_header(input: &mut Reader<'_>, records: u64) -> Result<Transition, Fault> {
    let version = match input.u8()? {
        version @ VERSION..=WITH_TERMS => version,
        newer => return Err(Fault::Newer("version", newer)),
    };
    let run = RunKey(input.varint()?);
    let epoch = input.varint()?;
    let number = input.varint()?;
    let expected_seq = input.varint()?;
    let mut transition = Transition {
        run,
        epoch,
        number,
        expected_seq,
        last_seq: expected_seq + records,
        create: input.option(get_new_run)?,
        deletes: input.list(Reader::location)?,
        removed: Vec::new(),
        patch: get_patch(input)?,
        effects: Vec::new(),
    };
    if version >= WITH_EFFECTS {
        transition.effects = input.list(get_effect)?;
    }
    if version >= WITH_MORE {
        transition.removed = input.list(Reader::varint)?;
        get_more(input, &mut transition.patch)?;
    }
    if version >= WITH_TERMS {
        let create = &mut transition.create;
        input.option(|input| match create {
            Some(new) => get_new_terms(input, new),
            None => Err(Fault::Malformed(
                "it says when a run begins and creates none",
            )),
        })?;
    }
    Ok(transition)
}

/// Puts a record where several stand one after another.
pub(super) fn put_framed(out: &mut Vec<u8>, record: &[u8]) {
    Writer(out).bytes(record);
}

/// What stands one after another, each with its length before it.
pub(super) fn framed(
    bytes: &Bytes,
    parts: &mut Vec<Bytes>,
    what: &'static str,
) -> Result<(), StoreError> {
    let mut input = Reader::new(bytes);
    while !input.is_empty() {
        parts.push(input.bytes().map_err(|fault| fault.of(what))?);
    }
    Ok(())
}

/// The first of the records that stand one after another in a chunk. The others are not copied.
pub(super) fn first_framed(chunk: &[u8]) -> Result<Option<Bytes>, StoreError> {
    // A length takes ten bytes at most.
    let head = Bytes::copy_from_slice(chunk.get(..10).unwrap_or(chunk));
    if head.is_empty() {
        return Ok(None);
    }
    let damaged = |fault: Fault| fault.of("chunk of records");
    let length = Reader::new(&head).varint().map_err(damaged)?;
    let record = usize::try_from(length)
        .ok()
        .and_then(|length| chunk.get(..length.checked_add(10)?.min(chunk.len())));
    let record = Bytes::copy_from_slice(record.unwrap_or(chunk));
    Reader::new(&record).bytes().map(Some).map_err(damaged)
}

/// Drops the records that `transition` deletes. One whose envelope is not known here stays: nothing of it may be lost.
pub(super) fn prune(records: &mut Vec<Bytes>, transition: &Transition) -> Result<(), StoreError> {
    if !transition.prunes() {
        return Ok(());
    }
    let mut damaged = None;
    records.retain(|record| match peek_record(record) {
        Ok(Peek { seq, location, .. }) => !transition.deletes(seq, &location),
        Err(StoreError::Newer { .. }) => true,
        Err(error) => {
            damaged = Some(error);
            true
        }
    });
    damaged.map_or(Ok(()), Err)
}
