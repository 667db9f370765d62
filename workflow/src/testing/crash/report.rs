//! What came of all the crashes, in words.

use std::fmt;

use super::super::place::{is_under, without_iterations};
use super::difference::Difference;
use super::event::{Cut, Event};
use super::life::{DRIVEN, Ended, RUN};
use crate::replay::{Kind, Site};

/// One crash: at which event, and how.
#[derive(Debug, Clone)]
pub(super) struct Point {
    /// Its number, from 1.
    pub(super) number: u32,
    /// The event's index.
    pub(super) at: usize,
    pub(super) cut: Cut,
    pub(super) event: Event,
}

impl Point {
    /// All of a run in which this happened.
    pub(super) fn of(events: &[Event]) -> Vec<Self> {
        let cuts = events.iter().enumerate().flat_map(|(at, event)| {
            let cuts = event.cuts().iter();
            cuts.map(move |cut| (at, *cut, event.clone()))
        });
        let numbered = (1..).zip(cuts);
        let points = numbered.map(|(number, (at, cut, event))| Self {
            number,
            at,
            cut,
            event,
        });
        points.collect()
    }

    fn told(&self) -> String {
        self.event.told(self.cut)
    }

    /// Where in the source that is: the site of what happened last, if it is one.
    fn site<'s>(&self, covered: &'s Covered) -> Option<&'s Site> {
        let place = self.event.places.first()?;
        let path = without_iterations(&place.to_string());
        let sites = covered.sites.iter();
        let mut sites = sites.filter(|(workflow, _)| *workflow == self.event.workflow);
        // Of a fragment's own sites only the fragment is known.
        let found = sites
            .clone()
            .find(|(_, site)| without_iterations(site.path) == path);
        let found = found
            .or_else(|| sites.rfind(|(_, site)| is_under(&path, &without_iterations(site.path))));
        found.map(|(_, site)| site)
    }

    /// Where that is, for people: a location and a line of source.
    pub(super) fn place(&self, covered: &Covered) -> Option<String> {
        let place = self.event.places.first()?;
        Some(match self.site(covered) {
            Some(site) => format!("`{place}` ({}), {}:{}", site.kind, site.file, site.line),
            None => format!("`{place}`"),
        })
    }
}

/// The sites of the workflows that take part.
#[derive(Debug, Clone, Default)]
pub(super) struct Covered {
    pub(super) sites: Vec<(&'static str, Site)>,
}

impl Covered {
    /// Those of a workflow. What records nothing of its own cannot be crashed at.
    pub(super) fn add(&mut self, workflow: &'static str, sites: &[Site]) {
        let sites = sites.iter();
        let sites = sites.filter(|site| !matches!(site.kind, Kind::Derived | Kind::Removed));
        self.sites.extend(sites.map(|site| (workflow, *site)));
    }

    fn split(&self, points: &[Point]) -> (Vec<Site>, Vec<Site>) {
        let crashed = |workflow: &str, site: &Site| {
            points.iter().any(|point| {
                let mut places = point.event.places.iter().map(crate::Location::path);
                point.event.workflow == workflow && places.any(|path| is_under(&path, site.path))
            })
        };
        let (crashed, never): (Vec<_>, Vec<_>) = self
            .sites
            .iter()
            .partition(|(workflow, site)| crashed(workflow, site));
        let sites = |found: Vec<&(&str, Site)>| found.into_iter().map(|(_, site)| *site).collect();
        (sites(crashed), sites(never))
    }
}

/// What [`crash_everywhere`](super::crash_everywhere) has done, and nothing was broken by it.
///
/// As text: `checkout: 31 crashes, 14 of 14 sites crashed`, and the sites that no run came to.
#[derive(Debug, Clone)]
pub struct Crashes {
    workflow: &'static str,
    crashed: Vec<Site>,
    never: Vec<Site>,
    points: Vec<String>,
}

impl Crashes {
    pub(super) fn new(workflow: &'static str, covered: &Covered, points: &[Point]) -> Self {
        let (crashed, never) = covered.split(points);
        let told = |point: &Point| format!("crash {}: {}", point.number, point.told());
        Self {
            workflow,
            crashed,
            never,
            points: points.iter().map(told).collect(),
        }
    }

    /// How many processes were ended.
    pub fn crashes(&self) -> usize {
        self.points.len()
    }

    /// Where each of them ended, in words, in the order of their numbers.
    pub fn points(&self) -> &[String] {
        &self.points
    }

    /// The sites at which a process ended.
    pub fn sites_crashed(&self) -> &[Site] {
        &self.crashed
    }

    /// The sites that this input, and what was sent, do not lead to: another test may.
    pub fn sites_never_reached(&self) -> &[Site] {
        &self.never
    }

    /// Has all sites been crashed at.
    ///
    /// # Panics
    /// When some were not; with their names and source lines.
    #[track_caller]
    pub fn assert_all_sites(&self) {
        assert!(self.never.is_empty(), "{self}");
    }
}

impl fmt::Display for Crashes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (crashed, all) = (self.crashed.len(), self.crashed.len() + self.never.len());
        write!(f, "{}: {} crashes", self.workflow, self.points.len())?;
        if all > 0 {
            write!(f, ", {crashed} of {all} sites crashed")?;
        }
        for site in &self.never {
            let Site {
                path,
                kind,
                file,
                line,
                ..
            } = site;
            write!(f, "\n  never reached: `{path}` ({kind}), {file}:{line}")?;
        }
        Ok(())
    }
}

/// What [`crash_everywhere`](super::crash_everywhere) found: the workflow does not come out the same after a crash.
///
/// It says where the process ended, what was otherwise then, and how to have just that crash again. Its `Debug` form is its text, so
/// that a test that ends with it shows it.
#[derive(thiserror::Error)]
#[error("{text}")]
pub struct Broken {
    text: String,
    crash: Option<u32>,
    location: Option<String>,
}

impl fmt::Debug for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Broken {
    /// Something is wrong before any crash.
    pub(super) fn before(workflow: &str, text: impl fmt::Display) -> Self {
        Self {
            text: format!("`{workflow}` cannot be tested: {text}"),
            crash: None,
            location: None,
        }
    }

    /// The number of the crash, to be given to [`only`](super::CrashEverywhere::only); nothing when something is wrong without any.
    pub fn crash(&self) -> Option<u32> {
        self.crash
    }

    /// The location at which the process ended, if it was one.
    pub fn location(&self) -> Option<&str> {
        self.location.as_deref()
    }
}

/// The whole report of the crashes that came out otherwise.
pub(super) fn broken(
    workflow: &'static str,
    covered: &Covered,
    points: &[Point],
    found: &[(usize, Difference)],
) -> Option<Broken> {
    use fmt::Write as _;

    let (first, difference) = found.first()?;
    let point = points.get(*first)?;
    let right = first.checked_sub(1).and_then(|before| points.get(before));
    let location = point.event.places.first().map(ToString::to_string);
    let at = location.as_ref().map(|at| format!(" at `{at}`"));
    let mut text = format!(
        "`{workflow}` does not come out the same after a crash{}\n",
        at.unwrap_or_default()
    );
    // Writing to memory does not fail.
    let mut line = |line: fmt::Arguments<'_>| {
        let _ = writeln!(text, "{line}");
    };
    line(format_args!("  crash {}: {}", point.number, point.told()));
    if let Some(place) = point.place(covered) {
        line(format_args!("     at {place}"));
    }
    if let Some(event) = &difference.strayed {
        let told = event.told(*event.cuts().first()?);
        line(format_args!(
            "  it did not come there: it was to be, {told}"
        ));
    }
    if let Some(error) = &difference.error {
        line(format_args!("  {error}"));
    }
    for (id, without, with) in &difference.outcomes {
        let told = |ended: &Option<Ended>| {
            let told = ended.as_ref().map(ToString::to_string);
            told.unwrap_or_else(|| "was not started".to_owned())
        };
        let which = if id == RUN {
            "the run".to_owned()
        } else if id == DRIVEN {
            id.clone()
        } else {
            format!("`{id}`")
        };
        line(format_args!("  without it   {which} {}", told(without)));
        line(format_args!("  with it      {which} {}", told(with)));
    }
    for (name, without, with) in &difference.effects {
        line(format_args!("  without it   {name}: {without}"));
        line(format_args!("  with it      {name}: {with}"));
    }
    for (spot, without, with) in &difference.bodies {
        line(format_args!(
            "  without it   the body of {spot} was begun {without} time(s)"
        ));
        line(format_args!(
            "  with it      the body of {spot} was begun {with} time(s), and the crash did not cut it off"
        ));
    }
    if let Some(right) = right {
        line(format_args!(
            "  crash {} still came out right: {}",
            right.number,
            right.told()
        ));
    }
    if let [_, others @ ..] = found
        && !others.is_empty()
    {
        let numbers = others.iter().filter_map(|(index, _)| points.get(*index));
        let numbers: Vec<_> = numbers.map(|point| point.number.to_string()).collect();
        line(format_args!(
            "  otherwise, too: crashes {}",
            numbers.join(", ")
        ));
    }
    let hint = difference.hint(right, point, covered);
    line(format_args!("  help: {hint}"));
    line(format_args!(
        "  again, this one alone: `crash_everywhere(..).only({})`",
        point.number
    ));
    Some(Broken {
        text: text.trim_end().to_owned(),
        crash: Some(point.number),
        location,
    })
}
