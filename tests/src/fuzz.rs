//! What is fed with bytes that nobody means: each must give an error or something that is whole. `tests/fuzz` has a fuzzer for
//! each, and the inputs it found worth keeping; they are tried in every test run.

use workflow::replay::{History, RunKey};
use workflow::store::encoding::{
    decode_answer, decode_dead_letter, decode_finished, decode_message, decode_record, decode_row,
    encode_answer, encode_dead_letter, encode_finished, encode_message, encode_record, encode_row,
    peek_record,
};
use workflow::{Bytes, Failure, join, recv, sleep, step, workflow};

/// Reads bytes by `decode`; what it gives is written, and reads as the same.
fn round<T: PartialEq + std::fmt::Debug, E>(
    bytes: &Bytes,
    decode: impl Fn(&Bytes) -> Result<T, E>,
    encode: impl Fn(&T, &mut Vec<u8>),
) {
    let Ok(value) = decode(bytes) else { return };
    let mut written = Vec::new();
    encode(&value, &mut written);
    let again = decode(&written.into());
    assert!(again.is_ok_and(|again| again == value), "{value:?}");
}

/// Gives bytes the checksum that they should have: or nothing but that is ever refused.
fn sealed(bytes: &[u8]) -> Bytes {
    let mut out = bytes.to_vec();
    let sum = bytes.iter().fold(u32::MAX, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| {
            sum >> 1 ^ (0xedb8_8320 & (sum & 1).wrapping_neg())
        })
    });
    out.extend_from_slice(&(!sum).to_le_bytes());
    out.into()
}

/// Everything that a store keeps by itself.
///
/// # Panics
/// When something reads otherwise than it is written.
pub fn stored(bytes: &[u8]) {
    for bytes in [Bytes::copy_from_slice(bytes), sealed(bytes)] {
        round(&bytes, decode_record, encode_record);
        round(&bytes, |bytes| decode_row(RunKey(1), bytes), encode_row);
        round(&bytes, decode_message, encode_message);
        round(&bytes, decode_dead_letter, encode_dead_letter);
        round(&bytes, decode_answer, encode_answer);
        round(&bytes, decode_finished, encode_finished);
        let (whole, peeked) = (decode_record(&bytes), peek_record(&bytes));
        if let (Ok(whole), Ok(peeked)) = (whole, peeked) {
            assert_eq!((whole.seq, whole.location), (peeked.seq, peeked.location));
        }
    }
}

const WORD: workflow::Channel<String> = workflow::Channel::new("word");

#[step]
async fn one(n: u64) -> u64 {
    n
}

#[workflow]
async fn replayed(n: u64) -> Result<u64, Failure> {
    let mut sum = one(n).await?;
    let both = join!(
        both,
        left = {
            #[step(name = "a")]
            one(1).await?
        },
        right = {
            sleep!(nap, "1s").await;
            recv!(word, WORD).await?.len() as u64
        }
    )
    .await?;
    sum += both.0 + both.1;
    'all: for i in 0..n.min(5) {
        sum += one(i).await?;
    }
    Ok(sum)
}

/// A history as JSON: it is refused, or replays to something.
///
/// # Panics
/// When it reads otherwise than it is written.
pub fn history(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let Ok(history) = History::from_json(text) else {
        return;
    };
    let printed = history.to_json();
    let again = History::from_json(&printed);
    assert!(
        again.is_ok_and(|again| again.to_json() == printed),
        "{printed}"
    );
    drop(workflow::testing::replay(replayed, &history));
}
