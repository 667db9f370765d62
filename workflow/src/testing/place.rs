//! Locations as a test writes them.

use std::fmt;

use crate::guided::distance;
use crate::replay::{Kind, Site};

/// A location in a test: of one iteration, `items[3]/ship`, or of all, `items/ship`; of nested ones, too, `days[2]/items/ship`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place(String);

/// The workflow has nothing there.
#[derive(Debug)]
pub(super) struct Unknown {
    location: String,
    workflow: &'static str,
    wanted: &'static str,
    near: Vec<String>,
}

impl Place {
    /// The place of a step.
    pub(super) fn of_step(
        location: &str,
        workflow: &'static str,
        sites: &[Site],
    ) -> Result<Self, Unknown> {
        let step = |kind| matches!(kind, Kind::Step | Kind::Call);
        Self::find(location, workflow, sites, "step", step)
    }

    /// The place of any site.
    pub(super) fn of_site(
        location: &str,
        workflow: &'static str,
        sites: &[Site],
    ) -> Result<Self, Unknown> {
        Self::find(location, workflow, sites, "site", |_| true)
    }

    fn find(
        location: &str,
        workflow: &'static str,
        sites: &[Site],
        wanted: &'static str,
        fits: impl Fn(Kind) -> bool,
    ) -> Result<Self, Unknown> {
        let path = without_iterations(location);
        let is_whole = location.split('/').all(|part| !part.is_empty());
        let there = is_whole
            && sites.iter().any(|site| {
                let at = without_iterations(site.path);
                // What lies in a fragment is not known where it is called, and of a call only its type tells what it is.
                let may_hold = matches!(site.kind, Kind::Call | Kind::Fragment | Kind::Stage);
                let is_it = at == path && fits(site.kind);
                (is_it || (may_hold && is_under(&path, &at) && path != at))
                    && iterates(location, site, is_it)
            });
        if there {
            return Ok(Self(location.to_owned()));
        }
        let fitting = sites.iter().filter(|site| fits(site.kind));
        let mut near: Vec<_> = fitting
            .map(|site| without_iterations(site.path))
            .map(|at| {
                (
                    distance(last(&at), last(&path)).min(distance(&at, &path)),
                    at,
                )
            })
            .collect();
        near.sort();
        near.truncate(5);
        Err(Unknown {
            location: location.to_owned(),
            workflow,
            wanted,
            near: near.into_iter().map(|(_, at)| at).collect(),
        })
    }

    /// Whether it means the location of this text.
    pub(super) fn is_text(&self, location: &str) -> bool {
        let mut parts = location.split('/');
        self.0.split('/').all(|wanted| {
            parts
                .next()
                .is_some_and(|part| part == wanted || without_iterations(part) == wanted)
        }) && parts.next().is_none()
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            location,
            workflow,
            wanted,
            near,
        } = self;
        write!(f, "workflow `{workflow}` has no {wanted} at `{location}`")?;
        if near.is_empty() {
            return write!(f, ": it has no {wanted} at all");
        }
        write!(f, "; near are `{}`", near.join("`, `"))
    }
}

/// Whether a location has iterations only where its site has: `ship[3]` is nowhere when `ship` is in no loop. What lies under the site,
/// in a fragment, is not known.
fn iterates(location: &str, site: &Site, is_it: bool) -> bool {
    let path = match site.kind {
        // An iteration as a whole.
        Kind::Loop | Kind::JoinAll => format!("{}[]", site.path),
        _ => site.path.to_owned(),
    };
    let (mut wanted, mut site) = (location.split('/'), path.split('/'));
    loop {
        match (wanted.next(), site.next()) {
            (Some(wanted), Some(part)) => {
                let Some(rest) = wanted.strip_prefix(&*without_iterations(part)) else {
                    return false;
                };
                let is_iteration = rest.starts_with('[') && rest.find(']') == Some(rest.len() - 1);
                let may_iterate = rest.is_empty() || (is_iteration && part.ends_with(']'));
                if !may_iterate {
                    return false;
                }
            }
            (None, Some(_)) => return false,
            (None, None) => return true,
            (Some(_), None) => return !is_it,
        }
    }
}

/// Whether a path is another one or lies under it.
pub(super) fn is_under(path: &str, scope: &str) -> bool {
    let rest = path.strip_prefix(scope);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '[']))
}

/// `items/ship` for `items[3]/ship`.
pub(super) fn without_iterations(location: &str) -> String {
    let mut path = String::new();
    let mut depth = 0_u32;
    for letter in location.chars() {
        match letter {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            _ if depth == 0 => path.push(letter),
            _ => {}
        }
    }
    path
}

fn last(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, last)| last)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn site(name: &'static str, kind: Kind, path: &'static str) -> Site {
        Site::new(name, kind, path, "src/orders.rs", 1)
    }

    const SITES: &[Site] = &[
        site("reserve", Kind::Call, "reserve"),
        site("items", Kind::Loop, "items"),
        site("ship", Kind::Step, "items[]/ship"),
        site("pause", Kind::Sleep, "pause"),
        site("notify", Kind::Fragment, "notify"),
        site("ring", Kind::Step, "days[]/hours[]/ring"),
    ];

    #[test]
    fn one_iteration_or_all_of_them() {
        let place = |text| Place::of_step(text, "order", SITES).unwrap();
        assert!(place("items[3]/ship").is_text("items[3]/ship"));
        assert!(!place("items[3]/ship").is_text("items[4]/ship"));
        assert!(place("items/ship").is_text("items[sku-9]/ship"));
        assert!(place("notify/mail").is_text("notify/mail"));
        assert!(place("notify/all[3]/mail").is_text("notify/all[3]/mail"));
        let nested = place("days[2]/hours/ring");
        assert!(nested.is_text("days[2]/hours[7]/ring"));
        assert!(!nested.is_text("days[3]/hours[7]/ring"));
        assert!(!nested.is_text("days[2]/hours[7]"));
        assert!(!nested.is_text("days[2]/hours[7]/ring/more"));
    }

    #[test]
    fn an_iteration_of_what_has_none_is_not_there() {
        for nowhere in [
            "reserve[0]",
            "reserve]",
            "items/ship[3]",
            "items[3/ship",
            "items]3[/ship",
            "items[3]]/ship",
            "items[3]x/ship",
            "/reserve",
            "reserve/",
            "",
        ] {
            let unknown = Place::of_step(nowhere, "order", SITES);
            assert!(unknown.is_err(), "{nowhere}");
        }
    }

    #[test]
    fn what_is_not_there_is_told_with_what_is_near() {
        let unknown = |text| {
            let unknown = Place::of_step(text, "order", SITES);
            unknown.unwrap_err().to_string()
        };
        assert_eq!(
            unknown("shipp"),
            "workflow `order` has no step at `shipp`; near are `items/ship`, `days/hours/ring`, `reserve`"
        );
        // A sleep is no step.
        assert!(unknown("pause").contains("has no step at `pause`"));
        assert!(Place::of_site("pause", "order", SITES).is_ok());
    }
}
