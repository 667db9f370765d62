//! Writing: plain values onto the end of a buffer. Cannot fail.

use super::tags::Tagged;
use crate::replay::{Location, Payload, RunId, Timestamp};

/// Writes onto the end of a buffer.
#[derive(Debug)]
pub(crate) struct Writer<'a>(pub(crate) &'a mut Vec<u8>);

impl Writer<'_> {
    pub(crate) fn u8(&mut self, value: u8) {
        self.0.push(value);
    }

    pub(crate) fn bool(&mut self, value: bool) {
        self.u8(u8::from(value));
    }

    pub(crate) fn tag(&mut self, value: impl Tagged) {
        self.u8(value.tag());
    }

    /// 7 bits a byte, the low ones first.
    pub(crate) fn varint(&mut self, mut value: u64) {
        loop {
            let [low, ..] = value.to_le_bytes();
            value >>= 7;
            if value == 0 {
                return self.u8(low & 0x7f);
            }
            self.u8(low | 0x80);
        }
    }

    /// Small in either direction is short.
    pub(crate) fn signed(&mut self, value: i64) {
        self.varint(value.cast_unsigned() << 1 ^ (value >> 63).cast_unsigned());
    }

    pub(crate) fn fixed(&mut self, value: u64) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn wide(&mut self, value: u128) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn timestamp(&mut self, value: Timestamp) {
        self.signed(value.as_millis());
    }

    pub(crate) fn bytes(&mut self, value: &[u8]) {
        self.varint(value.len() as u64);
        self.0.extend_from_slice(value);
    }

    pub(crate) fn text(&mut self, value: &str) {
        self.bytes(value.as_bytes());
    }

    pub(crate) fn location(&mut self, value: &Location) {
        self.bytes(value.as_bytes());
    }

    pub(crate) fn payload(&mut self, value: &Payload) {
        self.u8(value.codec);
        self.bytes(&value.bytes);
    }

    pub(crate) fn option<T>(&mut self, value: Option<T>, put: impl FnOnce(&mut Self, T)) {
        self.bool(value.is_some());
        if let Some(value) = value {
            put(self, value);
        }
    }

    pub(crate) fn list<T>(&mut self, values: &[T], mut put: impl FnMut(&mut Self, &T)) {
        self.varint(values.len() as u64);
        for value in values {
            put(self, value);
        }
    }

    pub(crate) fn texts(&mut self, values: &[String]) {
        self.list(values, |out, value| out.text(value));
    }

    pub(crate) fn parent(&mut self, value: Option<&(RunId, Location)>) {
        self.option(value, |out, (run, location)| {
            out.text(run.as_str());
            out.location(location);
        });
    }
}

/// Adds the checksum of everything from `start` on.
pub(crate) fn seal(out: &mut Vec<u8>, start: usize) {
    let sum = crc32fast::hash(out.get(start..).unwrap_or_default());
    out.extend_from_slice(&sum.to_le_bytes());
}
