//! Whether it does.

use std::collections::BTreeSet;

use workflow::Location;
use workflow::replay::{Message, Segment};

use super::{Broken, Law, Leaf, State, Wants, post};

impl State {
    pub(super) fn broken(&mut self, law: Law, what: String) {
        self.trace(|| format!("BROKEN {law:?}: {what}"));
        self.broken.get_or_insert(Broken { law, what });
    }

    pub(super) fn trace(&mut self, line: impl FnOnce() -> String) {
        if self.broken.is_none() && self.trace.len() < 4_000 {
            self.trace.push(line());
        }
    }

    pub(super) fn is_raced(&self, at: &Location) -> bool {
        at.segments()
            .any(|segment| matches!(segment, Segment::Site(name) if self.races.contains(name)))
    }

    pub(super) fn is_lost(&self, at: &Location) -> bool {
        self.drive.lost.iter().any(|branch| at.is_under(branch))
    }

    /// Whether a carried loop has this behind it, as the drive began.
    pub(super) fn is_behind(&self, at: &Location) -> bool {
        self.drive.boundaries.iter().any(|(carried, newest)| {
            if !at.is_under(carried) || at == carried {
                return false;
            }
            let mut below = at.segments().skip(carried.segments().count());
            match below.next() {
                Some(Segment::Iter(index)) => {
                    index < *newest || (index == *newest && below.next().is_some())
                }
                _ => false,
            }
        })
    }

    /// The receives that are waited for.
    pub(super) fn receives(&self) -> impl Iterator<Item = (&Location, Wants)> {
        self.drive
            .pending
            .iter()
            .filter_map(|at| match self.drive.issued.get(at) {
                Some((_, _, Leaf::Recv(wants))) => Some((at, *wants)),
                _ => None,
            })
    }

    /// Whether what a receive waits for is there.
    pub(super) fn is_served(&self, at: &Location, wants: &Wants, inbox: &[Message]) -> bool {
        let until = self.deadlines.get(at);
        let fitting = inbox.iter().filter(|message| {
            wants.from.contains(&message.channel.as_str())
                && until.is_none_or(|until| message.at <= *until)
                && post::is_readable(message)
        });
        fitting.count() >= wants.least()
    }

    /// An outcome is durable.
    pub(super) fn ends(&mut self, at: &Location, seq: u64, shown: String) {
        if self.ended.insert(at.clone(), (seq, shown)).is_some() {
            self.broken(Law::Store, format!("`{at}` is recorded twice"));
        }
    }

    /// Where two locations part, and whether they do so side by side.
    pub(super) fn parting(
        &self,
        one: &Location,
        other: &Location,
    ) -> Option<(bool, Location, Location)> {
        let mut common = Location::root();
        for (mine, theirs) in one.segments().zip(other.segments()) {
            if mine != theirs {
                let beside = matches!(self.drive.issued.get(&common), Some((_, _, Leaf::Beside)));
                return Some((beside, common.child(mine), common.child(theirs)));
            }
            common = common.child(mine);
        }
        None
    }

    pub(super) fn is_beside(&self, one: &Location, other: &Location) -> bool {
        self.parting(one, other)
            .is_some_and(|(beside, _, _)| beside)
    }

    /// Whether the code comes to `one` before it comes to `other`, whatever the schedule.
    pub(super) fn is_before(&self, one: &Location, other: &Location) -> bool {
        let Some((false, one, other)) = self.parting(one, other) else {
            return false;
        };
        let first = |scope: &Location| {
            let under = self
                .drive
                .issued
                .iter()
                .filter(|(at, _)| at.is_under(scope));
            under.map(|(_, (number, _, _))| *number).min()
        };
        match (first(&one), first(&other)) {
            (Some(one), Some(other)) => one < other,
            // The one was reached, the other was not, so it still lies ahead.
            (one, _) => one.is_some(),
        }
    }

    pub(super) fn judge_consumed(&mut self, when: &str) {
        let seen: BTreeSet<_> = self.drive.observed.iter().map(|(at, _)| at).collect();
        let left = self
            .drive
            .history
            .iter()
            .find(|at| !seen.contains(at) && !self.is_lost(at) && !self.is_behind(at));
        if let Some(at) = left.cloned() {
            self.broken(Law::Gate, format!("{when}, and `{at}` is not consumed"));
        }
    }

    /// What was handed out is in the records' order, and begins as it did before.
    pub(super) fn judge_order(&mut self) {
        let observed = &self.drive.observed;
        let kept: Vec<_> = observed
            .iter()
            .filter_map(|(at, _)| Some((self.ended.get(at)?.0, at)))
            .collect();
        if let Some(pair) = kept.windows(2).find(|pair| pair[0].0 > pair[1].0) {
            let what = format!(
                "`{}` (record {}) is handed out before `{}` (record {})",
                pair[0].1, pair[0].0, pair[1].1, pair[1].0
            );
            self.broken(Law::Order, what);
            return;
        }
        let durable = |list: &[(Location, String)]| -> Vec<_> {
            let kept = list.iter().filter(|(at, _)| self.ended.contains_key(at));
            kept.cloned().collect()
        };
        let mut before = durable(&self.handed);
        before.retain(|(at, _)| !self.is_behind(at));
        let known: BTreeSet<_> = before.iter().map(|(at, _)| at.clone()).collect();
        let again: Vec<_> = observed
            .iter()
            .filter(|(at, _)| known.contains(at))
            .cloned()
            .collect();
        if !before.starts_with(&again) {
            let what = format!("first {before:?}, then {again:?}");
            self.broken(Law::Repeat, what);
            return;
        }
        if self.drive.live {
            self.handed = durable(&self.drive.observed);
        }
    }
}
