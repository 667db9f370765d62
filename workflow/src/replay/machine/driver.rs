//! What the driver says and asks.

use super::ledger;
use super::tree::Doing;
use super::{Class, InFlight, Queued, Ready, Replay, Sent};
use crate::replay::{
    AttemptState, Body, CodeId, Ended, Finished, Issued, Kind, Location, Message, Payload, Record,
    RunState, Timestamp,
};

/// What the machine is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Recorded outcomes are handed out; nothing is live.
    Replaying,
    /// Every record is consumed: bodies run, waits are waited for.
    Live,
    /// The code does not fit the history: nothing is issued, recorded or appended any more.
    Diverged,
    /// The run's end is durable.
    Done,
}

/// What goes into one transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    /// Its number within this drive, from 1.
    pub number: u64,
    /// The run's last record before it.
    pub expected_seq: u64,
    /// New records, numbered without a gap.
    pub records: Vec<Record>,
    /// Scopes whose earlier records are deleted, each with everything under it.
    pub deletes: Vec<Location>,
    /// The run's new state, if it changes.
    pub state: Option<RunState>,
    /// The run's new wake time, if it changes.
    pub wake_at: Option<Option<Timestamp>>,
    /// The channels it waits on, if they change; none any more when it does not wait.
    pub waits: Option<Option<Vec<String>>>,
    /// Messages that go back into the inbox, before any is taken.
    pub returns: Vec<Message>,
    /// The arrivals of messages that are taken from the inbox.
    pub takes: Vec<u64>,
    /// Messages that could not be read, by arrival, and why.
    pub dead: Vec<(u64, String)>,
    /// The newest arrival that was read.
    pub seen: u64,
    /// What is done to others in the same transaction.
    pub sent: Vec<Sent>,
    /// True when what is written shows that the run did not die with its earlier owners: their count starts anew.
    pub recovers: bool,
    /// True when the run is let go of with this batch.
    pub releases: bool,
    /// How far the run says it has come, as JSON, if it said so since the last batch.
    pub progress: Option<String>,
    /// The code that wrote it.
    pub code: CodeId,
}

/// A run that may leave memory: all it has is durable, and it only waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Suspend {
    /// When it is to be woken. Absent when nothing but a message or a new drive wakes it.
    pub wake_at: Option<Timestamp>,
}

/// What a run's row says of what it is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// Its state.
    pub state: RunState,
    /// When it is to be woken.
    pub wake_at: Option<Timestamp>,
    /// The channels it waits on.
    pub waits: Option<Vec<String>>,
}

impl Default for Standing {
    fn default() -> Self {
        Self {
            state: RunState::Pending,
            wake_at: None,
            waits: None,
        }
    }
}

impl Standing {
    fn of(state: RunState) -> Self {
        Self {
            state,
            ..Self::default()
        }
    }
}

impl Replay {
    // ===== what must be done now =====

    /// Hands out the next outcome, if its turn has come: the code must be polled until it is quiet before the next
    /// call. False when there is none, or when the run diverged.
    #[must_use]
    pub fn poll_handout(&mut self) -> bool {
        if self.draining {
            return false;
        }
        while let Some(turn) = self.turns.front() {
            let node = turn.node;
            if self.tree.is_stale(node, turn.stamp) {
                // It lies under a branch that lost meanwhile.
                self.turns.pop_front();
                continue;
            }
            match turn.ready {
                Ready::Now => {}
                Ready::Batch(number) if number <= self.appended => {}
                Ready::Batch(_) | Ready::Unclosed => return false,
            }
            let Some(pending) = &mut self.tree.get_mut(node).op else {
                // The code is quiet and has not come here: it never will.
                let recorded = self.recorded_at(node);
                self.diverge(self.tree.location_of(node), recorded, Issued::NotReached);
                return false;
            };
            pending.handed_out = true;
            pending.wake();
            self.turns.pop_front();
            return true;
        }
        false
    }

    /// Closes the next batch, if one is wanted and none is in flight. It must be written, and
    /// [`handle_appended`](Self::handle_appended) called, before another is given.
    #[must_use]
    pub fn poll_append(&mut self, now: Timestamp) -> Option<Batch> {
        if !self.wants_append() {
            return None;
        }
        let last = self.queue.back();
        let finished = last.and_then(|queued| ledger::state_after(&queued.body));
        let row = match finished {
            Some(state) => Standing::of(state),
            None => self.standing(),
        };
        let state = (row.state != self.row.state).then_some(row.state);
        let wake_at = (row.wake_at != self.row.wake_at).then_some(row.wake_at);
        let waits = (row.waits != self.row.waits).then(|| row.waits.clone());
        self.row = row;

        self.closed += 1;
        let number = self.closed;
        for turn in self.turns.iter_mut().rev() {
            match turn.ready {
                Ready::Unclosed => turn.ready = Ready::Batch(number),
                Ready::Now => {}
                Ready::Batch(_) => break,
            }
        }
        let mut in_flight = InFlight {
            number,
            last_seq: self.last_seq,
            choices: 0,
            notify: Vec::new(),
            finishes: finished.is_some(),
        };
        let mut records = Vec::with_capacity(self.queue.len());
        let mut takes = std::mem::take(&mut self.inbox.takes);
        let cancels = std::mem::take(&mut self.inbox.cancels);
        let mut sent: Vec<_> = cancels.into_iter().map(Sent::Cancel).collect();
        for queued in self.queue.drain(..) {
            in_flight.last_seq += 1;
            in_flight.choices += usize::from(queued.choice);
            if let Some((node, stamp)) = queued.notify {
                let started = matches!(
                    queued.body,
                    Body::Attempt {
                        state: AttemptState::Started,
                        ..
                    }
                );
                in_flight.notify.push((node, stamp, started));
            }
            if let Body::Taken(messages) = &queued.body
                && !queued.kept
            {
                takes.extend(messages.iter().map(|message| message.arrival));
            }
            sent.extend(queued.sent.map(|sent| *sent));
            let seq = in_flight.last_seq;
            records.push(Record {
                seq,
                at: now,
                code: self.code,
                location: queued.location,
                body: queued.body,
            });
        }
        self.forced = false;
        self.durables = 0;
        let recovers = self.takes_back_unclean(&records);
        let releases = self.releases() && finished.is_none();
        self.released = releases;
        let expected_seq = self.last_seq;
        self.in_flight = Some(in_flight);
        let deletes = std::mem::take(&mut self.deletes);
        let returns = std::mem::take(&mut self.inbox.returns);
        if !returns.is_empty() && self.row.waits.is_some() {
            // The store makes the run due because of them, which looked at them already: that is to be said again.
            self.row.wake_at = Some(Timestamp::MIN);
        }
        Some(Batch {
            number,
            expected_seq,
            records,
            deletes,
            state,
            wake_at,
            waits,
            returns,
            takes,
            dead: std::mem::take(&mut self.inbox.dead),
            seen: self.inbox.seen,
            sent,
            recovers,
            releases,
            progress: self.progress.take(),
            code: self.code,
        })
    }

    /// Whether the run rests, and what it would say of that can wait until it leaves memory. If so, and that is now, ask
    /// [`poll_suspend`](Self::poll_suspend).
    pub fn rests_patiently(&self) -> bool {
        let idle = self.phase == Phase::Live && self.in_flight.is_none();
        self.patient && idle && !self.draining && self.is_resting()
    }

    /// Says whether the run may leave memory. First it may ask, by another batch, for what it has queued to be durable.
    #[must_use]
    pub fn poll_suspend(&mut self) -> Option<Suspend> {
        if self.phase != Phase::Live || self.in_flight.is_some() || self.alive > 0 {
            return None;
        }
        if !self.draining && !self.is_resting() {
            return None;
        }
        if self.draining || self.inbox.has_waiters() {
            self.record_arrivals();
        }
        if self.has_news() {
            self.forced = true;
            return None;
        }
        Some(Suspend {
            wake_at: self.next_deadline(),
        })
    }

    // ===== what happened outside =====

    /// The code is quiet and [`poll_handout`](Self::poll_handout) gave nothing. Opens the gate when every record is
    /// consumed; true when it did, and the code must be polled again.
    pub fn handle_quiet(&mut self) -> bool {
        if self.phase != Phase::Replaying || !self.turns.is_empty() || self.gate.before {
            return false;
        }
        if self.unconsumed > 0 {
            self.diverge_at_leftover(Issued::NotReached);
            return false;
        }
        self.check_pins();
        if self.phase != Phase::Diverged && self.end_kept_at_gate() {
            return true;
        }
        if self.phase == Phase::Diverged || self.is_gate_held() {
            return false;
        }
        self.phase = Phase::Live;
        for (node, stamp) in std::mem::take(&mut self.before_gate) {
            if !self.tree.is_stale(node, stamp) {
                self.go_live(node);
            }
        }
        self.wake_held();
        self.wake_noted();
        true
    }

    /// The batch in flight is durable.
    pub fn handle_appended(&mut self) {
        let Some(landed) = self.in_flight.take() else {
            return;
        };
        self.last_seq = landed.last_seq;
        self.appended = landed.number;
        self.choices -= landed.choices;
        for (node, stamp, started) in landed.notify {
            if self.tree.is_stale(node, stamp) {
                continue;
            }
            match self
                .tree
                .get_mut(node)
                .op
                .as_mut()
                .map(|pending| &mut pending.op)
            {
                Some(Doing::Step(step)) => {
                    step.unsaved = false;
                    step.started |= started;
                }
                Some(Doing::Rolling(rolling)) => rolling.unsaved = false,
                _ => {}
            }
            self.wake(node);
        }
        self.wake_noted();
        if landed.finishes {
            self.phase = Phase::Done;
        }
        if self.choices == 0 {
            self.wake_held();
        } else if self.is_held() {
            // A choice was made while the batch was written. The steps that are held wait for that one, too.
            self.forced = true;
        }
    }

    /// The clock says `now`: what was due by then is woken, the earliest first. A receive among it looks once more: what is being
    /// read of the inbox is to be read again.
    pub fn handle_due(&mut self, now: Timestamp) {
        if self.phase != Phase::Live || self.draining {
            return;
        }
        while let Some(&(at, node)) = self.deadlines.first() {
            if at > now {
                break;
            }
            self.deadlines.pop_first();
            let lone = self.pending == 1;
            let Some(pending) = &mut self.tree.get_mut(node).op else {
                continue;
            };
            match &mut pending.op {
                Doing::Step(step) => {
                    step.wake_at = None;
                    pending.wake();
                }
                Doing::Sleep { .. } => {
                    let ended = Ended {
                        kind: Kind::Sleep,
                        outcome: Ok(Payload::json(&b"null"[..])),
                        attempts: 0,
                        started_at: at,
                        input_hash: None,
                    };
                    // Alone, it is derived again from its deadline; beside others, it decides an order.
                    let class = if lone { Class::Rider } else { Class::Durable };
                    self.push_ended(node, ended, class);
                }
                Doing::Limit { over, .. } => {
                    *over = true;
                    pending.wake();
                }
                Doing::Recv(_) => self.expire(node),
                Doing::Now { .. }
                | Doing::Boundary(_)
                | Doing::Sent(_)
                | Doing::Rolling(_)
                | Doing::Asked { .. }
                | Doing::Child(_) => {}
            }
        }
    }

    /// What is queued is to be durable soon, also if only riders are.
    pub fn handle_flush(&mut self) {
        self.forced |= !self.queue.is_empty();
    }

    /// The run is to leave memory: nothing new is begun, nothing more is handed out, bodies may end.
    pub fn handle_drain(&mut self) {
        self.draining = true;
    }

    /// Bodies that did not end in time were dropped with the code: they no longer hold the run back.
    pub fn handle_dropped(&mut self) {
        self.alive = 0;
    }

    /// The code came to its end: the run has ended, or, when it failed and its ledger has entries, its effects are undone
    /// first. False when records are left over: the run diverged.
    pub fn finish(&mut self, finished: Finished) -> bool {
        if self.phase == Phase::Replaying {
            if self.unconsumed > 0 {
                self.diverge_at_leftover(Issued::End);
            } else {
                self.check_pins();
            }
            if self.phase == Phase::Replaying {
                self.phase = Phase::Live;
            }
        }
        if self.phase != Phase::Live || self.over {
            return false;
        }
        self.over = true;
        match finished {
            Finished::Failed(cause) if self.ledger.newest().is_some() => {
                self.push_unwinding(Some(cause));
            }
            finished => self.push(Queued::new(
                Location::root(),
                Body::Finished(finished),
                Class::Durable,
            )),
        }
        true
    }

    // ===== getters =====

    /// The earliest pending deadline: of a sleep, or of a retry.
    pub fn next_deadline(&self) -> Option<Timestamp> {
        self.deadlines.first().map(|(at, _)| *at)
    }

    /// The wake time in the run's row, as of the last batch closed.
    pub fn recorded_wake(&self) -> Option<Timestamp> {
        self.row.wake_at
    }

    /// True when something from outside may come that the run waits for: a message, or the end of a child.
    pub fn waits_for_others(&self) -> bool {
        self.inbox.has_waiters()
    }

    /// True when [`poll_append`](Self::poll_append) would give a batch.
    pub fn wants_append(&self) -> bool {
        if self.phase != Phase::Live || self.in_flight.is_some() {
            return false;
        }
        // What was forced may have been forgotten since, with a branch that lost.
        let forced = self.forced && self.has_news();
        forced || self.durables > 0
    }

    /// True when a batch would say something that is not durable yet.
    fn has_news(&self) -> bool {
        !self.queue.is_empty()
            || self.inbox.has_changes()
            || self.progress.is_some()
            || (self.releases() && !self.released && !self.is_resting())
            || self.row != self.standing()
    }

    /// What the run's row has to say while it runs on, or rests.
    fn standing(&self) -> Standing {
        let rests = self.is_resting();
        if !rests && !self.draining {
            return Standing::of(RunState::Running);
        }
        Standing {
            // One that leaves memory in the middle of something is due all the same.
            state: if rests {
                RunState::Waiting
            } else {
                RunState::Running
            },
            wake_at: self.next_deadline(),
            waits: self.inbox.has_waiters().then(|| self.awaited_channels()),
        }
    }

    /// True when the run only waits: every operation for a deadline, a message or a child, and no outcome is on its way.
    fn is_resting(&self) -> bool {
        self.alive == 0
            && self.turns.is_empty()
            && self.pending > 0
            && self.pending == self.deadlines.len() + self.inbox.untimed
            && self.inbox.is_idle()
    }

    // ===== helpers =====

    /// True when a choice waits for the next batch. One that is being written needs no other.
    pub(super) fn has_queued_choice(&self) -> bool {
        let written = self.in_flight.as_ref().map_or(0, |batch| batch.choices);
        self.choices > written
    }

    /// True when a step waits for choices to be durable.
    fn is_held(&self) -> bool {
        self.held
            .iter()
            .any(|&(node, stamp)| !self.tree.is_stale(node, stamp))
    }

    pub(super) fn wake_held(&mut self) {
        for (node, stamp) in std::mem::take(&mut self.held) {
            if !self.tree.is_stale(node, stamp) {
                self.wake(node);
            }
        }
    }

    fn wake(&mut self, node: u32) {
        if let Some(pending) = &mut self.tree.get_mut(node).op {
            pending.wake();
        }
    }

    /// Every site that the code has reached leaves a trace, so that a later version gate sees it was passed.
    fn record_arrivals(&mut self) {
        // Receives first, as long as they have waited: that order decides who takes a message.
        for node in self.inbox.receivers().chain(self.tree.under(0)) {
            let found = self.tree.get(node);
            if found.op.is_some() && !found.touched {
                let body = self.arrival_of(node);
                self.push_at(node, body, Class::Durable);
            }
        }
    }

    fn diverge_at_leftover(&mut self, issued: Issued) {
        let left = self
            .tree
            .under(0)
            .into_iter()
            .filter(|&node| self.tree.get(node).unconsumed > 0);
        if let Some(node) = left.min_by_key(|&node| self.tree.get(node).first_seq) {
            let recorded = self.recorded_at(node);
            self.diverge(self.tree.location_of(node), recorded, issued);
        }
    }
}
