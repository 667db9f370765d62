//! The JSON form of what a history holds, as it is exported. [`History`](super::History) describes it.
//!
//! Numbers over 53 bits are hexadecimal text, so that every tool reads them; a value that is JSON stands in it byte for
//! byte, so that it comes back as it was.

use std::fmt;

use serde::de::{self, Error as _, MapAccess, SeqAccess, Visitor};
use serde::ser::SerializeSeq;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use super::{CodeId, Location, Payload, Segment};

// ----- payloads -----

/// `{"json": {"id": "o1"}}`, or `{"codec": 7, "hex": "00ff"}` for what another codec sealed.
impl Serialize for Payload {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let plain = || {
            let raw: &RawValue = serde_json::from_slice(&self.bytes).ok()?;
            // White space around it is not part of the value, and would be lost.
            (raw.get().len() == self.bytes.len()).then_some(raw)
        };
        if self.codec == 0
            && let Some(json) = plain()
        {
            return Plain { json }.serialize(serializer);
        }
        let hex = hex(&self.bytes);
        let codec = self.codec;
        Sealed { codec, hex }.serialize(serializer)
    }
}

#[derive(Serialize)]
struct Plain<'a> {
    json: &'a RawValue,
}

#[derive(Serialize)]
struct Sealed {
    codec: u8,
    hex: String,
}

impl<'de> Deserialize<'de> for Payload {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Either {
            #[serde(default, deserialize_with = "there")]
            json: Option<Box<RawValue>>,
            codec: Option<u8>,
            hex: Option<String>,
        }
        // `null` is a value like any other, and not the absence of one.
        fn there<'de, D: Deserializer<'de>>(
            deserializer: D,
        ) -> Result<Option<Box<RawValue>>, D::Error> {
            Box::deserialize(deserializer).map(Some)
        }
        match Either::deserialize(deserializer)? {
            Either {
                json: Some(json),
                codec: None,
                hex: None,
            } => Ok(Self::json(String::from(Box::<str>::from(json)))),
            Either {
                json: None,
                codec: Some(codec),
                hex: Some(hex),
            } => Ok(Self {
                codec,
                bytes: unhex(&hex).map_err(D::Error::custom)?.into(),
            }),
            _ => Err(D::Error::custom(
                "a value is either `json`, or `codec` and `hex`",
            )),
        }
    }
}

// ----- locations -----

/// `["settle", {"branch": "paid"}, "items", 3, "ship"]`: a text is a site, a number an iteration or item.
impl Serialize for Location {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Branch<'a> {
            branch: &'a str,
        }
        #[derive(Serialize)]
        struct Key<'a> {
            key: &'a str,
            occurrence: u32,
        }
        let mut seq = serializer.serialize_seq(None)?;
        for segment in self.segments() {
            match segment {
                Segment::Site(name) => seq.serialize_element(name)?,
                Segment::Branch(branch) => seq.serialize_element(&Branch { branch })?,
                Segment::Iter(index) => seq.serialize_element(&index)?,
                Segment::Key { key, occurrence } => {
                    seq.serialize_element(&Key { key, occurrence })?;
                }
            }
        }
        seq.end()
    }
}

impl<'de> Deserialize<'de> for Location {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Segments;
        impl<'de> Visitor<'de> for Segments {
            type Value = Location;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a location: a list of names, numbers, branches and keys")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Location, A::Error> {
                let mut bytes = Vec::new();
                while let Some(segment) = seq.next_element::<Owned>()? {
                    segment.borrow().encode(&mut bytes);
                }
                Ok(Location::encoded(bytes))
            }
        }
        deserializer.deserialize_seq(Segments)
    }
}

/// A segment with its text.
enum Owned {
    Site(String),
    Branch(String),
    Iter(u64),
    Key(String, u32),
}

impl Owned {
    fn borrow(&self) -> Segment<'_> {
        match self {
            Self::Site(name) => Segment::Site(name),
            Self::Branch(name) => Segment::Branch(name),
            Self::Iter(index) => Segment::Iter(*index),
            Self::Key(key, occurrence) => Segment::Key {
                key,
                occurrence: *occurrence,
            },
        }
    }
}

impl<'de> Deserialize<'de> for Owned {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct One;
        impl<'de> Visitor<'de> for One {
            type Value = Owned;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(
                    "a name, a number, `{\"branch\": ..}` or `{\"key\": .., \"occurrence\": ..}`",
                )
            }

            fn visit_str<E: de::Error>(self, name: &str) -> Result<Owned, E> {
                Ok(Owned::Site(name.to_owned()))
            }

            fn visit_u64<E: de::Error>(self, index: u64) -> Result<Owned, E> {
                Ok(Owned::Iter(index))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Owned, A::Error> {
                #[derive(Deserialize)]
                #[serde(deny_unknown_fields)]
                struct Fields {
                    branch: Option<String>,
                    key: Option<String>,
                    occurrence: Option<u32>,
                }
                let fields = Fields::deserialize(de::value::MapAccessDeserializer::new(map))?;
                match fields {
                    Fields {
                        branch: Some(branch),
                        key: None,
                        occurrence: None,
                    } => Ok(Owned::Branch(branch)),
                    Fields {
                        branch: None,
                        key: Some(key),
                        occurrence,
                    } => Ok(Owned::Key(key, occurrence.unwrap_or(0))),
                    _ => Err(A::Error::custom("a segment is a `branch` or a `key`")),
                }
            }
        }
        deserializer.deserialize_any(One)
    }
}

// ----- ids -----

impl Serialize for CodeId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        hex_u64::serialize(&self.0, serializer)
    }
}

impl<'de> Deserialize<'de> for CodeId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        hex_u64::deserialize(deserializer).map(Self)
    }
}

// ----- results -----

/// `{"ok": ..}` or `{"failed": ..}`.
pub(super) mod outcome {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::replay::Failure;

    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Outcome<T, F> {
        Ok(T),
        Failed(F),
    }

    pub(in crate::replay) fn serialize<T: Serialize, S: Serializer>(
        outcome: &Result<T, Failure>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match outcome {
            Ok(value) => Outcome::<_, &Failure>::Ok(value).serialize(serializer),
            Err(failure) => Outcome::<&T, _>::Failed(failure).serialize(serializer),
        }
    }

    pub(in crate::replay) fn deserialize<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Result<T, Failure>, D::Error> {
        Ok(match Outcome::deserialize(deserializer)? {
            Outcome::Ok(value) => Ok(value),
            Outcome::Failed(failure) => Err(failure),
        })
    }
}

// ----- large numbers and bytes -----

macro_rules! hex_number {
    ($module:ident $ty:ident $digits:literal) => {
        pub(super) mod $module {
            use serde::de::Error as _;
            use serde::{Deserialize, Deserializer, Serializer};

            pub(in crate::replay) fn serialize<S: Serializer>(
                number: &$ty,
                serializer: S,
            ) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&format!(concat!("{:0", $digits, "x}"), number))
            }

            pub(in crate::replay) fn deserialize<'de, D: Deserializer<'de>>(
                deserializer: D,
            ) -> Result<$ty, D::Error> {
                let text = String::deserialize(deserializer)?;
                $ty::from_str_radix(&text, 16).map_err(|error| {
                    D::Error::custom(format!("`{text}` is no hexadecimal number: {error}"))
                })
            }
        }
    };
}

hex_number!(hex_u64 u64 16);
hex_number!(hex_u128 u128 32);

/// An optional number.
pub(super) mod maybe_hex_u64 {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    #[serde(transparent)]
    struct Number(#[serde(with = "super::hex_u64")] u64);

    #[expect(clippy::ref_option, reason = "serde gives it so")]
    pub(in crate::replay) fn serialize<S: Serializer>(
        number: &Option<u64>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        number.map(Number).serialize(serializer)
    }

    pub(in crate::replay) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<u64>, D::Error> {
        let number = Option::<Number>::deserialize(deserializer)?;
        Ok(number.map(|number| number.0))
    }
}

/// Optional bytes.
pub(super) mod maybe_hex_bytes {
    use bytes::Bytes;
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[expect(clippy::ref_option, reason = "serde gives it so")]
    pub(in crate::replay) fn serialize<S: Serializer>(
        bytes: &Option<Bytes>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let text = bytes.as_ref().map(|bytes| super::hex(bytes));
        text.serialize(serializer)
    }

    pub(in crate::replay) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Bytes>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        let bytes = text.map(|text| super::unhex(&text)).transpose();
        Ok(bytes.map_err(D::Error::custom)?.map(Bytes::from))
    }
}

fn hex(bytes: &[u8]) -> String {
    use fmt::Write;
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

fn unhex(text: &str) -> Result<Vec<u8>, &'static str> {
    const WRONG: &str = "bytes are pairs of hexadecimal digits";
    let digit = |byte: u8| (byte as char).to_digit(16).ok_or(WRONG);
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if !rest.is_empty() {
        return Err(WRONG);
    }
    let byte = |[high, low]: &[u8; 2]| {
        let value = digit(*high)? << 4 | digit(*low)?;
        u8::try_from(value).map_err(|_| WRONG)
    };
    pairs.iter().map(byte).collect()
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::replay::Kind;

    fn there_and_back<T>(value: &T) -> String
    where
        T: Serialize + for<'de> Deserialize<'de> + PartialEq + fmt::Debug,
    {
        let json = serde_json::to_string(value).unwrap();
        assert_eq!(&serde_json::from_str::<T>(&json).unwrap(), value, "{json}");
        json
    }

    #[test]
    fn a_payload_comes_back_byte_for_byte() {
        for (payload, json) in [
            (Payload::json("null"), r#"{"json":null}"#),
            (
                Payload::json(r#"{"b":1,"a":340282366920938463463374607431768211455}"#),
                r#"{"json":{"b":1,"a":340282366920938463463374607431768211455}}"#,
            ),
            // What is no JSON, or JSON with white space around it, is not taken for JSON.
            (Payload::json(" 1"), r#"{"codec":0,"hex":"2031"}"#),
            (Payload::json("{"), r#"{"codec":0,"hex":"7b"}"#),
            (Payload::json(""), r#"{"codec":0,"hex":""}"#),
            (
                Payload {
                    codec: 7,
                    bytes: Bytes::from_static(b"\0\xff"),
                },
                r#"{"codec":7,"hex":"00ff"}"#,
            ),
        ] {
            assert_eq!(there_and_back(&payload), json);
        }
        for wrong in [
            "{}",
            r#"{"json":1,"codec":0}"#,
            r#"{"codec":1,"hex":"0"}"#,
            r#"{"codec":1,"hex":"zz"}"#,
        ] {
            assert!(serde_json::from_str::<Payload>(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_location_is_a_list_that_reads_as_the_location_does() {
        let location = Location::root()
            .site("settle")
            .branch("paid")
            .site("items")
            .iteration(3)
            .site("by")
            .child(Segment::Key {
                key: "a\"/b",
                occurrence: 2,
            });
        assert_eq!(
            there_and_back(&location),
            r#"["settle",{"branch":"paid"},"items",3,"by",{"key":"a\"/b","occurrence":2}]"#
        );
        assert_eq!(there_and_back(&Location::root()), "[]");
        assert!(serde_json::from_str::<Location>("[-1]").is_err());
        assert!(serde_json::from_str::<Location>(r#"[{"branch":"a","key":"b"}]"#).is_err());
    }

    #[test]
    fn a_kind_is_the_word_that_reports_use() {
        for kind in [
            Kind::Step,
            Kind::JoinAll,
            Kind::Loop,
            Kind::Recv,
            Kind::Rollback,
        ] {
            assert_eq!(there_and_back(&kind), format!("\"{kind}\""));
        }
    }
}
