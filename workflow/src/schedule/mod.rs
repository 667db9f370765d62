//! Schedules: runs that the engine starts by the calendar.
//!
//! A [`Schedule`] says when, in which time zone, and what; it is given to [`EngineBuilder::schedule`](crate::EngineBuilder::schedule).
//! Each time that comes is a [`Firing`], and is a run of its own, whose id is the schedule's name and the instant:
//! `nightly@2026-03-29T01:30:00Z`. That it was fired is in the store in the same transaction as the run, so it is fired once, whatever
//! crashes when. The guide's page [`schedules`](crate::guide::schedules) tells the rest.

mod calendar;
mod cron;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

pub use jiff::ZonedDateTime;
use jiff::tz::TimeZone;

use self::calendar::Calendar;
pub use self::cron::Cron;
use crate::context::{Call, InputError, Workflow};
use crate::replay::{InvalidRunId, RunId, Terms, Timestamp};

/// What a schedule gives for a firing: the input of its workflow, and when the run is to begin.
type Input = dyn Fn(Firing) -> Result<(Vec<u8>, Terms), InputError> + Send + Sync;

/// When runs of a workflow are started by the engine, and what with.
///
/// ```
/// use workflow::{Engine, MemoryStore, Schedule, cron, workflow};
///
/// #[workflow]
/// async fn report(day: String) -> usize {
///     day.len()
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), workflow::Error> {
/// let nightly = Schedule::new("nightly", cron!("30 2 * * *"), |firing| {
///     report(firing.local().date().to_string())
/// });
/// let engine = Engine::builder()
///     .workflow(report)
///     .schedule(nightly.zone("Europe/Paris"))
///     .store(MemoryStore::new())
///     .build()
///     .await?;
/// assert!(engine.schedule("nightly").status().await?.next.is_some());
/// # Ok(()) }
/// ```
#[derive(Clone)]
#[must_use = "help: give it to the engine's builder: `.schedule(..)`"]
pub struct Schedule {
    name: String,
    cron: Cron,
    workflow: &'static str,
    input: Arc<Input>,
    zone: String,
    gap: Option<Gap>,
    fold: Option<Fold>,
    missed: Missed,
    window: Option<Duration>,
    overlap: Overlap,
    spread: Duration,
}

impl Schedule {
    /// Starts what `call` gives, each time that `cron` says. The time is UTC unless a [`zone`](Self::zone) is given.
    ///
    /// The name stands in the ids of its runs, and is what is recorded of it: a schedule that is given another name is another
    /// schedule. `call` is called when a firing is started, and says the same for the same firing.
    pub fn new<W: Workflow>(
        name: impl Into<String>,
        cron: Cron,
        call: impl Fn(Firing) -> Call<W> + Send + Sync + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            cron,
            workflow: W::NAME,
            input: Arc::new(move |firing| {
                let call = call(firing);
                let terms = call.terms();
                call.into_json().map(|json| (json, terms))
            }),
            zone: "UTC".to_owned(),
            gap: None,
            fold: None,
            missed: Missed::default(),
            window: None,
            overlap: Overlap::default(),
            spread: Duration::ZERO,
        }
    }

    /// The time zone whose clock is meant, by its name in the IANA database: `Europe/Paris`. It is looked up in the system's, when
    /// the engine is built.
    pub fn zone(mut self, name: impl Into<String>) -> Self {
        self.zone = name.into();
        self
    }

    /// What becomes of times that the clock leaves out when it is put forward. Without this: [`Gap::Later`], so that a firing a day is
    /// one also on that day; for an expression that names every hour [`Gap::Skip`], as no more time has passed.
    pub fn gap(mut self, gap: Gap) -> Self {
        self.gap = Some(gap);
        self
    }

    /// What becomes of times that the clock shows twice when it is put back. Without this: [`Fold::First`], so that a firing a day is
    /// one also on that day; for an expression that names every hour [`Fold::Both`], as an hour more passes.
    pub fn fold(mut self, fold: Fold) -> Self {
        self.fold = Some(fold);
        self
    }

    /// What becomes of firings whose time passed and that were not started. [`Missed::Latest`] without this.
    pub fn missed(mut self, missed: Missed) -> Self {
        self.missed = missed;
        self
    }

    /// Firings that were missed longer ago than this are not started any more, whatever [`missed`](Self::missed) says.
    pub fn missed_within(mut self, window: Duration) -> Self {
        self.window = Some(window);
        self
    }

    /// What becomes of a firing when the run of the one before has not ended. [`Overlap::Start`] without this.
    pub fn overlap(mut self, overlap: Overlap) -> Self {
        self.overlap = overlap;
        self
    }

    /// Starts every run a little after its time: always by the same part of `spread`, which is taken from the name. So schedules of one
    /// time do not all begin at once. The firing's time, and the run's id, stay what the expression says.
    pub fn spread(mut self, spread: Duration) -> Self {
        self.spread = spread;
        self
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name of the workflow whose runs it starts.
    pub fn workflow(&self) -> &'static str {
        self.workflow
    }

    /// The expression.
    pub fn cron(&self) -> Cron {
        self.cron
    }

    /// The firings after this instant, in order: to see what a schedule says before it runs.
    ///
    /// # Errors
    /// [`ScheduleFault`], as when an engine is built with it.
    ///
    /// ```
    /// use workflow::{Schedule, Timestamp, cron, workflow};
    /// # #[workflow]
    /// # async fn report(day: String) -> usize { day.len() }
    ///
    /// let nightly = Schedule::new("nightly", cron!("30 2 * * *"), |firing| {
    ///     report(firing.local().date().to_string())
    /// });
    /// // The Sunday on which the clock goes from 02:00 to 03:00 in Paris.
    /// let saturday = Timestamp::from_millis(1_774_738_800_000);
    /// let sunday = nightly.zone("Europe/Paris").upcoming(saturday)?.next().expect("it fires every day");
    /// assert_eq!(sunday.local().to_string(), "2026-03-29T03:30:00+02:00[Europe/Paris]");
    /// assert_eq!(sunday.run().as_str(), "nightly@2026-03-29T01:30:00Z");
    /// # Ok::<(), workflow::schedule::ScheduleFault>(())
    /// ```
    pub fn upcoming(
        &self,
        after: Timestamp,
    ) -> Result<impl Iterator<Item = Firing> + use<>, ScheduleFault> {
        let plan = self.clone().plan()?;
        let mut at = Some(after);
        Ok(std::iter::from_fn(move || {
            at = plan.after(at?);
            Some(plan.firing(at?))
        }))
    }

    /// Checked, and ready to be asked.
    pub(crate) fn plan(self) -> Result<Plan, ScheduleFault> {
        if let Err(source) = RunId::new(&self.name) {
            let name = self.name;
            return Err(ScheduleFault::Name { name, source });
        }
        let longest = RunId::MAX - INSTANT;
        if self.name.len() > longest {
            let name = self.name.chars().take(64).collect();
            return Err(ScheduleFault::LongName { name, longest });
        }
        let zone = TimeZone::get(&self.zone).map_err(|source| ScheduleFault::Zone {
            schedule: self.name.clone(),
            zone: self.zone.clone(),
            source: source.into(),
        })?;
        let hourly = self.cron.is_hourly();
        let calendar = Calendar {
            cron: self.cron,
            zone,
            gap: self
                .gap
                .unwrap_or(if hourly { Gap::Skip } else { Gap::Later }),
            fold: self
                .fold
                .unwrap_or(if hourly { Fold::Both } else { Fold::First }),
        };
        let delay = self.delay();
        Ok(Plan {
            calendar,
            delay,
            schedule: self,
        })
    }

    /// How long after its time a run is started.
    fn delay(&self) -> Duration {
        let spread = u64::try_from(self.spread.as_millis()).unwrap_or(u64::MAX);
        let hash = siphasher::sip::SipHasher13::new_with_keys(0x7363_6865, 0x6475_6c65)
            .hash(self.name.as_bytes());
        Duration::from_millis(hash.checked_rem(spread).unwrap_or_default())
    }
}

/// As long is what follows the name in the id of a run: `@2026-03-29T01:30:00.123Z`, and some for years to come.
const INSTANT: usize = 32;

impl fmt::Debug for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Schedule")
            .field("name", &self.name)
            .field("cron", &self.cron)
            .field("zone", &self.zone)
            .field("workflow", &self.workflow)
            .finish_non_exhaustive()
    }
}

/// One time at which a schedule fires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Firing {
    schedule: Arc<str>,
    local: ZonedDateTime,
}

impl Firing {
    /// The instant.
    pub fn at(&self) -> Timestamp {
        Timestamp::from_millis(self.local.timestamp().as_millisecond())
    }

    /// What the clock of the schedule's zone says then.
    pub fn local(&self) -> &ZonedDateTime {
        &self.local
    }

    /// The schedule's name.
    pub fn schedule(&self) -> &str {
        &self.schedule
    }

    /// The id of its run: the schedule's name and the instant, in UTC.
    pub fn run(&self) -> RunId {
        // The name was checked, and what is added to it is fine.
        RunId::from_stored(&format!("{}@{}", self.schedule, self.local.timestamp()))
    }
}

/// What becomes of times that the clock leaves out when it is put forward: of 02:30 on the night on which 03:00 follows 01:59. Two
/// firings that come to the same instant by it are one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Gap {
    /// It fires as long after midnight as on any other day: at 03:30.
    Later,
    /// It fires when the clock jumps: at 03:00, and once for all that is left out.
    AtJump,
    /// It does not fire.
    Skip,
}

/// What becomes of times that the clock shows twice when it is put back: of 02:30 on the night on which 02:00 follows 02:59.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fold {
    /// It fires the first time.
    First,
    /// It fires the second time.
    Second,
    /// It fires both times.
    Both,
}

/// What becomes of firings that were missed: their time passed while no engine ran, or another firing's time came before they could be
/// started.
///
/// What came due while a schedule was paused was not missed. It is started by a [backfill](crate::ScheduleHandle::backfill) only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Missed {
    /// They are not started.
    Skip,
    /// The latest is started, and no other.
    #[default]
    Latest,
    /// All are started, in order, each with its own time.
    All,
}

/// What becomes of a firing when the run of the one before has not ended, be it at work, waiting or parked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Overlap {
    /// It is started beside it.
    #[default]
    Start,
    /// It is not started.
    Skip,
    /// It is started when that one has ended. When several come to wait, [`Missed`] says which of them are started: the latest, or
    /// all, one after the other.
    Wait,
}

/// What is wrong with a schedule.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScheduleFault {
    /// Its name cannot stand in the id of a run.
    #[error("`{name}` cannot be the name of a schedule, for its runs are called by it: {source}")]
    Name {
        /// The name.
        name: String,
        /// Why not.
        source: InvalidRunId,
    },
    /// Its name is too long.
    #[error("the name of schedule `{name}..` is longer than {longest} bytes")]
    LongName {
        /// How it begins.
        name: String,
        /// The longest, in bytes.
        longest: usize,
    },
    /// There is no such time zone.
    #[error(
        "schedule `{schedule}` is of time zone `{zone}`, which is not in the system's database: write a name such as `Europe/Paris`, or install `tzdata`"
    )]
    Zone {
        /// The schedule.
        schedule: String,
        /// The zone's name.
        zone: String,
        /// What the look-up said.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// A schedule that was checked.
#[derive(Debug)]
pub(crate) struct Plan {
    schedule: Schedule,
    calendar: Calendar,
    delay: Duration,
}

impl Plan {
    pub(crate) fn name(&self) -> &str {
        &self.schedule.name
    }

    pub(crate) fn workflow(&self) -> &'static str {
        self.schedule.workflow
    }

    pub(crate) fn cron(&self) -> Cron {
        self.schedule.cron
    }

    pub(crate) fn zone(&self) -> &str {
        &self.schedule.zone
    }

    pub(crate) fn missed(&self) -> Missed {
        self.schedule.missed
    }

    pub(crate) fn overlap(&self) -> Overlap {
        self.schedule.overlap
    }

    /// How long after its time a run is started.
    pub(crate) fn delay(&self) -> Duration {
        self.delay
    }

    /// All that decides when it fires, as text: what has changed when this has.
    pub(crate) fn says(&self) -> String {
        let Calendar {
            cron, gap, fold, ..
        } = &self.calendar;
        format!("{cron} {} {gap:?} {fold:?}", self.schedule.zone)
    }

    /// The first instant after this one at which it fires.
    pub(crate) fn after(&self, at: Timestamp) -> Option<Timestamp> {
        self.calendar.after(at)
    }

    /// The last instant at which it fired in (`after`, `until`].
    pub(crate) fn latest(&self, after: Timestamp, until: Timestamp) -> Option<Timestamp> {
        // Looked for in ever longer stretches before the end: there may be millions of them since the beginning.
        let mut length = Duration::from_secs(64);
        loop {
            let from = before(until, length).max(after);
            let mut found = None;
            let mut at = from;
            while let Some(next) = self.after(at).filter(|next| *next <= until) {
                found = Some(next);
                at = next;
            }
            if found.is_some() || from == after {
                return found;
            }
            length *= 8;
        }
    }

    /// Firings up to here are due.
    pub(crate) fn due(&self, now: Timestamp) -> Timestamp {
        before(now, self.delay)
    }

    /// From where on firings are not too long ago to be started.
    pub(crate) fn recent(&self, after: Timestamp, due: Timestamp) -> Timestamp {
        match self.schedule.window {
            Some(window) => before(due, window).max(after),
            None => after,
        }
    }

    pub(crate) fn firing(&self, at: Timestamp) -> Firing {
        let instant = jiff::Timestamp::from_millisecond(at.as_millis()).unwrap_or_default();
        Firing {
            schedule: self.schedule.name.as_str().into(),
            local: instant.to_zoned_datetime(self.calendar.zone.clone()),
        }
    }

    /// The input of its run. It calls the user's code, which may panic.
    pub(crate) fn input(&self, firing: Firing) -> Result<(Vec<u8>, Terms), InputError> {
        (self.schedule.input)(firing)
    }
}

fn before(at: Timestamp, length: Duration) -> Timestamp {
    let millis = i64::try_from(length.as_millis()).unwrap_or(i64::MAX);
    Timestamp::from_millis(at.as_millis().saturating_sub(millis))
}
