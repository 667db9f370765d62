//! The log beside the tables: what may become of it, and that nothing acknowledged is lost or made up.

#![expect(
    clippy::unwrap_used,
    reason = "what is not as it should be fails the test"
)]

use std::fs;
use std::time::Duration;

use workflow::RunId;
use workflow::store::{Appended, RedbStore, Store, StoreError, StoreFile};

use workflow_tests::disk::{Disk, Fault, Left};
use workflow_tests::scene::{Owner, block_on, create, open, start, step};

/// Where the first frame stands, and how long its head is.
const START: usize = 4096;
const HEAD: usize = 48;

fn number(bytes: &[u8], at: usize) -> usize {
    usize::try_from(u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())).unwrap()
}

/// Where the frames of a log stand that was never used again from its start.
fn frames(log: &[u8]) -> Vec<std::ops::Range<usize>> {
    let mut frames = Vec::new();
    let mut at = START;
    while log[at..].starts_with(b"wflg") {
        let end = at + HEAD + number(log, at + 8);
        frames.push(at..end);
        at = end.next_multiple_of(16);
    }
    frames
}

/// A store that was killed after so many runs had begun, one commit each.
fn killed(runs: usize) -> (Vec<u8>, Vec<u8>) {
    let disk = Disk::default();
    let store = open(&disk).unwrap();
    for number in 0..runs {
        block_on(start(&store, &format!("run-{number}")));
    }
    (disk.bytes(StoreFile::Tables), disk.bytes(StoreFile::Log))
}

fn runs(store: &RedbStore) -> usize {
    block_on(store.active(None, usize::MAX)).unwrap().len()
}

#[test]
fn a_tail_that_is_torn_anywhere_is_as_if_it_had_not_been_written() {
    let (tables, log) = killed(4);
    let last = frames(&log).pop().unwrap();
    for cut in last.clone() {
        let mut torn = log.clone();
        torn[cut..last.end].fill(0);
        let store = open(&Disk::of(tables.clone(), torn)).unwrap();
        assert_eq!(runs(&store), 3, "cut at {cut}");
        // What comes next stands in its place.
        block_on(start(&store, "next"));
        assert_eq!(runs(&store), 4);
    }
}

#[test]
fn a_file_that_ends_within_its_tail_is_as_if_that_had_not_been_written() {
    let (tables, log) = killed(4);
    let last = frames(&log).pop().unwrap();
    for end in [last.start, last.start + 1, last.start + HEAD, last.end - 1] {
        let disk = Disk::of(tables.clone(), log[..end].to_vec());
        let store = open(&disk).unwrap();
        assert_eq!(runs(&store), 3, "ends at {end}");
        block_on(start(&store, "next"));
        let again = open(&disk.after_power_cut(Left::Nothing)).unwrap();
        assert_eq!(runs(&again), 4);
    }
}

#[test]
fn a_bit_that_flips_in_what_others_were_built_on_is_damage_and_nothing_is_changed() {
    let (tables, log) = killed(4);
    let frames = frames(&log);
    let acknowledged = frames[0].start..frames[2].end;
    for at in acknowledged.chain(0..36) {
        // Between frames stands nothing.
        if at >= START && !frames.iter().any(|frame| frame.contains(&at)) {
            continue;
        }
        let mut bytes = log.clone();
        bytes[at] ^= 0x10;
        let disk = Disk::of(tables.clone(), bytes.clone());
        let error = open(&disk).unwrap_err();
        assert!(matches!(error, StoreError::Damaged { .. }), "{at}: {error}");
        assert!(!error.is_retryable());
        assert_eq!(disk.bytes(StoreFile::Log), bytes, "{at}");
    }
}

#[test]
fn a_store_whose_log_is_missing_is_not_opened() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str| directory.path().join(name);
    let store = RedbStore::open(file("a.redb")).unwrap();
    block_on(start(&store, "one"));
    fs::copy(file("a.redb"), file("b.redb")).unwrap();
    let error = RedbStore::open(file("b.redb")).unwrap_err();
    assert!(
        matches!(&error, StoreError::LogMissing { log, .. } if *log == file("b.redb-log")),
        "{error}"
    );
    let told = error.to_string();
    assert!(
        told.contains("b.redb-log") && told.contains("put it back"),
        "{told}"
    );
    fs::copy(file("a.redb-log"), file("b.redb-log")).unwrap();
    assert_eq!(runs(&RedbStore::open(file("b.redb")).unwrap()), 1);
    block_on(store.close()).unwrap();
    assert!(!file("a.redb-log").exists(), "a closed store is one file");
    fs::rename(file("a.redb"), file("c.redb")).unwrap();
    assert_eq!(runs(&RedbStore::open(file("c.redb")).unwrap()), 1);
}

#[test]
fn the_log_of_another_store_is_neither_read_nor_removed() {
    let (mine, _) = killed(2);
    let (_, foreign) = killed(3);
    let error = open(&Disk::of(mine, foreign.clone())).unwrap_err();
    assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
    // Nor when the tables are gone, or were closed.
    let disk = Disk::default();
    block_on(open(&disk).unwrap().close()).unwrap();
    for tables in [Vec::new(), disk.bytes(StoreFile::Tables)] {
        let disk = Disk::of(tables, foreign.clone());
        let error = open(&disk).unwrap_err();
        assert!(matches!(error, StoreError::NotAStore { .. }), "{error}");
        assert_eq!(disk.bytes(StoreFile::Log), foreign);
    }
}

#[test]
fn a_file_that_is_no_log_is_neither_read_nor_removed() {
    let disk = Disk::default();
    block_on(open(&disk).unwrap().close()).unwrap();
    for tables in [Vec::new(), disk.bytes(StoreFile::Tables)] {
        let notes = b"notes of somebody".to_vec();
        let disk = Disk::of(tables, notes.clone());
        let error = open(&disk).unwrap_err();
        assert!(matches!(error, StoreError::NotAStore { .. }), "{error}");
        assert!(error.to_string().contains("move it away"), "{error}");
        assert_eq!(disk.bytes(StoreFile::Log), notes);
    }
}

/// What is written to a file that is another by now is lost, so it is not acknowledged.
#[test]
fn a_log_that_went_away_while_it_could_not_be_written_is_not_begun_again() {
    let disk = Disk::default();
    let store = open(&disk).unwrap();
    let mut owner = block_on(start(&store, "a"));
    disk.fault(0, Fault::PowerCut);
    let append = step(&mut owner, "s");
    block_on(store.append(append.clone())).unwrap_err();
    disk.fault(u64::from(u32::MAX), Fault::PowerCut);
    disk.remove(StoreFile::Log);
    block_on(store.append(append)).unwrap_err();
    assert!(disk.bytes(StoreFile::Log).is_empty());
}

/// What a payload holds cannot be taken for a frame, also when it is one.
#[test]
fn a_frame_within_a_payload_is_not_one() {
    let (_, foreign) = killed(3);
    let frame = &foreign[frames(&foreign)[2].clone()];
    let disk = Disk::default();
    let store = open(&disk).unwrap();
    let mut owner = block_on(start(&store, "a"));
    let mut append = step(&mut owner, "s");
    for shift in 0..16 {
        let mut bytes = vec![b' '; shift];
        bytes.extend_from_slice(frame);
        let record = append.records.first_mut().unwrap();
        record.body = workflow::replay::Body::Closed(workflow::replay::Payload {
            bytes: bytes.into(),
            ..workflow::replay::Payload::json("1")
        });
        block_on(store.append(append.clone())).unwrap();
        append = step(&mut owner, "s");
    }
    let again = open(&disk.after_power_cut(Left::All)).unwrap();
    let loaded = block_on(again.load(owner.run)).unwrap().unwrap();
    assert_eq!(loaded.history.len(), 17);
}

/// Appends one step to a run, with a payload of this length.
fn grow(store: &RedbStore, owner: &mut Owner, length: usize) {
    let mut append = step(owner, "s");
    let text = format!("\"{}\"", "x".repeat(length));
    append.records.first_mut().unwrap().body =
        workflow::replay::Body::Closed(workflow::replay::Payload::json(text));
    assert_eq!(block_on(store.append(append)).unwrap(), Appended::Applied);
}

/// The room of what was folded is used again, through many turns, with a crash at every point of them.
#[test]
fn a_log_that_is_used_again_and_again_stays_short_and_loses_nothing() {
    let mut disk = Disk::default();
    let mut store = open(&disk).unwrap();
    let mut owner = block_on(start(&store, "a"));
    let mut longest = 0;
    for turn in 0..300_usize {
        grow(&store, &mut owner, 1 + turn * 7919 % 30_000);
        // Not in step with anything, so that the log begins again at all kinds of places, also while it is not empty.
        if turn % 7 == 3 {
            store.fold().unwrap();
        }
        if turn % 5 == 2 {
            let left = [Left::Nothing, Left::All, Left::Some(turn as u64)][turn % 3];
            disk = disk.after_power_cut(left);
            store = open(&disk).unwrap();
            let row = block_on(store.find(&RunId::new("a").unwrap()))
                .unwrap()
                .unwrap();
            assert_eq!(row.last_seq, owner.seq, "turn {turn}");
            owner.epoch = store.identity().boot;
            owner.number = 0;
        }
        longest = longest.max(disk.bytes(StoreFile::Log).len());
    }
    assert!(longest < 4 << 20, "{longest}");
    let history = block_on(store.load(owner.run)).unwrap().unwrap().history;
    assert!(history.iter().map(|record| record.seq).eq(1..=owner.seq));
}

/// A frame larger than all the room there is waits for a fold, and then for nothing.
#[test]
fn a_commit_of_any_size_finds_room() {
    let disk = Disk::default();
    let backend = disk.clone();
    let builder = RedbStore::builder().fold_threshold(usize::MAX);
    let store = builder
        .open_backend(move |file| Ok(backend.backend(file)))
        .unwrap();
    let mut owner = block_on(start(&store, "a"));
    for length in [
        10,
        1 << 20,
        1 << 20,
        1 << 20,
        9 << 20,
        10,
        30 << 20,
        10,
        1 << 20,
    ] {
        grow(&store, &mut owner, length);
    }
    let again = open(&disk.after_power_cut(Left::Nothing)).unwrap();
    let row = block_on(again.row(owner.run)).unwrap().unwrap();
    assert_eq!(row.last_seq, owner.seq);
}

/// A write that failed may have left a frame; the one that takes its number takes its place.
#[test]
fn what_a_failed_write_left_is_never_read_instead_of_what_was_written_later() {
    for fault in [Fault::Hiccup, Fault::Lie, Fault::PowerCut] {
        for after in 0..8 {
            let disk = Disk::default();
            let store = open(&disk).unwrap();
            let mut owner = block_on(start(&store, "a"));
            disk.fault(after, fault);
            let mut failed = 0;
            for name in ["s", "t", "u"] {
                let append = step(&mut owner, name);
                if block_on(store.append(append.clone())).is_err() {
                    failed += 1;
                    // The disk works again, and somebody else is first.
                    disk.fault(u64::from(u32::MAX), Fault::PowerCut);
                    block_on(start(&store, &format!("other-{name}")));
                    let answer = block_on(store.append(append)).unwrap();
                    assert_eq!(answer, Appended::Applied);
                }
            }
            let again = open(&disk.after_power_cut(Left::Nothing)).unwrap();
            let row = block_on(again.row(owner.run)).unwrap().unwrap();
            assert_eq!(row.last_seq, 4, "{fault:?} after {after}");
            assert_eq!(runs(&again), 1 + failed, "{fault:?} after {after}");
        }
    }
}

mod relaxed {
    use super::*;

    fn relaxed(disk: &Disk, wait: Duration) -> RedbStore {
        let disk = disk.clone();
        let builder = RedbStore::builder().relaxed(wait);
        builder
            .open_backend(move |file| Ok(disk.backend(file)))
            .unwrap()
    }

    const LONG: Duration = Duration::from_hours(1);

    #[test]
    fn nothing_is_synced_before_its_time_and_a_kill_loses_nothing() {
        let disk = Disk::default();
        let store = relaxed(&disk, LONG);
        let mut owner = block_on(start(&store, "a"));
        let syncs = disk.syncs();
        for _ in 0..100 {
            grow(&store, &mut owner, 10);
        }
        assert_eq!(disk.syncs(), syncs);
        let again = open(&disk.after_power_cut(Left::All)).unwrap();
        let row = block_on(again.row(owner.run)).unwrap().unwrap();
        assert_eq!(row.last_seq, owner.seq);
    }

    /// What is left is a beginning of what was recorded, of all runs together.
    #[test]
    fn a_power_cut_leaves_a_beginning_and_never_damage() {
        for seed in 0..200 {
            let disk = Disk::default();
            let store = relaxed(&disk, LONG);
            let mut owners: Vec<_> = (0..3)
                .map(|number| block_on(start(&store, &format!("run-{number}"))))
                .collect();
            let mut order = Vec::new();
            for turn in 0..12_usize {
                let pick = turn * 5 % 3;
                grow(&store, &mut owners[pick], turn * 97 % 900);
                order.push(pick);
                if turn == usize::try_from(seed % 12).unwrap() {
                    store.fold().unwrap();
                }
            }
            let cut = disk.after_power_cut(Left::Some(seed));
            // Twice: what was lost must not come back when something else is written in its place.
            for round in 0..2 {
                let again = open(&cut).unwrap();
                let kept: Vec<_> = owners
                    .iter()
                    .map(|owner| block_on(again.row(owner.run)).unwrap())
                    .map(|row| row.map_or(0, |row| row.last_seq))
                    .collect();
                let steps: u64 = kept.iter().map(|seq| seq.saturating_sub(1)).sum();
                let mut expected = [0_u64; 3];
                for pick in &order[..usize::try_from(steps).unwrap()] {
                    expected[*pick] += 1;
                }
                for (kept, expected) in kept.iter().zip(expected) {
                    assert_eq!(
                        kept.saturating_sub(1),
                        expected,
                        "seed {seed}, round {round}"
                    );
                }
                block_on(start(&again, &format!("later-{round}")));
            }
        }
    }

    // UA-69
    #[test]
    fn a_sync_follows_in_time_though_nothing_more_is_written() {
        let disk = Disk::default();
        let store = relaxed(&disk, Duration::from_millis(5));
        let owner = block_on(start(&store, "a"));
        let begun = std::time::Instant::now();
        loop {
            let cut = open(&disk.after_power_cut(Left::Nothing)).unwrap();
            if block_on(cut.row(owner.run)).unwrap().is_some() {
                break;
            }
            assert!(begun.elapsed() < Duration::from_secs(30), "nobody syncs");
            std::thread::yield_now();
        }
    }

    /// After a sync that failed nobody knows what is on the disk: it is written again, and nothing is acknowledged before.
    #[test]
    fn a_sync_that_fails_is_made_good_before_anything_else_is_acknowledged() {
        let disk = Disk::default();
        let store = relaxed(&disk, Duration::ZERO);
        let mut owner = block_on(start(&store, "a"));
        disk.fault(0, Fault::PowerCut);
        let append = step(&mut owner, "s");
        assert!(block_on(store.append(append.clone())).is_err());
        disk.fault(u64::from(u32::MAX), Fault::PowerCut);
        assert_eq!(block_on(store.append(append)).unwrap(), Appended::Applied);
        let cut = open(&disk.after_power_cut(Left::Nothing)).unwrap();
        assert!(block_on(cut.row(owner.run)).unwrap().is_some());
    }

    // UA-69
    #[test]
    fn a_relaxed_store_takes_no_more_room_than_a_strict_one() {
        let length = |wait: Option<Duration>| {
            let disk = Disk::default();
            let store = match wait {
                Some(wait) => relaxed(&disk, wait),
                None => open(&disk).unwrap(),
            };
            let mut owners: Vec<_> = (0..50)
                .map(|number| block_on(start(&store, &format!("run-{number}"))))
                .collect();
            for turn in 0..4_000 {
                grow(&store, &mut owners[turn % 50], 100);
                if turn % 1_000 == 999 {
                    store.fold().unwrap();
                }
            }
            let log = disk.bytes(StoreFile::Log).len();
            block_on(store.close()).unwrap();
            log + disk.bytes(StoreFile::Tables).len()
        };
        let (strict, relaxed) = (length(None), length(Some(Duration::from_millis(20))));
        assert!(relaxed <= 2 * strict, "{relaxed} against {strict}");
    }

    #[test]
    fn closing_makes_everything_durable() {
        let disk = Disk::default();
        let store = relaxed(&disk, LONG);
        let (owner, append) = create(&store, "a");
        block_on(store.append(append)).unwrap();
        block_on(store.close()).unwrap();
        let again = open(&disk.after_power_cut(Left::Nothing)).unwrap();
        assert!(block_on(again.row(owner.run)).unwrap().is_some());
    }
}
