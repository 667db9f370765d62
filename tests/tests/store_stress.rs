//! Many threads commit, read and fold at once on a disk that fails now and then, and whose power may go at any moment.
//!
//! `STRESS=60` makes it last that many seconds.

#![expect(
    clippy::unwrap_used,
    reason = "what is not as it should be fails the test"
)]

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use workflow::replay::{Payload, RunKey, Timestamp};
use workflow::store::{Appended, Post, RedbStore, RunFilter, Store};

use workflow_tests::disk::{Disk, Fault, Left};
use workflow_tests::scene::{Owner, block_on, open, start, step};

/// A run, and what its owner knows of it.
struct Run {
    key: RunKey,
    id: String,
    issued: AtomicU64,
    acknowledged: AtomicU64,
}

impl Run {
    /// Appends until it is to stop. What failed is tried again, as an engine does.
    fn drive(&self, store: &RedbStore, mut owner: Owner, stop: &AtomicBool) {
        let name = format!("v-{}", self.id);
        while !stop.load(Ordering::Relaxed) {
            let mut append = step(&mut owner, "s");
            self.issued.store(owner.seq, Ordering::SeqCst);
            if owner.seq.is_multiple_of(3) {
                let value = Payload::json(owner.seq.to_string());
                append.posts = vec![Post::Values(vec![(name.clone(), Some(value))])];
            }
            append.patch.wake_at = Some(Some(Timestamp::from_millis(5)));
            loop {
                match block_on(store.append(append.clone())) {
                    Ok(appended) => break assert_eq!(appended, Appended::Applied),
                    Err(error) => assert!(error.is_retryable(), "{error}"),
                }
            }
            self.acknowledged.store(owner.seq, Ordering::SeqCst);
            if owner.seq.is_multiple_of(3) {
                let value = wait_for(|| block_on(store.value(&name))).unwrap();
                assert_eq!(value, Payload::json(owner.seq.to_string()));
            }
        }
    }

    /// What a reader finds is of one instant, and nothing acknowledged is missing.
    fn look(&self, store: &RedbStore) {
        let known = self.acknowledged.load(Ordering::SeqCst);
        let loaded = wait_for(|| block_on(store.load(self.key))).unwrap();
        let issued = self.issued.load(Ordering::SeqCst);
        let (row, history) = (loaded.row, loaded.history);
        assert!((known..=issued).contains(&row.last_seq), "{}", self.id);
        let seqs = history.iter().map(|record| record.seq);
        assert!(seqs.eq(1..=row.last_seq), "{}", self.id);
        let id = workflow::RunId::new(&self.id).unwrap();
        let found = wait_for(|| block_on(store.find(&id))).unwrap();
        assert!(found.last_seq >= row.last_seq);
    }
}

/// A disk that hiccups fails a read, too, when the tables cannot be opened again at once.
fn wait_for<T>(mut ask: impl FnMut() -> Result<T, workflow::store::StoreError>) -> T {
    loop {
        match ask() {
            Ok(answer) => return answer,
            Err(error) => assert!(error.is_retryable(), "{error}"),
        }
    }
}

/// Stops all, also when this fails.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn stress(open_at: impl Fn(&Disk) -> RedbStore, strict: bool, time: Duration) {
    let disk = Disk::default();
    let store = open_at(&disk);
    let owners: Vec<_> = (0..6)
        .map(|number| {
            let id = format!("run-{number}");
            let owner = block_on(start(&store, &id));
            let run = Run {
                key: owner.run,
                id,
                issued: AtomicU64::new(1),
                acknowledged: AtomicU64::new(1),
            };
            (run, owner)
        })
        .collect();
    let stop = AtomicBool::new(false);
    let (runs, owners): (Vec<_>, Vec<_>) = owners.into_iter().unzip();
    thread::scope(|scope| {
        let (runs, store, stop, disk) = (&runs, &store, &stop, &disk);
        for (run, owner) in runs.iter().zip(owners) {
            scope.spawn(move || run.drive(store, owner, stop));
        }
        scope.spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                for run in runs {
                    run.look(store);
                }
                let until = Timestamp::from_millis(9);
                let due = wait_for(|| block_on(store.due(None, until, 100)));
                assert!(due.len() <= runs.len());
                let active = wait_for(|| block_on(store.active(None, 100)));
                assert_eq!(active.len(), runs.len());
                let filter = RunFilter {
                    limit: 100,
                    ..RunFilter::default()
                };
                let page = wait_for(|| block_on(store.list(&filter)));
                assert_eq!(page.rows.len(), runs.len());
            }
        });
        scope.spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                drop(store.fold());
                thread::yield_now();
            }
        });
        let _stop = Stop(stop);
        let begun = Instant::now();
        let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
        while begun.elapsed() < time {
            seed = seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            let fault = [Fault::Hiccup, Fault::Lie][usize::from(seed >> 63 == 0)];
            disk.fault(seed >> 32 & 31, fault);
            let known: Vec<_> = runs
                .iter()
                .map(|run| run.acknowledged.load(Ordering::SeqCst))
                .collect();
            let cut = disk.after_power_cut(Left::Some(seed));
            let issued = runs.iter().map(|run| run.issued.load(Ordering::SeqCst));
            let issued: Vec<_> = issued.collect();
            let again = open(&cut).unwrap();
            for ((run, known), issued) in runs.iter().zip(known).zip(issued) {
                let loaded = block_on(again.load(run.key)).unwrap();
                let history = loaded.map_or(Vec::new(), |loaded| loaded.history);
                let last = history.len() as u64;
                assert!(last <= issued && (last >= known || !strict), "{}", run.id);
                assert!(history.iter().map(|record| record.seq).eq(1..=last));
            }
        }
    });
    disk.fault(u64::from(u32::MAX), Fault::PowerCut);
    block_on(store.close()).unwrap();
    let again = open(&disk.after_power_cut(Left::Nothing)).unwrap();
    for run in &runs {
        let row = block_on(again.row(run.key)).unwrap().unwrap();
        assert_eq!(row.last_seq, run.acknowledged.load(Ordering::SeqCst));
        assert!(row.last_seq > 3, "{} did not get on", run.id);
        run.look(&again);
    }
}

fn time() -> Duration {
    let seconds = std::env::var("STRESS").ok();
    let seconds = seconds.and_then(|seconds| seconds.parse().ok());
    seconds.map_or(Duration::from_millis(1_500), Duration::from_secs)
}

#[test]
fn nothing_is_lost_or_made_up_among_many_threads_on_a_failing_disk() {
    stress(|disk| open(disk).unwrap(), true, time());
}

#[test]
fn a_relaxed_store_loses_an_end_and_nothing_else_there() {
    let relaxed = |disk: &Disk| {
        let disk = disk.clone();
        let builder = RedbStore::builder().relaxed(Duration::from_millis(2));
        let opened = builder.open_backend(move |file| Ok(disk.backend(file)));
        opened.unwrap()
    };
    stress(relaxed, false, time());
}
