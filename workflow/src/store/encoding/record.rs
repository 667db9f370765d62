//! The envelope of a record.

use bytes::Bytes;

use super::{
    Fault, VERSION, body,
    read::Reader,
    write::{Writer, seal},
};
use crate::replay::{CodeId, Location, Record};
use crate::store::StoreError;

/// Writes a record onto the end of `out`.
pub fn encode_record(record: &Record, out: &mut Vec<u8>) {
    let start = out.len();
    let mut writer = Writer(out);
    writer.u8(VERSION);
    writer.u8(body::kind(&record.body));
    writer.u8(NO_FLAGS);
    writer.varint(record.seq);
    writer.timestamp(record.at);
    writer.fixed(record.code.0);
    writer.location(&record.location);
    body::put(&mut writer, &record.body);
    seal(out, start);
}

/// Reads a record. Its location and payloads are parts of `bytes`.
///
/// # Errors
/// [`StoreError::Newer`] when a newer program wrote it, [`StoreError::Corrupt`] when it is damaged.
pub fn decode_record(bytes: &Bytes) -> Result<Record, StoreError> {
    decode(bytes).map_err(|fault| fault.of("record"))
}

/// What can be said of a record without reading its body, also of one whose kind is not known here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peek {
    /// Its place in the run's one order.
    pub seq: u64,
    /// Where in the run.
    pub location: Location,
}

/// Reads a record's place and location only.
///
/// # Errors
/// [`StoreError::Newer`] when its envelope is of a newer version, [`StoreError::Corrupt`] when it is damaged.
pub fn peek_record(bytes: &Bytes) -> Result<Peek, StoreError> {
    peek(bytes).map_err(|fault| fault.of("record"))
}

fn decode(bytes: &Bytes) -> Result<Record, Fault> {
    let mut input = Reader::sealed(bytes)?;
    let header = header(&mut input)?;
    let body = body::get(&mut input, header.kind)?;
    if !input.is_empty() {
        return Err(Fault::Malformed("it is too long"));
    }
    Ok(Record {
        seq: header.seq,
        at: header.at,
        code: header.code,
        location: header.location,
        body,
    })
}

fn peek(bytes: &Bytes) -> Result<Peek, Fault> {
    let mut input = Reader::sealed(bytes)?;
    let header = header(&mut input)?;
    Ok(Peek {
        seq: header.seq,
        location: header.location,
    })
}

struct Header {
    kind: u8,
    seq: u64,
    at: crate::replay::Timestamp,
    code: CodeId,
    location: Location,
}

fn header(input: &mut Reader<'_>) -> Result<Header, Fault> {
    match input.u8()? {
        VERSION => {}
        newer => return Err(Fault::Newer("version", newer)),
    }
    let kind = input.u8()?;
    match input.u8()? {
        NO_FLAGS => {}
        newer => return Err(Fault::Newer("flag", newer)),
    }
    let seq = input.varint()?;
    let at = input.timestamp()?;
    let code = CodeId(input.fixed()?);
    let location = input.location()?;
    Ok(Header {
        kind,
        seq,
        at,
        code,
        location,
    })
}

/// Version 1 has no flags. One that is set asks for a program that knows it.
const NO_FLAGS: u8 = 0;
