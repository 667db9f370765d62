//! Reading: plain values off the front of a buffer, text and bytes as parts of it. Never panics.

use bytes::Bytes;

use super::{Fault, tags::Tagged};
use crate::replay::{Location, Payload, RunId, Timestamp};

/// Reads off the front of a buffer.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    bytes: &'a Bytes,
    at: usize,
    end: usize,
}

type Read<T> = Result<T, Fault>;

const SHORT: Fault = Fault::Malformed("it ends too soon");

impl<'a> Reader<'a> {
    /// Reads all of `bytes`.
    #[cfg(feature = "redb")]
    pub(crate) fn new(bytes: &'a Bytes) -> Self {
        Self {
            bytes,
            at: 0,
            end: bytes.len(),
        }
    }

    /// Reads what stands before the checksum, when that is right.
    pub(crate) fn sealed(bytes: &'a Bytes) -> Read<Self> {
        Self::sealed_in(bytes, 0, bytes.len())
    }

    /// Reads the next part, which has its length before it and its checksum at its end.
    #[cfg(feature = "redb")]
    pub(crate) fn sealed_part(&mut self) -> Read<Self> {
        let (start, end) = self.span()?;
        Self::sealed_in(self.bytes, start, end)
    }

    fn sealed_in(bytes: &'a Bytes, start: usize, end: usize) -> Read<Self> {
        let part = bytes.get(start..end).ok_or(SHORT)?;
        let (content, sum) = part.split_last_chunk::<4>().ok_or(SHORT)?;
        if crc32fast::hash(content) != u32::from_le_bytes(*sum) {
            return Err(Fault::Malformed("its checksum is wrong"));
        }
        Ok(Self {
            bytes,
            at: start,
            end: start + content.len(),
        })
    }

    /// How much was read.
    #[cfg(feature = "redb")]
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.at >= self.end
    }

    pub(crate) fn u8(&mut self) -> Read<u8> {
        let byte = *self.rest()?.first().ok_or(SHORT)?;
        self.at += 1;
        Ok(byte)
    }

    pub(crate) fn bool(&mut self) -> Read<bool> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Fault::Malformed("a flag is neither 0 nor 1")),
        }
    }

    pub(crate) fn tag<T: Tagged>(&mut self) -> Read<T> {
        let tag = self.u8()?;
        T::from_tag(tag).ok_or(Fault::Newer(T::WHAT, tag))
    }

    pub(crate) fn varint(&mut self) -> Read<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.u8()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                break;
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Fault::Malformed("a number is too large"))
    }

    pub(crate) fn signed(&mut self) -> Read<i64> {
        let value = self.varint()?;
        Ok((value >> 1).cast_signed() ^ -(value & 1).cast_signed())
    }

    pub(crate) fn u32(&mut self) -> Read<u32> {
        u32::try_from(self.varint()?).map_err(|_| Fault::Malformed("a number is too large"))
    }

    pub(crate) fn fixed(&mut self) -> Read<u64> {
        self.array().map(u64::from_le_bytes)
    }

    pub(crate) fn wide(&mut self) -> Read<u128> {
        self.array().map(u128::from_le_bytes)
    }

    pub(crate) fn timestamp(&mut self) -> Read<Timestamp> {
        self.signed().map(Timestamp::from_millis)
    }

    /// A part of the buffer, shared with it.
    pub(crate) fn bytes(&mut self) -> Read<Bytes> {
        let (start, end) = self.span()?;
        Ok(self.bytes.slice(start..end))
    }

    /// Passes by what [`bytes`](Self::bytes) would read.
    #[cfg(feature = "redb")]
    pub(crate) fn skip(&mut self) -> Read<()> {
        self.span().map(drop)
    }

    pub(crate) fn str(&mut self) -> Read<&'a str> {
        let (start, end) = self.span()?;
        let text = self.bytes.get(start..end).ok_or(SHORT)?;
        std::str::from_utf8(text).map_err(|_| Fault::Malformed("a text is not UTF-8"))
    }

    pub(crate) fn text(&mut self) -> Read<String> {
        self.str().map(str::to_owned)
    }

    pub(crate) fn location(&mut self) -> Read<Location> {
        Location::from_bytes(self.bytes()?).map_err(|_| Fault::Malformed("a location is malformed"))
    }

    pub(crate) fn payload(&mut self) -> Read<Payload> {
        Ok(Payload {
            codec: self.u8()?,
            bytes: self.bytes()?,
        })
    }

    pub(crate) fn run_id(&mut self) -> Read<RunId> {
        self.str().map(RunId::from_stored)
    }

    pub(crate) fn option<T>(&mut self, get: impl FnOnce(&mut Self) -> Read<T>) -> Read<Option<T>> {
        if self.bool()? {
            get(self).map(Some)
        } else {
            Ok(None)
        }
    }

    pub(crate) fn list<T>(&mut self, mut get: impl FnMut(&mut Self) -> Read<T>) -> Read<Vec<T>> {
        let count = usize::try_from(self.varint()?).map_err(|_| SHORT)?;
        // An element is a byte at least: a count that cannot be true must not reserve memory.
        let mut values = Vec::with_capacity(count.min(self.end.saturating_sub(self.at)).min(1024));
        for _ in 0..count {
            values.push(get(self)?);
        }
        Ok(values)
    }

    pub(crate) fn texts(&mut self) -> Read<Vec<String>> {
        self.list(Self::text)
    }

    pub(crate) fn parent(&mut self) -> Read<Option<(RunId, Location)>> {
        self.option(|input| Ok((input.run_id()?, input.location()?)))
    }

    fn rest(&self) -> Read<&'a [u8]> {
        self.bytes.get(self.at..self.end).ok_or(SHORT)
    }

    fn array<const N: usize>(&mut self) -> Read<[u8; N]> {
        let array = *self.rest()?.first_chunk::<N>().ok_or(SHORT)?;
        self.at += N;
        Ok(array)
    }

    fn span(&mut self) -> Read<(usize, usize)> {
        let len = usize::try_from(self.varint()?).map_err(|_| SHORT)?;
        let start = self.at;
        let end = start
            .checked_add(len)
            .filter(|end| *end <= self.end)
            .ok_or(SHORT)?;
        self.at = end;
        Ok((start, end))
    }
}
