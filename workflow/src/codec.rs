//! Floor 1: user values and bytes.
//!
//! A value is JSON. What stands between the JSON and the store, encryption or compression, is a [`Codec`].

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;
use std::hash::Hasher;

use bytes::Bytes;
use serde::Serialize;
use serde::de::{Deserialize, DeserializeOwned, Deserializer, MapAccess, SeqAccess, Visitor};
use siphasher::sip::SipHasher24;

use crate::replay::{Failure, Payload};

/// Any error, as it comes from user code.
pub(crate) type BoxError = Box<dyn Error + Send + Sync>;

/// What stands between the JSON of a value and the store: encrypts it, or compresses it.
///
/// # What an implementer owes
///
/// 1. `open(id, seal(json))` gives `json` back, on every machine and in every later build.
/// 2. `open` opens whatever a codec of this program ever sealed, so it looks at the id it is given. Id 0 is plain
///    JSON and never reaches a codec.
/// 3. Neither blocks: both are called while a run is being driven.
pub trait Codec: Send + Sync {
    /// What is written beside the bytes, so that they are opened by the right codec. 0 means plain JSON: then `seal`
    /// is not called.
    fn id(&self) -> u8;

    /// Turns JSON into what is stored.
    ///
    /// # Errors
    /// When it cannot. The step fails with [`FailureKind::Encode`](crate::FailureKind::Encode), and is not retried.
    fn seal(&self, json: Vec<u8>) -> Result<Vec<u8>, Box<dyn Error + Send + Sync>>;

    /// Turns what was stored by the codec `id` back into JSON.
    ///
    /// # Errors
    /// When it cannot: the key is gone, or the id is not known. The run is parked.
    fn open(&self, id: u8, sealed: Bytes) -> Result<Bytes, Box<dyn Error + Send + Sync>>;
}

/// Plain JSON, readable in every tool: the default.
#[derive(Debug, Clone, Copy, Default)]
pub struct Json;

impl Codec for Json {
    fn id(&self) -> u8 {
        PLAIN
    }

    fn seal(&self, json: Vec<u8>) -> Result<Vec<u8>, BoxError> {
        Ok(json)
    }

    fn open(&self, id: u8, sealed: Bytes) -> Result<Bytes, BoxError> {
        if id == PLAIN {
            return Ok(sealed);
        }
        Err(
            format!("the value was sealed by codec {id}, and this engine only knows plain JSON")
                .into(),
        )
    }
}

/// The codec id of plain JSON.
const PLAIN: u8 = 0;

/// Seals JSON for the store.
pub(crate) fn seal(codec: &dyn Codec, json: Vec<u8>) -> Result<Payload, BoxError> {
    let id = codec.id();
    let bytes = if id == PLAIN { json } else { codec.seal(json)? };
    Ok(Payload {
        codec: id,
        bytes: bytes.into(),
    })
}

/// Opens what the store gave back. Plain JSON is handed on as it is.
pub(crate) fn open(codec: &dyn Codec, payload: &Payload) -> Result<Bytes, BoxError> {
    if payload.codec == PLAIN {
        return Ok(payload.bytes.clone());
    }
    codec.open(payload.codec, payload.bytes.clone())
}

/// The failure as user code sees it: its typed value, and those of its branches, are plain JSON. What cannot be opened is
/// left out, for a failure must still be a failure.
pub(crate) fn open_failure(codec: &dyn Codec, failure: Failure) -> Failure {
    map_values(failure, &|payload| {
        if payload.codec == PLAIN {
            return Some(payload.clone());
        }
        let json = open(codec, payload).ok()?;
        Some(Payload::json(json))
    })
}

/// The failure as the store keeps it: what user code sees of it, its typed values sealed.
pub(crate) fn seal_failure(codec: &dyn Codec, failure: Failure) -> Failure {
    if codec.id() == PLAIN {
        return failure;
    }
    map_values(failure, &|payload| {
        if payload.codec != PLAIN {
            return Some(payload.clone());
        }
        seal(codec, payload.bytes.to_vec()).ok()
    })
}

fn map_values(failure: Failure, map: &dyn Fn(&Payload) -> Option<Payload>) -> Failure {
    if failure.value().is_none() && failure.branches().is_empty() {
        return failure;
    }
    let value = failure.value().and_then(map);
    let branches = failure
        .branches()
        .iter()
        .map(|branch| map_values(branch.clone(), map))
        .collect();
    failure.with_value(value).with_branches(branches)
}

/// A value as JSON, and as that JSON reads back: what the workflow sees is what a replay sees.
pub(crate) struct Encoded<T> {
    pub(crate) json: Vec<u8>,
    pub(crate) value: T,
}

/// Encodes a value, and reads it back.
pub(crate) fn encode<T: Serialize + DeserializeOwned>(value: &T) -> serde_json::Result<Encoded<T>> {
    let json = serde_json::to_vec(value)?;
    let value = serde_json::from_slice(&json)?;
    Ok(Encoded { json, value })
}

/// A hash of what JSON says, whatever the order of its objects' fields and its white space: the same in every process
/// and every build. Text that is not JSON is hashed as it is.
pub(crate) fn canonical_hash(json: &[u8]) -> u64 {
    let mut hasher = SipHasher24::new_with_keys(KEY.0, KEY.1);
    match serde_json::from_slice::<Canonical>(json) {
        Ok(value) => value.feed(&mut hasher),
        Err(_) => hasher.write(json),
    }
    hasher.finish()
}

/// Fixed for ever: the hashes are stored.
const KEY: (u64, u64) = (0x776f_726b_666c_6f77, 0x696e_7075_7420_6861);

/// JSON with its objects sorted. A number is kept as its kind and bits, so that no precision is lost.
enum Canonical {
    Null,
    Bool(bool),
    Number(u8, [u8; 16]),
    Text(String),
    List(Vec<Canonical>),
    Object(BTreeMap<String, Canonical>),
}

impl Canonical {
    fn feed(&self, hasher: &mut SipHasher24) {
        match self {
            Self::Null => hasher.write(b"n"),
            Self::Bool(value) => hasher.write(if *value { b"t" } else { b"f" }),
            Self::Number(kind, bits) => {
                hasher.write(&[*kind]);
                hasher.write(bits);
            }
            Self::Text(text) => feed_text(text, hasher),
            Self::List(items) => {
                feed_length(b'[', items.len(), hasher);
                for item in items {
                    item.feed(hasher);
                }
            }
            Self::Object(fields) => {
                feed_length(b'{', fields.len(), hasher);
                for (name, value) in fields {
                    feed_text(name, hasher);
                    value.feed(hasher);
                }
            }
        }
    }
}

fn feed_text(text: &str, hasher: &mut SipHasher24) {
    feed_length(b's', text.len(), hasher);
    hasher.write(text.as_bytes());
}

fn feed_length(tag: u8, length: usize, hasher: &mut SipHasher24) {
    hasher.write(&[tag]);
    hasher.write(&(length as u64).to_le_bytes());
}

impl<'de> Deserialize<'de> for Canonical {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(CanonicalVisitor)
    }
}

struct CanonicalVisitor;

impl<'de> Visitor<'de> for CanonicalVisitor {
    type Value = Canonical;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Canonical, E> {
        Ok(Canonical::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Canonical, E> {
        Ok(Canonical::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Canonical, E> {
        Ok(Canonical::Number(b'i', i128::from(value).to_le_bytes()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Canonical, E> {
        Ok(Canonical::Number(b'i', i128::from(value).to_le_bytes()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Canonical, E> {
        Ok(Canonical::Number(
            b'd',
            u128::from(value.to_bits()).to_le_bytes(),
        ))
    }

    fn visit_str<E>(self, value: &str) -> Result<Canonical, E> {
        Ok(Canonical::Text(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Canonical, E> {
        Ok(Canonical::Text(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Canonical, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(Canonical::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Canonical, A::Error> {
        let mut fields = BTreeMap::new();
        while let Some((name, value)) = map.next_entry()? {
            fields.insert(name, value);
        }
        Ok(Canonical::Object(fields))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::{FailureKind, Location};

    // U21
    #[test]
    fn the_order_of_fields_and_white_space_do_not_change_the_hash() {
        let one = canonical_hash(br#"{"order":{"id":"o1","n":2,"x":1.5},"tags":["a","b"]}"#);
        let two = canonical_hash(br#" {"tags":["a", "b"], "order":{"x":1.5,"n":2,"id":"o1"}} "#);
        assert_eq!(one, two);
    }

    #[test]
    fn what_differs_hashes_differently() {
        let texts: [&[u8]; 10] = [
            b"null",
            b"0",
            b"0.0",
            b"\"0\"",
            b"[]",
            b"{}",
            b"[[],[]]",
            b"[[[]]]",
            br#"["a","b"]"#,
            br#"["ab"]"#,
        ];
        let hashes: std::collections::BTreeSet<_> =
            texts.iter().map(|text| canonical_hash(text)).collect();
        assert_eq!(hashes.len(), texts.len());
        assert_ne!(
            canonical_hash(b"18446744073709551615"),
            canonical_hash(b"18446744073709551614")
        );
    }

    #[test]
    fn the_hash_never_changes_for_it_is_stored() {
        assert_eq!(
            canonical_hash(br#"{"a":[1,-2,0.5,true,null,"x"]}"#),
            5_267_276_306_422_996_425
        );
    }

    #[test]
    fn plain_json_is_handed_on_without_a_copy() {
        let json = b"[1,2,3]".to_vec();
        let at = json.as_ptr();
        let payload = seal(&Json, json).unwrap();
        assert_eq!(payload.bytes.as_ptr(), at);
        assert_eq!(open(&Json, &payload).unwrap().as_ptr(), at);
    }

    #[test]
    fn a_failures_typed_value_is_sealed_in_the_store_and_plain_for_the_user() {
        struct Flip;
        impl Codec for Flip {
            fn id(&self) -> u8 {
                7
            }
            fn seal(&self, json: Vec<u8>) -> Result<Vec<u8>, BoxError> {
                Ok(json.into_iter().map(|byte| !byte).collect())
            }
            fn open(&self, id: u8, sealed: Bytes) -> Result<Bytes, BoxError> {
                assert_eq!(id, 7);
                Ok(sealed.iter().map(|byte| !byte).collect())
            }
        }
        let inner = Failure::new(FailureKind::Exhausted, Location::root(), "m")
            .with_value(Some(Payload::json("\"secret\"")));
        let outer =
            Failure::new(FailureKind::Join, Location::root(), "j").with_branches(vec![inner]);
        let sealed = seal_failure(&Flip, outer.clone());
        assert_eq!(sealed.branches()[0].value().unwrap().codec, 7);
        assert!(
            !sealed.branches()[0]
                .value()
                .unwrap()
                .bytes
                .starts_with(b"\"secret")
        );
        assert_eq!(open_failure(&Flip, sealed), outer);
    }
}
