//! What was ever written opens for ever; what is damaged or newer is told apart, and nothing panics.

#![expect(
    clippy::unwrap_used,
    reason = "what is not as it should be fails the test"
)]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use proptest::prelude::*;
use redb::{Database, TableDefinition, TableHandle};
use workflow::RunId;
use workflow::replay::{
    Body, CodeId, Ended, Failure, FailureKind, Finished, Kind, Location, Message, NewMessage,
    Opened, Payload, Record, RunKey, RunState, Segment, Timestamp,
};
use workflow::store::encoding::{
    decode_answer, decode_dead_letter, decode_finished, decode_message, decode_record, decode_row,
    encode_answer, encode_dead_letter, encode_finished, encode_message, encode_record, encode_row,
    peek_record,
};
use workflow::store::{
    Answer, Appended, CHILD_ENDED, DeadLetter, Deleted, Deletion, NewRun, Post, RedbStore, Rewrite,
    RunPatch, RunRow, Store, StoreError, StoreFile,
};

use workflow_tests::disk::{Disk, Fault, Left};
use workflow_tests::scene::{block_on, create, open, step};

mod store_samples;
use store_samples::{
    FAILURES, KINDS, bodies, ended, failure, later_rows, payload, record, rows, rows_with_terms,
    taken,
};

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
    let found: Vec<_> = later_rows().iter().map(row_written).collect();
    assert_eq!(found, self::golden("row_later", &found));
    for (row, bytes) in later_rows().iter().zip(&found) {
        assert_eq!(decode_row(row.key, bytes).unwrap(), *row);
    }
    let found: Vec<_> = rows_with_terms().iter().map(row_written).collect();
    assert_eq!(found, self::golden("row_terms", &found));
    for (row, bytes) in rows_with_terms().iter().zip(&found) {
        assert_eq!(decode_row(row.key, bytes).unwrap(), *row);
    }
}

/// What goes between runs is written as it always was, reads as it was written, and is told from damage and news.
fn holds<T: PartialEq + std::fmt::Debug>(
    name: &str,
    values: &[T],
    encode: fn(&T, &mut Vec<u8>),
    decode: fn(&Bytes) -> Result<T, StoreError>,
) {
    let written = |value| {
        let mut out = Vec::new();
        encode(value, &mut out);
        Bytes::from(out)
    };
    let found: Vec<_> = values.iter().map(written).collect();
    let golden = golden(name, &found);
    assert_eq!(
        found, golden,
        "{name} is written in other bytes than before"
    );
    for (value, bytes) in values.iter().zip(&golden) {
        assert_eq!(decode(bytes).unwrap(), *value);
        let newer = resealed(bytes, |content| content[0] = 2);
        assert!(
            matches!(decode(&newer), Err(StoreError::Newer { .. })),
            "{name}"
        );
        let longer = resealed(bytes, |content| content.push(0));
        assert!(
            matches!(decode(&longer), Err(StoreError::Corrupt { .. })),
            "{name}"
        );
        for len in 0..bytes.len() {
            let cut = decode(&bytes.slice(..len));
            assert!(matches!(cut, Err(StoreError::Corrupt { .. })), "{name}");
        }
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.to_vec();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let flipped = decode(&flipped.into());
            assert!(matches!(flipped, Err(StoreError::Corrupt { .. })), "{name}");
        }
    }
}

fn messages() -> Vec<Message> {
    let plain = Message {
        dedup: None,
        reply_to: None,
        ..taken(1)
    };
    vec![taken(u128::MAX), plain]
}

#[test]
fn what_goes_between_runs_is_written_and_read_as_it_always_was() {
    holds("message", &messages(), encode_message, decode_message);
    let letters: Vec<_> = messages()
        .into_iter()
        .map(|message| DeadLetter {
            message,
            reason: "it is not a Payment".to_owned(),
            at: Timestamp::from_millis(70_001),
        })
        .collect();
    holds(
        "dead_letter",
        &letters,
        encode_dead_letter,
        decode_dead_letter,
    );
    let answers = [Answer::Reply(payload()), Answer::NoReply];
    holds("answer", &answers, encode_answer, decode_answer);
    let ends = [
        Finished::Completed(payload()),
        Finished::Failed(failure()),
        Finished::Cancelled,
    ];
    holds("child_ended", &ends, encode_finished, decode_finished);
}

const JOURNAL: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("workflow.journal");

fn id(text: &str) -> RunId {
    RunId::new(text).unwrap()
}

fn new_message(number: u128) -> NewMessage {
    NewMessage {
        id: number,
        channel: "payment".to_owned(),
        dedup: Some("k".to_owned()),
        reply_to: Some(Bytes::from_static(b"node/7")),
        payload: payload(),
    }
}

/// Commits in which everything happens that can happen to messages.
fn everything(store: &RedbStore) {
    let at = Timestamp::from_millis(50);
    let until = Timestamp::from_millis(9_000);
    let applied = |append| assert_eq!(block_on(store.append(append)).unwrap(), Appended::Applied);
    let (mut owner, begin) = create(store, "a");
    applied(begin);
    block_on(store.deliver(&id("a"), new_message(1), at, until)).unwrap();
    block_on(store.deliver(&id("b"), new_message(2), at, until)).unwrap();
    let first = block_on(store.inbox(owner.run, 0, 9)).unwrap();
    let mut post = step(&mut owner, "post");
    post.inbox.takes = vec![1];
    let child = store.allocate();
    let new = NewRun {
        id: id("child"),
        workflow: "w".to_owned(),
        parent: Some((id("a"), Location::root().site("ship"))),
        detached: false,
        not_before: None,
        priority: 0,
    };
    let message = Post::Message {
        to: id("child"),
        message: new_message(3),
        keep_until: until,
    };
    let records = Vec::new();
    let answered = |request, answer| Post::Answer { request, answer };
    post.posts = vec![
        Post::Run {
            run: child,
            new,
            records,
        },
        message,
        answered(1, Answer::Reply(payload())),
        answered(u128::MAX, Answer::NoReply),
    ];
    applied(post);
    let mut back = step(&mut owner, "back");
    back.patch.waits = Some(Some(vec![CHILD_ENDED.to_owned()]));
    back.inbox.returns = first;
    back.inbox.dead = vec![(1, "it is not a Payment".to_owned())];
    applied(back);
    applied(create(store, "b").1);
    let cancelled = block_on(store.cancel(child, Timestamp::from_millis(60)));
    assert_eq!(cancelled.unwrap(), Appended::Applied);
}

fn check(store: &RedbStore) {
    let row = |name: &str| block_on(store.find(&id(name))).unwrap().unwrap();
    let inbox = |row: &RunRow| block_on(store.inbox(row.key, 0, 9)).unwrap();
    let (a, b, child) = (row("a"), row("b"), row("child"));
    let ended = inbox(&a);
    assert_eq!(
        (ended.len(), &*ended[0].channel, ended[0].arrival),
        (1, CHILD_ENDED, 2)
    );
    assert_eq!(
        decode_finished(&ended[0].payload.bytes).unwrap(),
        Finished::Cancelled
    );
    assert_eq!(
        (a.inbox_seq, a.wake_at),
        (2, Some(Timestamp::from_millis(60)))
    );
    let letters = block_on(store.dead_letters(a.key, 0, 9)).unwrap();
    assert_eq!((letters.len(), letters[0].message.id), (1, 1));
    assert_eq!((inbox(&b)[0].id, inbox(&child)[0].id), (2, 3));
    assert_eq!(child.state, RunState::Cancelled);
    assert_eq!(
        block_on(store.answer(1)).unwrap(),
        Some(Answer::Reply(payload()))
    );
    assert_eq!(
        block_on(store.answer(u128::MAX)).unwrap(),
        Some(Answer::NoReply)
    );
}

/// The bodies of the frames in a log whose store was never folded.
fn commits(log: &[u8]) -> Vec<Bytes> {
    let number = |at: usize| u64::from_le_bytes(log[at..at + 8].try_into().unwrap());
    let mut commits = Vec::new();
    let mut at = 4096;
    while log[at..].starts_with(b"wflg") {
        assert_eq!(number(at + 16), commits.len() as u64);
        let start = at + 48;
        let end = start + usize::try_from(number(at + 8)).unwrap();
        commits.push(Bytes::copy_from_slice(&log[start..end]));
        at = end.next_multiple_of(16);
    }
    commits
}

/// The log of a store that was not closed. What is in a frame was a value of the journal in format 1.
#[test]
fn a_commit_with_messages_is_written_and_read_as_it_always_was() {
    let disk = Disk::default();
    let store = open(&disk).unwrap();
    everything(&store);
    check(&store);
    let found = commits(&disk.bytes(StoreFile::Log));
    let golden = golden("journal", &found);
    assert_eq!(found, golden);

    let disk = Disk::default();
    block_on(open(&disk).unwrap().close()).unwrap();
    {
        let database = Database::builder()
            .create_with_backend(disk.backend(StoreFile::Tables))
            .unwrap();
        let txn = database.begin_write().unwrap();
        txn.open_table(TableDefinition::<&str, u128>::new("workflow.meta"))
            .unwrap()
            .insert("format", 1)
            .unwrap();
        let mut journal = txn.open_table(JOURNAL).unwrap();
        for (commit, value) in golden.iter().enumerate() {
            journal.insert(commit as u64, &value[..]).unwrap();
        }
        drop(journal);
        // A file of a program that knew no messages has no tables for them.
        for name in ["inbox", "dead", "answers"] {
            let name = format!("workflow.{name}");
            let table = txn
                .list_tables()
                .unwrap()
                .find(|table| table.name() == name);
            assert!(txn.delete_table(table.unwrap()).unwrap());
        }
        txn.commit().unwrap();
    }
    for cut in 0..60 {
        // Also when the first opening by this program is cut off.
        let cut_off = disk.after_power_cut(Left::All);
        cut_off.fault(cut, Fault::PowerCut);
        drop(open(&cut_off));
        let store = open(&cut_off.after_power_cut(Left::Some(cut))).unwrap();
        check(&store);
    }
    let store = open(&disk).unwrap();
    check(&store);
    store.fold().unwrap();
    check(&store);
    block_on(store.close()).unwrap();
    check(&open(&disk).unwrap());
}

/// A commit that writes values of the application.
#[test]
fn a_commit_with_values_is_written_as_it_always_was() {
    let disk = Disk::default();
    let store = open(&disk).unwrap();
    let (mut owner, begin) = create(&store, "a");
    block_on(store.append(begin)).unwrap();
    let mut append = step(&mut owner, "one");
    let values = [("k".to_owned(), Some(payload())), ("gone".to_owned(), None)];
    append.posts = vec![Post::Values(values.into())];
    block_on(store.append(append)).unwrap();
    let copy = disk.after_power_cut(Left::All);
    let found = commits(&copy.bytes(StoreFile::Log));
    assert_eq!(golden("journal_values", &found), found);
    let store = open(&copy).unwrap();
    assert_eq!(block_on(store.value("k")).unwrap(), Some(payload()));
    assert_eq!(block_on(store.value("gone")).unwrap(), None);
}

/// A commit that begins runs later, or before others.
#[test]
fn a_commit_that_says_when_a_run_begins_is_written_as_it_always_was() {
    let disk = Disk::default();
    let store = open(&disk).unwrap();
    let at = Some(Timestamp::from_millis(9_000));
    let (mut owner, mut begin) = create(&store, "a");
    let new = begin.create.as_mut().unwrap();
    (new.not_before, new.priority) = (at, -3);
    let mut child = new.clone();
    child.id = id("child");
    child.priority = 70_000;
    block_on(store.append(begin)).unwrap();
    let mut append = step(&mut owner, "one");
    append.posts = vec![Post::Run {
        run: store.allocate(),
        new: child,
        records: Vec::new(),
    }];
    block_on(store.append(append)).unwrap();
    let copy = disk.after_power_cut(Left::All);
    let found = commits(&copy.bytes(StoreFile::Log));
    assert_eq!(golden("journal_terms", &found), found);
    let store = open(&copy).unwrap();
    for rested in [false, true] {
        if rested {
            store.fold().unwrap();
        }
        for (name, priority) in [("a", -3), ("child", 70_000)] {
            let row = block_on(store.find(&id(name))).unwrap().unwrap();
            assert_eq!((row.not_before, row.priority), (at, priority));
        }
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
    let row = &rows_with_terms()[0];
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

/// A batch that deletes single records, or says what was added to rows later.
#[test]
fn a_journal_with_rewrites_is_written_and_read_as_it_always_was() {
    let disk = Disk::default();
    let store = open(&disk).unwrap();
    let (mut owner, begin) = create(&store, "a");
    block_on(store.append(begin)).unwrap();
    let mut released = step(&mut owner, "one");
    released.patch.released = true;
    released.patch.unclean = Some(2);
    block_on(store.append(released)).unwrap();
    let rewrite = Rewrite {
        run: owner.run,
        expected_seq: 2,
        remove: vec![2],
        records: Vec::new(),
        patch: RunPatch {
            generation: Some(1),
            unclean: Some(0),
            ..RunPatch::default()
        },
        returns: Vec::new(),
        posts: Vec::new(),
    };
    let rewritten = block_on(store.rewrite(vec![rewrite]));
    assert_eq!(rewritten.unwrap(), Appended::Applied);
    let copy = disk.after_power_cut(Left::All);
    let found = commits(&copy.bytes(StoreFile::Log));
    assert_eq!(golden("journal_rewrite", &found), found);
    let store = open(&copy).unwrap();
    let loaded = block_on(store.load(owner.run)).unwrap().unwrap();
    assert_eq!(loaded.history.len(), 1);
    let row = loaded.row;
    assert_eq!((row.unclean, row.released, row.generation), (0, true, 1));
}

/// A batch that is the last of its run.
#[test]
fn a_journal_with_deletions_is_written_and_read_as_it_always_was() {
    let disk = Disk::default();
    let store = open(&disk).unwrap();
    let (mut owner, begin) = create(&store, "a");
    block_on(store.append(begin)).unwrap();
    let mut end = step(&mut owner, "one");
    end.patch.state = Some(RunState::Completed);
    block_on(store.append(end)).unwrap();
    let deletion = Deletion {
        run: owner.run,
        expected_seq: 2,
        requests: vec![7, u128::MAX],
    };
    let deleted = block_on(store.delete(vec![deletion]));
    assert_eq!(deleted.unwrap(), [Deleted::Deleted]);
    let copy = disk.after_power_cut(Left::All);
    let found = commits(&copy.bytes(StoreFile::Log));
    assert_eq!(golden("journal_delete", &found), found);
    let store = open(&copy).unwrap();
    assert_eq!(block_on(store.row(owner.run)).unwrap(), None);
}

/// Every kind of record as an exported history has it: this file was written once, and is read for ever.
#[test]
fn the_json_form_of_every_kind_of_record_stays() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/v1/records.json");
    let kept = fs::read_to_string(&file).unwrap();
    let mut lines = kept.lines();
    for (kind, samples) in bodies() {
        for body in samples {
            let record = record(body);
            let json = serde_json::to_string(&record).unwrap();
            assert_eq!(lines.next(), Some(&*json), "{kind}");
            let read: Record = serde_json::from_str(&json).unwrap();
            assert_eq!(read, record, "{kind}");
        }
    }
    assert_eq!(
        lines.next(),
        None,
        "a kind that was written once is not tried any more"
    );
}
