//! The embedded store: its commits under tokio, and its folds.

#![expect(
    clippy::unwrap_used,
    reason = "what is not as it should be fails the test"
)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use redb::{Database, ReadableTable, TableDefinition};
use workflow::replay::{Body, Location, RunState, Timestamp, Waiting};
use workflow::store::{Appended, RedbStore, RunFilter, Store, StoreError, StoreFile};

use workflow_tests::disk::{Disk, Left};
use workflow_tests::scene::{Owner, append, block_on, create, open, start, step};

mod on_tokio {
    use super::*;

    async fn crowd(store: Arc<RedbStore>, disk: Disk) {
        let syncs = disk.syncs();
        let tasks: Vec<_> = (0..1_000)
            .map(|number| {
                let store = Arc::clone(&store);
                tokio::spawn(async move {
                    let mut owner = start(&store, &format!("run-{number}")).await;
                    for name in ["s", "t", "u"] {
                        assert_eq!(
                            store.append(step(&mut owner, name)).await.unwrap(),
                            Appended::Applied
                        );
                    }
                    assert_eq!(
                        store.load(owner.run).await.unwrap().unwrap().history.len(),
                        4
                    );
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        let syncs = disk.syncs() - syncs;
        assert!(syncs < 1_000, "4,000 appends share commits: {syncs}");
        store.close().await.unwrap();
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_thousand_tasks_share_commits_on_many_threads() {
        let disk = Disk::default();
        crowd(Arc::new(open(&disk).unwrap()), disk).await;
    }

    fn runtime() -> tokio::runtime::Runtime {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder.worker_threads(2).enable_all().build().unwrap()
    }

    /// Tasks that append `steps` times each, and wait for nothing else.
    fn appenders(
        runtime: &tokio::runtime::Runtime,
        store: &Arc<RedbStore>,
        name: &'static str,
        steps: usize,
    ) -> Vec<tokio::task::JoinHandle<()>> {
        let appender = |number: usize| {
            let store = Arc::clone(store);
            runtime.spawn(async move {
                let mut owner = start(&store, &format!("{name}-{number}")).await;
                for step_number in 0..steps {
                    let append = step(&mut owner, &format!("s{step_number}"));
                    assert_eq!(store.append(append).await.unwrap(), Appended::Applied);
                }
            })
        };
        (0..64).map(appender).collect()
    }

    #[test]
    fn a_runtime_that_goes_in_the_middle_of_commits_of_many_strands_nobody_elsewhere() {
        let store = Arc::new(open(&Disk::default()).unwrap());
        let stays = runtime();
        for round in ["a", "b", "c", "d", "e"] {
            let goes = runtime();
            let going = appenders(&goes, &store, round.repeat(2).leak(), 100_000);
            let staying = appenders(&stays, &store, round, 200);
            stays.block_on(async {
                for (number, task) in going.into_iter().enumerate() {
                    if number % 2 == 0 {
                        task.abort();
                    }
                    tokio::task::yield_now().await;
                }
            });
            goes.shutdown_background();
            stays.block_on(async {
                for task in staying {
                    let ended = tokio::time::timeout(Duration::from_secs(55), task);
                    ended.await.expect("nobody is stranded").unwrap();
                }
            });
        }
    }

    #[test]
    fn commits_of_many_do_not_wait_for_the_runtimes_blocking_threads() {
        let store = Arc::new(open(&Disk::default()).unwrap());
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        // One for each worker, and one that something else has.
        let builder = builder
            .worker_threads(2)
            .max_blocking_threads(1)
            .enable_all();
        let runtime = builder.build().unwrap();
        let (free, held) = std::sync::mpsc::channel::<()>();
        let holder = runtime.spawn_blocking(move || held.recv().is_ok());
        let tasks = appenders(&runtime, &store, "run", 50);
        runtime.block_on(async {
            for task in tasks {
                let ended = tokio::time::timeout(Duration::from_secs(55), task);
                ended.await.expect("commits go on").unwrap();
            }
            free.send(()).unwrap();
            assert!(holder.await.unwrap());
        });
    }

    #[tokio::test]
    async fn a_thousand_tasks_share_commits_on_one_thread() {
        let disk = Disk::default();
        crowd(Arc::new(open(&disk).unwrap()), disk).await;
    }

    #[test]
    fn a_local_set_on_a_runtime_of_many_threads_is_served_too() {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .build()
            .unwrap();
        let disk = Disk::default();
        let store = open(&disk).unwrap();
        tokio::task::LocalSet::new().block_on(&runtime, async {
            start(&store, "a").await;
        });
    }

    #[tokio::test]
    async fn a_commit_does_not_hold_up_the_only_thread() {
        let disk = Disk::default();
        let store = open(&disk).unwrap();
        let (_, append) = create(&store, "a");
        assert_eq!(store.append(append).await.unwrap(), Appended::Applied);
        assert_ne!(
            disk.synced_by(),
            Some(std::thread::current().id()),
            "the commit is made elsewhere"
        );
    }

    /// And one write.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_sequential_append_is_one_sync() {
        let disk = Disk::default();
        let store = open(&disk).unwrap();
        let mut owner = start(&store, "a").await;
        let (syncs, done) = (disk.syncs(), disk.done());
        for number in 0..200 {
            store
                .append(step(&mut owner, &format!("s{number}")))
                .await
                .unwrap();
        }
        assert_eq!(disk.syncs() - syncs, 200);
        // The first ones make the file longer, by many small writes.
        let writes = disk.done() - done - 200;
        assert!(writes <= 200 + 10, "{writes} writes for 200 appends");
    }

    // UA-74
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn reads_do_not_wait_for_a_fold() {
        let disk = Disk::default();
        let store = Arc::new(open(&disk).unwrap());
        let mut owners = Vec::new();
        for number in 0..300 {
            owners.push(start(&store, &format!("run-{number}")).await);
        }
        let folding = {
            let store = Arc::clone(&store);
            tokio::task::spawn_blocking(move || store.fold())
        };
        let mut slowest = Duration::ZERO;
        while !folding.is_finished() {
            let begin = Instant::now();
            assert!(store.row(owners[7].run).await.unwrap().is_some());
            slowest = slowest.max(begin.elapsed());
        }
        folding.await.unwrap().unwrap();
        assert!(slowest < Duration::from_millis(500), "{slowest:?}");
    }
}

mod folds {
    use super::*;

    fn table_len(disk: &Disk, name: &str) -> u64 {
        use redb::{ReadableDatabase, ReadableTableMetadata};
        let copy = disk.after_power_cut(Left::All);
        let database = Database::builder()
            .create_with_backend(copy.backend(StoreFile::Tables))
            .unwrap();
        let txn = database.begin_read().unwrap();
        txn.open_table(TableDefinition::<u64, &[u8]>::new(name))
            .unwrap()
            .len()
            .unwrap()
    }

    #[test]
    fn a_fold_and_closing_move_everything_into_the_tables() {
        let disk = Disk::default();
        let store = open(&disk).unwrap();
        for number in 0..10 {
            block_on(start(&store, &format!("run-{number}")));
        }
        let runs = || table_len(&disk, "workflow.runs");
        assert_eq!(runs(), 0);
        store.fold().unwrap();
        assert_eq!(runs(), 10);
        block_on(start(&store, "late"));
        assert_eq!(runs(), 10);
        block_on(store.close()).unwrap();
        assert_eq!(runs(), 11);
        assert!(
            disk.bytes(StoreFile::Log).is_empty(),
            "nothing is left there"
        );
    }

    #[test]
    fn a_long_tail_is_folded_while_steps_go_on() {
        let disk = Disk::default();
        let store = RedbStore::builder().fold_threshold(50).open_backend({
            let disk = disk.clone();
            move |file| Ok(disk.backend(file))
        });
        let store = store.unwrap();
        let mut owner = block_on(start(&store, "a"));
        let mut folded = false;
        for number in 0..20_000 {
            block_on(store.append(step(&mut owner, &format!("s{number}")))).unwrap();
            if number % 500 == 499 && table_len(&disk, "workflow.runs") == 1 {
                folded = true;
                break;
            }
        }
        assert!(folded, "the keeper does its work");
        let history = block_on(store.load(owner.run)).unwrap().unwrap().history;
        assert!(history.iter().map(|record| record.seq).eq(1..=owner.seq));
    }

    /// A run that wakes now and then stays in few chunks.
    #[test]
    fn small_chunks_grow_instead_of_becoming_many() {
        let disk = Disk::default();
        let store = open(&disk).unwrap();
        let mut owner = block_on(start(&store, "a"));
        for number in 0..30 {
            let wait = Body::Waiting(Waiting::Sleep {
                until: Timestamp::from_millis(number),
            });
            block_on(store.append(append(&mut owner, wait, "window"))).unwrap();
            store.fold().unwrap();
        }
        drop(store);
        let database = Database::builder()
            .create_with_backend(disk.backend(StoreFile::Tables))
            .unwrap();
        let txn = redb::ReadableDatabase::begin_read(&database).unwrap();
        let chunks = txn
            .open_table(TableDefinition::<(u64, u64), &[u8]>::new(
                "workflow.records",
            ))
            .unwrap();
        assert_eq!(redb::ReadableTableMetadata::len(&chunks).unwrap(), 1);
    }

    /// What one program does not know, another wrote: it stays, and only that run is not to be loaded.
    #[test]
    fn a_record_of_a_newer_program_is_kept_and_told_of() {
        let disk = Disk::default();
        let store = open(&disk).unwrap();
        let owner = block_on(start(&store, "newer"));
        let other = block_on(start(&store, "other"));
        drop(store);
        {
            let database = Database::builder()
                .create_with_backend(disk.backend(StoreFile::Tables))
                .unwrap();
            let txn = database.begin_write().unwrap();
            {
                let name = TableDefinition::<(u64, u64), &[u8]>::new("workflow.records");
                let mut chunks = txn.open_table(name).unwrap();
                let mut chunk = chunks
                    .get((owner.run.0, 1))
                    .unwrap()
                    .unwrap()
                    .value()
                    .to_vec();
                // Behind the length: the version of the first record.
                chunk[1] = 77;
                let end = chunk.len() - 4;
                let sum = crc32(&chunk[1..end]);
                chunk[end..].copy_from_slice(&sum.to_le_bytes());
                chunks.insert((owner.run.0, 1), &chunk[..]).unwrap();
            }
            txn.commit().unwrap();
        }
        let store = open(&disk).unwrap();
        let error = block_on(store.load(owner.run)).unwrap_err();
        assert!(
            matches!(error, StoreError::Newer { what: "record", .. }),
            "{error}"
        );
        assert!(block_on(store.load(other.run)).unwrap().is_some());
        // It can be parked, and pruned around, and the bytes stay.
        let mut claimed = Owner {
            epoch: store.identity().boot,
            number: 0,
            ..owner
        };
        let mut park = step(&mut claimed, "parked");
        park.deletes = vec![Location::root()];
        park.patch.state = Some(RunState::Parked);
        assert_eq!(block_on(store.append(park)).unwrap(), Appended::Applied);
        store.fold().unwrap();
        assert!(matches!(
            block_on(store.load(owner.run)),
            Err(StoreError::Newer { .. })
        ));
        let filter = RunFilter {
            states: vec![RunState::Parked],
            ..RunFilter::default()
        };
        assert_eq!(block_on(store.list(&filter)).unwrap().rows.len(), 1);
    }

    fn crc32(bytes: &[u8]) -> u32 {
        !bytes.iter().fold(u32::MAX, |sum, byte| {
            (0..8).fold(sum ^ u32::from(*byte), |sum, _| {
                sum >> 1 ^ (0xedb8_8320 & (sum & 1).wrapping_neg())
            })
        })
    }

    /// Whoever commits folds, too, when the keeper does not keep up: the tail is bounded.
    #[test]
    fn the_tail_does_not_grow_without_bounds() {
        let disk = Disk::default();
        let store = RedbStore::builder().fold_threshold(5).open_backend({
            let disk = disk.clone();
            move |file| Ok(disk.backend(file))
        });
        let store = store.unwrap();
        for number in 0..200_u64 {
            block_on(start(&store, &format!("run-{number}")));
            if number % 10 == 9 {
                assert!(table_len(&disk, "workflow.runs") + 21 > number);
            }
        }
    }
}

mod strays {
    use super::*;
    use workflow::RunId;
    use workflow::replay::{NewMessage, Payload};
    use workflow::store::Delivery;

    fn keep(store: &RedbStore, to: &str, id: u128, at: i64, until: i64) {
        let message = NewMessage {
            id,
            channel: "c".to_owned(),
            dedup: None,
            reply_to: None,
            payload: Payload::json("1"),
        };
        let to = RunId::new(to).unwrap();
        let (at, until) = (Timestamp::from_millis(at), Timestamp::from_millis(until));
        let kept = block_on(store.deliver(&to, message, at, until)).unwrap();
        assert!(
            matches!(kept, Delivery::Queued { run: None, .. }),
            "{kept:?}"
        );
    }

    /// The next message for an id gets the number of one that lapsed; what is known of that must not end it, whatever of it
    /// is folded already.
    #[test]
    fn a_kept_message_that_takes_the_place_of_a_lapsed_one_is_kept_until_its_own_time() {
        for folds in 0..16 {
            let store = open(&Disk::default()).unwrap();
            let fold = |point: u32| {
                if folds & (1 << point) != 0 {
                    store.fold().unwrap();
                }
            };
            keep(&store, "a", 1, 0, 10);
            fold(0);
            keep(&store, "b", 2, 20, 1_000);
            fold(1);
            keep(&store, "a", 3, 21, 1_000);
            fold(2);
            keep(&store, "c", 4, 22, 1_000);
            fold(3);
            keep(&store, "c", 5, 23, 1_000);
            let owner = block_on(start(&store, "a"));
            let inbox = block_on(store.inbox(owner.run, 0, 10)).unwrap();
            let ids: Vec<_> = inbox.iter().map(|message| message.id).collect();
            assert_eq!(ids, [3], "folds {folds:b}");
        }
    }
}
