//! A batch as it stands in the journal.
//!
//! ```text
//! entry:         header length | header | (record length | record)*
//! header:        version u8 | run | epoch | number | expected seq | new run? | deletes | patch | crc32
//! journal value: (entry length | entry)*
//! ```
//!
//! It is logical: it says what changes, not what the row is afterwards. So a step costs its record and a few bytes, and
//! a fold and an opening get at the row by the same arithmetic as the commit did.

use bytes::Bytes;

use crate::replay::{Record, RunKey};
use crate::store::encoding::{
    Fault, Reader, Writer, encode_record, get_new_run, get_patch, put_new_run, put_patch, seal,
};
use crate::store::transition::Transition;
use crate::store::{StoreError, encoding::Peek, encoding::peek_record};

/// A batch: its transition, and its records as they are written.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) transition: Transition,
    pub(super) records: Vec<Bytes>,
    pub(super) bytes: Bytes,
}

const VERSION: u8 = 1;

impl Entry {
    pub(super) fn new(transition: Transition, records: &[Record]) -> Self {
        let mut header = Vec::with_capacity(96);
        put_header(&mut Writer(&mut header), &transition);
        seal(&mut header, 0);

        let mut bytes = Vec::with_capacity(header.len() + 8 + 160 * records.len());
        Writer(&mut bytes).bytes(&header);
        let mut scratch = header;
        let mut spans = Vec::with_capacity(records.len());
        for record in records {
            scratch.clear();
            encode_record(record, &mut scratch);
            Writer(&mut bytes).bytes(&scratch);
            spans.push(bytes.len() - scratch.len()..bytes.len());
        }
        // The tail keeps it: without the slack.
        let bytes = Bytes::from(bytes.into_boxed_slice());
        let records = spans.into_iter().map(|span| bytes.slice(span)).collect();
        Self {
            transition,
            records,
            bytes,
        }
    }

    pub(super) fn run(&self) -> RunKey {
        self.transition.run
    }

    /// The entries of a journal value.
    pub(super) fn read_all(value: &Bytes) -> Result<Vec<Self>, StoreError> {
        let mut input = Reader::new(value);
        let mut entries = Vec::new();
        while !input.is_empty() {
            let entry = input
                .bytes()
                .and_then(Self::decode)
                .map_err(|fault| fault.of("batch"))?;
            entries.push(entry);
        }
        Ok(entries)
    }

    /// An entry from its bytes.
    pub(super) fn read(bytes: Bytes) -> Result<Self, StoreError> {
        Self::decode(bytes).map_err(|fault| fault.of("batch"))
    }

    fn decode(bytes: Bytes) -> Result<Self, Fault> {
        let mut input = Reader::new(&bytes);
        let header = input.bytes()?;
        let mut records = Vec::new();
        while !input.is_empty() {
            records.push(input.bytes()?);
        }
        let transition = get_header(&mut Reader::sealed(&header)?, records.len())?;
        Ok(Self {
            transition,
            records,
            bytes,
        })
    }
}

fn put_header(out: &mut Writer<'_>, transition: &Transition) {
    out.u8(VERSION);
    out.varint(transition.run.0);
    out.varint(transition.epoch);
    out.varint(transition.number);
    out.varint(transition.expected_seq);
    out.option(transition.create.as_ref(), put_new_run);
    out.list(&transition.deletes, Writer::location);
    put_patch(out, &transition.patch);
}

fn get_header(input: &mut Reader<'_>, records: usize) -> Result<Transition, Fault> {
    match input.u8()? {
        VERSION => {}
        newer => return Err(Fault::Newer("version", newer)),
    }
    let run = RunKey(input.varint()?);
    let epoch = input.varint()?;
    let number = input.varint()?;
    let expected_seq = input.varint()?;
    Ok(Transition {
        run,
        epoch,
        number,
        expected_seq,
        last_seq: expected_seq + records as u64,
        create: input.option(get_new_run)?,
        deletes: input.list(Reader::location)?,
        patch: get_patch(input)?,
    })
}

/// Puts a record where several stand one after another.
pub(super) fn put_framed(out: &mut Vec<u8>, record: &[u8]) {
    Writer(out).bytes(record);
}

/// The records that stand one after another in a chunk.
pub(super) fn framed(chunk: &Bytes, records: &mut Vec<Bytes>) -> Result<(), StoreError> {
    let mut input = Reader::new(chunk);
    while !input.is_empty() {
        records.push(
            input
                .bytes()
                .map_err(|fault| fault.of("chunk of records"))?,
        );
    }
    Ok(())
}

/// Drops the records that `transition` deletes. One whose envelope is not known here stays: nothing of it may be lost.
pub(super) fn prune(records: &mut Vec<Bytes>, transition: &Transition) -> Result<(), StoreError> {
    if transition.deletes.is_empty() {
        return Ok(());
    }
    let mut damaged = None;
    records.retain(|record| match peek_record(record) {
        Ok(Peek { location, .. }) => !transition.deletes(&location),
        Err(StoreError::Newer { .. }) => true,
        Err(error) => {
            damaged = Some(error);
            true
        }
    });
    damaged.map_or(Ok(()), Err)
}
