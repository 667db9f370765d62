//! What the history stores of a user's value.

use std::fmt;

use bytes::Bytes;

/// An encoded value: opaque bytes, and which codec made them.
#[derive(Clone, PartialEq, Eq)]
pub struct Payload {
    /// Which [`Codec`](crate::Codec) can open the bytes; 0 is plain JSON.
    pub codec: u8,
    /// The encoded value.
    pub bytes: Bytes,
}

impl Payload {
    /// Plain JSON text.
    pub fn json(text: impl Into<Bytes>) -> Self {
        Self {
            codec: 0,
            bytes: text.into(),
        }
    }
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 256;
        match std::str::from_utf8(&self.bytes) {
            Ok(text) if self.codec == 0 && text.len() <= SHOWN => f.write_str(text),
            _ => write!(f, "<{} bytes, codec {}>", self.bytes.len(), self.codec),
        }
    }
}
