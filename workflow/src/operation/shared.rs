//! An operation as everybody who has to do with it shares it: its state behind a lock, and what follows from a change.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use siphasher::sip128::{Hash128, Hasher128, SipHasher24};
use tokio::sync::Notify;

use super::definition::Core;
use super::error::Refused;
use super::failing::{panic_text, text_of};
use super::observe::{Event, ObserverError};
use super::snapshot::{Record, Snapshot, Status, Undo};
use super::state::State;
use crate::clock::Clock;
use crate::replay::{Location, Timestamp};

/// What all handles of an operation share.
pub(super) struct Shared {
    pub(super) core: Arc<Core>,
    pub(super) location: Location,
    pub(super) clock: Arc<dyn Clock>,
    parent: Option<Weak<Shared>>,
    state: Mutex<State>,
    /// Told when there is something to show that is not shown yet.
    pub(super) unshown: Notify,
    /// Told when what it ran has let go.
    pub(super) let_go: Notify,
}

impl Shared {
    pub(super) fn new(core: Arc<Core>) -> Arc<Self> {
        let seed = core.seed;
        let seed = seed.unwrap_or_else(|| RandomState::new().build_hasher().finish());
        Self::at(core, None, seed)
    }

    /// The child of this definition that began as the `ordinal`th of its name.
    pub(super) fn child(self: &Arc<Self>, core: &Core, seed: u64, ordinal: u64) -> Arc<Self> {
        let seed = core
            .seed
            .unwrap_or_else(|| derive_seed(seed, &core.name, ordinal));
        Self::at(Arc::new(core.as_child_of(&self.core)), Some(self), seed)
    }

    fn at(core: Arc<Core>, parent: Option<&Arc<Self>>, seed: u64) -> Arc<Self> {
        let above = parent.map_or_else(Location::root, |parent| parent.location.clone());
        let record = Record {
            name: core.name.clone(),
            title: core.title.clone(),
            description: core.description.clone(),
            metadata: core.metadata.clone(),
            revision: 0,
            status: Status::Idle,
            reason: None,
            progress: None,
            attempt: 0,
            started_at: None,
            completed_at: None,
            retry_at: None,
            result: None,
            failure: None,
            released: None,
            undo: Undo::None,
            seed,
            generation: 0,
            children: Vec::new(),
            earlier: Vec::new(),
            logs: Vec::new(),
            stale: false,
        };
        Arc::new(Self {
            location: above.site(&core.name),
            clock: core.clock(),
            core,
            parent: parent.map(Arc::downgrade),
            state: Mutex::new(State::new(record)),
            unshown: Notify::new(),
            let_go: Notify::new(),
        })
    }

    pub(super) fn name(&self) -> String {
        self.core.name.clone()
    }

    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state, and tells whom it concerns. What the change gives is given back.
    pub(super) fn change<R>(&self, change: impl FnOnce(&mut State) -> R) -> R {
        let mut state = self.lock();
        let (revision, status) = (state.record.revision, state.record.status);
        let result = change(&mut state);
        let shown = state.record.revision != revision;
        let urgent = state.record.status != status;
        let waits = state.show_at().is_some();
        drop(state);
        if waits {
            self.unshown.notify_one();
        }
        self.tell_observers();
        if shown && let Some(parent) = self.parent.as_ref().and_then(Weak::upgrade) {
            parent.child_changed(urgent);
        }
        result
    }

    /// A child shows something new.
    fn child_changed(&self, urgent: bool) {
        self.change(|state| {
            if urgent {
                state.show();
            } else {
                state.touch();
            }
        });
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        self.change(State::snapshot)
    }

    /// Tells the observers what happened, in order, without the lock. One thread at a time; whoever comes meanwhile leaves it
    /// what there is to tell.
    fn tell_observers(&self) {
        loop {
            let (event, observers) = {
                let mut state = self.lock();
                if state.telling {
                    return;
                }
                let Some(event) = state.events.pop_front() else {
                    return;
                };
                state.telling = true;
                (event, state.observers.clone())
            };
            for observer in observers {
                let told = catch_unwind(AssertUnwindSafe(|| observer(&event)));
                let message = match told {
                    Ok(Ok(())) => continue,
                    Ok(Err(error)) => text_of(error),
                    Err(panic) => panic_text(&*panic),
                };
                self.report(event.clone(), message);
            }
            self.lock().telling = false;
        }
    }

    fn report(&self, event: Event, message: String) {
        if let Some(report) = &self.core.report {
            let error = ObserverError { event, message };
            // Who reports failures may fail as well; then nobody is left to be told.
            let _ = catch_unwind(AssertUnwindSafe(|| report(&error)));
        }
    }

    /// Whether a rollback would run anything here or below.
    pub(super) fn owes_undo(&self) -> bool {
        self.lock().owes_undo()
    }

    /// Cancels it, and what it runs. False when there is nothing to cancel.
    pub(super) fn cancel(&self, reason: &str) -> bool {
        let now = self.now();
        let stopped = self.change(|state| {
            if !state.record.status.is_running() && state.record.status != Status::Blocked {
                return None;
            }
            state.fence();
            state.record.failure = None;
            state.record.reason = Some(reason.to_owned());
            state.complete(Status::Cancelled, now);
            let tokens = [Some(state.attempt.clone()), state.flight.clone()];
            Some((tokens, state.children.clone()))
        });
        let Some((tokens, children)) = stopped else {
            return false;
        };
        for child in children {
            child.cancel(reason);
        }
        for token in tokens.into_iter().flatten() {
            token.cancel();
        }
        true
    }

    /// Passes it over.
    pub(super) fn skip(&self, reason: Option<&str>) -> Result<(), Refused> {
        let now = self.now();
        let token = self.change(|state| {
            if state.closed {
                return Err(Refused::Closed { name: self.name() });
            }
            let status = state.record.status;
            if !matches!(status, Status::Idle | Status::Queued) {
                let name = self.name();
                return Err(Refused::NotSkippable { name, status });
            }
            state.record.reason = reason.map(str::to_owned);
            state.complete(Status::Skipped, now);
            Ok(state.flight.clone())
        })?;
        if let Some(token) = token {
            token.cancel();
        }
        Ok(())
    }

    /// Makes it idle again, whatever it did.
    pub(super) fn reset(&self) -> Result<(), Refused> {
        self.change(|state| {
            self.refuse_in_flight(state)?;
            if state.record.status != Status::Idle {
                // Nothing of what it did is to be kept.
                state.record.status = Status::Idle;
                state.start_over();
                state.show();
            }
            Ok(())
        })
    }

    /// Closes it, for good.
    pub(super) fn close(&self) {
        self.cancel("closed");
        let children = self.change(|state| {
            let children = state.children.clone();
            // Shows what was not shown yet, for the last time.
            state.snapshot();
            state.close();
            children
        });
        for child in children {
            child.close();
        }
    }

    pub(super) fn refuse_in_flight(&self, state: &State) -> Result<(), Refused> {
        let (name, status) = (self.name(), state.record.status);
        if state.closed {
            return Err(Refused::Closed { name });
        }
        if status.is_in_flight() {
            return Err(Refused::AlreadyRunning { name, status });
        }
        if state.is_stopping() {
            return Err(Refused::StillStopping { name });
        }
        Ok(())
    }

    /// Resolves when nothing that it ran goes on.
    pub(super) async fn stopped(&self) {
        loop {
            let let_go = self.let_go.notified();
            tokio::pin!(let_go);
            let_go.as_mut().enable();
            let still = {
                let state = self.lock();
                state.flight.is_some() || state.threads > 0
            };
            if !still {
                return;
            }
            let_go.await;
        }
    }

    /// Shows, in time, what changes without a change of status. Never ends.
    pub(super) async fn show_in_time(&self) {
        loop {
            let at = self.lock().show_at();
            match at {
                None => self.unshown.notified().await,
                Some(at) => {
                    tokio::time::sleep_until(at).await;
                    self.change(|state| {
                        if state
                            .show_at()
                            .is_some_and(|due| due <= tokio::time::Instant::now())
                        {
                            state.show();
                        }
                    });
                }
            }
        }
    }
}

/// A number that is the same whenever the seed, the name and the number are.
pub(super) fn derive(seed: u64, name: &str, number: u64) -> u128 {
    hash(seed, name, number).as_u128()
}

/// A seed that is the same whenever the seed it comes from, the name and the number are.
pub(super) fn derive_seed(seed: u64, name: &str, number: u64) -> u64 {
    hash(seed, name, number).h1
}

fn hash(seed: u64, name: &str, number: u64) -> Hash128 {
    let mut hasher = SipHasher24::new_with_keys(seed, number);
    hasher.write(name.as_bytes());
    hasher.finish128()
}
