//! What an operator changes in runs: all of it or nothing, also in a run that has ended.

#![expect(clippy::indexing_slicing, reason = "a law that does not hold panics")]

use std::sync::Arc;

use super::scene::{CODE, Owner, at, done, finished, id, loaded, names, patch, row, step, tried};
use super::{Harness, block_on};
use crate::replay::{
    Body, Control, Failure, FailureKind, Finished, Location, NewMessage, Payload, Record, RunState,
    Timestamp,
};
use crate::store::{Appended, Post, Rewrite, RunPatch, Store};

/// A rewrite of this run as it is now.
fn rewrite(store: &Arc<impl Store>, owner: &Owner, remove: &[u64]) -> Rewrite {
    let last = row(store, owner.run).last_seq;
    Rewrite {
        run: owner.run,
        expected_seq: last,
        remove: remove.to_vec(),
        records: vec![Record {
            seq: last + 1,
            at: at(2_000),
            code: CODE,
            location: Location::root(),
            body: Body::Control(Control::Recovered),
        }],
        patch: RunPatch {
            generation: Some(3),
            unclean: Some(0),
            wake_at: Some(None),
            ..patch(RunState::Pending)
        },
        returns: Vec::new(),
        posts: Vec::new(),
    }
}

fn written(store: &Arc<impl Store>, rewrites: Vec<Rewrite>) -> Appended {
    block_on(store.rewrite(rewrites)).expect("the store works")
}

/// A run that failed after two steps.
fn failed(store: &Arc<impl Store>, name: &str) -> Owner {
    let mut owner = Owner::start(store, name);
    owner.write(store, vec![step("one"), step("two")], RunState::Running);
    let failure = Failure::new(FailureKind::Returned, Location::root(), "boom");
    owner.write(
        store,
        vec![finished(Finished::Failed(failure))],
        RunState::Failed,
    );
    owner
}

/// RVT-FIX-59: no trace of the end is left, before and after a restart, folded or not.
pub fn a_rewrite_takes_single_records_out_of_a_run_that_has_ended<H: Harness>() {
    for rested in [false, true] {
        takes_single_records_out::<H>(rested);
    }
}

fn takes_single_records_out<H: Harness>(rested: bool) {
    let (mut place, mut store) = H::fresh();
    let owner = failed(&store, "a");
    if rested {
        place.rest(&store);
    }
    let deed = rewrite(&store, &owner, &[3, 4]);
    assert_eq!(written(&store, vec![deed]), Appended::Applied);
    for turn in 0..3 {
        let found = loaded(&store, owner.run);
        assert_eq!(names(&found), ["", "one", ""], "turn {turn}");
        let last = found.history.last().unwrap();
        assert_eq!(
            (last.seq, &last.body),
            (5, &Body::Control(Control::Recovered))
        );
        let row = found.row;
        assert_eq!(
            (row.state, row.finished_at, row.generation, row.last_seq),
            (RunState::Pending, None, 3, 5)
        );
        assert_eq!(block_on(store.active(None, 9)).unwrap(), [owner.run]);
        if turn == 0 {
            store = place.crash(&store);
            place.rest(&store);
        } else {
            block_on(store.close()).unwrap();
            store = place.reopen(store);
        }
    }
}

/// Its numbers go on after those of the records that were taken out.
pub fn a_run_goes_on_after_a_rewrite<H: Harness>() {
    let (_place, store) = H::fresh();
    let mut owner = failed(&store, "a");
    let deed = rewrite(&store, &owner, &[4]);
    assert_eq!(written(&store, vec![deed]), Appended::Applied);
    owner.seq = 5;
    owner.write(&store, vec![step("three")], RunState::Running);
    assert_eq!(
        names(&loaded(&store, owner.run)),
        ["", "one", "two", "", "three"]
    );
}

/// Whoever drove it builds on a record that is not the last any more.
pub fn the_owner_of_a_rewritten_run_is_refused<H: Harness>() {
    let (_place, store) = H::fresh();
    let mut owner = Owner::start(&store, "a");
    owner.write(&store, vec![step("one"), step("two")], RunState::Running);
    let late = owner.batch(vec![step("three")], RunState::Running);
    let deed = rewrite(&store, &owner, &[3]);
    assert_eq!(written(&store, vec![deed]), Appended::Applied);
    assert!(!matches!(tried(&store, late), Ok(Appended::Applied)));
    assert_eq!(names(&loaded(&store, owner.run)), ["", "one", ""]);
}

/// Of several, all or none; and none when one of the runs has changed since, or is not there.
pub fn rewrites_are_written_together_or_not_at_all<H: Harness>() {
    let (mut place, store) = H::fresh();
    let (one, two) = (failed(&store, "one"), failed(&store, "two"));
    let first = rewrite(&store, &one, &[4]);
    let stale = Rewrite {
        expected_seq: 3,
        records: Vec::new(),
        ..rewrite(&store, &two, &[4])
    };
    let nobody = Rewrite {
        run: store.allocate(),
        ..stale.clone()
    };
    let before = (loaded(&store, one.run), loaded(&store, two.run));
    assert_eq!(written(&store, vec![first.clone(), stale]), Appended::Lost);
    assert_eq!(
        written(&store, vec![first.clone(), nobody]),
        Appended::Final
    );
    assert_eq!(loaded(&store, one.run).row, before.0.row);
    let both = vec![first, rewrite(&store, &two, &[2, 4])];
    assert_eq!(written(&store, both.clone()), Appended::Applied);
    assert_eq!(written(&store, both), Appended::Lost);
    let store = place.crash(&store);
    assert_eq!(names(&loaded(&store, one.run)), ["", "one", "two", ""]);
    assert_eq!(names(&loaded(&store, two.run)), ["", "two", ""]);
}

/// What a deleted record had taken lies at its old place; what a rewrite does to others is in its transaction.
pub fn a_rewrite_gives_messages_back_and_posts<H: Harness>() {
    let (mut place, store) = H::fresh();
    let mut owner = Owner::start(&store, "a");
    let other = Owner::start(&store, "b");
    let message = |number: u128| NewMessage {
        id: number,
        channel: "c".to_owned(),
        dedup: None,
        reply_to: None,
        payload: Payload::json(number.to_string()),
    };
    for number in 1..=3 {
        block_on(store.deliver(&id("a"), message(number), at(1_000), Timestamp::MAX)).unwrap();
    }
    let inbox = block_on(store.inbox(owner.run, 0, 9)).unwrap();
    let taken = vec![inbox[0].clone(), inbox[1].clone()];
    let mut take = owner.batch(
        vec![(Location::root().site("m"), Body::Taken(taken.clone()))],
        RunState::Running,
    );
    take.inbox.takes = vec![1, 2];
    take.inbox.seen = 3;
    assert_eq!(done(&store, take), Appended::Applied);
    let deed = Rewrite {
        returns: taken,
        posts: vec![Post::Cancel(id("b"))],
        ..rewrite(&store, &owner, &[2])
    };
    assert_eq!(written(&store, vec![deed]), Appended::Applied);
    let store = place.crash(&store);
    assert_eq!(block_on(store.inbox(owner.run, 0, 9)).unwrap(), inbox);
    assert_eq!(row(&store, other.run).state, RunState::Cancelled);
}

/// The count of unclean claims and whether the last owner let go are kept like the rest of a row.
pub fn an_owner_that_lets_go_says_so_until_the_next_batch<H: Harness>() {
    let (mut place, mut store) = H::fresh();
    let mut owner = Owner::start(&store, "a");
    let mut batch = owner.batch(Vec::new(), RunState::Running);
    batch.patch.unclean = Some(2);
    batch.patch.released = true;
    assert_eq!(done(&store, batch), Appended::Applied);
    let said = |store: &Arc<H::Store>| {
        let row = row(store, owner.run);
        (row.unclean, row.released)
    };
    assert_eq!(said(&store), (2, true));
    store = place.crash(&store);
    assert_eq!(said(&store), (2, true));
    block_on(store.close()).unwrap();
    store = place.reopen(store);
    assert_eq!(said(&store), (2, true));
    let mut next = owner.clone();
    next.write(&store, vec![step("one")], RunState::Running);
    assert_eq!(said(&store), (2, false));
}
