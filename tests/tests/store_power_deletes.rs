//! What becomes of runs that are deleted when the power or the disk fails.

#![expect(
    clippy::unwrap_used,
    reason = "what is not as it should be fails the test"
)]

use workflow::replay::{Body, Finished, NewMessage, Payload, RunKey};
use workflow::store::{Answer, Deleted, Deletion, Post, RedbStore, RunFilter, Store};
use workflow::{RunId, RunState, Timestamp};

use workflow_tests::disk::{Disk, Fault, Left};
use workflow_tests::scene::{append, block_on, create, open, step};

const TURNS: u32 = 3;

fn id(text: &str) -> RunId {
    RunId::new(text).unwrap()
}

fn message(number: u128) -> NewMessage {
    NewMessage {
        id: number,
        channel: "c".to_owned(),
        dedup: Some("key".to_owned()),
        reply_to: None,
        payload: Payload::json("1"),
    }
}

/// How far the workload came for sure: for each turn, its run, whether it ended, was deleted, and its id was begun anew.
#[derive(Debug, Default)]
struct Sure(Vec<(RunKey, u8)>);

/// In each turn a run begins, gets a message, answers, ends, is deleted, and begins anew.
fn workload(store: &RedbStore) -> Sure {
    let mut sure = Sure::default();
    for turn in 0..TURNS {
        let name = format!("run-{turn}");
        let (mut owner, begin) = create(store, &name);
        sure.0.push((owner.run, 0));
        let came = |sure: &mut Sure| sure.0.last_mut().unwrap().1 += 1;
        if block_on(store.append(begin)).is_err() {
            return sure;
        }
        let (at, never) = (Timestamp::from_millis(1), Timestamp::MAX);
        let to = id(&name);
        if block_on(store.deliver(&to, message(turn.into()), at, never)).is_err() {
            return sure;
        }
        let mut answers = step(&mut owner, "reply");
        answers.posts = vec![Post::Answer {
            request: turn.into(),
            answer: Answer::NoReply,
        }];
        if block_on(store.append(answers)).is_err() {
            return sure;
        }
        let value = Finished::Completed(Payload::json("1"));
        let mut end = append(&mut owner, Body::Finished(value), "end");
        end.patch.state = Some(RunState::Completed);
        if block_on(store.append(end)).is_err() {
            return sure;
        }
        came(&mut sure);
        if turn == 1 && store.fold().is_err() {
            return sure;
        }
        let deletion = Deletion {
            run: owner.run,
            expected_seq: 3,
            requests: vec![turn.into()],
        };
        match block_on(store.delete(vec![deletion])) {
            Ok(deleted) => assert_eq!(deleted, [Deleted::Deleted]),
            Err(_) => return sure,
        }
        came(&mut sure);
        let (_, anew) = create(store, &name);
        if block_on(store.append(anew)).is_err() {
            return sure;
        }
        came(&mut sure);
        if turn == 2 && store.fold().is_err() {
            return sure;
        }
    }
    sure
}

/// A run is there with everything or gone with everything, and what was acknowledged is so, folded or not.
fn check(disk: &Disk, sure: &Sure, when: &str) {
    let store = open(disk).unwrap_or_else(|error| panic!("{when}: {error}"));
    for folded in [false, true] {
        if folded {
            store.fold().unwrap();
        }
        for (turn, (run, came)) in (0u128..).zip(&sure.0) {
            let row = block_on(store.row(*run)).unwrap();
            let history = block_on(store.load(*run)).unwrap();
            let inbox = block_on(store.inbox(*run, 0, 9)).unwrap();
            let answer = block_on(store.answer(turn)).unwrap();
            let found = block_on(store.find(&id(&format!("run-{turn}")))).unwrap();
            assert_eq!(row.is_some(), history.is_some(), "{when}");
            if *came >= 1 && *came < 2 {
                // It may be deleted without that being known.
                assert!(row.is_some() || answer.is_none(), "{when}");
            }
            if *came >= 2 {
                assert!(row.is_none(), "{when}: a deleted run is back");
            }
            if let Some(row) = row {
                assert_eq!(found.as_ref().map(|row| row.key), Some(*run), "{when}");
                assert_eq!(inbox.len() as u64, row.inbox_seq, "{when}");
                assert_eq!(answer.is_some(), row.last_seq >= 2, "{when}");
                assert!(*came == 0 || row.state == RunState::Completed, "{when}");
            } else {
                assert_eq!((inbox.len(), answer), (0, None), "{when}");
                assert!(found.as_ref().is_none_or(|row| row.key != *run), "{when}");
                assert!(found.is_some() || *came < 3, "{when}");
            }
        }
        let page = block_on(store.list(&RunFilter::default())).unwrap();
        let mut ids: Vec<_> = page.rows.iter().map(|row| row.id.clone()).collect();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), page.rows.len(), "{when}: an id is there twice");
    }
}

// UA-59
#[test]
fn a_power_cut_at_every_operation_leaves_a_run_whole_or_takes_all_of_it() {
    let disk = Disk::default();
    let store = open(&disk).unwrap();
    let before = disk.done();
    let sure = workload(&store);
    assert!(sure.0.iter().all(|(_, came)| *came == 3), "{sure:?}");
    let operations = disk.done() - before;
    drop(store);
    assert!(operations > 30, "the workload writes: {operations}");
    for cut in 0..operations {
        let disk = Disk::default();
        let store = open(&disk).unwrap();
        disk.fault(cut, Fault::PowerCut);
        let sure = workload(&store);
        for left in [Left::Nothing, Left::All, Left::Some(7 * cut + 3)] {
            let when = format!("cut at {cut}, {left:?}");
            check(&disk.after_power_cut(left), &sure, &when);
        }
    }
}

#[test]
fn a_write_that_fails_once_leaves_deletions_whole() {
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
