//! What becomes of a store when the power or the disk fails.

#![expect(
    clippy::unwrap_used,
    reason = "what is not as it should be fails the test"
)]

use std::sync::Arc;

use workflow::store::{Appended, RedbStore, Store, StoreError};
use workflow::{Location, RunId, Timestamp};

use workflow_tests::disk::{Disk, Fault, Left};
use workflow_tests::scene::{block_on, create, open, start, step};

mod power {
    use super::*;

    /// A small workload with folds in it. Gives the owners as far as they were acknowledged.
    fn workload(store: &RedbStore) -> Vec<(String, u64, u64)> {
        let mut acknowledged = Vec::new();
        let mut owners = Vec::new();
        for number in 0..3 {
            let id = format!("run-{number}");
            let (owner, append) = create(store, &id);
            if block_on(store.append(append)).is_err() {
                return acknowledged;
            }
            acknowledged.push((id, 1, 1));
            owners.push(owner);
        }
        for turn in 0..8 {
            let pick = turn % 3;
            let mut append = step(&mut owners[pick], &format!("s{turn}"));
            append.deletes = vec![Location::root().site(&format!("s{}", turn.wrapping_sub(6)))];
            append.patch.wake_at = Some(Some(Timestamp::from_millis(i64::try_from(turn).unwrap())));
            if block_on(store.append(append)).is_err() {
                acknowledged[pick].2 += 1;
                return acknowledged;
            }
            acknowledged[pick].1 += 1;
            acknowledged[pick].2 += 1;
            if turn % 3 == 2 && store.fold().is_err() {
                return acknowledged;
            }
        }
        acknowledged
    }

    fn check(disk: &Disk, acknowledged: &[(String, u64, u64)], when: &str) {
        let store = open(disk).unwrap_or_else(|error| panic!("{when}: {error}"));
        for (id, sure, possible) in acknowledged {
            let row = block_on(store.find(&RunId::new(id).unwrap())).unwrap();
            let row = row.unwrap_or_else(|| panic!("{when}: {id} is lost"));
            assert!(
                (*sure..=*possible).contains(&row.last_seq),
                "{when}: {id} is at {}, not {sure}",
                row.last_seq
            );
            let history = block_on(store.load(row.key)).unwrap().unwrap().history;
            assert_eq!(
                history.last().map(|record| record.seq),
                Some(row.last_seq),
                "{when}: {id}"
            );
            let due = block_on(store.due(None, Timestamp::MAX, 9)).unwrap();
            let due: Vec<_> = due.into_iter().map(|(_, run)| run).collect();
            assert_eq!(
                due.contains(&row.key),
                row.wake_at.is_some(),
                "{when}: {id}"
            );
            assert_eq!(
                due.iter().filter(|run| **run == row.key).count(),
                usize::from(row.wake_at.is_some())
            );
        }
        block_on(start(&store, "after"));
    }

    // UA-75
    #[test]
    fn a_power_cut_at_every_operation_loses_nothing_that_was_acknowledged() {
        let disk = Disk::default();
        let store = open(&disk).unwrap();
        let before = disk.done();
        let acknowledged = workload(&store);
        assert_eq!(
            acknowledged.iter().map(|(_, sure, _)| sure).sum::<u64>(),
            11
        );
        let operations = disk.done() - before;
        drop(store);
        assert!(operations > 60, "the workload writes: {operations}");

        for cut in 0..operations {
            let disk = Disk::default();
            let store = open(&disk).unwrap();
            disk.fault(cut, Fault::PowerCut);
            let acknowledged = workload(&store);
            // Before the store is dropped: closing must not help.
            for left in [
                Left::Nothing,
                Left::All,
                Left::Some(cut + 1),
                Left::Some(7 * cut + 3),
            ] {
                check(
                    &disk.after_power_cut(left),
                    &acknowledged,
                    &format!("cut at {cut}, {left:?}"),
                );
            }
        }
    }

    #[test]
    fn a_power_cut_while_closing_loses_nothing() {
        for cut in 0..40 {
            let disk = Disk::default();
            let store = open(&disk).unwrap();
            let acknowledged = workload(&store);
            disk.fault(cut, Fault::PowerCut);
            let _ = block_on(store.close());
            for left in [Left::Nothing, Left::Some(cut + 1)] {
                check(
                    &disk.after_power_cut(left),
                    &acknowledged,
                    &format!("cut at {cut}, {left:?}"),
                );
            }
        }
    }

    #[test]
    fn a_power_cut_while_opening_after_a_crash_loses_nothing() {
        let disk = Disk::default();
        let store = open(&disk).unwrap();
        let acknowledged = workload(&store);
        let crashed = disk.after_power_cut(Left::Nothing);
        for cut in 0..40 {
            let disk = crashed.after_power_cut(Left::Nothing);
            disk.fault(cut, Fault::PowerCut);
            drop(open(&disk));
            check(
                &disk.after_power_cut(Left::Some(cut + 1)),
                &acknowledged,
                &format!("cut at {cut}"),
            );
        }
    }
}

mod failing_disks {
    use super::*;

    // U26
    #[test]
    fn a_write_that_fails_once_is_not_seen_by_anyone() {
        for fault in [Fault::Hiccup, Fault::Lie] {
            for after in 0..6 {
                let disk = Disk::default();
                let store = open(&disk).unwrap();
                let mut owner = block_on(start(&store, "a"));
                disk.fault(after, fault);
                for name in ["s", "t", "u"] {
                    let answer = block_on(store.append(step(&mut owner, name))).unwrap();
                    assert_eq!(answer, Appended::Applied, "{fault:?} after {after}");
                }
                let loaded = block_on(store.load(owner.run)).unwrap().unwrap();
                assert!(
                    loaded.history.iter().map(|record| record.seq).eq(1..=4),
                    "{fault:?} after {after}"
                );
                assert_eq!(disk.failed(), 1, "{fault:?} after {after}");
                assert_eq!(
                    block_on(store.cancel(owner.run, Timestamp::from_millis(1))).unwrap(),
                    Appended::Applied
                );
            }
        }
    }

    #[test]
    fn a_disk_that_keeps_failing_is_a_retryable_error_and_the_retry_is_exact() {
        let disk = Disk::default();
        let store = open(&disk).unwrap();
        let mut owner = block_on(start(&store, "a"));
        disk.fault(0, Fault::PowerCut);
        let append = step(&mut owner, "s");
        for _ in 0..2 {
            let error = block_on(store.append(append.clone())).unwrap_err();
            assert!(
                matches!(error, StoreError::Io { .. }) && error.is_retryable(),
                "{error}"
            );
        }
        disk.fault(u64::from(u32::MAX), Fault::PowerCut);
        let answer = block_on(store.append(append)).unwrap();
        assert!(matches!(
            answer,
            Appended::Applied | Appended::AlreadyApplied
        ));
        assert_eq!(
            block_on(store.load(owner.run))
                .unwrap()
                .unwrap()
                .history
                .len(),
            2
        );
    }

    // UA-39
    #[test]
    fn a_panic_in_a_commit_is_an_error_for_all_who_wait_and_for_all_who_come() {
        let disk = Disk::default();
        let store = Arc::new(open(&disk).unwrap());
        let mut owners: Vec<_> = (0..8)
            .map(|number| block_on(start(&store, &format!("run-{number}"))))
            .collect();
        disk.fault(3, Fault::Panic);
        let threads: Vec<_> = owners
            .iter_mut()
            .map(|owner| {
                let (store, append) = (Arc::clone(&store), step(owner, "s"));
                std::thread::spawn(move || block_on(store.append(append)))
            })
            .collect();
        let answers: Vec<_> = threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect();
        assert!(answers.iter().any(Result::is_err));
        for (answer, owner) in answers.iter().zip(&owners) {
            let there = block_on(store.row(owner.run)).unwrap().unwrap().last_seq;
            assert_eq!(
                answer.is_ok(),
                there == 2,
                "an answer that is not true: {answer:?}"
            );
        }
        let late = block_on(store.append(step(&mut owners[0], "t"))).unwrap_err();
        assert!(
            matches!(
                late,
                StoreError::Io {
                    retryable: false,
                    ..
                }
            ),
            "{late}"
        );
        drop(store);
        assert!(open(&disk).is_ok());
    }
}
