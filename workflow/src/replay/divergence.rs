//! The code does not fit the history.

use std::fmt;

use super::{Kind, Location, Site};

/// Where a history and the code that replays it part.
///
/// Found before anything was run: the run is parked, its history untouched, and it goes on by itself when code that
/// fits is deployed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Divergence {
    /// The location at which they part.
    pub location: Location,
    /// What the history holds there.
    pub recorded: Recorded,
    /// What the code does there.
    pub issued: Issued,
    /// Where in the source the code has what is recorded, now.
    pub now: Now,
    /// Where in the source the code stands when `issued` names no site: what it waits at, or the last site that it came to.
    pub standing: Vec<Site>,
}

/// Where the code has a recorded site now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Now {
    /// Here.
    At(Site),
    /// Nowhere: it was removed or renamed.
    Gone,
    /// In this fragment, or nowhere: the sites of a fragment are not listed with the workflow's.
    In(Site),
    /// The machine was not told which sites the code has.
    Unknown,
}

/// What the history holds at a place of divergence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recorded {
    /// A site of this kind.
    Site {
        /// Its location.
        location: Location,
        /// What it was; absent when only things below it are recorded.
        kind: Option<Kind>,
        /// The number of its first record.
        seq: u64,
    },
    /// A container with these branches.
    Branches(Vec<String>),
    /// A race won by this branch.
    Winner(String),
    /// A `join_all!` over so many items.
    Items(u64),
    /// A version of the code, chosen at a gate.
    Pinned {
        /// The version this run goes on with.
        value: u32,
        /// The newest version the code knew then.
        latest: u32,
    },
    /// That the code no longer has a site here, which was of this kind.
    Removed(Kind),
    /// That the run came to its end.
    End,
    /// Nothing more.
    Nothing,
}

/// What the code does at a place of divergence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Issued {
    /// It reached this site.
    Site(Site),
    /// It reached a container that now has these branches.
    Branches {
        /// The container.
        site: Site,
        /// Its branches in the code.
        branches: Vec<String>,
    },
    /// It reached a `join_all!` over so many items.
    Items {
        /// The container.
        site: Site,
        /// How many items the code has now.
        items: u64,
    },
    /// Another branch of the race won.
    Winner {
        /// The race.
        site: Site,
        /// The branch that wins in the code.
        branch: String,
    },
    /// It says that this site, of that kind, was removed.
    Removed {
        /// The declaration.
        site: Site,
        /// The kind it gives.
        kind: Kind,
    },
    /// It came to the workflow's end.
    End,
    /// It waits elsewhere, or has left the scope, and will not reach what is recorded.
    NotReached,
}

impl Divergence {
    /// What most likely happened to the code.
    pub fn likely_cause(&self) -> &'static str {
        match (&self.recorded, &self.issued, &self.now) {
            (
                Recorded::Site {
                    location,
                    kind: Some(kind),
                    ..
                },
                Issued::Site(site),
                _,
            ) if site_name(location) == Some(site.name) => {
                if same_family(*kind, site.kind) {
                    "the site was moved"
                } else {
                    "the site was changed into another kind"
                }
            }
            (
                Recorded::Site { .. },
                Issued::Site(_) | Issued::End | Issued::NotReached,
                Now::Gone,
            ) => "the recorded site was removed or renamed",
            (Recorded::Site { .. }, Issued::Site(_), Now::At(_)) => {
                "a site was inserted before the recorded one, or the two changed places"
            }
            (Recorded::Site { .. }, Issued::Site(_), _) => {
                "a site was renamed, inserted before a recorded one, removed or moved"
            }
            (Recorded::Branches(_) | Recorded::Items(_), ..) => {
                "branches were added, removed or renamed"
            }
            (Recorded::Winner(_), ..) => "the branches of the race now do something else",
            (Recorded::Site { .. }, Issued::End | Issued::NotReached, Now::At(_)) => {
                "a condition before the site changed, or the site was moved"
            }
            (Recorded::Site { .. }, Issued::End | Issued::NotReached, _) => {
                "a site was removed or renamed, or a condition before it changed"
            }
            (Recorded::Pinned { .. }, Issued::NotReached, _) => {
                "a version gate was removed while a run is on an older version"
            }
            (Recorded::Removed(_), Issued::Site(_), _) => {
                "a site that was declared removed is there again"
            }
            (Recorded::End, ..) => "a site was added where the run had ended",
            (_, Issued::Removed { .. }, _) => {
                "the kind given to `removed!` is not that of the site"
            }
            _ => "the code changed under a live run",
        }
    }

    /// The sites in the source that it concerns, as the code is now: what it reached instead, what is recorded, and where it
    /// stands.
    pub fn sites(&self) -> impl Iterator<Item = &Site> {
        let issued = match &self.issued {
            Issued::Site(site)
            | Issued::Branches { site, .. }
            | Issued::Items { site, .. }
            | Issued::Winner { site, .. }
            | Issued::Removed { site, .. } => Some(site),
            Issued::End | Issued::NotReached => None,
        };
        let now = match &self.now {
            Now::At(site) | Now::In(site) => Some(site),
            Now::Gone | Now::Unknown => None,
        };
        issued.into_iter().chain(now).chain(&self.standing)
    }

    /// What to do about it, one way a line.
    pub fn ways_out(&self) -> &'static [&'static str] {
        &[
            "deploy code that still has what is recorded: the run then goes on by itself",
            "give a renamed site its old name: `#[step(name = \"..\")]`, or the macro's first word",
            "cancel the run, and start it anew under another id",
        ]
    }
}

/// So many sites are named in a report.
const SHOWN: usize = 4;

/// Whether a report names this place already.
fn is_said(site: &Site, issued: &Issued) -> bool {
    let same = |other: &Site| (other.file, other.line) == (site.file, site.line);
    match issued {
        Issued::Site(other)
        | Issued::Branches { site: other, .. }
        | Issued::Items { site: other, .. }
        | Issued::Winner { site: other, .. }
        | Issued::Removed { site: other, .. } => same(other),
        Issued::End | Issued::NotReached => false,
    }
}

fn site_name(location: &Location) -> Option<&str> {
    match location.segments().last()? {
        super::Segment::Site(name) => Some(name),
        _ => None,
    }
}

/// A call's kind is known only by its type, so the lock and the record may say it differently.
fn same_family(recorded: Kind, issued: Kind) -> bool {
    recorded == issued || issued == Kind::Call
}

impl fmt::Display for Divergence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "the code does not fit the history at `{}`",
            self.location
        )?;
        write!(f, "  recorded: ")?;
        match &self.recorded {
            Recorded::Site {
                location,
                kind: Some(kind),
                seq,
            } => writeln!(f, "{kind} `{location}` (record {seq})")?,
            Recorded::Site {
                location,
                kind: None,
                seq,
            } => writeln!(f, "something under `{location}` (record {seq})")?,
            Recorded::Branches(branches) => {
                writeln!(f, "branches {} of `{}`", branches.join(", "), self.location)?;
            }
            Recorded::Winner(branch) => writeln!(f, "branch `{branch}` won `{}`", self.location)?,
            Recorded::Items(items) => writeln!(f, "{items} items in `{}`", self.location)?,
            Recorded::Pinned { value, latest } => {
                writeln!(f, "version {value}, when {latest} was the newest")?;
            }
            Recorded::Removed(kind) => writeln!(f, "that a {kind} was removed here")?,
            Recorded::End => writeln!(f, "the workflow's end")?,
            Recorded::Nothing => writeln!(f, "nothing more")?,
        }
        write!(f, "  issued:   ")?;
        match &self.issued {
            Issued::Site(site) => writeln!(f, "{site}")?,
            Issued::Branches { site, branches } => {
                writeln!(f, "branches {} of {site}", branches.join(", "))?;
            }
            Issued::Items { site, items } => writeln!(f, "{items} items in {site}")?,
            Issued::Winner { site, branch } => writeln!(f, "branch `{branch}` won {site}")?,
            Issued::Removed { site, kind } => writeln!(
                f,
                "that a {kind} `{}` was removed, at {}:{}",
                site.name, site.file, site.line
            )?,
            Issued::End => match self.standing.first() {
                Some(last) => writeln!(f, "the workflow's end, after {last}")?,
                None => writeln!(f, "the workflow's end")?,
            },
            Issued::NotReached => {
                write!(f, "nothing: the code does not reach it")?;
                for (at, site) in self.standing.iter().take(SHOWN).enumerate() {
                    let before = if at == 0 { "; it stands at " } else { ", " };
                    write!(f, "{before}{site}")?;
                }
                if self.standing.len() > SHOWN {
                    write!(f, " and {} more", self.standing.len() - SHOWN)?;
                }
                writeln!(f)?;
            }
        }
        match &self.now {
            Now::At(site) if !is_said(site, &self.issued) => {
                writeln!(f, "  it is now: {site}")?;
            }
            Now::In(site) => writeln!(f, "  it is now: in {site}, if anywhere")?,
            Now::Gone if matches!(self.recorded, Recorded::Site { .. }) => {
                writeln!(f, "  it is now: nowhere in the code")?;
            }
            _ => {}
        }
        writeln!(f, "  likely:   {}", self.likely_cause())?;
        write!(f, "  ways out: {}", self.ways_out().join("\n            "))
    }
}

impl std::error::Error for Divergence {}
