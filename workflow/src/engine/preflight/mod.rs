//! Preflight: which live runs go on with this code, said before any of them does.
//!
//! 1. It is the pass that every drive begins with (up to the gate), over the same machine, and it stops there. So what it says of a
//!    run is what the next drive finds.
//! 2. Nothing is written, and no step, timer, message or child of a run begins.
//! 3. A run is read, replayed and forgotten, one after the other: memory is a page of rows, the largest run, and the findings.

mod report;

use std::fmt;
use std::future::IntoFuture;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub use report::{MissingState, PreflightFinding, PreflightReport};

use self::report::{Found, Judged};
use super::rehearsal::{Gate, Silent, caught, rehearse};
use super::take_up::Course;
use super::{BuildError, Engine, Inner};
use crate::context::{Park, Run, Undo};
use crate::error::Error;
use crate::replay::{Begun, Ledger, ParkReason, Record, RunKey};
use crate::store::{BoxFuture, Loaded, Page, RunFilter, RunRow, StoreError};

/// How many rows are read at a time.
const PAGE: usize = 256;
/// How often others have their turn while runs are replayed.
const SLICE: Duration = Duration::from_millis(2);

type Hook = Box<dyn FnMut(&PreflightProgress) + Send>;

/// A preflight, to be awaited. Made by [`EngineBuilder::preflight`](crate::EngineBuilder::preflight), before there is an engine, and
/// by [`Engine::preflight`], beside one that runs.
///
/// Every live run is read and replayed against the code of this program, as far as its history goes. Nothing is written, and no
/// step is run: the code stops where it would do something new.
///
/// # Cancel safety
/// Dropped, it has done nothing.
#[must_use = "help: `.await` it: a preflight that is not awaited says nothing"]
pub struct Preflight {
    engine: Result<Arc<Inner>, BuildError>,
    examples: usize,
    hook: Option<Hook>,
}

/// How far a preflight is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct PreflightProgress {
    /// Live runs that were looked at.
    pub runs: u64,
    /// Live runs that there were when it began.
    pub of: u64,
    /// Records that were replayed.
    pub records: u64,
    /// Runs that would stop, or stay stopped.
    pub found: u64,
    /// Since it began.
    pub elapsed: Duration,
}

impl Preflight {
    pub(super) fn new(engine: Result<Arc<Inner>, BuildError>) -> Self {
        Self {
            engine,
            examples: 3,
            hook: None,
        }
    }

    /// Of how many runs the report gives the ids, for each finding; 3 by default.
    pub fn examples(mut self, runs: usize) -> Self {
        self.examples = runs;
        self
    }

    /// Tells how far it is, every few milliseconds and at the end: for a bar, or a line in a log. The rows are read
    /// through once more then, to know how many runs there are.
    pub fn on_progress(mut self, hook: impl FnMut(&PreflightProgress) + Send + 'static) -> Self {
        self.hook = Some(Box::new(hook));
        self
    }
}

impl fmt::Debug for Preflight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Preflight")
            .field("examples", &self.examples)
            .finish_non_exhaustive()
    }
}

/// # Errors
/// [`Error::Build`] when there is no store or two workflows have one name; [`Error::Store`] when the runs could not be listed. A
/// run that cannot be read is a finding.
impl IntoFuture for Preflight {
    type Output = Result<PreflightReport, Error>;
    type IntoFuture = BoxFuture<'static, Result<PreflightReport, Error>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let inner = self.engine?;
            Ok(inner.preflight(self.examples, self.hook).await?)
        })
    }
}

impl Engine {
    /// Says of every live run whether it goes on with the code of this program, without driving any. What is said of a run is
    /// what the next drive of it finds; runs go on meanwhile, so one may have gone on since it was looked at.
    ///
    /// Before a deploy, ask by [`EngineBuilder::preflight`](crate::EngineBuilder::preflight): it builds no engine, and no run
    /// goes on. This one is for a program that runs: to tell what stands still and why, and whether runs that wait for weeks
    /// will go on when they wake.
    pub fn preflight(&self) -> Preflight {
        Preflight::new(Ok(Arc::clone(&self.inner)))
    }
}

impl Inner {
    async fn preflight(
        &self,
        examples: usize,
        hook: Option<Hook>,
    ) -> Result<PreflightReport, StoreError> {
        let begun = Instant::now();
        let missing = self.registry.missing(&self.states);
        let mut report = PreflightReport::new(examples, &missing);
        let mut progress = match hook {
            None => None,
            Some(hook) => Some((self.live_runs().await?, hook)),
        };
        let mut tell = move |report: &PreflightReport| {
            if let Some((of, hook)) = &mut progress {
                hook(&PreflightProgress {
                    runs: report.runs,
                    of: (*of).max(report.runs),
                    records: report.records,
                    found: report.found(),
                    elapsed: begun.elapsed(),
                });
            }
        };
        let mut turn = Instant::now();
        let mut after = None;
        loop {
            let page = self.page(after).await?;
            for row in page.rows {
                if row.state.is_final() {
                    continue;
                }
                let Some(judged) = self.judge(row, &report).await? else {
                    continue;
                };
                report.take(judged);
                if turn.elapsed() >= SLICE {
                    tell(&report);
                    tokio::task::yield_now().await;
                    turn = Instant::now();
                }
            }
            let Some(next) = page.next else { break };
            after = Some(next);
        }
        report.finish(begun.elapsed());
        tell(&report);
        Ok(report)
    }

    async fn live_runs(&self) -> Result<u64, StoreError> {
        let (mut live, mut after) = (0, None);
        loop {
            let page = self.page(after).await?;
            live += page.rows.iter().filter(|row| !row.state.is_final()).count() as u64;
            let Some(next) = page.next else {
                return Ok(live);
            };
            after = Some(next);
        }
    }

    async fn page(&self, after: Option<RunKey>) -> Result<Page, StoreError> {
        let filter = RunFilter {
            after,
            limit: PAGE,
            ..RunFilter::default()
        };
        self.store.list(&filter).await
    }

    /// What becomes of a run. Nothing when it has ended since its row was listed.
    async fn judge(
        &self,
        row: RunRow,
        report: &PreflightReport,
    ) -> Result<Option<Judged>, StoreError> {
        let entry = self.registry.get(&row.workflow);
        // What the engine would not even be built for is said once, and not of each run.
        if entry
            .as_ref()
            .is_some_and(|entry| report.lacks_state(entry.name))
        {
            return Ok(Some(Judged::unlooked(row)));
        }
        if entry.is_none() {
            let course = self.course(&row, &[], self.claim_of(&row));
            return Ok(Some(self.judged(
                row,
                0,
                self.verdict(course, Vec::new(), None),
            )));
        }
        let Loaded { row, history } = match self.store.load(row.key).await {
            Ok(Some(loaded)) if loaded.row.state.is_final() => return Ok(None),
            Ok(Some(loaded)) => loaded,
            Ok(None) => return Ok(None),
            // Whoever asks tries again; the run has nothing to do with it.
            Err(error) if error.is_retryable() => return Err(error),
            Err(error) => {
                let reason = match error {
                    StoreError::Newer { .. } => ParkReason::NewerFormat,
                    _ => ParkReason::Storage,
                };
                let park = Park {
                    reason,
                    detail: error.to_string(),
                    location: None,
                };
                return Ok(Some(self.judged(row, 0, Some(Found::Parks(park)))));
            }
        };
        let records = history.len() as u64;
        let course = self.course(&row, &history, self.claim_of(&row));
        let verdict = self.verdict(course, history, Some(&row));
        Ok(Some(self.judged(row, records, verdict)))
    }

    fn judged(&self, row: RunRow, records: u64, found: Option<Found>) -> Judged {
        let found = found.map(|found| (self.registry.get(&row.workflow), found));
        let tried = row
            .parked
            .as_ref()
            .is_some_and(|parked| self.may_try(parked));
        Judged::new(row, records, found, tried)
    }

    /// Why the run would not go on, if it would not.
    fn verdict(&self, course: Course, history: Vec<Record>, row: Option<&RunRow>) -> Option<Found> {
        let parks = |(reason, detail)| {
            Some(Found::Parks(Park {
                reason,
                detail,
                location: None,
            }))
        };
        let entry = match course {
            Course::Stands(parked)
            | Course::Replays {
                hopeless: Some(parked),
                ..
            } => return parks(parked),
            Course::Unwinds(entry, ledger) => {
                // Its code is not run again; what it asks of this program is an undo for each entry.
                return undo_missing(&ledger, entry.undos).map(Found::Parks);
            }
            Course::Replays { entry, .. } => entry,
        };
        let row = row?;
        let input = Begun::of(&history).map(|begun| begun.input.clone());
        let id = row.id.clone();
        let gate = caught(|| {
            let replay = match self.replay_of(&entry, history, row) {
                Ok(replay) => replay,
                Err(error) => {
                    return Gate::Parks(Park {
                        reason: ParkReason::NewerFormat,
                        detail: error.to_string(),
                        location: None,
                    });
                }
            };
            let Some(input) = input else {
                return Gate::Open;
            };
            let now = self.clock.now();
            let host = Arc::new(Silent { now });
            match self.code_of(id, &entry, replay, &input, host) {
                (run, Ok(body)) => undone_after(rehearse(&run, body, None), &run, entry.undos),
                (_, Err(error)) => Gate::Parks(error.park()),
            }
        });
        match gate {
            Gate::Open | Gate::Ended(_) => None,
            Gate::Diverged(divergence) => Some(Found::Diverged(Box::new(divergence))),
            Gate::Parks(park) => Some(Found::Parks(park)),
        }
    }
}

/// Where the code comes to its end and what it did is undone then, it is the undos that the run goes on by.
pub(crate) fn undone_after(gate: Gate, run: &Run, undos: &[Undo]) -> Gate {
    if !matches!(gate, Gate::Ended(_)) {
        return gate;
    }
    let replay = run.replay();
    let ledger = replay.ledger();
    let missing = ledger.unwinds().and_then(|_| undo_missing(ledger, undos));
    missing.map_or(gate, Gate::Parks)
}

/// The run has to be parked, when the undoing comes to an entry that this code has no undo for.
pub(crate) fn undo_missing(ledger: &Ledger, undos: &[Undo]) -> Option<Park> {
    let has = |path: &str| undos.iter().any(|undo| undo.path == path);
    let missing = ledger.entries().filter(|entry| !has(&entry.undo)).last()?;
    Some(crate::context::undo_missing(missing))
}
