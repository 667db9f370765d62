//! The row of a run as it is written. Its number is not: that is the key it is kept under.

use bytes::Bytes;

#[cfg(feature = "redb")]
use super::tags::Tagged;
use super::{
    Fault, VERSION,
    read::Reader,
    write::{Writer, seal},
};
#[cfg(feature = "redb")]
use crate::replay::RunState;
use crate::replay::{CodeId, RunKey, Timestamp};
#[cfg(feature = "redb")]
use crate::store::{NewRun, RunPatch};
use crate::store::{Parked, RunRow, StoreError};

/// Writes a row onto the end of `out`, without its number.
pub fn encode_row(row: &RunRow, out: &mut Vec<u8>) {
    let start = out.len();
    let mut writer = Writer(out);
    writer.u8(VERSION);
    writer.text(row.id.as_str());
    writer.text(&row.workflow);
    writer.tag(row.state);
    writer.option(row.parked.as_ref(), put_parked);
    writer.fixed(row.advanced_by.0);
    writer.varint(row.epoch);
    writer.varint(row.last_seq);
    writer.varint(row.last_append.0);
    writer.varint(row.last_append.1);
    writer.varint(row.generation.into());
    writer.option(row.wake_at, Writer::timestamp);
    writer.option(row.waits.as_deref(), Writer::texts);
    writer.varint(row.inbox_seq);
    writer.parent(row.parent.as_ref());
    writer.bool(row.detached);
    writer.option(row.progress.as_deref(), Writer::text);
    writer.timestamp(row.created_at);
    writer.timestamp(row.updated_at);
    writer.option(row.finished_at, Writer::timestamp);
    // Added later, and later still: a row without them is as it was before.
    let starts = row.not_before.is_some() || row.priority != 0;
    if row.unclean > 0 || row.released || starts {
        writer.varint(row.unclean.into());
        writer.bool(row.released);
    }
    if starts {
        put_terms(&mut writer, row.not_before, row.priority);
    }
    seal(out, start);
}

/// Reads the row of run `key`.
///
/// # Errors
/// [`StoreError::Newer`] when a newer program wrote it, [`StoreError::Corrupt`] when it is damaged.
pub fn decode_row(key: RunKey, bytes: &Bytes) -> Result<RunRow, StoreError> {
    decode(key, bytes).map_err(|fault| fault.of("run row"))
}

/// What a listing asks of a row before it takes it: read off the bytes as they are, without the rest and without a look at the checksum.
#[cfg(feature = "redb")]
pub(crate) struct RowPeek<'a> {
    pub(crate) id: &'a str,
    pub(crate) workflow: &'a str,
    pub(crate) state: RunState,
    rest: Peeking<'a>,
}

#[cfg(feature = "redb")]
impl<'a> RowPeek<'a> {
    /// `None` when that cannot be read; [`decode_row`] says why.
    pub(crate) fn of(bytes: &'a [u8]) -> Option<Self> {
        let mut rest = Peeking(bytes);
        if rest.byte()? != VERSION {
            return None;
        }
        Some(Self {
            id: rest.text()?,
            workflow: rest.text()?,
            state: RunState::from_tag(rest.byte()?)?,
            rest,
        })
    }

    /// When it was created, and when it last changed.
    pub(crate) fn times(&self) -> Option<(Timestamp, Timestamp)> {
        let mut rest = Peeking(self.rest.0);
        if rest.flag()? {
            rest.take(1 + 8)?;
            rest.bytes()?;
        }
        rest.take(8)?;
        for _ in [
            "epoch",
            "last seq",
            "last append",
            "its number",
            "generation",
        ] {
            rest.varint()?;
        }
        if rest.flag()? {
            rest.varint()?;
        }
        if rest.flag()? {
            for _ in 0..rest.varint()? {
                rest.bytes()?;
            }
        }
        rest.varint()?;
        if rest.flag()? {
            rest.bytes()?;
            rest.bytes()?;
        }
        rest.byte()?;
        if rest.flag()? {
            rest.bytes()?;
        }
        Some((rest.timestamp()?, rest.timestamp()?))
    }
}

/// Reads over bytes, and takes nothing of them.
#[cfg(feature = "redb")]
struct Peeking<'a>(&'a [u8]);

#[cfg(feature = "redb")]
impl<'a> Peeking<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    fn flag(&mut self) -> Option<bool> {
        Some(self.byte()? == 1)
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.varint()?).ok()?;
        self.take(length)
    }

    fn text(&mut self) -> Option<&'a str> {
        str::from_utf8(self.bytes()?).ok()
    }

    fn timestamp(&mut self) -> Option<Timestamp> {
        let value = self.varint()?;
        let millis = (value >> 1).cast_signed() ^ -(value & 1).cast_signed();
        Some(Timestamp::from_millis(millis))
    }
}

fn decode(key: RunKey, bytes: &Bytes) -> Result<RunRow, Fault> {
    let mut input = Reader::sealed(bytes)?;
    match input.u8()? {
        VERSION => {}
        newer => return Err(Fault::Newer("version", newer)),
    }
    // Bytes after the last field are a newer program's, and may be skipped.
    let mut row = RunRow {
        key,
        id: input.run_id()?,
        workflow: input.text()?,
        state: input.tag()?,
        parked: input.option(get_parked)?,
        advanced_by: CodeId(input.fixed()?),
        epoch: input.varint()?,
        last_seq: input.varint()?,
        last_append: (input.varint()?, input.varint()?),
        generation: input.u32()?,
        wake_at: input.option(Reader::timestamp)?,
        waits: input.option(Reader::texts)?,
        inbox_seq: input.varint()?,
        parent: input.parent()?,
        detached: input.bool()?,
        progress: input.option(Reader::text)?,
        created_at: input.timestamp()?,
        updated_at: input.timestamp()?,
        finished_at: input.option(Reader::timestamp)?,
        unclean: 0,
        released: false,
        not_before: None,
        priority: 0,
    };
    if !input.is_empty() {
        row.unclean = input.u32()?;
        row.released = input.bool()?;
    }
    if !input.is_empty() {
        (row.not_before, row.priority) = get_terms(&mut input)?;
    }
    Ok(row)
}

/// When a run may begin, and where it stands among others.
fn put_terms(out: &mut Writer<'_>, not_before: Option<Timestamp>, priority: i32) {
    out.option(not_before, Writer::timestamp);
    // Zigzag, so that a small one takes a byte whatever its sign.
    out.varint(((priority << 1) ^ (priority >> 31)).cast_unsigned().into());
}

fn get_terms(input: &mut Reader<'_>) -> Result<(Option<Timestamp>, i32), Fault> {
    let not_before = input.option(Reader::timestamp)?;
    let zigzag = input.u32()?;
    let priority = (zigzag >> 1).cast_signed() ^ -((zigzag & 1).cast_signed());
    Ok((not_before, priority))
}

fn put_parked(out: &mut Writer<'_>, parked: &Parked) {
    out.tag(parked.reason);
    out.fixed(parked.by.0);
    out.text(&parked.detail);
}

fn get_parked(input: &mut Reader<'_>) -> Result<Parked, Fault> {
    Ok(Parked {
        reason: input.tag()?,
        by: CodeId(input.fixed()?),
        detail: input.text()?,
    })
}

#[cfg(feature = "redb")]
pub(crate) fn put_new_run(out: &mut Writer<'_>, run: &NewRun) {
    out.text(run.id.as_str());
    out.text(&run.workflow);
    out.parent(run.parent.as_ref());
    out.bool(run.detached);
}

#[cfg(feature = "redb")]
pub(crate) fn get_new_run(input: &mut Reader<'_>) -> Result<NewRun, Fault> {
    Ok(NewRun {
        id: input.run_id()?,
        workflow: input.text()?,
        parent: input.parent()?,
        detached: input.bool()?,
        not_before: None,
        priority: 0,
    })
}

/// Whether a new run says something that [`put_new_run`] does not write.
#[cfg(feature = "redb")]
pub(crate) fn has_terms(run: &NewRun) -> bool {
    run.not_before.is_some() || run.priority != 0
}

/// The rest of a new run: what was added later.
#[cfg(feature = "redb")]
pub(crate) fn put_new_terms(out: &mut Writer<'_>, run: &NewRun) {
    put_terms(out, run.not_before, run.priority);
}

#[cfg(feature = "redb")]
pub(crate) fn get_new_terms(input: &mut Reader<'_>, run: &mut NewRun) -> Result<(), Fault> {
    (run.not_before, run.priority) = get_terms(input)?;
    Ok(())
}

#[cfg(feature = "redb")]
pub(crate) fn put_patch(out: &mut Writer<'_>, patch: &RunPatch) {
    out.option(patch.state, Writer::tag);
    out.option(patch.parked.as_ref(), |out, parked| {
        out.option(parked.as_ref(), put_parked);
    });
    out.option(patch.wake_at, |out, wake_at| {
        out.option(wake_at, Writer::timestamp);
    });
    out.option(patch.waits.as_ref(), |out, waits| {
        out.option(waits.as_deref(), Writer::texts);
    });
    out.option(patch.progress.as_deref(), Writer::text);
    out.timestamp(patch.at);
    out.fixed(patch.code.0);
}

#[cfg(feature = "redb")]
pub(crate) fn get_patch(input: &mut Reader<'_>) -> Result<RunPatch, Fault> {
    Ok(RunPatch {
        state: input.option(Reader::tag)?,
        parked: input.option(|input| input.option(get_parked))?,
        wake_at: input.option(|input| input.option(Reader::timestamp))?,
        waits: input.option(|input| input.option(Reader::texts))?,
        progress: input.option(Reader::text)?,
        at: input.timestamp()?,
        code: CodeId(input.fixed()?),
        ..RunPatch::default()
    })
}

/// Whether a patch says something that [`put_patch`] does not write.
#[cfg(feature = "redb")]
pub(crate) fn has_more(patch: &RunPatch) -> bool {
    patch.unclean.is_some() || patch.released || patch.generation.is_some()
}

/// The rest of a patch: what was added later.
#[cfg(feature = "redb")]
pub(crate) fn put_more(out: &mut Writer<'_>, patch: &RunPatch) {
    out.option(patch.unclean, |out, unclean| out.varint(unclean.into()));
    out.bool(patch.released);
    out.option(patch.generation, |out, generation| {
        out.varint(generation.into());
    });
}

#[cfg(feature = "redb")]
pub(crate) fn get_more(input: &mut Reader<'_>, patch: &mut RunPatch) -> Result<(), Fault> {
    patch.unclean = input.option(Reader::u32)?;
    patch.released = input.bool()?;
    patch.generation = input.option(Reader::u32)?;
    Ok(())
}
