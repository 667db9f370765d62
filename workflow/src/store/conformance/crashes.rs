//! What is there after the store was opened again.

use std::collections::BTreeSet;

use super::scene::{Dice, Owner, at, done, finished, id, loaded, names, row, step, tried, value};
use super::{Harness, block_on};
use crate::replay::{Failure, FailureKind, Finished, Location, Payload, RunState, Timestamp};
use crate::store::{Appended, Store, StoreError};

/// RVT-STORE-01, RVT-STORE-02, RVT-STORE-03: state, value, error message and step are there.
pub fn a_completed_run_reads_the_same_after_reopening<H: Harness>() {
    let (mut place, store) = H::fresh();
    let mut good = Owner::start(&store, "good");
    good.write(&store, vec![step("reserve")], RunState::Running);
    good.write(
        &store,
        vec![finished(Finished::Completed(Payload::json("\"value\"")))],
        RunState::Completed,
    );
    let mut bad = Owner::start(&store, "bad");
    let boom = Failure::new(FailureKind::Returned, Location::root(), "boom");
    bad.write(
        &store,
        vec![finished(Finished::Failed(boom))],
        RunState::Failed,
    );
    let before = (loaded(&store, good.run), loaded(&store, bad.run));
    let identity = store.identity();

    block_on(store.close()).unwrap();
    let store = place.reopen(store);
    assert_eq!(
        (store.identity().id, store.identity().boot),
        (identity.id, identity.boot + 1)
    );
    let after = (loaded(&store, good.run), loaded(&store, bad.run));
    assert_eq!(
        (&after.0.row, &after.0.history),
        (&before.0.row, &before.0.history)
    );
    assert_eq!(
        (&after.1.row, &after.1.history),
        (&before.1.row, &before.1.history)
    );
    assert_eq!(
        block_on(store.find(&id("good"))).unwrap(),
        Some(before.0.row)
    );
    let (_, again) = Owner::create(&*store, "bad");
    assert_eq!(done(&store, again), Appended::Exists(bad.run));
}

/// Also those of openings that never wrote anything with them.
pub fn numbers_are_never_given_twice<H: Harness>() {
    let (mut place, mut store) = H::fresh();
    let mut given = BTreeSet::new();
    let mut last = None;
    for turn in 0..4 {
        for _ in 0..100 {
            let run = store.allocate();
            assert!(last < Some(run), "numbers grow");
            assert!(given.insert(run));
            last = Some(run);
        }
        if turn == 1 {
            Owner::start(&store, "a");
        }
        if turn == 2 {
            block_on(store.close()).unwrap();
            store = place.reopen(store);
        } else {
            let boot = store.identity().boot;
            store = place.crash(&store);
            assert!(store.identity().boot > boot);
        }
    }
}

/// After closing, everything says so.
pub fn a_closed_store_refuses_everything<H: Harness>() {
    let (_place, store) = H::fresh();
    let mut owner = Owner::start(&store, "a");
    block_on(store.close()).unwrap();
    let closed =
        |error: Option<StoreError>| assert!(matches!(error, Some(StoreError::Closed)), "{error:?}");
    closed(tried(&store, owner.batch(vec![step("s")], RunState::Running)).err());
    closed(block_on(store.cancel(owner.run, at(1))).err());
    closed(block_on(store.row(owner.run)).err());
    closed(block_on(store.find(&id("a"))).err());
    closed(block_on(store.load(owner.run)).err());
    closed(super::due(&store, Timestamp::MAX, 1).err());
    closed(super::next_due(&store).err());
    closed(block_on(store.active(None, 1)).err());
    closed(block_on(store.list(&crate::store::RunFilter::default())).err());
    let message = super::messages::message(1, "c");
    closed(block_on(store.deliver(&id("a"), message, at(1), Timestamp::MAX)).err());
    closed(block_on(store.inbox(owner.run, 0, 1)).err());
    closed(block_on(store.dead_letters(owner.run, 0, 1)).err());
    closed(block_on(store.answer(1)).err());
    closed(block_on(store.close()).err());
}

/// Rule 1; and the old owner is not heard any more by the new store.
pub fn a_crash_keeps_every_acknowledged_append<H: Harness>() {
    let (mut place, store) = H::fresh();
    let mut owner = Owner::start(&store, "a");
    owner.write(&store, vec![step("s")], RunState::Running);
    place.rest(&store);
    owner.write(&store, vec![step("t"), step("u")], RunState::Running);
    let before = loaded(&store, owner.run);
    let new = place.crash(&store);
    let after = loaded(&new, owner.run);
    assert_eq!((after.row, after.history), (before.row, before.history));
    assert_eq!(block_on(new.active(None, 9)).unwrap(), [owner.run]);
    let mut claimed = Owner {
        epoch: new.identity().boot,
        number: 0,
        ..owner.clone()
    };
    claimed.write(&new, vec![step("v")], RunState::Running);
    assert_eq!(
        done(&new, owner.batch(vec![step("w")], RunState::Running)),
        Appended::Lost
    );
    assert_eq!(names(&loaded(&new, owner.run)), ["", "s", "t", "u", "v"]);
}

/// Rules 1 and 2, at every append of a random sequence, with deletes.
pub fn a_crash_after_every_append_of_random_ones_loses_nothing<H: Harness>() {
    let mut dice = Dice::new(11);
    let (mut place, mut store) = H::fresh();
    let mut owners = [
        Owner::start(&store, "a"),
        Owner::start(&store, "b"),
        Owner::start(&store, "c"),
    ];
    let scope = |number: u64| Location::root().site("i").iteration(number);
    let mut expected = vec![vec![1_u64]; owners.len()];
    let mut scopes = vec![vec![Location::root()]; owners.len()];
    for turn in 0..60_u64 {
        let pick = usize::try_from(turn % 3).unwrap_or(0);
        let (Some(owner), Some(kept), Some(at)) = (
            owners.get_mut(pick),
            expected.get_mut(pick),
            scopes.get_mut(pick),
        ) else {
            unreachable!("there are three");
        };
        let records: Vec<_> = (0..dice.below(4))
            .map(|_| value(&scope(dice.below(4)).site("s"), "1"))
            .collect();
        let deleted = scope(dice.below(4));
        let mut append = owner.batch(records, RunState::Running);
        if dice.below(3) == 0 {
            append.deletes = vec![deleted.clone()];
            let stay: Vec<_> = at
                .iter()
                .map(|location| !location.is_under(&deleted))
                .collect();
            let mut staying = stay.iter();
            kept.retain(|_| *staying.next().expect("one for each"));
            let mut staying = stay.iter();
            at.retain(|_| *staying.next().expect("one for each"));
        }
        kept.extend(append.records.iter().map(|record| record.seq));
        at.extend(append.records.iter().map(|record| record.location.clone()));
        assert_eq!(done(&store, append), Appended::Applied);
        if dice.below(5) == 0 {
            place.rest(&store);
        }
        store = place.crash(&store);
        for (owner, kept) in owners.iter().zip(&expected) {
            let loaded = loaded(&store, owner.run);
            assert!(
                loaded
                    .history
                    .iter()
                    .map(|record| record.seq)
                    .eq(kept.iter().copied()),
                "turn {turn}"
            );
            assert_eq!(loaded.row.last_seq, owner.seq);
        }
    }
}

/// RVT-FIX-68: waiting and the wake time are one append; there is no instant with one and without the other.
pub fn a_crash_loses_no_wake_time<H: Harness>() {
    let (mut place, store) = H::fresh();
    let mut owner = Owner::start(&store, "a");
    owner.sleep(&store, Some(500));
    let store = place.crash(&store);
    assert_eq!(row(&store, owner.run).state, RunState::Waiting);
    assert_eq!(super::due(&store, at(500), 9).unwrap(), [owner.run]);
    place.rest(&store);
    let store = place.crash(&store);
    assert_eq!(super::next_due(&store).unwrap(), Some(at(500)));
}

/// RVT-FIX-67: a loop that prunes, with a crash after each batch.
pub fn a_crash_at_a_prune_leaves_no_orphans<H: Harness>() {
    let (mut place, mut store) = H::fresh();
    let mut owner = Owner::start(&store, "a");
    let iteration = |number| Location::root().site("drain").iteration(number);
    for number in 0..12_u64 {
        let mut append = owner.batch(
            vec![value(&iteration(number).site("s"), "1")],
            RunState::Running,
        );
        append.deletes = number.checked_sub(3).map(iteration).into_iter().collect();
        assert_eq!(done(&store, append), Appended::Applied);
        if number % 4 == 0 {
            place.rest(&store);
        }
        store = place.crash(&store);
        let kept: Vec<_> = loaded(&store, owner.run)
            .history
            .into_iter()
            .skip(1)
            .map(|record| record.location)
            .collect();
        let expected: Vec<_> = (number.saturating_sub(2)..=number)
            .map(|number| iteration(number).site("s"))
            .collect();
        assert_eq!(kept, expected);
    }
}
