//! What a preflight found.

use std::collections::HashMap;
use std::fmt;
use std::process::ExitCode;
use std::time::Duration;

use crate::context::{Park, StateType};
use crate::engine::registry::Entry;
use crate::replay::{Divergence, Issued, Location, ParkReason, Recorded, RunId, RunState, Site};
use crate::store::RunRow;

/// So many findings are told apart. What comes after is counted with others of its workflow and reason.
const APART: usize = 256;

/// What a [`Preflight`](crate::Preflight) found. Its [`Display`](fmt::Display) is for people: what would stop, why, and where.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PreflightReport {
    /// Live runs that were looked at: those that have not ended, parked ones among them.
    pub runs: u64,
    /// Records that were replayed.
    pub records: u64,
    /// How long it took, by the computer's clock.
    pub took: Duration,
    /// Runs that are under way or wait, and go on with this code.
    pub fits: u64,
    /// Parked runs that an engine with this code takes up by itself, and that go on then.
    pub revived: u64,
    /// Parked runs that would go on with this code, and that it does not take up by itself: it has tried them before, or
    /// they wait for an operator. [`Engine::resume`](crate::Engine::resume) does it.
    pub resumable: u64,
    /// What would stop runs, or keeps them stopped: one for each workflow and cause, those with the most runs first.
    pub findings: Vec<PreflightFinding>,
    /// States that workflows of live runs need and that were not given. Their runs were not looked at.
    pub missing_states: Vec<MissingState>,
    examples: usize,
    known: HashMap<Cause, usize>,
}

/// Runs of one workflow that would stop for one cause.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PreflightFinding {
    /// The workflow's name.
    pub workflow: String,
    /// Why: with what reason they would be parked.
    pub reason: ParkReason,
    /// How many runs go on today and would stop.
    pub runs: u64,
    /// How many runs are parked already, and would stay so.
    pub parked: u64,
    /// Some of them, those that would stop first: at most as many as [`Preflight::examples`](crate::Preflight::examples) says.
    pub examples: Vec<RunId>,
    /// Where in the first of them, if it is one place.
    pub location: Option<Location>,
    /// Where in the source, as the code is now: what it does at that place instead, or what it has there.
    pub site: Option<Site>,
    /// What was recorded and what was found, where the code does not fit the history of the first of them.
    pub divergence: Option<Divergence>,
    /// The whole report on the first of them, as it would be parked with it.
    pub detail: String,
    /// How many of the examples would stop: they stand first.
    stopping: usize,
}

/// A state that a workflow needs and that was not given. An engine would not be built without it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MissingState {
    /// The workflow.
    pub workflow: &'static str,
    /// Its parameter.
    pub parameter: &'static str,
    /// The parameter's type.
    pub type_name: &'static str,
    /// How many live runs were not looked at because of it.
    pub runs: u64,
}

/// What tells one finding from another.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Cause {
    workflow: String,
    reason: ParkReason,
    /// The place in the source, whatever the iteration.
    path: String,
    what: String,
}

/// Why a run would not go on.
pub(super) enum Found {
    Diverged(Box<Divergence>),
    Parks(Park),
}

/// What a preflight says of one run.
pub(super) struct Judged {
    row: RunRow,
    records: u64,
    found: Option<(Option<Entry>, Found)>,
    /// A parked one that an engine with this code tries by itself.
    tried: bool,
    looked_at: bool,
}

impl Judged {
    pub(super) fn new(
        row: RunRow,
        records: u64,
        found: Option<(Option<Entry>, Found)>,
        tried: bool,
    ) -> Self {
        Self {
            row,
            records,
            found,
            tried,
            looked_at: true,
        }
    }

    /// One that was not looked at, because its workflow lacks a state.
    pub(super) fn unlooked(row: RunRow) -> Self {
        Self {
            looked_at: false,
            ..Self::new(row, 0, None, false)
        }
    }
}

impl PreflightReport {
    pub(super) fn new(examples: usize, missing: &[(&'static str, StateType)]) -> Self {
        let missing = missing.iter().map(|(workflow, state)| MissingState {
            workflow,
            parameter: state.parameter,
            type_name: state.type_name,
            runs: 0,
        });
        Self {
            runs: 0,
            records: 0,
            took: Duration::ZERO,
            fits: 0,
            revived: 0,
            resumable: 0,
            findings: Vec::new(),
            missing_states: missing.collect(),
            examples,
            known: HashMap::new(),
        }
    }

    pub(super) fn lacks_state(&self, workflow: &str) -> bool {
        let mut missing = self.missing_states.iter();
        missing.any(|missing| missing.workflow == workflow)
    }

    pub(super) fn take(&mut self, judged: Judged) {
        self.runs += 1;
        self.records += judged.records;
        let parked = judged.row.state == RunState::Parked;
        match judged.found {
            _ if !judged.looked_at => {
                for missing in &mut self.missing_states {
                    missing.runs += u64::from(missing.workflow == judged.row.workflow);
                }
            }
            Some((entry, found)) => self.found_one(judged.row, parked, entry, found),
            None if !parked => self.fits += 1,
            None if judged.tried => self.revived += 1,
            None => self.resumable += 1,
        }
    }

    fn found_one(&mut self, row: RunRow, parked: bool, entry: Option<Entry>, found: Found) {
        let mut cause = found.cause(&row.workflow);
        if !self.known.contains_key(&cause) && self.findings.len() >= APART {
            cause.path.clear();
            cause.what.clear();
        }
        let index = *self.known.entry(cause).or_insert_with(|| {
            self.findings
                .push(found.first(&row.workflow, entry.as_ref()));
            self.findings.len() - 1
        });
        let Some(finding) = self.findings.get_mut(index) else {
            return;
        };
        if parked {
            finding.parked += 1;
            if finding.examples.len() < self.examples {
                finding.examples.push(row.id);
            }
            return;
        }
        if finding.runs == 0 && finding.parked > 0 {
            // What is told is told of the first example, and that is one that stops.
            *finding = PreflightFinding {
                parked: finding.parked,
                examples: std::mem::take(&mut finding.examples),
                ..found.first(&row.workflow, entry.as_ref())
            };
        }
        finding.runs += 1;
        // One that stops is the better example.
        if finding.stopping < self.examples {
            finding.examples.insert(finding.stopping, row.id);
            finding.examples.truncate(self.examples);
            finding.stopping += 1;
        }
    }

    pub(super) fn finish(&mut self, took: Duration) {
        self.took = took;
        self.missing_states.retain(|missing| missing.runs > 0);
        self.findings.sort_by(|one, other| {
            let by_count = (other.runs, other.parked).cmp(&(one.runs, one.parked));
            by_count.then_with(|| one.workflow.cmp(&other.workflow))
        });
        // The indices do not hold any more.
        self.known = HashMap::new();
    }

    pub(super) fn found(&self) -> u64 {
        let counted = |finding: &PreflightFinding| finding.runs + finding.parked;
        self.findings.iter().map(counted).sum()
    }

    /// True when this code stops no run that goes on today, and every live run could be judged. Runs that were parked before and
    /// stay so do not count: this code did not stop them.
    pub fn is_clean(&self) -> bool {
        self.would_stop() == 0 && self.is_whole()
    }

    /// How many runs go on today and would stop with this code.
    pub fn would_stop(&self) -> u64 {
        self.findings.iter().map(|finding| finding.runs).sum()
    }

    /// How many runs are parked, and would stay so.
    pub fn stay_parked(&self) -> u64 {
        self.findings.iter().map(|finding| finding.parked).sum()
    }

    /// True when every live run could be judged: its workflow was registered, its states were given, and its history could be
    /// read. Parked runs that cannot be judged do not count.
    pub fn is_whole(&self) -> bool {
        self.missing_states.is_empty()
            && !(self.findings.iter()).any(|finding| finding.runs > 0 && !finding.is_judged())
    }

    /// For a job that lets a deploy through or not:
    ///
    /// | code | when |
    /// |---|---|
    /// | 0 | it [is clean](Self::is_clean): every run that goes on today goes on with this code |
    /// | 2 | at least one run that goes on today would be stopped by this code |
    /// | 3 | none is known to be stopped, but not all [could be judged](Self::is_whole): a workflow is not registered, a state was not given, or a history could not be read |
    ///
    /// 1 is left to `main`, which returns it with an error: then the preflight could not be made.
    pub fn code(&self) -> u8 {
        let stops = |finding: &PreflightFinding| finding.runs > 0 && finding.is_judged();
        if self.findings.iter().any(stops) {
            2
        } else if self.is_whole() {
            0
        } else {
            3
        }
    }

    /// [`code`](Self::code), for `main` to return.
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.code())
    }
}

impl PreflightFinding {
    /// Whether it says something of how the code fits: of the others nothing is known.
    fn is_judged(&self) -> bool {
        !matches!(
            self.reason,
            ParkReason::Unregistered | ParkReason::NewerFormat | ParkReason::Storage
        )
    }
}

impl Found {
    fn cause(&self, workflow: &str) -> Cause {
        let (reason, path, what) = match self {
            Self::Diverged(divergence) => (
                ParkReason::Diverged,
                divergence.location.path(),
                parted(divergence),
            ),
            Self::Parks(park) => {
                let path = park.location.as_ref().map(Location::path);
                let what = match park.reason {
                    // What a value is, or how often something was tried, does not make it another cause.
                    ParkReason::Decode if park.location.is_none() => before_colon(&park.detail),
                    ParkReason::Panicked => park.detail.chars().take(200).collect(),
                    _ => String::new(),
                };
                (park.reason, path.unwrap_or_default(), what)
            }
        };
        Cause {
            workflow: workflow.to_owned(),
            reason,
            path,
            what,
        }
    }

    /// The finding of which this is the first run.
    fn first(&self, workflow: &str, entry: Option<&Entry>) -> PreflightFinding {
        let (reason, location, site, divergence, detail) = match self {
            Self::Diverged(divergence) => (
                ParkReason::Diverged,
                Some(divergence.location.clone()),
                divergence.sites().next().copied(),
                Some((**divergence).clone()),
                divergence.to_string(),
            ),
            Self::Parks(park) => {
                let path = park.location.as_ref().map(Location::path);
                let sites = entry.map_or(&[][..], |entry| entry.sites);
                let site = path.and_then(|path| sites.iter().find(|site| site.path == path));
                let (location, detail) = (park.location.clone(), park.detail.clone());
                (park.reason, location, site.copied(), None, detail)
            }
        };
        PreflightFinding {
            workflow: workflow.to_owned(),
            reason,
            runs: 0,
            parked: 0,
            examples: Vec::new(),
            location,
            site,
            divergence,
            detail,
            stopping: 0,
        }
    }
}

/// What parts code and history, whatever the run and the iteration.
fn parted(divergence: &Divergence) -> String {
    let recorded = match &divergence.recorded {
        Recorded::Site { location, kind, .. } => {
            let kind = kind.map_or("something", crate::replay::Kind::word);
            format!("{kind} {}", location.path())
        }
        // How many there were is another number in each run.
        Recorded::Items(_) => "items".to_owned(),
        other => format!("{other:?}"),
    };
    let issued = match &divergence.issued {
        Issued::Items { site, .. } => format!("items {}", site.path),
        Issued::End => "end".to_owned(),
        Issued::NotReached => "not reached".to_owned(),
        other => format!("{other:?}"),
    };
    format!("{recorded}; {issued}")
}

fn before_colon(text: &str) -> String {
    let found = text.split_once(": ");
    found.map_or(text, |(before, _)| before).to_owned()
}

/// A report for people, several lines long and without a line break at its end.
impl fmt::Display for PreflightReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { runs, records, .. } = self;
        let verdict = match (self.code(), self.would_stop()) {
            (0, _) => "this code stops no run".to_owned(),
            (2, stops) => format!("this code stops {}", counted(stops, "run")),
            _ => "not every run could be judged".to_owned(),
        };
        write!(
            f,
            "preflight: {verdict} ({}, {}, {:.1?})",
            counted(*runs, "live run"),
            counted(*records, "record"),
            self.took
        )?;
        write!(f, "\n  {} with this code", goes_on(self.fits))?;
        if self.revived > 0 {
            let runs = counted(self.revived, "parked run");
            write!(f, "\n  {runs} will be taken up by this code, and go on")?;
        }
        if self.resumable > 0 {
            let runs = counted(self.resumable, "parked run");
            write!(
                f,
                "\n  {runs} would go on when resumed: `engine.resume(id)`"
            )?;
        }
        for missing in &self.missing_states {
            write!(
                f,
                "\n\n{} of `{}` not looked at: it needs `{}: {}`, give it with `.state(..)`",
                counted(missing.runs, "run"),
                missing.workflow,
                missing.parameter,
                missing.type_name
            )?;
        }
        for finding in &self.findings {
            write!(f, "\n\n{finding}")?;
        }
        Ok(())
    }
}

impl fmt::Display for PreflightFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stays = |runs| counted(runs, "parked run");
        match (self.runs, self.parked) {
            (0, parked) => write!(f, "{} of `{}` would stay so", stays(parked), self.workflow)?,
            (runs, parked) => {
                write!(
                    f,
                    "{} of `{}` would stop",
                    counted(runs, "run"),
                    self.workflow
                )?;
                if parked > 0 {
                    write!(f, " ({} would stay so)", stays(parked))?;
                }
            }
        }
        write!(f, ": {}", self.reason)?;
        if let Some(location) = &self.location {
            write!(f, " at `{}`", location.path())?;
        }
        if let Some(site) = &self.site {
            write!(f, ", {}:{}", site.file, site.line)?;
        }
        if !self.examples.is_empty() {
            write!(f, "\n  ")?;
            for (at, id) in self.examples.iter().enumerate() {
                let before = if at == 0 { "" } else { ", " };
                write!(f, "{before}{id}")?;
            }
            let more = self.runs + self.parked - self.examples.len() as u64;
            if more > 0 {
                write!(f, " and {more} more")?;
            }
        }
        for line in self.detail.lines() {
            write!(f, "\n  {line}")?;
        }
        Ok(())
    }
}

fn counted(count: u64, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {what}{plural}")
}

fn goes_on(runs: u64) -> String {
    let verb = if runs == 1 { "goes" } else { "go" };
    format!("{} {verb} on", counted(runs, "run"))
}
