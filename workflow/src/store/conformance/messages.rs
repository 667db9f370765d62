//! What becomes of messages: delivered, taken, given back, kept, unread.

#![expect(clippy::indexing_slicing, reason = "a law that does not hold panics")]

use std::sync::Arc;

use super::scene::{Dice, Owner, at, done, finished, id, loaded, row, step, tried};
use super::{Harness, block_on};
use crate::replay::{Body, Finished, Message, NewMessage, Payload, RunKey, RunState, Timestamp};
use crate::store::{Append, Appended, Delivery, Post, Store, StoreError};

pub(super) const NEVER: Timestamp = Timestamp::MAX;

pub(super) fn message(number: u128, channel: &str) -> NewMessage {
    NewMessage {
        id: number,
        channel: channel.to_owned(),
        dedup: None,
        reply_to: None,
        payload: Payload::json(format!("{number}")),
    }
}

pub(super) fn keyed(number: u128, channel: &str, key: &str) -> NewMessage {
    NewMessage {
        dedup: Some(key.to_owned()),
        ..message(number, channel)
    }
}

pub(super) fn sent(store: &Arc<impl Store>, to: &str, message: NewMessage) -> Delivery {
    sent_at(store, to, message, 2_000)
}

pub(super) fn sent_at(
    store: &Arc<impl Store>,
    to: &str,
    message: NewMessage,
    millis: i64,
) -> Delivery {
    block_on(store.deliver(&id(to), message, at(millis), NEVER)).unwrap()
}

pub(super) fn queued(run: RunKey, arrival: u64, wakes: bool) -> Delivery {
    Delivery::Queued {
        run: Some(run),
        arrival,
        wakes,
    }
}

pub(super) fn inbox(store: &Arc<impl Store>, run: RunKey) -> Vec<Message> {
    block_on(store.inbox(run, 0, 1_000)).unwrap()
}

/// What is in an inbox, by arrival and the number of the message.
pub(super) fn there(store: &Arc<impl Store>, run: RunKey) -> Vec<(u64, u128)> {
    let inbox = inbox(store, run);
    inbox
        .iter()
        .map(|message| (message.arrival, message.id))
        .collect()
}

pub(super) fn unread(store: &Arc<impl Store>, run: RunKey) -> Vec<(u64, u128)> {
    let letters = block_on(store.dead_letters(run, 0, 1_000)).unwrap();
    letters
        .iter()
        .map(|letter| (letter.message.arrival, letter.message.id))
        .collect()
}

/// A batch that waits for channels, its writer having seen the inbox up to `seen`.
pub(super) fn waiting(owner: &mut Owner, channels: &[&str], seen: u64) -> Append {
    let mut append = owner.batch(Vec::new(), RunState::Waiting);
    append.patch.wake_at = Some(None);
    append.patch.waits = Some(Some(channels.iter().map(|&name| name.to_owned()).collect()));
    append.inbox.seen = seen;
    append
}

/// Takes the messages of these arrivals.
fn taking(owner: &mut Owner, arrivals: &[u64], taken: &[Message]) -> Append {
    let record = (
        crate::replay::Location::root().site("payment"),
        Body::Taken(taken.to_vec()),
    );
    let mut append = owner.batch(vec![record], RunState::Running);
    append.inbox.takes = arrivals.to_vec();
    append
}

/// Rule 11; stamps never decrease, whatever the senders' clocks say.
pub fn an_inbox_is_in_the_order_of_arrival<H: Harness>() {
    let (mut place, store) = H::fresh();
    let mut owner = Owner::start(&store, "a");
    for (turn, millis) in [3_000, 5_000, 4_000, 5_500].into_iter().enumerate() {
        let number = turn as u64 + 1;
        let delivered = sent_at(&store, "a", message(number.into(), "c"), millis);
        assert_eq!(delivered, queued(owner.run, number, false));
        if turn == 1 {
            // The clock of its owner is behind.
            owner.write(&store, vec![step("s")], RunState::Running);
            place.rest(&store);
        }
    }
    let stamps = |messages: &[Message]| {
        let stamps = messages
            .iter()
            .map(|message| (message.arrival, message.at.as_millis()));
        stamps.collect::<Vec<_>>()
    };
    let before = inbox(&store, owner.run);
    assert_eq!(
        stamps(&before),
        [(1, 3_000), (2, 5_000), (3, 5_000), (4, 5_500)]
    );
    assert_eq!(row(&store, owner.run).inbox_seq, 4);
    let page = block_on(store.inbox(owner.run, 1, 2)).unwrap();
    assert_eq!(page, before.get(1..3).unwrap());
    let store = place.crash(&store);
    assert_eq!(inbox(&store, owner.run), before);
    place.rest(&store);
    assert_eq!(inbox(&store, owner.run), before);
    assert_eq!(
        block_on(store.inbox(owner.run, 3, 9)).unwrap(),
        before.get(3..).unwrap()
    );
    assert!(block_on(store.inbox(owner.run, 4, 9)).unwrap().is_empty());
    assert!(inbox(&store, RunKey(u64::MAX)).is_empty());
}

/// A delivery changes the inbox of a run, not what its owner does.
pub fn a_delivery_does_not_disturb_the_owner<H: Harness>() {
    let (mut place, store) = H::fresh();
    let mut owner = Owner::start(&store, "a");
    let one = owner.batch(vec![step("s")], RunState::Running);
    assert_eq!(done(&store, one.clone()), Appended::Applied);
    let before = row(&store, owner.run);
    sent(&store, "a", message(1, "c"));
    let after = row(&store, owner.run);
    assert_eq!((after.inbox_seq, after.updated_at), (1, at(2_000)));
    assert_eq!(
        (
            after.state,
            after.wake_at,
            after.epoch,
            after.last_append,
            after.advanced_by
        ),
        (
            before.state,
            None,
            before.epoch,
            before.last_append,
            before.advanced_by
        )
    );
    assert_eq!(done(&store, one), Appended::AlreadyApplied);
    place.rest(&store);
    owner.write(&store, vec![step("t")], RunState::Running);
    assert_eq!(loaded(&store, owner.run).history.len(), 3);
    assert_eq!(there(&store, owner.run), [(1, 1)]);
}

/// M12: by run, channel and key, also when the first one was taken long ago, and when the run has ended.
pub fn a_second_message_with_the_same_key_is_not_delivered<H: Harness>() {
    let (mut place, store) = H::fresh();
    let mut owner = Owner::start(&store, "a");
    let other = Owner::start(&store, "b");
    let again = Delivery::Duplicate { id: 1 };
    assert_eq!(
        sent(&store, "a", keyed(1, "c", "k")),
        queued(owner.run, 1, false)
    );
    assert_eq!(sent(&store, "a", keyed(2, "c", "k")), again);
    assert_eq!(
        sent(&store, "a", keyed(3, "d", "k")),
        queued(owner.run, 2, false)
    );
    assert_eq!(
        sent(&store, "b", keyed(4, "c", "k")),
        queued(other.run, 1, false)
    );
    assert_eq!(
        sent(&store, "a", message(5, "c")),
        queued(owner.run, 3, false)
    );
    place.rest(&store);
    assert_eq!(sent(&store, "a", keyed(6, "c", "k")), again);
    assert_eq!(
        done(&store, taking(&mut owner, &[1], &[])),
        Appended::Applied
    );
    assert_eq!(sent(&store, "a", keyed(7, "c", "k")), again);
    let store = place.crash(&store);
    assert_eq!(sent(&store, "a", keyed(8, "c", "k")), again);
    place.rest(&store);
    let last = owner.batch(vec![finished(Finished::Cancelled)], RunState::Cancelled);
    assert_eq!(done(&store, last), Appended::Applied);
    assert_eq!(sent(&store, "a", keyed(9, "c", "k")), again);
    assert_eq!(there(&store, owner.run), [(2, 3), (3, 5)]);
}

/// U20, one way round: the sender comes after the run began to wait.
pub fn a_message_makes_a_run_that_waits_for_it_due<H: Harness>() {
    for (channels, wakes) in [(&["c", "d"][..], true), (&[], true), (&["d"], false)] {
        for rested in [false, true] {
            for (wake_at, expected) in [(None, 2_000), (Some(1_500), 1_500), (Some(9_000), 2_000)] {
                let (mut place, store) = H::fresh();
                let mut owner = Owner::start(&store, "a");
                let mut wait = waiting(&mut owner, channels, 0);
                wait.patch.wake_at = Some(wake_at.map(at));
                assert_eq!(done(&store, wait), Appended::Applied);
                if rested {
                    place.rest(&store);
                }
                assert_eq!(
                    sent(&store, "a", message(1, "c")),
                    queued(owner.run, 1, wakes)
                );
                let due = if wakes {
                    Some(at(expected))
                } else {
                    wake_at.map(at)
                };
                assert_eq!(super::next_due(&store).unwrap(), due);
                place.rest(&store);
                let store = place.crash(&store);
                assert_eq!(super::next_due(&store).unwrap(), due);
                assert_eq!(row(&store, owner.run).wake_at, due);
            }
        }
    }
}

/// U20, the other way round: the message was there before the run began to wait, and its owner did not know.
pub fn a_run_that_begins_to_wait_for_what_is_there_is_due<H: Harness>() {
    for rested in [false, true] {
        let (mut place, store) = H::fresh();
        let mut owner = Owner::start(&store, "a");
        sent(&store, "a", message(1, "c"));
        sent(&store, "a", message(2, "d"));
        if rested {
            place.rest(&store);
        }
        let mut due_after = |channels: &[&str], seen| {
            let wait = waiting(&mut owner, channels, seen);
            assert_eq!(done(&store, wait), Appended::Applied);
            super::next_due(&store).unwrap()
        };
        assert_eq!(due_after(&["c"], 0), Some(at(1_000)));
        assert_eq!(
            due_after(&["c"], 1),
            None,
            "it was seen, and is not wanted yet"
        );
        assert_eq!(due_after(&["d"], 1), Some(at(1_000)));
        assert_eq!(due_after(&[], 1), Some(at(1_000)));
        assert_eq!(due_after(&["d"], 2), None);
        assert_eq!(due_after(&["e"], 0), None);
        // A batch that does not say what it waits for waits for what it did.
        assert_eq!(due_after(&["c"], 1), None);
        let mut append = owner.batch(Vec::new(), RunState::Waiting);
        append.patch.wake_at = Some(Some(at(9_000)));
        assert_eq!(done(&store, append), Appended::Applied);
        assert_eq!(super::next_due(&store).unwrap(), Some(at(1_000)));
        let mut take = waiting(&mut owner, &["c"], 0);
        take.inbox.takes = vec![1];
        assert_eq!(done(&store, take), Appended::Applied);
        let due = super::next_due(&store).unwrap();
        assert_eq!(due, None, "what it takes it does not wait for");
    }
}

/// A message is taken once: what is not in the inbox, or not any more, is a conflict, and nothing is written.
pub fn a_message_is_taken_once<H: Harness>() {
    let (mut place, store) = H::fresh();
    let mut owner = Owner::start(&store, "a");
    for number in 1..=3 {
        sent(&store, "a", message(number, "c"));
    }
    place.rest(&store);
    let messages = inbox(&store, owner.run);
    assert_eq!(
        done(&store, taking(&mut owner, &[2], &messages[1..2])),
        Appended::Applied
    );
    assert_eq!(there(&store, owner.run), [(1, 1), (3, 3)]);
    for rested in [false, true] {
        if rested {
            place.rest(&store);
        }
        for takes in [&[2][..], &[1, 2], &[0], &[4], &[1, 1]] {
            let mut again = owner.clone();
            let refused = tried(&store, taking(&mut again, takes, &[]));
            assert!(
                matches!(refused, Err(StoreError::Conflict { .. })),
                "{refused:?}"
            );
            assert_eq!(there(&store, owner.run), [(1, 1), (3, 3)]);
            assert_eq!(row(&store, owner.run).last_seq, owner.seq);
        }
    }
    assert_eq!(
        done(&store, taking(&mut owner, &[3, 1], &[])),
        Appended::Applied
    );
    let store = place.crash(&store);
    assert!(inbox(&store, owner.run).is_empty());
    assert_eq!(
        sent(&store, "a", message(4, "c")),
        queued(owner.run, 4, false)
    );
}

/// U9: what a branch had taken that lost its race stands where it stood, and can be taken in the same batch.
pub fn what_is_given_back_has_its_old_place<H: Harness>() {
    for rested in [false, true] {
        let (mut place, store) = H::fresh();
        let mut owner = Owner::start(&store, "a");
        for number in 1..=4 {
            sent(&store, "a", message(number, "c"));
        }
        let before = inbox(&store, owner.run);
        assert_eq!(
            done(&store, taking(&mut owner, &[1, 2], &[])),
            Appended::Applied
        );
        if rested {
            place.rest(&store);
        }
        let mut append = taking(&mut owner, &[1], &[]);
        append.inbox.returns = before[..2].to_vec();
        assert_eq!(done(&store, append), Appended::Applied);
        assert_eq!(inbox(&store, owner.run), before[1..]);
        assert_eq!(
            sent(&store, "a", message(5, "c")),
            queued(owner.run, 5, false)
        );
        place.rest(&store);
        let store = place.crash(&store);
        assert_eq!(there(&store, owner.run), [(2, 2), (3, 3), (4, 4), (5, 5)]);

        // Given back while it waits for it: it does not wait.
        let mut append = waiting(&mut owner, &["c"], 5);
        append.inbox.takes = vec![2, 3, 4, 5];
        append.inbox.returns = before[..1].to_vec();
        assert_eq!(done(&store, append), Appended::Applied);
        assert_eq!(super::next_due(&store).unwrap(), Some(at(1_000)));

        for wrong in [
            before[0].clone(),
            Message {
                arrival: 6,
                ..before[0].clone()
            },
        ] {
            let mut append = owner.clone().batch(Vec::new(), RunState::Running);
            append.inbox.returns = vec![wrong];
            let refused = tried(&store, append);
            assert!(
                matches!(refused, Err(StoreError::Conflict { .. })),
                "{refused:?}"
            );
        }
        assert_eq!(there(&store, owner.run), [(1, 1)]);
    }
}

/// M7: what a run cannot read goes to its dead letters, with the reason.
pub fn what_cannot_be_read_is_a_dead_letter<H: Harness>() {
    let (mut place, store) = H::fresh();
    let mut owner = Owner::start(&store, "a");
    for number in 1..=3 {
        sent(&store, "a", keyed(number, "c", &number.to_string()));
    }
    let before = inbox(&store, owner.run);
    place.rest(&store);
    for (arrival, reason) in [(3, "it is not a Payment"), (1, "nor is this")] {
        let mut append = owner.batch(Vec::new(), RunState::Running);
        append.inbox.dead = vec![(arrival, reason.to_owned())];
        assert_eq!(done(&store, append.clone()), Appended::Applied);
        append.number += 1;
        let refused = tried(&store, append);
        assert!(
            matches!(refused, Err(StoreError::Conflict { .. })),
            "{refused:?}"
        );
    }
    let store = place.crash(&store);
    for _ in 0..2 {
        assert_eq!(there(&store, owner.run), [(2, 2)]);
        let letters = block_on(store.dead_letters(owner.run, 0, 9)).unwrap();
        let told: Vec<_> = letters
            .iter()
            .map(|letter| (&letter.message, &*letter.reason))
            .collect();
        assert_eq!(
            told,
            [
                (&before[0], "nor is this"),
                (&before[2], "it is not a Payment")
            ]
        );
        assert_eq!(letters[0].at, at(1_000));
        assert_eq!(
            block_on(store.dead_letters(owner.run, 1, 9)).unwrap(),
            letters[1..]
        );
        assert_eq!(
            block_on(store.dead_letters(owner.run, 0, 1)).unwrap(),
            letters[..1]
        );
        assert_eq!(
            sent(&store, "a", keyed(9, "c", "1")),
            Delivery::Duplicate { id: 1 }
        );
        place.rest(&store);
    }
}

/// M12: nothing is written.
pub fn a_final_run_takes_no_messages<H: Harness>() {
    let (mut place, store) = H::fresh();
    let mut owner = Owner::start(&store, "a");
    sent(&store, "a", message(1, "c"));
    owner.write(
        &store,
        vec![finished(Finished::Completed(Payload::json("1")))],
        RunState::Completed,
    );
    let before = row(&store, owner.run);
    for _ in 0..2 {
        assert_eq!(
            sent(&store, "a", keyed(2, "c", "k")),
            Delivery::Final(owner.run)
        );
        assert_eq!(row(&store, owner.run), before);
        assert_eq!(
            there(&store, owner.run),
            [(1, 1)],
            "what it did not read stays"
        );
        place.rest(&store);
    }
}

/// M12: what is sent to an id that no run has yet is there when it comes to be, in order, with its keys.
pub fn a_message_that_comes_before_its_run_is_kept<H: Harness>() {
    for rested in [false, true] {
        let (mut place, store) = H::fresh();
        let stray = |arrival| Delivery::Queued {
            run: None,
            arrival,
            wakes: false,
        };
        assert_eq!(sent_at(&store, "a", keyed(1, "c", "k"), 500), stray(1));
        assert_eq!(sent_at(&store, "a", message(2, "d"), 300), stray(2));
        assert_eq!(
            sent_at(&store, "a", keyed(3, "c", "k"), 500),
            Delivery::Duplicate { id: 1 }
        );
        assert_eq!(sent_at(&store, "b", keyed(4, "c", "k"), 500), stray(1));
        if rested {
            place.rest(&store);
        }
        let store = place.crash(&store);
        assert_eq!(
            sent_at(&store, "a", keyed(5, "c", "k"), 500),
            Delivery::Duplicate { id: 1 }
        );
        assert_eq!(sent_at(&store, "a", message(6, "c"), 600), stray(3));
        let (mut owner, mut create) = Owner::create(&*store, "a");
        create.patch.waits = Some(Some(vec!["d".to_owned()]));
        create.inbox.takes = vec![1];
        assert_eq!(done(&store, create), Appended::Applied);
        for _ in 0..2 {
            let kept: Vec<_> = inbox(&store, owner.run)
                .iter()
                .map(|message| (message.arrival, message.id, message.at.as_millis()))
                .collect();
            assert_eq!(kept, [(2, 2, 500), (3, 6, 600)]);
            assert_eq!(row(&store, owner.run).inbox_seq, 3);
            assert_eq!(super::next_due(&store).unwrap(), Some(at(1_000)));
            assert_eq!(
                sent(&store, "a", keyed(7, "c", "k")),
                Delivery::Duplicate { id: 1 }
            );
            place.rest(&store);
        }
        let store = place.crash(&store);
        assert_eq!(
            done(&store, taking(&mut owner, &[2], &[])),
            Appended::Applied
        );
        assert_eq!(
            sent(&store, "a", message(8, "c")),
            queued(owner.run, 4, false)
        );
        assert_eq!(there(&store, owner.run), [(3, 6), (4, 8)]);
        let other = Owner::start(&store, "b");
        assert_eq!(there(&store, other.run), [(1, 4)]);
    }
}

/// The same when nothing else is sent, opened or written between.
pub fn a_message_long_kept_is_there_when_its_run_begins<H: Harness>() {
    let (mut place, store) = H::fresh();
    sent(&store, "a", message(1, "c"));
    place.rest(&store);
    let owner = Owner::start(&store, "a");
    assert_eq!(there(&store, owner.run), [(1, 1)]);
}

/// M12: what is kept is not kept for ever.
pub fn a_message_for_nobody_lapses<H: Harness>() {
    for rested in [false, true] {
        let (mut place, store) = H::fresh();
        let keep = |to: &str, message, now, until| {
            block_on(store.deliver(&id(to), message, at(now), at(until))).unwrap()
        };
        keep("a", keyed(1, "c", "k"), 100, 900);
        keep("a", message(2, "c"), 100, 1_001);
        keep("a", message(3, "c"), 100, 1_000);
        keep("b", message(4, "c"), 100, 300);
        keep("c", message(5, "c"), 100, 300);
        if rested {
            place.rest(&store);
        }
        // The key of one that lapsed is free.
        let delivered = keep("a", keyed(6, "c", "k"), 950, 2_000);
        assert_eq!(
            delivered,
            Delivery::Queued {
                run: None,
                arrival: 4,
                wakes: false
            }
        );
        let owner = Owner::start(&store, "a");
        let expected = [(2, 2), (4, 6)];
        assert_eq!(there(&store, owner.run), expected);
        place.rest(&store);
        let store = place.crash(&store);
        assert_eq!(there(&store, owner.run), expected);
        assert_eq!(row(&store, owner.run).inbox_seq, 4);
        let late = Owner::start(&store, "b");
        assert!(there(&store, late.run).is_empty());
    }
}

/// Every reader sees the same, at every instant, however much of it is folded.
pub fn inboxes_are_exact_under_random_operations<H: Harness>() {
    let mut dice = Dice::new(5);
    let (mut place, mut store) = H::fresh();
    let mut owner = Owner::start(&store, "a");
    let (mut there_now, mut taken_now) = (Vec::<Message>::new(), Vec::<Message>::new());
    let mut last = 0;
    for turn in 0..300_u64 {
        match dice.below(8) {
            0..3 => {
                last += 1;
                let delivered = sent(&store, "a", message(turn.into(), "c"));
                assert_eq!(delivered, queued(owner.run, last, false));
                there_now = inbox(&store, owner.run);
            }
            3..5 if !there_now.is_empty() => {
                let pick = dice.below(there_now.len() as u64);
                let message = there_now.remove(usize::try_from(pick).unwrap());
                let append = taking(&mut owner, &[message.arrival], &[]);
                assert_eq!(done(&store, append), Appended::Applied);
                taken_now.push(message);
            }
            5 if !taken_now.is_empty() => {
                let pick = dice.below(taken_now.len() as u64);
                let message = taken_now.remove(usize::try_from(pick).unwrap());
                let mut append = owner.batch(Vec::new(), RunState::Running);
                append.inbox.returns = vec![message.clone()];
                assert_eq!(done(&store, append), Appended::Applied);
                there_now.push(message);
                there_now.sort_by_key(|message| message.arrival);
            }
            6 => place.rest(&store),
            7 => store = place.crash(&store),
            _ => owner.write(&store, vec![step("s")], RunState::Running),
        }
        assert_eq!(inbox(&store, owner.run), there_now, "turn {turn}");
        assert_eq!(row(&store, owner.run).inbox_seq, last);
    }
    assert!(last > 50);
}

/// A batch that posts a message to this run.
pub(super) fn posting(owner: &mut Owner, posts: Vec<Post>) -> Append {
    let mut append = owner.batch(vec![step("send")], RunState::Running);
    append.posts = posts;
    append
}
