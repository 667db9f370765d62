//! What the code asks at one site; `containers.rs` has what holds several.

use std::task::{Poll, Waker};

use super::inbox::{Receiving, Sent};
use super::ledger::{Rolling, Undoing};
use super::tree::{Doing, Name, Pending, Stepping, Text};
use super::{Attempt, Class, Ending, Issue, Op, Outcome, Phase, Replay, Scope, Ticket};
use crate::replay::{
    AttemptState, Body, Ended, Failure, Issued, Kind, Location, Payload, Recorded, Segment, Site,
    Timestamp, Waiting,
};

impl Replay {
    /// A site of `scope` was reached. What it does is `op`'s kind, whatever `site` says: a call's kind is known only by
    /// its type.
    pub fn issue(&mut self, scope: Scope, site: &'static Site, op: Op) -> Issue {
        let Some(node) = self.reach(scope, site, op.kind()) else {
            return Issue::Never;
        };
        if self.branching == 0 && self.is_next(node) {
            self.turns.pop_front();
            return Issue::Ready(self.deliver(node));
        }
        self.pending += 1;
        self.tree.get_mut(node).op = Some(Pending::new(self.doing(node, op), Some(site)));
        if self.tree.get(node).outcome.is_none() {
            self.at_the_frontier(node);
        }
        self.in_its_turn(node)
    }

    /// An operation that is not recorded goes live, now or when the gate opens.
    pub(super) fn at_the_frontier(&mut self, node: u32) {
        if self.is_open() {
            self.go_live(node);
        } else {
            let ticket = self.tree.ticket(node);
            self.before_gate.push((ticket.node, ticket.stamp));
        }
    }

    /// A rider with nothing beside it has its turn at once.
    pub(super) fn in_its_turn(&mut self, node: u32) -> Issue {
        if self.branching == 0
            && self.is_open()
            && self.is_next(node)
            && self.turns[0].ready == super::Ready::Now
        {
            self.turns.pop_front();
            self.pending -= 1;
            return Issue::Ready(self.deliver(node));
        }
        Issue::Pending(self.tree.ticket(node))
    }

    /// The outcome, once it is this operation's turn. Ready once: the ticket is spent then.
    pub fn poll_outcome(&mut self, ticket: &Ticket, waker: &Waker) -> Poll<Outcome> {
        if self.tree.is_stale(ticket.node, ticket.stamp) {
            return Poll::Pending;
        }
        let Some(pending) = &mut self.tree.get_mut(ticket.node).op else {
            return Poll::Pending;
        };
        if !pending.handed_out {
            remember(&mut pending.waker, waker);
            return Poll::Pending;
        }
        self.pending -= 1;
        Poll::Ready(self.deliver(ticket.node))
    }

    /// Whether an attempt of a step may begin now. When ready, its body counts as alive until [`record`](Self::record)
    /// or [`attempt_failed`](Self::attempt_failed). Pending before the gate, while a choice is not durable, while
    /// draining, and until a recorded wake time; `waker` is woken when that may have changed.
    pub fn may_run(&mut self, ticket: &Ticket, waker: &Waker) -> Poll<Attempt> {
        if self.tree.is_stale(ticket.node, ticket.stamp) {
            return Poll::Pending;
        }
        let (open, draining) = (self.is_open(), self.draining);
        let node = self.tree.get_mut(ticket.node);
        let Some(Pending {
            op: Doing::Step(step),
            waker: parked,
            ..
        }) = &mut node.op
        else {
            return Poll::Pending;
        };
        if step.ended || (step.alive && !step.announcing) {
            return Poll::Pending;
        }
        // One that was announced is as good as running: if it did not begin now, it never would.
        let held = !open || (draining && !step.announcing) || self.choices > 0;
        remember(parked, waker);
        if step.unsaved || step.wake_at.is_some() {
            return Poll::Pending;
        }
        if held {
            self.held.push((ticket.node, ticket.stamp));
            self.forced |= self.has_queued_choice();
            return Poll::Pending;
        }
        let number = step.failed + 1;
        let announces = step.announced && !step.started;
        if let Some(undoing) = step.undoing.filter(|undoing| undoing.unknown) {
            let location = self.tree.location(ticket.node);
            if !self.is_armed(&location) {
                self.arm_before(ticket, location, undoing);
                if announces {
                    // In the same batch: it costs no commit of its own.
                    self.announce(ticket.node, number);
                }
                return Poll::Pending;
            }
        }
        let Some(step) = self.tree.get_mut(ticket.node).stepping() else {
            return Poll::Pending;
        };
        if announces {
            step.unsaved = true;
            step.alive = true;
            self.alive += usize::from(!std::mem::replace(&mut step.announcing, true));
            self.announce(ticket.node, number);
            return Poll::Pending;
        }
        step.started = false;
        if !std::mem::take(&mut step.announcing) {
            step.alive = true;
            self.alive += 1;
        }
        Poll::Ready(Attempt {
            number,
            last: step.last.clone(),
        })
    }

    /// The body ended for good.
    pub fn record(&mut self, ticket: &Ticket, ending: Ending) {
        let Some(step) = self.body_ended(ticket) else {
            return;
        };
        step.ended = true;
        let class = if step.ephemeral {
            Class::Rider
        } else {
            Class::Durable
        };
        let undone = match (step.undoing, &ending.result) {
            (Some(undoing), Ok(output)) => Some((undoing, output.clone())),
            _ => None,
        };
        let ended = Ended {
            kind: Kind::Step,
            outcome: ending.result,
            attempts: ending.attempts,
            started_at: ending.started_at,
            input_hash: None,
        };
        self.push_ended(ticket.node, ended, class);
        if !ending.values.is_empty()
            && let Some(queued) = self.queue.back_mut()
        {
            queued.sent = Some(Box::new(Sent::Values(ending.values)));
        }
        if let Some((undoing, output)) = undone {
            let location = self.tree.location(ticket.node);
            self.arm(location, undoing, Some(output));
        }
    }

    /// The ledger has the effect before the body begins: from then on it may be there.
    fn arm_before(&mut self, ticket: &Ticket, location: Location, undoing: Undoing) {
        if let Some(step) = self.tree.get_mut(ticket.node).stepping() {
            step.unsaved = true;
            step.announcing = true;
            step.alive = true;
            self.alive += 1;
        }
        self.arm(location, undoing, None).notify = Some((ticket.node, ticket.stamp));
    }

    /// The attempt failed, and another one follows, not before `wake_at`.
    pub fn attempt_failed(
        &mut self,
        ticket: &Ticket,
        number: u32,
        failure: Failure,
        wake_at: Timestamp,
    ) {
        let Some(step) = self.body_ended(ticket) else {
            return;
        };
        step.failed = number;
        step.last = Some(failure.clone());
        step.unsaved = true;
        step.wake_at = Some(wake_at);
        self.deadlines.insert((wake_at, ticket.node));
        let state = AttemptState::Failed { failure, wake_at };
        let queued = self.push_at(ticket.node, Body::Attempt { number, state }, Class::Durable);
        queued.notify = Some((ticket.node, ticket.stamp));
    }

    // ===== how a site is reached =====

    /// Moves the scope's cursor onto this site, or makes it anew at the frontier; nothing when the run diverged.
    pub(super) fn reach(&mut self, scope: Scope, site: &'static Site, kind: Kind) -> Option<u32> {
        if self.is_stopped() {
            return None;
        }
        self.reached = Some(site);
        if !self.facts.is_empty() {
            let location = self.tree.location(scope.node).site(site.name);
            if let Some(removed) = self.is_removed(&location) {
                let issued = Issued::Site(Site { kind, ..*site });
                self.diverge(location, Recorded::Removed(removed), issued);
                return None;
            }
        }
        let container = matches!(
            kind,
            Kind::Join | Kind::Race | Kind::JoinAll | Kind::Loop | Kind::Fragment | Kind::Attempt
        );
        let head = self.tree.head(scope.node);
        let fitting = head.filter(|&head| {
            self.tree.get(head).name.is(Segment::Site(site.name))
                && self
                    .kind_of(head)
                    .is_none_or(|is| is == kind || (container && is.is_like(kind)))
        });
        // A container that recorded nothing is no head: it may stand before the next one. But nothing may be issued in it.
        let ahead = if container {
            let is_recorded = |_: &u32| {
                let same = self.tree.find(scope.node, Segment::Site(site.name));
                same.is_some_and(|node| self.tree.get(node).recorded)
            };
            head.filter(is_recorded)
        } else {
            head.or_else(|| self.tree.passed(scope.node))
        };
        let node = if let Some(head) = fitting {
            self.tree.advance(scope.node, head);
            head
        } else if let Some(head) = ahead {
            let location = self.tree.location_of(scope.node).site(site.name);
            let recorded = self.recorded_at(head);
            self.diverge(location, recorded, Issued::Site(Site { kind, ..*site }));
            return None;
        } else {
            debug_assert!(
                self.tree.children(scope.node).all(|child| !self
                    .tree
                    .get(child)
                    .name
                    .is(Segment::Site(site.name))),
                "{site} was issued twice in one scope"
            );
            self.tree
                .add(scope.node, Name::Site(Text::Static(site.name)))
        };
        let found = self.tree.get_mut(node);
        found.issued = true;
        // The outcome is consumed when it is handed out, a decision when it is made again.
        let later = u32::from(found.outcome.is_some())
            + u32::from(
                found
                    .rare
                    .as_ref()
                    .is_some_and(|rare| rare.decided.is_some()),
            );
        let now = found.unconsumed.saturating_sub(later);
        self.consume(node, now);
        Some(node)
    }

    fn doing(&mut self, node: u32, op: Op) -> Doing {
        let op = self.with_undo(node, op);
        let rare = self.tree.get_mut(node).rare.as_mut();
        match op {
            Op::Now { now } => Doing::Now { now },
            Op::Sleep { until } => Doing::Sleep {
                until: rare.and_then(|rare| rare.until).unwrap_or(until),
            },
            Op::Recv(mut wanted) => {
                if let Some(until) = rare.and_then(|rare| rare.until) {
                    wanted.until = Some(until);
                    wanted.poll = false;
                }
                Doing::Recv(Box::new(Receiving::new(wanted)))
            }
            Op::Send { to, message } => Doing::Sent(Some(Box::new((
                Kind::Send,
                Ok(Sent::Message { to, message }),
            )))),
            Op::Reply { request, reply } => {
                let answer = Sent::Answer { request, reply };
                Doing::Sent(Some(Box::new((Kind::Reply, Ok(answer)))))
            }
            Op::Failed { kind, failure } => Doing::Sent(Some(Box::new((kind, Err(failure))))),
            Op::Rollback { to } => Doing::Rolling(Rolling::new(to)),
            Op::Asked(kind) => Doing::Asked {
                kind,
                claimed: false,
            },
            Op::Child(child) => Doing::Child(Some(Box::new(child))),
            Op::Step {
                ephemeral,
                announced,
                undoing,
                attempts,
            } => {
                let mut step = Stepping {
                    ephemeral,
                    announced,
                    undoing,
                    attempts,
                    ..Stepping::default()
                };
                if let Some((number, failure, wake_at)) = rare.and_then(|rare| rare.failed.take()) {
                    step.failed = number;
                    step.last = Some(failure);
                    step.wake_at = Some(wake_at);
                }
                Doing::Step(step)
            }
        }
    }

    /// The operation is at the frontier, and the gate is open.
    pub(super) fn go_live(&mut self, node: u32) {
        if self.end_kept(node) {
            return;
        }
        let rare = self.tree.get_mut(node).rare.as_mut();
        let (until, started) = rare.map_or((None, None), |rare| (rare.until, rare.started.take()));
        let Some(pending) = &mut self.tree.get_mut(node).op else {
            return;
        };
        match &mut pending.op {
            Doing::Now { now } => {
                let millis = now.as_millis().to_string();
                let ended = Ended {
                    kind: Kind::Now,
                    outcome: Ok(Payload::json(millis.into_bytes())),
                    attempts: 0,
                    started_at: *now,
                    input_hash: None,
                };
                self.push_ended(node, ended, Class::Rider);
                self.queue
                    .back_mut()
                    .expect("an outcome was just queued")
                    .choice = true;
                self.choices += 1;
            }
            Doing::Sleep { until: deadline } => {
                let deadline = *deadline;
                self.deadlines.insert((deadline, node));
                if until.is_none() {
                    self.push_at(
                        node,
                        Body::Waiting(Waiting::Sleep { until: deadline }),
                        Class::Durable,
                    );
                }
            }
            Doing::Limit { until, .. } => {
                let until = *until;
                self.deadlines.insert((until, node));
            }
            Doing::Recv(_) => self.begin_recv(node),
            Doing::Rolling(_) | Doing::Asked { .. } => pending.wake(),
            Doing::Sent(sent) => {
                if let Some(sent) = sent.take() {
                    let (kind, sent) = *sent;
                    self.push_sent(node, kind, sent);
                }
            }
            Doing::Child(child) => {
                if let Some(child) = child.take() {
                    self.begin_child(node, *child);
                }
            }
            Doing::Boundary(boundary) => {
                if let Some(boundary) = boundary.take() {
                    self.cross(node, boundary);
                }
            }
            Doing::Step(step) => {
                if let Some(number) = started {
                    // Announced and never ended: whether the effect happened is unknown, so it is not tried again.
                    step.ended = true;
                    self.interrupt(node, number);
                    return;
                }
                // One that is announced before it begins was not begun.
                if !step.announced && self.unclean.counts_for(step.wake_at) {
                    let claims = self.unclean.claims;
                    let step = &mut *step;
                    step.failed = step.failed.saturating_add(claims);
                    let failed = step.failed;
                    if failed >= step.attempts.max(2) {
                        step.ended = true;
                        self.interrupt(node, failed);
                        return;
                    }
                    let failure = self.interrupted(node, failed);
                    if let Some(step) = self.tree.get_mut(node).stepping() {
                        step.last = Some(failure);
                    }
                }
                let Some(pending) = &mut self.tree.get_mut(node).op else {
                    return;
                };
                if let Doing::Step(step) = &pending.op
                    && let Some(wake_at) = step.wake_at
                {
                    self.deadlines.insert((wake_at, node));
                }
                pending.wake();
            }
        }
    }

    fn announce(&mut self, node: u32, number: u32) {
        let stamp = self.tree.get(node).stamp;
        let queued = self.push_at(
            node,
            Body::Attempt {
                number,
                state: AttemptState::Started,
            },
            Class::Durable,
        );
        queued.notify = Some((node, stamp));
    }

    fn interrupted(&self, node: u32, number: u32) -> Failure {
        let location = self.tree.location_of(node);
        let message =
            "the process ended while the body ran; whether its effect happened is unknown";
        Failure::new(crate::replay::FailureKind::Interrupted, location, message)
            .with_attempts(number)
    }

    fn interrupt(&mut self, node: u32, number: u32) {
        let failure = self.interrupted(node, number);
        let ended = Ended {
            kind: Kind::Step,
            outcome: Err(failure),
            attempts: number,
            started_at: Timestamp::default(),
            input_hash: None,
        };
        self.push_ended(node, ended, Class::Durable);
    }

    // ===== outcomes =====

    pub(super) fn is_next(&mut self, node: u32) -> bool {
        // What is covered has no turn any more.
        while let Some(turn) = self.turns.front()
            && self.tree.is_stale(turn.node, turn.stamp)
        {
            self.turns.pop_front();
        }
        self.tree.get(node).outcome.is_some()
            && self
                .turns
                .front()
                .is_some_and(|turn| turn.node == node && turn.stamp == self.tree.get(node).stamp)
    }

    /// Takes an outcome out of its node, which has nothing more to say then.
    pub(super) fn deliver(&mut self, node: u32) -> Outcome {
        let found = self.tree.get_mut(node);
        let outcome = found
            .outcome
            .take()
            .expect("an outcome whose turn it is was recorded");
        found.op = None;
        let left = found.unconsumed;
        self.consume(node, left);
        self.keep_taken(node, &outcome);
        self.tree.free(node, |_, _| {});
        outcome
    }

    pub(super) fn consume(&mut self, node: u32, records: u32) {
        self.tree.get_mut(node).unconsumed -= records;
        self.unconsumed -= u64::from(records);
    }

    fn body_ended(&mut self, ticket: &Ticket) -> Option<&mut Stepping> {
        if self.phase == Phase::Diverged || self.tree.is_stale(ticket.node, ticket.stamp) {
            return None;
        }
        let step = self.tree.get_mut(ticket.node).stepping()?;
        if std::mem::take(&mut step.alive) {
            self.alive -= 1;
        }
        self.tree.get_mut(ticket.node).stepping()
    }
}

pub(super) fn remember(slot: &mut Option<Waker>, waker: &Waker) {
    match slot {
        Some(known) if known.will_wake(waker) => {}
        _ => *slot = Some(waker.clone()),
    }
}
