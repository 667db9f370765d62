//! Bytes that nobody means: what fuzzers found worth keeping, and random changes of what was once written.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::path::{Path, PathBuf};

use workflow_tests::fuzz;

fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn corpus(target: &str) -> Vec<Vec<u8>> {
    let files = fs::read_dir(here(&format!("fuzz/corpus/{target}"))).unwrap();
    let files = files.map(|file| fs::read(file.unwrap().path()).unwrap());
    files.collect()
}

struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap() % limit.max(1)
    }
}

fn changed(mut bytes: Vec<u8>, others: &[Vec<u8>], dice: &mut Dice) -> Vec<u8> {
    for _ in 0..=dice.below(4) {
        let at = dice.below(bytes.len());
        match dice.below(6) {
            0 => bytes.truncate(at),
            1 => {
                let other = &others[dice.below(others.len())];
                let from = dice.below(other.len());
                bytes.truncate(at);
                bytes.extend_from_slice(&other[from..]);
            }
            2 => bytes.insert(at, [0, 1, 0x7f, 0x80, 0xff][dice.below(5)]),
            3 if !bytes.is_empty() => drop(bytes.remove(at)),
            _ => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1 << dice.below(8);
                }
            }
        }
    }
    bytes
}

/// `FUZZ=1000000 cargo test -p workflow-tests --release --test fuzzed` tries that many.
fn tries(usual: u64) -> u64 {
    let asked = std::env::var("FUZZ").ok();
    asked.map_or(usual, |asked| asked.parse().unwrap())
}

fn all(target: &str, one: impl Fn(&[u8]), written: &[Vec<u8>], usual: u64) {
    let mut inputs = corpus(target);
    assert!(!inputs.is_empty());
    inputs.extend_from_slice(written);
    for input in &inputs {
        one(input);
    }
    for seed in 1..=tries(usual) {
        let dice = &mut Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let input = inputs[dice.below(inputs.len())].clone();
        one(&changed(input, &inputs, dice));
    }
}

#[test]
fn stored_bytes_are_whole_or_refused() {
    let mut written = Vec::new();
    for file in fs::read_dir(here("fixtures/v1")).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "hex") {
            for line in fs::read_to_string(path).unwrap().lines() {
                let digits = |at| u8::from_str_radix(&line[at..at + 2], 16).unwrap();
                let bytes: Vec<u8> = (0..line.len()).step_by(2).map(digits).collect();
                // Without its checksum too: a good one is put on what is changed.
                written.push(bytes[..bytes.len().saturating_sub(4)].to_vec());
                written.push(bytes);
            }
        }
    }
    all("stored", fuzz::stored, &written, 30_000);
}

#[test]
fn a_history_is_replayed_or_refused() {
    let kept = fs::read(here("fixtures/v1/history.json")).unwrap();
    all("history", fuzz::history, &[kept], 4_000);
}
