//! What the code asks.

use std::task::{Poll, Waker};

use super::inbox::{Dropped, Receiving, Sent};
use super::ledger::{Rolling, Undoing};
use super::tree::{Doing, Name, Pending, Stepping, Text};
use super::{
    Attempt, Class, Container, Ending, Entered, Issue, Member, Op, Outcome, Phase, Queued, Replay,
    Scope, Ticket, segment_of,
};
use crate::replay::{
    AttemptState, Body, Ended, Failure, Issued, Kind, Location, Opened, Payload, Recorded, Segment,
    Site, Timestamp, Waiting,
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
        self.tree.get_mut(node).op = Some(Pending::new(self.doing(node, op)));
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

    /// A container was reached.
    pub fn enter(
        &mut self,
        scope: Scope,
        site: &'static Site,
        container: Container<'_>,
    ) -> Entered {
        let kind = match container {
            Container::Join(_) => Kind::Join,
            Container::Race(_) => Kind::Race,
            Container::JoinAll(_) => Kind::JoinAll,
            Container::Loop | Container::Carry(_) => Kind::Loop,
            Container::Fragment => Kind::Fragment,
            Container::Attempt => Kind::Attempt,
        };
        let Some(node) = self.reach(scope, site, kind) else {
            return Entered::Never;
        };
        let opened = match container {
            Container::Join(branches) => Some(Opened::Join(owned(branches))),
            Container::Race(branches) => Some(Opened::Race(owned(branches))),
            Container::JoinAll(items) => Some(Opened::JoinAll(items)),
            Container::Carry(locals) => Some(Opened::Carry(owned(locals))),
            Container::Loop | Container::Fragment | Container::Attempt => None,
        };
        let Some(opened) = opened else {
            let rare = self.tree.get_mut(node).rare.as_mut();
            if let Some(recorded) = rare.and_then(|rare| rare.opened.take()) {
                // It started again from locals that the code no longer carries.
                self.diverge_at_branches(node, site, recorded, Opened::Carry(Vec::new()));
                return Entered::Never;
            }
            return Entered::Open {
                scope: self.tree.scope(node),
                winner: None,
            };
        };
        if let Some(recorded) = self.tree.rare(node).opened.take() {
            if recorded != opened {
                self.diverge_at_branches(node, site, recorded, opened);
                return Entered::Never;
            }
        } else {
            self.tree.rare(node).unopened = Some(opened);
        }
        let rare = self.tree.rare(node);
        rare.site = Some(site);
        let mut winner = None;
        if let Container::Race(branches) = container {
            rare.branches = branches.to_vec();
            if let Some(decided) = rare.decided.clone() {
                winner = branches.iter().position(|branch| **branch == *decided);
            }
        }
        // A decided race runs one branch only, and a loop one iteration: nothing runs beside anything there.
        match winner {
            Some(winner) => self.drop_losers(node, winner),
            None if matches!(container, Container::Carry(_)) => {}
            None => {
                rare.branching = true;
                self.branching += 1;
            }
        }
        Entered::Open {
            scope: self.tree.scope(node),
            winner,
        }
    }

    /// The scope of a member of a container.
    pub fn member(&mut self, container: Scope, member: Member<'_>) -> Scope {
        let occurrence = match member {
            Member::Key(key) => {
                let seen = self
                    .tree
                    .rare(container.node)
                    .keys
                    .entry(key.into())
                    .or_insert(0);
                *seen += 1;
                *seen - 1
            }
            _ => 0,
        };
        let segment = segment_of(member, occurrence);
        let found = self.tree.find(container.node, segment);
        let node = found.unwrap_or_else(|| {
            let name = match member {
                Member::Branch(name) => Name::Branch(Text::Static(name)),
                Member::Iter(index) => Name::Iter(index),
                Member::Key(key) => {
                    Name::Key(Text::Recorded(key.as_bytes().to_vec().into()), occurrence)
                }
            };
            self.tree.add(container.node, name)
        });
        self.tree.get_mut(node).issued = true;
        self.tree.advance(container.node, node);
        self.tree.scope(node)
    }

    /// A container or member was left: nothing more is issued under it. Also called when its future is dropped, so
    /// nothing is judged here; what is left over is found at the gate.
    pub fn leave(&mut self, scope: Scope) {
        if scope == Scope::ROOT
            || self.phase == Phase::Diverged
            || self.tree.is_stale(scope.node, scope.stamp)
        {
            return;
        }
        if let Some(rare) = &mut self.tree.get_mut(scope.node).rare {
            self.branching -= u32::from(std::mem::take(&mut rare.branching));
        }
        let is_used = |node: u32| {
            let node = self.tree.get(node);
            node.unconsumed > 0
                || node.op.is_some()
                || node.rare.as_ref().is_some_and(|rare| rare.branching)
        };
        let used = if self.tree.is_leaf(scope.node) {
            is_used(scope.node)
        } else {
            self.tree.under(scope.node).into_iter().any(is_used)
        };
        if !used {
            self.tree.free(scope.node, |_, _| {});
        }
    }

    /// A branch of a race succeeded first. The losers' futures must have been dropped. False when that contradicts the
    /// history: the run diverged, stay pending.
    pub fn decide(&mut self, race: Scope, winner: usize) -> bool {
        let node = race.node;
        if self.phase == Phase::Diverged {
            return false;
        }
        let rare = self.tree.rare(node);
        let site = rare.site;
        let Some(&branch) = rare.branches.get(winner) else {
            return false;
        };
        if let Some(decided) = rare.decided.take() {
            if decided != branch {
                self.diverge_at_winner(node, site, decided, branch);
                return false;
            }
            self.consume(node, 1);
            return true;
        }
        // Recorded now, it would come after what is recorded beyond it.
        if let Some(head) = self.tree.passed(node) {
            let recorded = self.recorded_at(head);
            let issued = match site {
                Some(site) => Issued::Site(*site),
                None => Issued::NotReached,
            };
            self.diverge(self.tree.location_of(node), recorded, issued);
            return false;
        }
        self.drop_losers(node, winner);
        if let Some(winner) = self.tree.find(node, Segment::Branch(branch)) {
            self.keep_won(node, winner);
        }
        if self.choices == 0 {
            self.wake_held();
        }
        let branch = branch.to_owned();
        self.push_at(node, Body::Decided { branch }, Class::Rider);
        true
    }

    // ===== how a site is reached =====

    /// Moves the scope's cursor onto this site, or makes it anew at the frontier; nothing when the run diverged.
    fn reach(&mut self, scope: Scope, site: &'static Site, kind: Kind) -> Option<u32> {
        if self.is_stopped() {
            return None;
        }
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
            Doing::Recv(_) => self.begin_recv(node),
            Doing::Rolling(_) => pending.wake(),
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

    // ===== dropped branches =====

    /// Covers everything under the losing branches: their records go with the next batch, and what they had taken goes back.
    fn drop_losers(&mut self, race: u32, winner: usize) {
        let names = self.tree.rare(race).branches.clone();
        let losers = names
            .iter()
            .enumerate()
            .filter(|(index, _)| *index != winner)
            .map(|(_, name)| *name);
        let mut dropped = Dropped::default();
        for name in losers {
            let Some(branch) = self.tree.find(race, Segment::Branch(name)) else {
                continue;
            };
            let location = self.tree.location(branch);
            // A fact leaves no trace in the tree.
            if self.tree.get(branch).touched || self.has_facts(&location) {
                dropped.unsaved.extend(self.forget_queued(&location));
                self.deletes.push(location);
            }
            let below = self.drop_branch(branch);
            dropped.extend(below);
        }
        self.give_back(dropped);
    }

    /// Forgets what is queued for a scope; gives the arrivals of the messages that it would have taken.
    pub(super) fn forget_queued(&mut self, scope: &Location) -> Vec<u64> {
        let Self {
            queue,
            choices,
            durables,
            ..
        } = self;
        let mut untaken = Vec::new();
        queue.retain(|queued: &Queued| {
            let forgotten = queued.location.is_under(scope);
            *choices -= usize::from(forgotten && queued.choice);
            *durables -= usize::from(forgotten && queued.class == Class::Durable);
            if forgotten && let Body::Taken(messages) = &queued.body {
                untaken.extend(messages.iter().map(|message| message.arrival));
            }
            !forgotten
        });
        untaken
    }

    /// Frees a scope and everything in it; gives what lay there and concerns others.
    pub(super) fn drop_branch(&mut self, branch: u32) -> Dropped {
        if !self.facts.is_empty() {
            let location = self.tree.location(branch);
            self.forget_facts(&location);
        }
        let mut dropped = Dropped::default();
        let mut ops = Vec::new();
        let Self {
            tree,
            unconsumed,
            branching,
            ..
        } = self;
        tree.free(branch, |index, node| {
            *unconsumed -= u64::from(node.unconsumed);
            node.unconsumed = 0;
            let ended = node.outcome.take();
            if let Some(rare) = &mut node.rare {
                *branching -= u32::from(rare.branching);
                let mut taken = std::mem::take(&mut rare.taken);
                if let Some(carrying) = &mut rare.carrying {
                    taken.append(&mut carrying.taken);
                }
                dropped
                    .taken
                    .extend(taken.into_iter().map(|(_, message)| message));
                if ended.is_none() {
                    dropped.children.extend(rare.child.take());
                }
            }
            if let Some(Outcome::Taken(messages)) = ended {
                dropped.taken.extend(messages);
            }
            if let Some(gone) = node.op.take() {
                ops.push((index, gone.op));
            }
        });
        self.pending -= ops.len();
        let nodes: Vec<u32> = ops.iter().map(|(node, _)| *node).collect();
        for (node, op) in ops {
            match op {
                Doing::Sleep { until } => {
                    self.deadlines.remove(&(until, node));
                }
                Doing::Step(step) => {
                    self.alive -= usize::from(step.alive);
                    if let Some(wake_at) = step.wake_at {
                        self.deadlines.remove(&(wake_at, node));
                    }
                }
                Doing::Recv(receiving) => self.drop_receiving(node, *receiving, &mut dropped),
                Doing::Rolling(rolling) => self.alive -= usize::from(rolling.running),
                Doing::Now { .. } | Doing::Boundary(_) | Doing::Sent(_) | Doing::Child(_) => {}
            }
        }
        self.forget_waiting(&nodes);
        dropped
    }

    // ===== divergence at containers =====

    fn diverge_at_branches(&mut self, node: u32, site: &Site, recorded: Opened, issued: Opened) {
        let kind = self.tree.get(node).kind.unwrap_or(site.kind);
        let site = Site { kind, ..*site };
        let recorded = match recorded {
            Opened::Join(branches) | Opened::Race(branches) | Opened::Carry(branches) => {
                Recorded::Branches(branches)
            }
            Opened::JoinAll(items) => Recorded::Items(items),
            Opened::Stage { .. } => Recorded::Nothing,
        };
        let issued = match issued {
            Opened::Join(branches) | Opened::Race(branches) | Opened::Carry(branches) => {
                Issued::Branches { site, branches }
            }
            Opened::JoinAll(items) => Issued::Items { site, items },
            Opened::Stage { .. } => Issued::Site(site),
        };
        self.diverge(self.tree.location_of(node), recorded, issued);
    }

    fn diverge_at_winner(
        &mut self,
        node: u32,
        site: Option<&'static Site>,
        recorded: String,
        branch: &str,
    ) {
        let issued = match site {
            Some(site) => Issued::Winner {
                site: *site,
                branch: branch.to_owned(),
            },
            None => Issued::NotReached,
        };
        self.diverge(
            self.tree.location_of(node),
            Recorded::Winner(recorded),
            issued,
        );
    }
}

fn owned(names: &[&'static str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

pub(super) fn remember(slot: &mut Option<Waker>, waker: &Waker) {
    match slot {
        Some(known) if known.will_wake(waker) => {}
        _ => *slot = Some(waker.clone()),
    }
}
