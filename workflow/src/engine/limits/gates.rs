//! Who holds a slot, who has begun lately, and who waits: by groups of runs, in memory.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use super::begun::Begun;
use super::rule::{Queued, Rate, Rules};
use crate::engine::room::Place;
use crate::replay::{RunKey, Timestamp};

/// What runs are counted by: a workflow, or a workflow and a key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in crate::engine) struct Group {
    pub(super) workflow: &'static str,
    pub(super) key: Option<Arc<str>>,
}

/// What a run has to get before it is driven.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in crate::engine) struct Gate {
    /// A slot of this group, if its workflow has a limit.
    pub(super) slot: Option<Group>,
    /// The right of this group to begin one more, if its workflow has a rate and the run was not begun.
    pub(super) begin: Option<Group>,
}

impl Gate {
    pub(in crate::engine) fn begins(&self) -> bool {
        self.begin.is_some()
    }
}

/// Runs that have got what they waited for, and are to be woken.
pub(in crate::engine) type Granted = Vec<RunKey>;

/// Those that wait, by what they wait for: whoever waits for the same is in one line.
type Lines = BTreeMap<Gate, BTreeSet<Place>>;

#[derive(Debug, Default)]
struct Slots {
    held: HashSet<RunKey>,
    lines: Lines,
}

/// How a group of runs was begun lately.
#[derive(Debug, Default)]
struct Begins {
    /// Those that may begin and have not yet.
    granted: HashSet<RunKey>,
    /// Those of the last interval, the oldest first: until when each counts, and which it was.
    counted: VecDeque<(Timestamp, Begun)>,
    /// When the oldest is to be looked at.
    looked_at: Option<Timestamp>,
    lines: Lines,
}

impl Begins {
    /// How many count.
    fn count(&self, now: Timestamp) -> usize {
        let past = self.counted.partition_point(|(until, _)| *until <= now);
        self.granted.len() + self.counted.len() - past
    }

    fn is_idle(&self) -> bool {
        self.granted.is_empty() && self.counted.is_empty() && self.lines.is_empty()
    }
}

/// A run that has what it needs, or waits for it.
#[derive(Debug)]
struct Stand {
    gate: Gate,
    place: Place,
    waits: bool,
}

#[derive(Debug, Default)]
pub(super) struct Gates {
    rules: Arc<Rules>,
    /// The rows were read: it is known who holds what.
    is_open: bool,
    slots: HashMap<Group, Slots>,
    begins: HashMap<Group, Begins>,
    runs: HashMap<RunKey, Stand>,
    /// When the next begin of each group no longer counts.
    looks: BTreeSet<(Timestamp, Group)>,
    /// What is stored of begins that do not count any more, by workflow.
    stale: HashMap<&'static str, Vec<Begun>>,
    /// Those that ended while the rows are read: what was read of them is past.
    ended: HashSet<RunKey>,
    /// The time as it was last told.
    now: Timestamp,
}

impl Gates {
    pub(super) fn new(rules: Arc<Rules>) -> Self {
        Self {
            rules,
            now: Timestamp::MIN,
            ..Self::default()
        }
    }

    /// Whether what a gate asks for is there.
    fn is_free(&self, gate: &Gate, now: Timestamp) -> bool {
        let slot = |group: &Group| {
            let held = self.slots.get(group).map_or(0, |slots| slots.held.len());
            held < self.rules.slots(group)
        };
        let begin = |group: &Group| {
            let count = self.begins.get(group).map_or(0, |begins| begins.count(now));
            count < self.rules.rate_of(group).begins()
        };
        gate.slot.as_ref().is_none_or(slot) && gate.begin.as_ref().is_none_or(begin)
    }

    /// The first of those in these lines who could go on now.
    fn first(&self, lines: Option<&Lines>, now: Timestamp) -> Option<(Gate, Place)> {
        let free = lines?.iter().filter(|(gate, _)| self.is_free(gate, now));
        let first = free.filter_map(|(gate, line)| Some((gate, *line.first()?)));
        let (gate, place) = first.min_by_key(|(_, place)| *place)?;
        Some((gate.clone(), place))
    }

    /// The first of those who wait for a part of what this gate asks for, and could go on now.
    fn next(&self, gate: &Gate, now: Timestamp) -> Option<(Gate, Place)> {
        let slots = gate.slot.as_ref().and_then(|group| self.slots.get(group));
        let begins = gate.begin.as_ref().and_then(|group| self.begins.get(group));
        let of_slots = self.first(slots.map(|slots| &slots.lines), now);
        let of_begins = self.first(begins.map(|begins| &begins.lines), now);
        of_slots
            .into_iter()
            .chain(of_begins)
            .min_by_key(|(_, place)| *place)
    }

    /// Gives a run what it needs, if it has that, or it is there and nobody is before it. It does not wait by this.
    pub(super) fn take(&mut self, gate: &Gate, place: Place, now: Timestamp) -> bool {
        if self.runs.get(&place.run).is_some_and(|it| !it.waits) {
            return true;
        }
        let before = |(_, first): (Gate, Place)| first < place;
        if !self.is_open || !self.is_free(gate, now) || self.next(gate, now).is_some_and(before) {
            return false;
        }
        self.hold(gate, place);
        true
    }

    /// Gives a run what it needs, whether it is there or not.
    pub(super) fn hold(&mut self, gate: &Gate, place: Place) {
        self.leave(place.run);
        if let Some(group) = &gate.slot {
            let slots = self.slots.entry(group.clone()).or_default();
            slots.held.insert(place.run);
        }
        if let Some(group) = &gate.begin {
            let begins = self.begins.entry(group.clone()).or_default();
            begins.granted.insert(place.run);
        }
        self.stand(gate, place, false);
    }

    fn stand(&mut self, gate: &Gate, place: Place, waits: bool) {
        let stand = Stand {
            gate: gate.clone(),
            place,
            waits,
        };
        self.runs.insert(place.run, stand);
    }

    /// Lets a run wait, unless it has what it needs. Gives those who hold a slot of its group when it is the first that waits for
    /// one.
    pub(super) fn queue(&mut self, gate: &Gate, place: Place) -> Vec<RunKey> {
        if self.runs.get(&place.run).is_some_and(|it| !it.waits) {
            return Vec::new();
        }
        self.leave(place.run);
        let mut told = Vec::new();
        if let Some(group) = &gate.slot {
            let slots = self.slots.entry(group.clone()).or_default();
            if slots.lines.is_empty() {
                told.extend(&slots.held);
            }
            slots.lines.entry(gate.clone()).or_default().insert(place);
        }
        if let Some(group) = &gate.begin {
            let begins = self.begins.entry(group.clone()).or_default();
            begins.lines.entry(gate.clone()).or_default().insert(place);
        }
        self.stand(gate, place, true);
        told
    }

    /// A run has nothing any more, and waits for nothing.
    fn leave(&mut self, run: RunKey) -> Option<Gate> {
        fn out(lines: &mut Lines, gate: &Gate, place: Place) {
            if let Some(line) = lines.get_mut(gate) {
                line.remove(&place);
                if line.is_empty() {
                    lines.remove(gate);
                }
            }
        }
        let Stand { gate, place, .. } = self.runs.remove(&run)?;
        if let Some(group) = &gate.slot
            && let Some(slots) = self.slots.get_mut(group)
        {
            slots.held.remove(&run);
            out(&mut slots.lines, &gate, place);
            if slots.held.is_empty() && slots.lines.is_empty() {
                self.slots.remove(group);
            }
        }
        if let Some(group) = &gate.begin
            && let Some(begins) = self.begins.get_mut(group)
        {
            begins.granted.remove(&run);
            out(&mut begins.lines, &gate, place);
            if begins.is_idle() {
                self.begins.remove(group);
            }
        }
        Some(gate)
    }

    /// A run needs nothing any more: who waits for it gets it.
    pub(super) fn release(&mut self, run: RunKey, now: Timestamp) -> Granted {
        if !self.is_open {
            self.ended.insert(run);
        }
        match self.leave(run) {
            Some(gate) => self.grant(&gate, now),
            None => Granted::new(),
        }
    }

    /// The workflow by whose limit a run has a slot.
    pub(super) fn limited(&self, run: RunKey) -> Option<&'static str> {
        let group = self.runs.get(&run)?.gate.slot.as_ref()?;
        Some(group.workflow)
    }

    /// Gives out what is there of what this run waits for.
    pub(super) fn granted_with(&mut self, run: RunKey, now: Timestamp) -> Granted {
        match self.runs.get(&run).map(|it| it.gate.clone()) {
            Some(gate) => self.grant(&gate, now),
            None => Granted::new(),
        }
    }

    fn grant(&mut self, gate: &Gate, now: Timestamp) -> Granted {
        let mut granted = self.pass(now);
        while self.is_open
            && let Some((gate, place)) = self.next(gate, now)
        {
            self.hold(&gate, place);
            granted.push(place.run);
        }
        granted
    }

    /// From now on slots are given out: those who wait get the first.
    pub(super) fn open(&mut self, now: Timestamp) -> Granted {
        self.is_open = true;
        for run in std::mem::take(&mut self.ended) {
            self.leave(run);
        }
        let gates = |lines: &Lines| lines.keys().cloned().collect::<Vec<_>>();
        let of_slots = self.slots.values().flat_map(|slots| gates(&slots.lines));
        let of_begins = self.begins.values().flat_map(|begins| gates(&begins.lines));
        let gates: BTreeSet<_> = of_slots.chain(of_begins).collect();
        let granted = gates.iter().map(|gate| self.grant(gate, now));
        granted.collect::<Vec<_>>().concat()
    }

    // ===== begins =====

    /// A run that was let begin is begun now. Gives begins of its workflow that do not count any more, or nothing when it was not let
    /// begin, or was begun before.
    pub(super) fn begin(&mut self, run: RunKey, now: Timestamp) -> Option<Vec<Begun>> {
        /// So many are forgotten at a time: more than come to be forgotten by one begin.
        const AT_ONCE: usize = 16;
        let group = self.runs.get(&run)?.gate.begin.clone()?;
        let begins = self.begins.get_mut(&group)?;
        if !begins.granted.remove(&run) {
            return None;
        }
        let workflow = group.workflow;
        self.counts(&group, Begun { at: now, run }, now);
        Some(self.stale.get_mut(workflow).map_or_else(Vec::new, |stale| {
            stale.split_off(stale.len().saturating_sub(AT_ONCE))
        }))
    }

    /// A begin counts, if it does.
    pub(super) fn counts(&mut self, group: &Group, begun: Begun, now: Timestamp) {
        let interval = self.rules.rate_of(group).interval();
        // A clock that was set back leaves behind what was begun later than now.
        let until = begun.at.min(now).after(interval);
        if until <= now {
            return self.forget(group.workflow, begun);
        }
        let begins = self.begins.entry(group.clone()).or_default();
        let newest = begins.counted.back().map_or(until, |(until, _)| *until);
        begins.counted.push_back((until.max(newest), begun));
        self.look(group);
    }

    /// Nothing is known of begins: they are read anew.
    pub(super) fn reread(&mut self) {
        for begins in self.begins.values_mut() {
            begins.counted.clear();
            begins.looked_at = None;
        }
        self.looks.clear();
        self.stale.clear();
    }

    /// What is stored of a begin is to be deleted.
    pub(super) fn forget(&mut self, workflow: &'static str, begun: Begun) {
        self.stale.entry(workflow).or_default().push(begun);
    }

    /// Looks at a group again when its oldest begin no longer counts.
    fn look(&mut self, group: &Group) {
        let Some(begins) = self.begins.get_mut(group) else {
            return;
        };
        let at = begins.counted.front().map(|(until, _)| *until);
        if at == begins.looked_at {
            return;
        }
        if let Some(before) = std::mem::replace(&mut begins.looked_at, at) {
            self.looks.remove(&(before, group.clone()));
        }
        if let Some(at) = at {
            self.looks.insert((at, group.clone()));
        }
    }

    /// When there may be something to give out because time has passed.
    pub(super) fn opens_at(&self) -> Option<Timestamp> {
        self.looks.first().map(|(at, _)| *at)
    }

    /// Time has passed: who waits for that gets what it was waiting for.
    pub(super) fn pass(&mut self, now: Timestamp) -> Granted {
        if now < self.now {
            self.set_back(now);
        }
        self.now = now;
        let mut granted = Granted::new();
        while let Some((at, _)) = self.looks.first()
            && *at <= now
            && let Some((_, group)) = self.looks.pop_first()
        {
            if let Some(begins) = self.begins.get_mut(&group) {
                begins.looked_at = None;
                let past = begins.counted.partition_point(|(until, _)| *until <= now);
                let past = begins.counted.drain(..past).map(|(_, begun)| begun);
                self.stale.entry(group.workflow).or_default().extend(past);
                if begins.is_idle() {
                    self.begins.remove(&group);
                    continue;
                }
            }
            self.look(&group);
            let gate = Gate {
                slot: None,
                begin: Some(group),
            };
            while self.is_open
                && let Some((gate, place)) = self.next(&gate, now)
            {
                self.hold(&gate, place);
                granted.push(place.run);
            }
        }
        granted
    }

    /// The clock was set back: no begin counts for longer than if it were now.
    fn set_back(&mut self, now: Timestamp) {
        let groups: Vec<_> = self.begins.keys().cloned().collect();
        for group in groups {
            let most = now.after(self.rules.rate_of(&group).interval());
            if let Some(begins) = self.begins.get_mut(&group) {
                for (until, _) in &mut begins.counted {
                    *until = most.min(*until);
                }
            }
            self.look(&group);
        }
    }

    // ===== what is asked =====

    /// Whether a run waits here.
    pub(super) fn is_queued(&self, run: RunKey) -> bool {
        self.runs.get(&run).is_some_and(|it| it.waits)
    }

    /// Whether somebody waits for the slot that a run has.
    pub(super) fn is_wanted(&self, run: RunKey) -> bool {
        let group = self.runs.get(&run).and_then(|it| it.gate.slot.as_ref());
        let slots = group.and_then(|group| self.slots.get(group));
        slots.is_some_and(|slots| !slots.lines.is_empty())
    }

    /// What a run waits for here.
    pub(super) fn queued(&self, run: RunKey, now: Timestamp) -> Option<Queued> {
        let Stand { gate, place, waits } = self.runs.get(&run)?;
        if !*waits {
            return None;
        }
        let ahead = |lines: &Lines| {
            let lines = lines.values();
            lines.map(|line| line.range(..place).count()).sum::<usize>()
        };
        let slots = gate.slot.as_ref().and_then(|group| self.slots.get(group));
        let begins = gate.begin.as_ref().and_then(|group| self.begins.get(group));
        let of_slots = slots.map_or(0, |slots| ahead(&slots.lines));
        let of_begins = begins.map_or(0, |begins| ahead(&begins.lines));
        let rate = gate.begin.as_ref().map(|group| self.rules.rate_of(group));
        let begins_at = begins
            .zip(rate)
            .map(|(begins, rate)| begins.may_begin(rate, of_begins, now));
        let key = |group: &Option<Group>| group.as_ref()?.key.as_deref().map(str::to_owned);
        Some(Queued {
            limit: gate.slot.as_ref().map(|group| self.rules.slots(group)),
            rate,
            key: key(&gate.slot).or_else(|| key(&gate.begin)),
            ahead: of_slots.max(of_begins),
            not_before: begins_at.filter(|at| *at > now),
        })
    }
}

impl Begins {
    /// When a run with so many before it may begin at the earliest.
    fn may_begin(&self, rate: Rate, ahead: usize, now: Timestamp) -> Timestamp {
        let most = rate.begins();
        let granted = self.granted.len();
        let counted = self.counted.iter().map(|(until, _)| *until);
        let counted: Vec<_> = counted.filter(|until| *until > now).collect();
        // Each of so many begins is free again at its time, and an interval after each begin that is made of it.
        let free = most.saturating_sub(granted + counted.len());
        let round = u32::try_from(ahead / most).unwrap_or(u32::MAX);
        let place = ahead % most;
        let first = match place.checked_sub(free) {
            None => now,
            Some(place) => counted
                .get(place)
                .copied()
                .unwrap_or_else(|| now.after(rate.interval())),
        };
        first.after(rate.interval().saturating_mul(round))
    }
}
