//! Deleting runs: nothing is left of them, folded or not, and nothing else goes with them.

#![expect(clippy::indexing_slicing, reason = "a law that does not hold panics")]

use std::collections::BTreeMap;
use std::sync::Arc;

use super::messages::{keyed, message, sent};
use super::scene::{Dice, Owner, at, done, finished, id, loaded, row, step, tried};
use super::{Harness, block_on};
use crate::replay::{Finished, Location, Payload, RunKey, RunState};
use crate::store::{
    Answer, Appended, Deleted, Deletion, Delivery, NewRun, Post, Rewrite, RunFilter, RunPatch,
    Store,
};

fn deletion(store: &Arc<impl Store>, run: RunKey) -> Deletion {
    let row = block_on(store.row(run)).unwrap();
    Deletion {
        run,
        expected_seq: row.map_or(0, |row| row.last_seq),
        requests: Vec::new(),
    }
}

fn deleted(store: &Arc<impl Store>, runs: &[RunKey]) -> Vec<Deleted> {
    let deletions = runs.iter().map(|run| deletion(store, *run));
    block_on(store.delete(deletions.collect())).expect("the store works")
}

fn end(store: &Arc<impl Store>, owner: &mut Owner) {
    let value = Finished::Completed(Payload::json("1"));
    owner.write(store, vec![finished(value)], RunState::Completed);
}

/// A run that has everything that a run can have, and has ended: messages, a dead letter, a dedup key, an answer.
fn rich<H: Harness>(store: &Arc<H::Store>, name: &str) -> Owner {
    let mut owner = Owner::start(store, name);
    sent(store, name, keyed(1, "a", "k"));
    sent(store, name, message(2, "a"));
    sent(store, name, message(3, "b"));
    let mut batch = owner.batch(vec![step("one"), step("two")], RunState::Running);
    batch.inbox.dead.push((2, "it is not one".to_owned()));
    batch.posts.push(Post::Answer {
        request: 77,
        answer: Answer::Reply(Payload::json("7")),
    });
    assert_eq!(done(store, batch), Appended::Applied);
    end(store, &mut owner);
    owner
}

fn assert_gone<S: Store>(store: &Arc<S>, run: RunKey, name: &str) {
    assert_eq!(block_on(store.row(run)).unwrap(), None);
    assert_eq!(block_on(store.find(&id(name))).unwrap(), None);
    assert!(block_on(store.load(run)).unwrap().is_none());
    assert_eq!(block_on(store.first(run)).unwrap(), None);
    assert_eq!(block_on(store.inbox(run, 0, 9)).unwrap(), []);
    assert_eq!(block_on(store.dead_letters(run, 0, 9)).unwrap(), []);
    assert_eq!(block_on(store.answer(77)).unwrap(), None);
    for state in [None, Some(RunState::Completed)] {
        let filter = RunFilter {
            states: state.into_iter().collect(),
            ..RunFilter::default()
        };
        let page = block_on(store.list(&filter)).unwrap();
        assert!(page.rows.iter().all(|row| row.key != run), "{state:?}");
        if state.is_none() {
            super::reads::check_census(store, &page.rows);
        }
    }
}

/// UA-59. Before and after a restart, whatever of it was folded when.
pub fn of_a_deleted_run_nothing_is_left<H: Harness>() {
    for rests in 0..4 {
        let (mut place, mut store) = H::fresh();
        let beside = rich::<H>(&store, "beside");
        let kept = (row(&store, beside.run), loaded(&store, beside.run).history);
        let owner = rich::<H>(&store, "a");
        if rests & 1 > 0 {
            place.rest(&store);
        }
        let mut deletion = deletion(&store, owner.run);
        deletion.requests.push(77);
        let answers = block_on(store.delete(vec![deletion]));
        assert_eq!(answers.unwrap(), [Deleted::Deleted]);
        assert_gone(&store, owner.run, "a");
        if rests & 2 > 0 {
            place.rest(&store);
            assert_gone(&store, owner.run, "a");
        }
        store = place.crash(&store);
        assert_gone(&store, owner.run, "a");
        block_on(store.close()).unwrap();
        store = place.reopen(store);
        assert_gone(&store, owner.run, "a");
        // What was beside it is as it was.
        assert_eq!(row(&store, beside.run), kept.0);
        assert_eq!(loaded(&store, beside.run).history, kept.1);
        assert_eq!(block_on(store.inbox(beside.run, 0, 9)).unwrap().len(), 2);
        let letters = block_on(store.dead_letters(beside.run, 0, 9)).unwrap();
        assert_eq!(letters.len(), 1);
    }
}

/// Nothing of the old run is the new one's, and nothing that is said to the old one gets at it.
pub fn an_id_that_was_deleted_may_be_given_again<H: Harness>() {
    for rests in 0..8 {
        let (mut place, mut store) = H::fresh();
        let mut old = rich::<H>(&store, "a");
        if rests & 1 > 0 {
            place.rest(&store);
        }
        assert_eq!(deleted(&store, &[old.run]), [Deleted::Deleted]);
        if rests & 2 > 0 {
            place.rest(&store);
        }
        let late = old.batch(vec![step("late")], RunState::Running);
        assert_eq!(tried(&store, late).unwrap(), Appended::Final);
        let cancelled = block_on(store.cancel(old.run, at(3_000))).unwrap();
        assert_eq!(cancelled, Appended::Final);
        let rewrite = Rewrite {
            run: old.run,
            expected_seq: 4,
            remove: vec![4],
            records: Vec::new(),
            patch: RunPatch::default(),
            returns: Vec::new(),
            posts: Vec::new(),
        };
        let rewritten = block_on(store.rewrite(vec![rewrite])).unwrap();
        assert_eq!(rewritten, Appended::Final);
        // The dedup key went with the run.
        let delivery = sent(&store, "a", keyed(9, "a", "k"));
        assert!(matches!(delivery, Delivery::Queued { run: None, .. }));
        let new = Owner::start(&store, "a");
        assert_ne!(new.run, old.run);
        if rests & 4 > 0 {
            place.rest(&store);
        }
        for turn in 0..3 {
            assert_eq!(block_on(store.row(old.run)).unwrap(), None, "turn {turn}");
            let found = block_on(store.find(&id("a"))).unwrap().unwrap();
            assert_eq!((found.key, found.inbox_seq), (new.run, 1));
            assert_eq!(loaded(&store, new.run).history.len(), 1);
            let inbox = block_on(store.inbox(new.run, 0, 9)).unwrap();
            assert_eq!(inbox.len(), 1);
            assert_eq!(inbox[0].id, 9);
            let active = block_on(store.active(None, 9)).unwrap();
            assert_eq!(active, [new.run]);
            store = place.crash(&store);
            place.rest(&store);
        }
    }
}

/// Each is judged by itself.
pub fn only_what_has_ended_is_deleted<H: Harness>() {
    let (_place, store) = H::fresh();
    let mut owners: Vec<_> = ["a", "b", "c"]
        .iter()
        .map(|name| Owner::start(&store, name))
        .collect();
    end(&store, &mut owners[0]);
    end(&store, &mut owners[2]);
    let mut deletions: Vec<_> = owners
        .iter()
        .map(|owner| deletion(&store, owner.run))
        .collect();
    deletions[2].expected_seq = 1;
    deletions.push(deletions[0].clone());
    deletions.push(deletion(&store, RunKey(9_999)));
    let answers = block_on(store.delete(deletions)).unwrap();
    assert_eq!(
        answers,
        [
            Deleted::Deleted,
            Deleted::Live,
            Deleted::Changed,
            Deleted::Missing,
            Deleted::Missing
        ]
    );
    let page = block_on(store.list(&RunFilter::default())).unwrap();
    let left: Vec<_> = page.rows.iter().map(|row| row.key).collect();
    assert_eq!(left, [owners[1].run, owners[2].run]);
}

/// UA-59. Its parent may still look back at it. A detached one is nobody's.
pub fn a_child_stays_as_long_as_its_parent<H: Harness>() {
    let (_place, store) = H::fresh();
    let mut parent = Owner::start(&store, "p");
    let children = [("one", false), ("other", true)].map(|(name, detached)| {
        let (mut child, mut create) = Owner::create(&*store, name);
        create.create = Some(NewRun {
            id: id(name),
            workflow: "parcel".to_owned(),
            parent: Some((id("p"), Location::root().site("a"))),
            detached,
            not_before: None,
            priority: 0,
        });
        assert_eq!(done(&store, create), Appended::Applied);
        end(&store, &mut child);
        child.run
    });
    let answers = deleted(&store, &children);
    assert_eq!(answers, [Deleted::Awaited, Deleted::Deleted]);
    end(&store, &mut parent);
    let answers = deleted(&store, &[children[0], parent.run]);
    assert_eq!(answers, [Deleted::Deleted, Deleted::Deleted]);
}

/// The store has exactly the runs that it is to have, with exactly their records, whatever is folded when.
pub fn deletions_are_exact_under_random_operations<H: Harness>() {
    let (mut place, mut store) = H::fresh();
    let mut dice = Dice::new(59);
    let mut runs: BTreeMap<RunKey, (Owner, u64, bool)> = BTreeMap::new();
    for turn in 0..600 {
        let name = dice.below(12).to_string();
        let found = block_on(store.find(&id(&name))).unwrap();
        let known = runs.keys().nth(usize::try_from(dice.below(12)).unwrap());
        match (dice.below(8), known.copied()) {
            (0 | 1, _) if found.is_none() => {
                let owner = Owner::start(&store, &name);
                runs.insert(owner.run, (owner, 1, false));
            }
            (2 | 3, Some(run)) => {
                let (owner, records, ended) = runs.get_mut(&run).unwrap();
                if !*ended {
                    owner.write(&store, vec![step("x")], RunState::Running);
                    *records += 1;
                }
            }
            (4, Some(run)) => {
                let (owner, records, ended) = runs.get_mut(&run).unwrap();
                if !*ended {
                    end(&store, owner);
                    (*records, *ended) = (*records + 1, true);
                }
            }
            (5 | 6, Some(run)) => {
                let answer = deleted(&store, &[run])[0];
                if runs[&run].2 {
                    assert_eq!(answer, Deleted::Deleted);
                    runs.remove(&run);
                } else {
                    assert_eq!(answer, Deleted::Live);
                }
            }
            (7, _) if turn % 5 == 0 => place.rest(&store),
            (7, _) if turn % 7 == 0 => {
                // Their owners go on: an epoch is not bumped before somebody claims.
                block_on(store.close()).unwrap();
                store = place.reopen(store);
                for (owner, ..) in runs.values_mut() {
                    owner.epoch = store.identity().boot;
                    owner.number = 0;
                }
            }
            _ => {}
        }
        let page = block_on(store.list(&RunFilter::default())).unwrap();
        let listed: Vec<_> = page
            .rows
            .iter()
            .map(|row| (row.key, row.last_seq))
            .collect();
        let known: Vec<_> = runs
            .iter()
            .map(|(run, (_, records, _))| (*run, *records))
            .collect();
        assert_eq!(listed, known, "turn {turn}");
        for (run, records) in known {
            assert_eq!(loaded(&store, run).history.len() as u64, records);
            let found = block_on(store.find(&row(&store, run).id)).unwrap();
            assert_eq!(found.map(|row| row.key), Some(run));
        }
    }
}
