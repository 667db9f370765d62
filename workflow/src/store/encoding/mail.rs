//! What goes between runs, as it is written: each with a version before it and a checksum after it, as a record.

use bytes::Bytes;

use super::{
    Fault, VERSION, body,
    read::Reader,
    write::{Writer, seal},
};
use crate::replay::Finished;
use crate::store::StoreError;

/// Writes how a child ended onto the end of `out`: the payload of a message on
/// [`CHILD_ENDED`](crate::store::CHILD_ENDED).
pub fn encode_finished(finished: &Finished, out: &mut Vec<u8>) {
    sealed(out, |out| body::put_finished(out, finished));
}

/// Reads how a child ended.
///
/// # Errors
/// [`StoreError::Newer`] when a newer program wrote it, [`StoreError::Corrupt`] when it is damaged.
pub fn decode_finished(bytes: &Bytes) -> Result<Finished, StoreError> {
    opened(bytes, body::get_finished).map_err(|fault| fault.of("end of a child"))
}

fn sealed(out: &mut Vec<u8>, put: impl FnOnce(&mut Writer<'_>)) {
    let start = out.len();
    let mut writer = Writer(out);
    writer.u8(VERSION);
    put(&mut writer);
    seal(out, start);
}

fn opened<'a, T>(
    bytes: &'a Bytes,
    get: impl FnOnce(&mut Reader<'a>) -> Result<T, Fault>,
) -> Result<T, Fault> {
    let mut input = Reader::sealed(bytes)?;
    match input.u8()? {
        VERSION => {}
        newer => return Err(Fault::Newer("version", newer)),
    }
    let value = get(&mut input)?;
    if input.is_empty() {
        Ok(value)
    } else {
        Err(Fault::Malformed("it is too long"))
    }
}
