//! What a run comes to otherwise after a crash, and what that may be by.

use super::event::{Cut, Event, Spot, What};
use super::life::{Case, Ended};
use super::report::{Covered, Point};

/// What is otherwise than without a crash.
pub(super) struct Difference {
    pub(super) outcomes: Vec<(String, Option<Ended>, Option<Ended>)>,
    pub(super) effects: Vec<(&'static str, String, String)>,
    pub(super) bodies: Vec<(Spot, u32, u32)>,
    /// It did not get that far.
    pub(super) error: Option<String>,
    /// It was no longer the same before the crash.
    pub(super) strayed: Option<Event>,
    cut_off: Vec<Spot>,
}

impl Difference {
    /// What is otherwise in a case than it is without a crash, if anything is.
    pub(super) fn between(point: &Point, without: &Case, with: &Case) -> Option<Self> {
        let mut difference = Self {
            outcomes: Vec::new(),
            effects: Vec::new(),
            bodies: Vec::new(),
            error: None,
            strayed: None,
            cut_off: with.seen.cut_off.iter().cloned().collect(),
        };
        let before = &without.seen.events[..=point.at];
        let strayed = before
            .iter()
            .enumerate()
            .find(|(at, event)| with.seen.events.get(*at) != Some(event));
        difference.strayed = strayed.map(|(_, event)| event.clone());
        match (&without.came_to, &with.came_to) {
            (Ok(without), Ok(with)) => {
                for id in without.keys().chain(with.keys()) {
                    let (one, other) = (without.get(id), with.get(id));
                    let known = difference.outcomes.iter().any(|(known, ..)| known == id);
                    if one != other && !known {
                        let differs = (id.clone(), one.cloned(), other.cloned());
                        difference.outcomes.push(differs);
                    }
                }
            }
            (_, Err(error)) => difference.error = Some(error.clone()),
            (Err(_), Ok(_)) => {}
        }
        for ((name, one), (_, other)) in without.effects.iter().zip(&with.effects) {
            if !one.is(&**other) {
                let differs = (*name, format!("{one:?}"), format!("{other:?}"));
                difference.effects.push(differs);
            }
        }
        // Fewer is no fault: an attempt that a crash cut off counts, and a race may go another way when a message comes sooner or later
        // in it.
        for (spot, one) in &without.seen.begun {
            let other = with.seen.begun.get(spot).copied().unwrap_or(0);
            let again = u32::from(with.seen.cut_off.contains(spot));
            if other > one + again {
                difference.bodies.push((spot.clone(), *one, other));
            }
        }
        let broken = difference.strayed.is_some()
            || difference.error.is_some()
            || !difference.outcomes.is_empty()
            || !difference.effects.is_empty()
            || !difference.bodies.is_empty();
        broken.then_some(difference)
    }

    /// What to make of it.
    pub(super) fn hint(&self, right: Option<&Point>, point: &Point, covered: &Covered) -> String {
        if self.strayed.is_some() {
            return "the run goes another way each time it is run, with no crash at all: something that is not recorded decides where its \
                    code goes, or what a step gives"
                .to_owned();
        }
        let stuck = self.outcomes.iter().find_map(|(.., with)| match with {
            Some(Ended::Not(why)) => Some(why),
            _ => None,
        });
        if stuck.is_some_and(|why| why.starts_with("it is parked")) {
            return "the code went another way when it was replayed: what decides there has to be recorded, or come from the run's input"
                .to_owned();
        }
        let spent =
            |ended: &Option<Ended>| matches!(ended, Some(Ended::Failed { spent: true, .. }));
        let spends = |(_, without, with): &(String, Option<Ended>, Option<Ended>)| {
            spent(with) && !spent(without)
        };
        if self.outcomes.iter().any(spends) {
            return "an attempt that a crash cut off counts, and so does one of which nobody knows whether it had begun: a step that fails as \
                    often as here has none left then. Give it another one by `retries`, or deal with its failure"
                .to_owned();
        }
        let cut: Vec<_> = self.cut_off.iter().map(ToString::to_string).collect();
        let cut = cut.join(" and ");
        match (cut.is_empty(), self.effects.is_empty()) {
            (true, false) => {
                let after = right.and_then(|right| right.place(covered));
                let between = match (after, point.place(covered)) {
                    (Some(after), Some(before)) => {
                        format!(": after {after}, and no later than {before}")
                    }
                    (None, Some(before)) => format!(": no later than {before}"),
                    (_, None) => String::new(),
                };
                format!(
                    "this crash cut off no step, so the effect is had by code outside of steps, which is run again on each replay{between}. \
                     Make it a step: mark the function `#[step]`, or put `#[step]` on the statement"
                )
            }
            (true, true) => "this crash cut off no step: code outside of steps gives something else when it is run again".to_owned(),
            (false, _) if stuck.is_some() => format!(
                "this crash cut off {cut}, whose body is run again: what its first attempt took, and had not recorded, is lost. Take messages \
                 by `recv!`, which records them as it takes them"
            ),
            (false, true) => {
                format!("this crash cut off {cut}, whose body is run again and then gives something else")
            }
            (false, false) => format!(
                "this crash cut off {cut}, whose body is run again: a second time its effect is to come to the same. Give \
                 `current_step().idempotency_key()` to what it calls, write its row with `current_step().put(..)`, or mark it \
                 `#[step(at_most_once)]`"
            ),
        }
    }
}

/// What two runs without a crash did not do alike.
pub(super) fn unsteady(one: &Case, other: &Case) -> Option<String> {
    let (first, second) = (&one.seen.events, &other.seen.events);
    let longest = first.len().max(second.len());
    let differs = (0..longest).find(|at| first.get(*at) != second.get(*at));
    if let Some(at) = differs {
        let told = |events: &[Event]| match events.get(at) {
            Some(event) => {
                let what = event.told(Cut::Before);
                match &event.what {
                    What::Write(_) => {
                        what.replacen("just before it was written", "it was written", 1)
                    }
                    _ => what.replacen("where the ", "the ", 1),
                }
            }
            None => "nothing more happened".to_owned(),
        };
        return Some(format!(
            "two runs without any crash do not do the same\n  one of them:    {}\n  the other one:  {}\n  \
             help: states that are changed have to be made anew for each run, by `.fresh(..)`; and what else decides, as a clock or chance, has \
             to be recorded",
            told(first),
            told(second)
        ));
    }
    for ((name, one), (_, other)) in one.effects.iter().zip(&other.effects) {
        if !one.is(&**other) {
            return Some(format!(
                "two runs without any crash do not have the same effects\n  {name}: {one:?}, and then {other:?}\n  \
                 help: what counts them has to be made anew for each run, by `.fresh(..)`"
            ));
        }
    }
    match (&one.came_to, &other.came_to) {
        (Ok(one), Ok(other)) if one != other => {
            let differs = one.iter().find(|(id, ended)| other.get(*id) != Some(ended));
            let (id, ended) = differs?;
            let told = other.get(id).map(ToString::to_string).unwrap_or_default();
            Some(format!(
                "two runs without any crash do not end alike\n  `{id}` {ended}\n  `{id}` {told}\n  \
                 help: compare what has to be the same, by `.outcome(..)`"
            ))
        }
        _ => None,
    }
}
