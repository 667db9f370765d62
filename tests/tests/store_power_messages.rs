//! What becomes of messages, children and answers when the power or the disk fails.

#![expect(
    clippy::unwrap_used,
    reason = "what is not as it should be fails the test"
)]

use std::collections::BTreeSet;

use workflow::replay::{Body, Message, NewMessage, Payload, RunKey};
use workflow::store::{Answer, Appended, Delivery, NewRun, Post, RedbStore, Store};
use workflow::{Location, RunId, Timestamp};

use workflow_tests::disk::{Disk, Fault, Left};
use workflow_tests::scene::{append, block_on, create, open, start, step};

const TURNS: u32 = 4;

fn id(text: &str) -> RunId {
    RunId::new(text).unwrap()
}

fn message(number: u32) -> NewMessage {
    NewMessage {
        id: number.into(),
        channel: "c".to_owned(),
        dedup: Some(format!("key-{number}")),
        reply_to: None,
        payload: Payload::json(number.to_string()),
    }
}

fn to(run: &str, number: u32) -> Post {
    Post::Message {
        to: id(run),
        message: message(number),
        keep_until: Timestamp::MAX,
    }
}

fn outside(turn: u32) -> u32 {
    100 + turn
}

/// How far the workload came for sure.
#[derive(Debug, Default)]
struct Sure {
    posted: u32,
    delivered: u32,
    taken: usize,
}

/// A sender that posts to a receiver, to nobody, to a child that it starts, and answers; a stranger that delivers; and the
/// receiver, which takes what is there.
fn workload(store: &RedbStore) -> Sure {
    let mut sure = Sure::default();
    let name = id("receiver");
    let (mut receiver, first) = create(store, "receiver");
    let (mut sender, second) = create(store, "sender");
    for append in [first, second] {
        if block_on(store.append(append)).is_err() {
            return sure;
        }
    }
    for turn in 0..TURNS {
        let mut post = step(&mut sender, "send");
        let new = NewRun {
            id: id(&format!("child-{turn}")),
            workflow: "w".to_owned(),
            parent: Some((id("sender"), Location::root().site("send"))),
            detached: false,
            not_before: None,
            priority: 0,
        };
        post.posts = vec![
            to("receiver", turn),
            to(&format!("nobody-{turn}"), turn),
            Post::Run {
                run: store.allocate(),
                new,
                records: Vec::new(),
            },
            to(&format!("child-{turn}"), turn),
            Post::Answer {
                request: turn.into(),
                answer: Answer::NoReply,
            },
        ];
        if block_on(store.append(post)).is_err() {
            return sure;
        }
        sure.posted += 1;
        let (at, never) = (Timestamp::from_millis(1), Timestamp::MAX);
        let sent = store.deliver(&name, message(outside(turn)), at, never);
        if block_on(sent).is_err() {
            return sure;
        }
        sure.delivered += 1;
        if turn % 2 == 1 {
            let Ok(there) = block_on(store.inbox(receiver.run, 0, 99)) else {
                return sure;
            };
            let mut take = append(&mut receiver, Body::Taken(there.clone()), "recv");
            take.inbox.takes = there.iter().map(|message| message.arrival).collect();
            if block_on(store.append(take)).is_err() {
                return sure;
            }
            sure.taken += 1;
        }
        if turn % 3 == 1 && store.fold().is_err() {
            return sure;
        }
    }
    sure
}

fn key(store: &RedbStore, name: &str) -> Option<RunKey> {
    block_on(store.find(&id(name))).unwrap().map(|row| row.key)
}

/// Where each message of the receiver is: in its inbox, or in its history.
fn messages(store: &RedbStore, run: RunKey) -> (Vec<Message>, Vec<Message>) {
    let inbox = block_on(store.inbox(run, 0, 99)).unwrap();
    let history = block_on(store.load(run)).unwrap().unwrap().history;
    let taken = history.into_iter().filter_map(|record| match record.body {
        Body::Taken(messages) => Some(messages),
        _ => None,
    });
    (inbox, taken.flatten().collect())
}

/// All of a batch is there or nothing, all that was acknowledged is, and nothing is there twice.
fn check(disk: &Disk, sure: &Sure, when: &str) {
    let store = open(disk).unwrap_or_else(|error| panic!("{when}: {error}"));
    let posted = |turn| {
        let row = block_on(store.find(&id("sender"))).unwrap();
        row.is_some_and(|row| row.last_seq >= 2 + u64::from(turn))
    };
    let receiver = key(&store, "receiver");
    let (inbox, taken) = receiver.map_or_else(Default::default, |run| messages(&store, run));
    let all: Vec<_> = taken
        .iter()
        .chain(&inbox)
        .map(|message| message.id)
        .collect();
    let there: BTreeSet<_> = all.iter().copied().collect();
    assert_eq!(
        there.len(),
        all.len(),
        "{when}: a message is there twice: {all:?}"
    );
    if let Some(run) = receiver {
        let row = block_on(store.row(run)).unwrap().unwrap();
        assert_eq!(row.inbox_seq, all.len() as u64, "{when}");
        assert!(taken.len() >= sure.taken * 4, "{when}: a take is lost");
    }
    for turn in 0..TURNS {
        assert!(
            turn >= sure.posted || posted(turn),
            "{when}: batch {turn} is lost"
        );
        let child = key(&store, &format!("child-{turn}"));
        let heard = child.map(|run| block_on(store.inbox(run, 0, 9)).unwrap().len());
        let answered = block_on(store.answer(turn.into())).unwrap().is_some();
        assert_eq!(
            (there.contains(&turn.into()), heard, answered),
            (posted(turn), posted(turn).then_some(1), posted(turn)),
            "{when}: batch {turn} is there in part"
        );
        if posted(0) {
            let stranger = block_on(start(&store, &format!("nobody-{turn}")));
            let kept = block_on(store.inbox(stranger.run, 0, 9)).unwrap();
            assert_eq!(kept.len(), usize::from(posted(turn)), "{when}");
        }
        let number = outside(turn);
        let arrived = there.contains(&number.into());
        assert!(
            turn >= sure.delivered || arrived,
            "{when}: message {number} is lost"
        );
        if receiver.is_some() {
            let (at, never) = (Timestamp::from_millis(1), Timestamp::MAX);
            let again = block_on(store.deliver(&id("receiver"), message(number), at, never));
            let again = again.unwrap();
            let duplicate = matches!(again, Delivery::Duplicate { id } if id == number.into());
            assert_eq!(duplicate, arrived, "{when}: {number} is {again:?}");
        }
    }
}

// UA-75
#[test]
fn a_power_cut_at_every_operation_leaves_batches_with_all_their_posts_or_none() {
    let disk = Disk::default();
    let store = open(&disk).unwrap();
    let before = disk.done();
    let sure = workload(&store);
    assert_eq!((sure.posted, sure.delivered, sure.taken), (4, 4, 2));
    let operations = disk.done() - before;
    drop(store);
    assert!(operations > 40, "the workload writes: {operations}");
    for cut in 0..operations {
        let disk = Disk::default();
        let store = open(&disk).unwrap();
        disk.fault(cut, Fault::PowerCut);
        let sure = workload(&store);
        for left in [Left::Nothing, Left::Some(7 * cut + 3)] {
            let when = format!("cut at {cut}, {left:?}");
            check(&disk.after_power_cut(left), &sure, &when);
        }
    }
}

#[test]
fn a_write_that_fails_once_delivers_nothing_twice() {
    for fault in [Fault::Hiccup, Fault::Lie] {
        for at in 0..90 {
            let disk = Disk::default();
            let store = open(&disk).unwrap();
            disk.fault(at, fault);
            let sure = workload(&store);
            drop(store);
            check(&disk, &sure, &format!("{fault:?} at {at}"));
        }
    }
}

/// A commit that the disk denies and has all the same is answered as what it was.
#[test]
fn a_delivery_whose_commit_is_in_doubt_is_told_its_place() {
    for at in 0..12 {
        let disk = Disk::default();
        let store = open(&disk).unwrap();
        let name = id("receiver");
        let mut owner = block_on(start(&store, "receiver"));
        disk.fault(at, Fault::Lie);
        for number in 1..=3 {
            let (now, never) = (Timestamp::from_millis(1), Timestamp::MAX);
            let sent = store.deliver(&name, message(number), now, never);
            let expected = Delivery::Queued {
                run: Some(owner.run),
                arrival: number.into(),
                wakes: false,
            };
            assert_eq!(block_on(sent).unwrap(), expected, "the disk lies at {at}");
        }
        let mut take = step(&mut owner, "recv");
        take.inbox.takes = vec![1, 2, 3];
        assert_eq!(block_on(store.append(take)).unwrap(), Appended::Applied);
    }
}
