//! Containers: how they are entered and left, how a race is decided, and what goes with its losers.

use super::inbox::Dropped;
use super::tree::{Doing, Name, Text};
use super::{Class, Container, Entered, Member, Outcome, Phase, Queued, Replay, Scope, segment_of};
use crate::replay::{Body, Issued, Kind, Location, Opened, Recorded, Segment, Site};

impl Replay {
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
            if forgotten
                && !queued.kept
                && let Body::Taken(messages) = &queued.body
            {
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
                Doing::Sleep { until } | Doing::Limit { until, .. } => {
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
                Doing::Now { .. }
                | Doing::Boundary(_)
                | Doing::Sent(_)
                | Doing::Asked { .. }
                | Doing::Child(_) => {}
            }
        }
        self.forget_waiting(&nodes);
        dropped
    }

    // ===== divergence =====

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
