//! What an append does, and what it refuses.

use std::sync::{Arc, Barrier};
use std::thread;

use super::scene::{Owner, at, done, finished, id, loaded, names, row, step, tried, value};
use super::{Harness, block_on};
use crate::replay::{Finished, Location, Payload, RunKey, RunState, Segment};
use crate::store::{Appended, Store, StoreError};

fn completed() -> Vec<(Location, crate::replay::Body)> {
    vec![finished(Finished::Completed(Payload::json("\"value\"")))]
}

/// Rule 8. Also RVT-KV-01, RVT-KV-09: what was written, several records at once, is what is read.
pub fn an_append_is_seen_by_every_read<H: Harness>() {
    let (_place, store) = H::fresh();
    let mut owner = Owner::start(&store, "a");
    owner.write(
        &store,
        vec![step("reserve"), step("charge")],
        RunState::Running,
    );
    let loaded = loaded(&store, owner.run);
    assert_eq!(names(&loaded), ["", "reserve", "charge"]);
    assert_eq!(
        loaded
            .history
            .iter()
            .map(|record| record.seq)
            .collect::<Vec<_>>(),
        [1, 2, 3]
    );
    assert_eq!(loaded.row, row(&store, owner.run));
    let found = block_on(store.find(&id("a"))).unwrap();
    assert_eq!(found, Some(loaded.row.clone()));
    assert_eq!(
        (loaded.row.last_seq, loaded.row.last_append),
        (3, (owner.epoch, 2))
    );
}

/// RVT-KV-03, RVT-KV-10.
pub fn the_last_write_of_a_row_wins<H: Harness>() {
    let (mut place, store) = H::fresh();
    let mut owner = Owner::start(&store, "a");
    for (turn, progress) in ["1", "2", "3"].into_iter().enumerate() {
        let mut append = owner.batch(Vec::new(), RunState::Waiting);
        append.patch.progress = Some(progress.to_owned());
        append.patch.waits = Some(Some(vec![progress.to_owned()]));
        assert_eq!(done(&store, append), Appended::Applied);
        if turn == 1 {
            place.rest(&store);
        }
    }
    let row = row(&store, owner.run);
    assert_eq!(
        (row.progress.as_deref(), row.waits),
        (Some("3"), Some(vec!["3".to_owned()]))
    );
    assert_eq!(row.state, RunState::Waiting);
}

/// RVT-KV-02.
pub fn what_does_not_exist_is_not_found<H: Harness>() {
    let (_place, store) = H::fresh();
    Owner::start(&store, "a");
    assert!(block_on(store.find(&id("b"))).unwrap().is_none());
    assert!(block_on(store.row(RunKey(u64::MAX))).unwrap().is_none());
    assert!(block_on(store.load(RunKey(u64::MAX))).unwrap().is_none());
    let mut nobody = Owner {
        run: RunKey(u64::MAX),
        epoch: 1,
        number: 0,
        seq: 0,
    };
    assert_eq!(
        done(&store, nobody.batch(vec![step("s")], RunState::Running)),
        Appended::Final
    );
    assert_eq!(
        block_on(store.cancel(RunKey(u64::MAX), at(1))).unwrap(),
        Appended::Final
    );
}

/// Rule 3, `Exists`: also for two that come at the same time, and for one long in the store.
pub fn an_id_is_given_to_one_run<H: Harness>() {
    let (mut place, store) = H::fresh();
    let first = Owner::start(&store, "a");
    let (_, second) = Owner::create(&*store, "a");
    assert_eq!(done(&store, second.clone()), Appended::Exists(first.run));
    place.rest(&store);
    assert_eq!(done(&store, second), Appended::Exists(first.run));

    let start = Arc::new(Barrier::new(8));
    let threads: Vec<_> = (0..8)
        .map(|_| {
            let (store, start) = (Arc::clone(&store), Arc::clone(&start));
            thread::spawn(move || {
                let (owner, append) = Owner::create(&*store, "b");
                start.wait();
                (owner.run, done(&store, append))
            })
        })
        .collect();
    let answers: Vec<_> = threads
        .into_iter()
        .map(|thread| thread.join().unwrap())
        .collect();
    let winner = answers
        .iter()
        .find(|(_, answer)| *answer == Appended::Applied)
        .expect("one is the first")
        .0;
    for (run, answer) in answers {
        let expected = if run == winner {
            Appended::Applied
        } else {
            Appended::Exists(winner)
        };
        assert_eq!(answer, expected);
    }
}

/// Rule 3, `Lost`.
pub fn a_stale_owner_cannot_append<H: Harness>() {
    let (_place, store) = H::fresh();
    let mut stale = Owner::start(&store, "a");
    let mut owner = Owner {
        epoch: stale.epoch + 1,
        number: 0,
        ..stale.clone()
    };
    owner.write(&store, vec![step("claimed")], RunState::Running);
    let append = stale.batch(vec![step("late")], RunState::Completed);
    assert_eq!(done(&store, append), Appended::Lost);
    assert_eq!(names(&loaded(&store, owner.run)), ["", "claimed"]);
    assert_eq!(row(&store, owner.run).epoch, owner.epoch);
}

/// Rule 3, `Final`.
pub fn a_final_run_takes_nothing_more<H: Harness>() {
    let (mut place, store) = H::fresh();
    let mut owner = Owner::start(&store, "a");
    owner.write(&store, completed(), RunState::Completed);
    let before = loaded(&store, owner.run);
    for rested in [false, true] {
        if rested {
            place.rest(&store);
        }
        let append = owner.clone().batch(vec![step("late")], RunState::Running);
        assert_eq!(done(&store, append), Appended::Final);
        let mut newer = Owner {
            epoch: owner.epoch + 1,
            ..owner.clone()
        };
        assert_eq!(
            done(&store, newer.batch(vec![step("late")], RunState::Running)),
            Appended::Final
        );
        let after = loaded(&store, owner.run);
        assert_eq!(
            (after.row, after.history),
            (before.row.clone(), before.history.clone())
        );
    }
}

/// Rule 4: also of a creation, of the batch that ended the run, and after a restart.
pub fn a_repeated_append_is_not_written_twice<H: Harness>() {
    let (mut place, store) = H::fresh();
    let (mut owner, create) = Owner::create(&*store, "a");
    assert_eq!(done(&store, create.clone()), Appended::Applied);
    assert_eq!(done(&store, create), Appended::AlreadyApplied);
    let one = owner.batch(vec![step("s")], RunState::Running);
    assert_eq!(done(&store, one.clone()), Appended::Applied);
    assert_eq!(done(&store, one.clone()), Appended::AlreadyApplied);
    place.rest(&store);
    assert_eq!(done(&store, one), Appended::AlreadyApplied);
    let last = owner.batch(completed(), RunState::Completed);
    assert_eq!(done(&store, last.clone()), Appended::Applied);
    assert_eq!(done(&store, last.clone()), Appended::AlreadyApplied);
    let store = place.crash(&store);
    assert_eq!(done(&store, last), Appended::AlreadyApplied);
    assert_eq!(names(&loaded(&store, owner.run)), ["", "s", ""]);
}

/// Rule 5; also a batch with a gap in it.
pub fn an_append_that_does_not_follow_is_a_conflict<H: Harness>() {
    let (_place, store) = H::fresh();
    let owner = Owner::start(&store, "a");
    let mut ahead = Owner {
        seq: 7,
        ..owner.clone()
    };
    let refused = tried(&store, ahead.batch(vec![step("s")], RunState::Running));
    assert!(
        matches!(
            refused,
            Err(StoreError::Conflict {
                expected: 7,
                found: 1
            })
        ),
        "{refused:?}"
    );
    let mut gap = owner
        .clone()
        .batch(vec![step("s"), step("t")], RunState::Running);
    gap.records.remove(0);
    assert!(matches!(
        tried(&store, gap),
        Err(StoreError::Conflict { .. })
    ));
    assert_eq!(names(&loaded(&store, owner.run)), [""]);
}

/// Rule 2: a refused batch changes neither rows nor indexes.
pub fn what_is_refused_leaves_no_trace<H: Harness>() {
    let (_place, store) = H::fresh();
    let mut owner = Owner::start(&store, "a");
    owner.sleep(&store, Some(500));
    let before = (
        loaded(&store, owner.run).row,
        super::next_due(&store).unwrap(),
    );
    let mut stale = Owner {
        epoch: owner.epoch.saturating_sub(1),
        number: 70,
        ..owner.clone()
    };
    let mut append = stale.batch(vec![step("s")], RunState::Running);
    append.patch.wake_at = Some(Some(at(1)));
    append.deletes = vec![Location::root()];
    assert_eq!(done(&store, append), Appended::Lost);
    let (_, mut exists) = Owner::create(&*store, "a");
    exists.patch.wake_at = Some(Some(at(2)));
    assert_eq!(done(&store, exists), Appended::Exists(owner.run));
    assert_eq!(
        before,
        (
            loaded(&store, owner.run).row,
            super::next_due(&store).unwrap()
        )
    );
    assert!(block_on(store.active(None, 9)).unwrap().is_empty());
}

/// A final state has no wake time, whatever the batch says beside it.
pub fn a_final_state_clears_wake_time_and_waits<H: Harness>() {
    let (mut place, store) = H::fresh();
    let mut owner = Owner::start(&store, "a");
    owner.sleep(&store, Some(500));
    place.rest(&store);
    let mut append = owner.batch(completed(), RunState::Completed);
    append.patch.wake_at = Some(Some(at(700)));
    append.patch.waits = Some(Some(vec!["c".to_owned()]));
    assert_eq!(done(&store, append), Appended::Applied);
    let row = row(&store, owner.run);
    assert_eq!(
        (row.wake_at, row.waits, row.finished_at),
        (None, None, Some(at(1_000)))
    );
    assert_eq!(super::next_due(&store).unwrap(), None);
}

/// Cancelling is one compare-and-set: who comes later is refused.
pub fn cancel_wins_against_a_later_completion<H: Harness>() {
    let (mut place, store) = H::fresh();
    let mut owner = Owner::start(&store, "a");
    owner.sleep(&store, Some(500));
    place.rest(&store);
    assert_eq!(
        block_on(store.cancel(owner.run, at(2_000))).unwrap(),
        Appended::Applied
    );
    assert_eq!(
        done(&store, owner.batch(completed(), RunState::Completed)),
        Appended::Final
    );
    assert_eq!(
        block_on(store.cancel(owner.run, at(3_000))).unwrap(),
        Appended::Final
    );
    let cancelled = loaded(&store, owner.run);
    let row = &cancelled.row;
    assert_eq!(
        (row.state, row.epoch, row.wake_at),
        (RunState::Cancelled, owner.epoch + 1, None)
    );
    assert_eq!(
        (row.updated_at, row.finished_at),
        (at(2_000), Some(at(2_000)))
    );
    let last = cancelled.history.last().expect("it began").clone();
    assert_eq!(
        (last.seq, last.body),
        (2, crate::replay::Body::Finished(Finished::Cancelled))
    );
    assert_eq!(super::next_due(&store).unwrap(), None);
}

/// The other way round.
pub fn cancel_loses_against_an_earlier_completion<H: Harness>() {
    let (_place, store) = H::fresh();
    let mut owner = Owner::start(&store, "a");
    owner.write(&store, completed(), RunState::Completed);
    assert_eq!(
        block_on(store.cancel(owner.run, at(2_000))).unwrap(),
        Appended::Final
    );
    assert_eq!(row(&store, owner.run).state, RunState::Completed);
}

/// Exactly one of the two is applied, and the row says which.
pub fn of_cancel_and_completion_at_once_one_wins<H: Harness>() {
    let (_place, store) = H::fresh();
    for turn in 0..40 {
        let mut owner = Owner::start(&store, &format!("run-{turn}"));
        let start = Arc::new(Barrier::new(2));
        let canceller = {
            let (store, start, run) = (Arc::clone(&store), Arc::clone(&start), owner.run);
            thread::spawn(move || {
                start.wait();
                block_on(store.cancel(run, at(2_000))).unwrap()
            })
        };
        start.wait();
        let completed = done(&store, owner.batch(completed(), RunState::Completed));
        let cancelled = canceller.join().unwrap();
        let expected = match row(&store, owner.run).state {
            RunState::Completed => (Appended::Applied, Appended::Final),
            RunState::Cancelled => (Appended::Final, Appended::Applied),
            other => panic!("the run is {other}"),
        };
        assert_eq!((completed, cancelled), expected);
    }
}

/// RVT-KV-04, RVT-KV-06: neighbours whose names begin alike stay.
pub fn a_delete_takes_a_scope_and_what_is_under_it<H: Harness>() {
    for rested in [false, true] {
        let (mut place, store) = H::fresh();
        let race = Location::root().site("settle");
        let records = vec![
            value(&race.branch("paid").site("payment"), "1"),
            value(&race.branch("paid").site("payment").site("deep"), "2"),
            value(&race.branch("paid2").site("payment"), "3"),
            value(&Location::root().site("settle2"), "4"),
        ];
        let mut owner = Owner::start(&store, "a");
        owner.write(&store, records, RunState::Running);
        if rested {
            place.rest(&store);
        }
        let mut append = owner.batch(Vec::new(), RunState::Running);
        append.deletes = vec![race.branch("paid")];
        assert_eq!(done(&store, append), Appended::Applied);
        assert_eq!(
            names(&loaded(&store, owner.run)),
            ["", "settle/paid2/payment", "settle2"]
        );
        place.rest(&store);
        assert_eq!(
            names(&loaded(&store, owner.run)),
            ["", "settle/paid2/payment", "settle2"]
        );
        let store = place.crash(&store);
        assert_eq!(
            names(&loaded(&store, owner.run)),
            ["", "settle/paid2/payment", "settle2"]
        );
        owner.write(&store, vec![step("after")], RunState::Running);
        assert_eq!(
            names(&loaded(&store, owner.run)),
            ["", "settle/paid2/payment", "settle2", "after"]
        );
    }
}

/// Deletes concern what stood there before the batch.
pub fn a_delete_leaves_what_its_own_batch_writes<H: Harness>() {
    let (mut place, store) = H::fresh();
    let mut owner = Owner::start(&store, "a");
    owner.write(&store, vec![step("s")], RunState::Running);
    let mut append = owner.batch(vec![step("s")], RunState::Running);
    append.deletes = vec![Location::root().site("s")];
    assert_eq!(done(&store, append), Appended::Applied);
    for _ in 0..2 {
        let history = loaded(&store, owner.run).history;
        assert_eq!(
            history.iter().map(|record| record.seq).collect::<Vec<_>>(),
            [1, 3]
        );
        place.rest(&store);
    }
}

/// RVT-FIX-63.
pub fn hostile_keys_delete_only_themselves<H: Harness>() {
    let (mut place, store) = H::fresh();
    let items = Location::root().site("items");
    let keyed = |key| items.child(Segment::Key { key, occurrence: 0 });
    let keys = ["a", "a/ship", "a]/ship", "~0", "a:1", "a#2", ""];
    let mut owner = Owner::start(&store, "a");
    owner.write(
        &store,
        keys.iter()
            .map(|key| value(&keyed(key).site("ship"), "1"))
            .collect(),
        RunState::Running,
    );
    place.rest(&store);
    for (turn, key) in keys.iter().enumerate() {
        let mut append = owner.batch(Vec::new(), RunState::Running);
        append.deletes = vec![keyed(key)];
        assert_eq!(done(&store, append), Appended::Applied);
        let left: Vec<_> = loaded(&store, owner.run)
            .history
            .into_iter()
            .skip(1)
            .map(|record| record.location)
            .collect();
        let expected: Vec<_> = keys
            .iter()
            .skip(turn + 1)
            .map(|key| keyed(key).site("ship"))
            .collect();
        assert_eq!(left, expected);
    }
}

/// RVT-KV-05, RVT-KV-08: across the widths of numbers, and only this run's.
pub fn records_are_listed_in_the_order_of_their_numbers<H: Harness>() {
    let (mut place, store) = H::fresh();
    let mut owner = Owner::start(&store, "a");
    let mut other = Owner::start(&store, "b");
    for turn in 0..300_u64 {
        let records = vec![value(
            &Location::root().site("i").iteration(turn),
            &turn.to_string(),
        )];
        owner.write(&store, records, RunState::Running);
        if turn % 60 == 0 {
            other.write(&store, vec![step("other")], RunState::Running);
            place.rest(&store);
        }
    }
    let history = loaded(&store, owner.run).history;
    assert!(history.iter().map(|record| record.seq).eq(1..=301));
    let iterations = (0..300).map(|turn| Location::root().site("i").iteration(turn));
    assert!(
        history
            .iter()
            .skip(1)
            .map(|record| record.location.clone())
            .eq(iterations)
    );
    assert_eq!(loaded(&store, other.run).history.len(), 6);
}
