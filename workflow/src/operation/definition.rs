//! What an operation is to do, and by which rules.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::observe::ObserverError;
use super::work::{UndoWork, Work};
use super::{Attempt, Operation};
use crate::clock::{Clock, SystemClock};
use crate::codec::BoxError;
use crate::replay::Backoff;

/// What an operation is to do, and by which rules: made by [`Operation::define`]. Cheap to clone; each
/// [`build`](Self::build) makes an operation of its own.
pub struct Definition<T> {
    pub(super) core: Arc<Core>,
    result: PhantomData<fn() -> T>,
}

/// A definition without its type.
#[derive(Clone)]
pub(super) struct Core {
    pub(super) name: String,
    pub(super) title: Option<String>,
    pub(super) description: Option<String>,
    pub(super) metadata: BTreeMap<String, String>,
    pub(super) retries: u32,
    pub(super) backoff: Backoff,
    pub(super) retry_if: Option<RetryIf>,
    pub(super) timeout: Option<Duration>,
    pub(super) grace: Option<Duration>,
    pub(super) seed: Option<u64>,
    pub(super) max_logs: Option<usize>,
    pub(super) clock: Option<Arc<dyn Clock>>,
    pub(super) report: Option<Report>,
    pub(super) work: Work,
    pub(super) undo: Option<UndoWork>,
    pub(super) known: Vec<Arc<Core>>,
    /// Whether a recorded result is one of the definition's type.
    pub(super) fits: fn(&str) -> Result<(), String>,
}

/// Whether a failed attempt is followed by another.
pub(super) type RetryIf = Arc<dyn Fn(&(dyn Error + 'static)) -> bool + Send + Sync>;

/// Who is told of observers that fail.
pub(super) type Report = Arc<dyn Fn(&ObserverError) + Send + Sync>;

impl<T: Serialize + DeserializeOwned + Send + 'static> Definition<T> {
    pub(super) fn new(name: String, work: Work) -> Self {
        let core = Core::new(name, work, |json| {
            let fits = serde_json::from_str::<T>(json);
            fits.map(drop).map_err(|error| error.to_string())
        });
        Self {
            core: Arc::new(core),
            result: PhantomData,
        }
    }

    /// What a person is shown as its name.
    #[must_use]
    pub fn title(self, title: impl Into<String>) -> Self {
        let title = title.into();
        self.with(|core| core.title = Some(title))
    }

    /// What it does, in a sentence.
    #[must_use]
    pub fn description(self, description: impl Into<String>) -> Self {
        let description = description.into();
        self.with(|core| core.description = Some(description))
    }

    /// Whatever else is to be known of it; it stands in every snapshot.
    #[must_use]
    pub fn metadata(self, key: impl Into<String>, value: impl Into<String>) -> Self {
        let (key, value) = (key.into(), value.into());
        self.with(|core| {
            core.metadata.insert(key, value);
        })
    }

    /// How many attempts may follow the first. The default is 0.
    #[must_use]
    pub fn retries(self, retries: u32) -> Self {
        self.with(|core| core.retries = retries)
    }

    /// How long to wait between attempts. The default is [`Backoff::DEFAULT`]; a wait of zero is none.
    #[must_use]
    pub fn backoff(self, backoff: Backoff) -> Self {
        self.with(|core| core.backoff = backoff)
    }

    /// Which errors another attempt may mend, beside that those marked [`critical`](crate::critical) are never retried; the default
    /// is all.
    ///
    /// A critical error is found wherever it stands in the chain of sources, but for one place: an `anyhow::Error` that was made of
    /// it directly hides it when it is boxed. Give it a context, or return the error itself.
    #[must_use]
    pub fn retry_if(
        self,
        retry_if: impl Fn(&(dyn Error + 'static)) -> bool + Send + Sync + 'static,
    ) -> Self {
        let retry_if: RetryIf = Arc::new(retry_if);
        self.with(|core| core.retry_if = Some(retry_if))
    }

    /// How long an attempt may take; the default is as long as it likes. An attempt that takes longer has failed, and is
    /// retried like any other, unless its work still goes on (see [`grace`](Self::grace)).
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        self.with(|core| core.timeout = Some(timeout))
    }

    /// How long an attempt that has timed out is given to end by itself, once its [`Attempt::cancellation`] says so.
    ///
    /// Async work is dropped after that; the default is zero. A thread cannot be stopped: when
    /// [blocking](Operation::define_blocking) work goes on for longer, the operation fails without another attempt, so that
    /// no two ever run at once; the default is a second.
    #[must_use]
    pub fn grace(self, grace: Duration) -> Self {
        self.with(|core| core.grace = Some(grace))
    }

    /// What the jitter of its waits and its idempotency keys are derived from: the same seed gives the same ones. The default
    /// is another one for every operation; it is part of the record. Within a `#[step]`, derive it from the step's own key.
    #[must_use]
    pub fn seed(self, seed: u64) -> Self {
        self.with(|core| core.seed = Some(seed))
    }

    /// How many lines of its log are kept, the last ones; 0 keeps none. The default is the parent's, or 1000.
    #[must_use]
    pub fn max_logs(self, max_logs: usize) -> Self {
        self.with(|core| core.max_logs = Some(max_logs))
    }

    /// The clock that its times are taken from. The default is the parent's, or the computer's.
    #[must_use]
    pub fn clock(self, clock: impl Clock) -> Self {
        let clock: Arc<dyn Clock> = Arc::new(clock);
        self.with(|core| core.clock = Some(clock))
    }

    /// Is told of observers that fail or panic. The default is the parent's, or nobody.
    #[must_use]
    pub fn on_observer_error(
        self,
        report: impl Fn(&ObserverError) + Send + Sync + 'static,
    ) -> Self {
        let report: Report = Arc::new(report);
        self.with(|core| core.report = Some(report))
    }

    /// How what it did is undone: run by [`Operation::rollback`], after the undos of its children. It is given the result, or
    /// nothing when the work began but did not succeed: then it may have done all, a part or nothing.
    ///
    /// An undo that fails is run again by the next rollback, so it has to stand being run twice.
    #[must_use]
    pub fn undo<F, E>(self, undo: impl Fn(Option<T>, Attempt) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<BoxError> + 'static,
    {
        let undo = UndoWork::new(undo);
        self.with(|core| core.undo = Some(undo))
    }

    /// Names a child that its work may run, so that the child's undo is known also after this operation was
    /// [restored](Operation::restore) from its record.
    #[must_use]
    pub fn knows<U>(self, child: &Definition<U>) -> Self {
        let child = Arc::clone(&child.core);
        self.with(|core| core.known.push(child))
    }

    /// An operation of this definition, idle.
    pub fn build(&self) -> Operation<T> {
        Operation::new(Arc::clone(&self.core))
    }

    fn with(mut self, change: impl FnOnce(&mut Core)) -> Self {
        change(Arc::make_mut(&mut self.core));
        self
    }
}

impl Core {
    pub(super) fn new(name: String, work: Work, fits: fn(&str) -> Result<(), String>) -> Self {
        Self {
            name,
            title: None,
            description: None,
            metadata: BTreeMap::new(),
            retries: 0,
            backoff: Backoff::DEFAULT,
            retry_if: None,
            timeout: None,
            grace: None,
            seed: None,
            max_logs: None,
            clock: None,
            report: None,
            work,
            undo: None,
            known: Vec::new(),
            fits,
        }
    }

    /// The same definition as that of a child: what it does not say itself is as its parent has it.
    pub(super) fn as_child_of(&self, parent: &Self) -> Self {
        let mut core = self.clone();
        core.max_logs = core.max_logs.or(parent.max_logs);
        core.clock = core.clock.or_else(|| parent.clock.clone());
        core.report = core.report.or_else(|| parent.report.clone());
        core
    }

    pub(super) fn clock(&self) -> Arc<dyn Clock> {
        let clock = self.clock.clone();
        clock.unwrap_or_else(|| Arc::new(SystemClock))
    }

    pub(super) fn max_logs(&self) -> usize {
        self.max_logs.unwrap_or(1000)
    }

    pub(super) fn grace(&self) -> Duration {
        self.grace.unwrap_or(match self.work {
            Work::Async(_) => Duration::ZERO,
            Work::Blocking(_) => Duration::from_secs(1),
        })
    }
}

impl<T> Clone for Definition<T> {
    fn clone(&self) -> Self {
        Self {
            core: Arc::clone(&self.core),
            result: PhantomData,
        }
    }
}

impl<T> fmt::Debug for Definition<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Definition")
            .field("name", &self.core.name)
            .field("retries", &self.core.retries)
            .field("backoff", &self.core.backoff)
            .field("timeout", &self.core.timeout)
            .finish_non_exhaustive()
    }
}
