//! Where in a run something durable happened: the path of names from the workflow's body to a site.
//!
//! A location is kept encoded, segment after segment, each with its own length. So a location compares, hashes and is
//! written as plain bytes, "lies under" is a prefix test, and no name can collide with another by spelling.

use std::fmt;

use bytes::Bytes;

/// One step of the way to a location.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Segment<'a> {
    /// A site, by its name.
    Site(&'a str),
    /// A branch of a join or race, by its name.
    Branch(&'a str),
    /// An iteration of a loop, or a branch of a `join_all!` without keys, counted from 0.
    Iter(u64),
    /// An iteration or branch that has a key.
    Key {
        /// The key as text.
        key: &'a str,
        /// How many iterations before this one in the same loop had this key.
        occurrence: u32,
    },
}

const SITE: u8 = 1;
const BRANCH: u8 = 2;
const ITER: u8 = 3;
const KEY: u8 = 4;

/// The path of names from the workflow's body to a site.
///
/// Its text form is for people: `settle/paid/payment`, `items[3]/ship`, `items[sku-9]/ship`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Location(Bytes);

impl Location {
    /// The workflow's body itself.
    pub const fn root() -> Self {
        Self(Bytes::new())
    }

    /// The location one segment further down.
    #[must_use]
    pub fn child(&self, segment: Segment<'_>) -> Self {
        let mut bytes = Vec::with_capacity(self.0.len() + segment.encoded_len());
        bytes.extend_from_slice(&self.0);
        segment.encode(&mut bytes);
        Self::encoded(bytes)
    }

    /// The location that these whole segments encode.
    pub(super) fn encoded(bytes: Vec<u8>) -> Self {
        Self(bytes.into())
    }

    /// The site `name` in this scope.
    #[must_use]
    pub fn site(&self, name: &str) -> Self {
        self.child(Segment::Site(name))
    }

    /// The branch `name` of this join or race.
    #[must_use]
    pub fn branch(&self, name: &str) -> Self {
        self.child(Segment::Branch(name))
    }

    /// Iteration `index` of this loop.
    #[must_use]
    pub fn iteration(&self, index: u64) -> Self {
        self.child(Segment::Iter(index))
    }

    /// The segments from the body down.
    pub fn segments(&self) -> Segments<'_> {
        Segments(&self.0)
    }

    /// The path of its site in the source: `items[]/ship` for `items[3]/ship`. All iterations and items share it.
    pub fn path(&self) -> String {
        let mut path = String::new();
        for segment in self.segments() {
            match segment {
                Segment::Site(name) | Segment::Branch(name) => {
                    if !path.is_empty() {
                        path.push('/');
                    }
                    path.push_str(name);
                }
                Segment::Iter(_) | Segment::Key { .. } => path.push_str("[]"),
            }
        }
        path
    }

    /// True when this is `scope` or lies under it.
    pub fn is_under(&self, scope: &Self) -> bool {
        self.0.starts_with(&scope.0)
    }

    /// True for the workflow's body.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// The encoded form, as it is stored.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The part of this location's bytes that `text`, one of its own names, stands in.
    pub(super) fn slice_of(&self, text: &str) -> Bytes {
        if text.is_empty() {
            Bytes::new()
        } else {
            self.0.slice_ref(text.as_bytes())
        }
    }

    /// The location that lies below this one as these whole segments say.
    pub(super) fn join(&self, below: &[u8]) -> Self {
        Self([&self.0[..], below].concat().into())
    }

    /// Takes an encoded form as a store gives it back.
    ///
    /// # Errors
    /// [`MalformedLocation`] when the bytes are not whole segments.
    pub fn from_bytes(bytes: Bytes) -> Result<Self, MalformedLocation> {
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            rest = Segment::decode(rest).ok_or(MalformedLocation)?.1;
        }
        Ok(Self(bytes))
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (depth, segment) in self.segments().enumerate() {
            match segment {
                Segment::Site(name) | Segment::Branch(name) => {
                    if depth > 0 {
                        f.write_str("/")?;
                    }
                    f.write_str(name)?;
                }
                Segment::Iter(index) => write!(f, "[{index}]")?,
                Segment::Key { key, occurrence } => {
                    f.write_str("[")?;
                    escape(key, f)?;
                    if occurrence > 0 {
                        write!(f, "#{}", occurrence + 1)?;
                    }
                    f.write_str("]")?;
                }
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{self}`")
    }
}

/// Writes a key so that the text form stays unambiguous (child ids are made of it): names hold none of these
/// characters, and a key that is all digits must not read as an index.
fn escape(key: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if key.is_empty() || key.bytes().all(|byte| byte.is_ascii_digit()) {
        return write!(f, "\"{key}\"");
    }
    for char in key.chars() {
        if matches!(char, '/' | '[' | ']' | '#' | '%' | '"') || char.is_control() {
            write!(f, "%{:02x}", u32::from(char))?;
        } else {
            write!(f, "{char}")?;
        }
    }
    Ok(())
}

impl<'a> Segment<'a> {
    pub(super) fn encoded_len(self) -> usize {
        match self {
            Self::Site(name) | Self::Branch(name) => 1 + text_len(name),
            Self::Iter(index) => 1 + varint_len(index),
            Self::Key { key, occurrence } => 1 + varint_len(occurrence.into()) + text_len(key),
        }
    }

    pub(super) fn encode(self, out: &mut Vec<u8>) {
        match self {
            Self::Site(name) => put_text(SITE, name, out),
            Self::Branch(name) => put_text(BRANCH, name, out),
            Self::Iter(index) => {
                out.push(ITER);
                put_varint(index, out);
            }
            Self::Key { key, occurrence } => {
                out.push(KEY);
                put_varint(occurrence.into(), out);
                put_varint(key.len() as u64, out);
                out.extend_from_slice(key.as_bytes());
            }
        }
    }

    fn decode(bytes: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let (&tag, rest) = bytes.split_first()?;
        match tag {
            SITE => take_text(rest).map(|(name, rest)| (Self::Site(name), rest)),
            BRANCH => take_text(rest).map(|(name, rest)| (Self::Branch(name), rest)),
            ITER => take_varint(rest).map(|(index, rest)| (Self::Iter(index), rest)),
            KEY => {
                let (occurrence, rest) = take_varint(rest)?;
                let (key, rest) = take_text(rest)?;
                Some((
                    Self::Key {
                        key,
                        occurrence: u32::try_from(occurrence).ok()?,
                    },
                    rest,
                ))
            }
            _ => None,
        }
    }
}

/// The segments of a [`Location`], from the body down.
#[derive(Debug, Clone)]
pub struct Segments<'a>(&'a [u8]);

impl<'a> Iterator for Segments<'a> {
    type Item = Segment<'a>;

    fn next(&mut self) -> Option<Segment<'a>> {
        let (segment, rest) = Segment::decode(self.0)?;
        self.0 = rest;
        Some(segment)
    }
}

/// Bytes that are not a location.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the bytes of a location are malformed")]
pub struct MalformedLocation;

fn text_len(text: &str) -> usize {
    varint_len(text.len() as u64) + text.len()
}

fn varint_len(value: u64) -> usize {
    let bits = u64::BITS - (value | 1).leading_zeros();
    bits.div_ceil(7) as usize
}

fn put_text(tag: u8, text: &str, out: &mut Vec<u8>) {
    out.push(tag);
    put_varint(text.len() as u64, out);
    out.extend_from_slice(text.as_bytes());
}

fn put_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push((value & 0x7f) as u8);
}

fn take_varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0u64;
    for (at, &byte) in bytes.iter().enumerate().take(10) {
        value |= u64::from(byte & 0x7f).checked_shl(7 * u32::try_from(at).ok()?)?;
        if byte & 0x80 == 0 {
            return Some((value, &bytes[at + 1..]));
        }
    }
    None
}

fn take_text(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let (len, rest) = take_varint(bytes)?;
    let (text, rest) = rest.split_at_checked(usize::try_from(len).ok()?)?;
    Some((std::str::from_utf8(text).ok()?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_location_reads_as_people_write_it() {
        let root = Location::root();
        assert_eq!(
            root.site("settle")
                .branch("paid")
                .site("payment")
                .to_string(),
            "settle/paid/payment"
        );
        assert_eq!(
            root.site("items").iteration(3).site("ship").to_string(),
            "items[3]/ship"
        );
        let keyed = root.site("items").child(Segment::Key {
            key: "sku-9",
            occurrence: 0,
        });
        assert_eq!(keyed.site("ship").to_string(), "items[sku-9]/ship");
        let again = root.site("items").child(Segment::Key {
            key: "sku-9",
            occurrence: 1,
        });
        assert_eq!(again.to_string(), "items[sku-9#2]");
    }

    #[test]
    fn a_path_has_neither_indices_nor_keys() {
        let items = Location::root().site("settle").branch("paid").site("items");
        assert_eq!(
            items.iteration(3).site("ship").path(),
            "settle/paid/items[]/ship"
        );
        let keyed = items.child(Segment::Key {
            key: "a/b",
            occurrence: 1,
        });
        assert_eq!(keyed.path(), "settle/paid/items[]");
    }

    // RVT-FIX-63
    #[test]
    fn hostile_keys_collide_with_nothing() {
        let items = Location::root().site("items");
        let hostile = items.child(Segment::Key {
            key: "a]/ship",
            occurrence: 0,
        });
        let nested = items
            .child(Segment::Key {
                key: "a",
                occurrence: 0,
            })
            .site("ship");
        assert_ne!(hostile, nested);
        assert_ne!(hostile.to_string(), nested.to_string());
        assert!(!hostile.is_under(&nested) && !nested.is_under(&hostile));
        let counted = items.child(Segment::Key {
            key: "3",
            occurrence: 0,
        });
        assert_ne!(counted.to_string(), items.iteration(3).to_string());
        let second = items.child(Segment::Key {
            key: "a#2",
            occurrence: 0,
        });
        assert_ne!(
            second.to_string(),
            items
                .child(Segment::Key {
                    key: "a",
                    occurrence: 1
                })
                .to_string()
        );
    }

    #[test]
    fn a_location_is_under_itself_and_its_ancestors_only() {
        let join = Location::root().site("j");
        let deep = join.branch("a").site("s");
        assert!(deep.is_under(&deep) && deep.is_under(&join) && deep.is_under(&Location::root()));
        assert!(!Location::root().site("jj").is_under(&join));
    }

    #[test]
    fn what_is_not_a_location_is_refused() {
        for bytes in [
            &[9u8][..],
            &[1, 200],
            &[1, 2, b'a'],
            &[3],
            &[1, 1, 0xff],
            &[4, 0, 5, b'a'],
        ] {
            assert_eq!(
                Location::from_bytes(Bytes::copy_from_slice(bytes)),
                Err(MalformedLocation)
            );
        }
    }
}
