//! What was ever written opens for ever; what is damaged or newer is told apart, and nothing panics.

#![expect(
    clippy::unwrap_used,
    reason = "what is not as it should be fails the test"
)]

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use bytes::Bytes;
use proptest::prelude::*;
use workflow::replay::{
    Body, CodeId, Ended, Failure, FailureKind, Finished, Kind, Location, Opened, Payload, Record,
    RunKey, Segment, Timestamp,
};
use workflow::store::encoding::{
    decode_record, decode_row, encode_record, encode_row, peek_record,
};
use workflow::store::{RunRow, StoreError};

mod store_samples;
use store_samples::{FAILURES, KINDS, bodies, ended, payload, record, rows};

fn written(record: &Record) -> Bytes {
    let mut out = Vec::new();
    encode_record(record, &mut out);
    out.into()
}

fn row_written(row: &RunRow) -> Bytes {
    let mut out = Vec::new();
    encode_row(row, &mut out);
    out.into()
}

/// One line of hex digits for each; a file is never changed, only new ones are written, when asked.
fn golden(name: &str, found: &[Bytes]) -> Vec<Bytes> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("fixtures/v1")
        .join(format!("{name}.hex"));
    if std::env::var_os("WRITE_FIXTURES").is_some() && !path.exists() {
        let mut text = String::new();
        for bytes in found {
            bytes
                .iter()
                .for_each(|byte| write!(text, "{byte:02x}").unwrap());
            text.push('\n');
        }
        fs::write(&path, text).unwrap();
    }
    let text =
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.lines()
        .map(|line| {
            let digits = |at| u8::from_str_radix(&line[at..at + 2], 16).unwrap();
            (0..line.len())
                .step_by(2)
                .map(digits)
                .collect::<Vec<_>>()
                .into()
        })
        .collect()
}

#[test]
fn every_kind_of_record_is_written_and_read_as_it_always_was() {
    for (name, bodies) in bodies() {
        let records: Vec<_> = bodies.into_iter().map(record).collect();
        let found: Vec<_> = records.iter().map(written).collect();
        let golden = golden(name, &found);
        assert_eq!(
            found, golden,
            "{name} is written in other bytes than before"
        );
        for (record, bytes) in records.iter().zip(&golden) {
            assert_eq!(
                decode_record(bytes).unwrap(),
                *record,
                "{name} does not read as it was written"
            );
        }
    }
}

#[test]
fn rows_are_written_and_read_as_they_always_were() {
    let found: Vec<_> = rows().iter().map(row_written).collect();
    let golden = golden("row", &found);
    assert_eq!(found, golden);
    for (row, bytes) in rows().iter().zip(&golden) {
        assert_eq!(decode_row(row.key, bytes).unwrap(), *row);
    }
}

#[test]
fn a_payload_and_a_location_are_parts_of_what_was_read() {
    let bytes = written(&record(Body::Closed(payload())));
    let within = bytes.as_ptr_range();
    let record = decode_record(&bytes).unwrap();
    let Body::Closed(payload) = record.body else {
        panic!("it was a `Closed`")
    };
    assert!(within.contains(&payload.bytes.as_ptr()));
    assert!(within.contains(&record.location.as_bytes().as_ptr()));
}

/// Changes bytes and gives them a right checksum again, as a newer program would.
fn resealed(bytes: &Bytes, change: impl FnOnce(&mut Vec<u8>)) -> Bytes {
    let mut content = bytes[..bytes.len() - 4].to_vec();
    change(&mut content);
    content.extend_from_slice(&crc32(&content).to_le_bytes());
    content.into()
}

/// CRC-32 by its definition: a second opinion on the library's.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| {
            sum >> 1 ^ (0xedb8_8320 & (sum & 1).wrapping_neg())
        })
    })
}

#[test]
fn a_newer_version_kind_flag_or_tag_is_told_from_damage() {
    let bytes = written(&record(Body::Removed { kind: Kind::Step }));
    let last = bytes.len() - 5;
    for (at, byte) in [(0, 2), (1, 200), (2, 1), (last, 99)] {
        let newer = resealed(&bytes, |content| content[at] = byte);
        let refused = decode_record(&newer);
        assert!(
            matches!(refused, Err(StoreError::Newer { what: "record", .. })),
            "{at}: {refused:?}"
        );
        let mut damaged = newer.to_vec();
        damaged[at] ^= 1;
        assert!(matches!(
            decode_record(&damaged.into()),
            Err(StoreError::Corrupt { .. })
        ));
    }
}

#[test]
fn a_record_of_an_unknown_kind_still_says_where_it_stands() {
    let known = record(Body::Checkpoint);
    let unknown = resealed(&written(&known), |content| content[1] = 200);
    let peek = peek_record(&unknown).unwrap();
    assert_eq!((peek.seq, peek.location), (known.seq, known.location));
}

#[test]
fn a_field_added_to_a_row_is_skipped_and_a_newer_row_is_not_guessed_at() {
    let row = &rows()[0];
    let longer = resealed(&row_written(row), |content| {
        content.extend_from_slice(b"a field of tomorrow");
    });
    assert_eq!(decode_row(row.key, &longer).unwrap(), *row);
    let newer = resealed(&row_written(row), |content| content[0] = 2);
    assert!(matches!(
        decode_row(row.key, &newer),
        Err(StoreError::Newer {
            what: "run row",
            ..
        })
    ));
}

#[test]
fn every_cut_and_every_flipped_bit_is_found() {
    let records = bodies()
        .into_iter()
        .flat_map(|(_, bodies)| bodies)
        .map(|body| written(&record(body)));
    for bytes in records {
        for len in 0..bytes.len() {
            assert!(matches!(
                decode_record(&bytes.slice(..len)),
                Err(StoreError::Corrupt { .. })
            ));
        }
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.to_vec();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(matches!(
                decode_record(&flipped.into()),
                Err(StoreError::Corrupt { .. })
            ));
        }
    }
}

#[test]
fn failures_nested_without_end_are_cut_when_they_are_written() {
    let mut deep = Failure::new(FailureKind::Exhausted, Location::root(), "x");
    for _ in 0..200 {
        deep = Failure::new(FailureKind::Join, Location::root(), "x").with_branches(vec![deep]);
    }
    let bytes = written(&record(ended(Kind::Join, Err(deep))));
    let Body::Ended(Ended {
        outcome: Err(read), ..
    }) = decode_record(&bytes).unwrap().body
    else {
        panic!("it failed")
    };
    let depth = std::iter::successors(Some(&read), |failure| failure.branches().first()).count();
    assert_eq!(depth, 65);
}

fn any_failure() -> impl Strategy<Value = Failure> {
    let leaf = (
        0..FAILURES.len(),
        any_location(),
        ".{0,20}",
        any::<u32>(),
        any_payload(),
    )
        .prop_map(|(kind, location, message, attempts, value)| {
            Failure::new(FAILURES[kind], location, message)
                .with_attempts(attempts)
                .with_value(Some(value))
        });
    leaf.prop_recursive(3, 12, 3, |inner| {
        (
            prop::collection::vec(inner, 0..3),
            prop::collection::vec(".{0,9}", 0..3),
            ".{0,9}",
        )
            .prop_map(|(branches, chain, name)| {
                Failure::new(FailureKind::Race, Location::root(), "")
                    .with_chain(chain)
                    .with_type_name(name)
                    .with_branches(branches)
            })
    })
}

fn any_location() -> impl Strategy<Value = Location> {
    prop::collection::vec((0..4_u8, ".{0,12}", any::<u64>(), any::<u32>()), 0..5).prop_map(
        |segments| {
            segments.into_iter().fold(
                Location::root(),
                |location, (kind, name, index, occurrence)| match kind {
                    0 => location.site(&name),
                    1 => location.branch(&name),
                    2 => location.iteration(index),
                    _ => location.child(Segment::Key {
                        key: &name,
                        occurrence,
                    }),
                },
            )
        },
    )
}

fn any_payload() -> impl Strategy<Value = Payload> {
    (any::<u8>(), prop::collection::vec(any::<u8>(), 0..200)).prop_map(|(codec, bytes)| Payload {
        codec,
        bytes: bytes.into(),
    })
}

fn any_body() -> impl Strategy<Value = Body> {
    let fixed: Vec<_> = bodies()
        .into_iter()
        .flat_map(|(_, bodies)| bodies)
        .collect();
    prop_oneof![
        prop::sample::select(fixed),
        (0..KINDS.len(), any_payload()).prop_map(|(kind, payload)| ended(KINDS[kind], Ok(payload))),
        any_failure().prop_map(|failure| ended(Kind::Step, Err(failure))),
        any_failure().prop_map(|failure| Body::Finished(Finished::Failed(failure))),
        (any::<u64>(), any_payload()).prop_map(|(next, state)| Body::Carried { next, state }),
        prop::collection::vec(".{0,20}", 0..300)
            .prop_map(|branches| Body::Opened(Opened::Join(branches))),
    ]
}

proptest! {
    #[test]
    fn whatever_is_written_is_read(
        seq in any::<u64>(),
        at in any::<i64>(),
        code in any::<u64>(),
        location in any_location(),
        body in any_body(),
    ) {
        let record = Record { seq, at: Timestamp::from_millis(at), code: CodeId(code), location, body };
        prop_assert_eq!(decode_record(&written(&record)).unwrap(), record);
    }

    #[test]
    fn noise_with_a_right_checksum_is_refused_without_a_panic(
        body in any_body(),
        noise in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        cut in any::<prop::sample::Index>(),
    ) {
        let bytes = written(&record(body));
        let noisy = resealed(&bytes, |content| {
            for (at, byte) in noise {
                let at = at.index(content.len());
                content[at] = byte;
            }
            content.truncate(content.len() - cut.index(content.len().min(9)));
        });
        let _ = decode_record(&noisy);
        let _ = decode_row(RunKey(1), &noisy);
        let _ = peek_record(&noisy);
    }
}
