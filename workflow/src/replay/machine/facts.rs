//! Facts: versions that were chosen, and sites that the code no longer has. They are looked up by name; a cursor does not
//! see them.

use super::{Class, Queued, Replay, Scope};
use crate::replay::{Body, Issued, Kind, Location, Recorded, Segment, Site};

/// What the history says at a name, beside what the code reaches there.
#[derive(Debug, Clone, Copy)]
pub(super) enum Fact {
    Pin {
        value: u32,
        latest: u32,
        read: bool,
    },
    Removed(Kind),
    /// A checkpoint, or that the ledger was settled.
    Said {
        kind: Kind,
        /// The number of its record; 0 when it is not durable yet.
        seq: u64,
    },
}

/// What a version gate gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pinned {
    /// The version that the run goes on with.
    Version(u32),
    /// The run was pinned to this version, and the code does not support it: the run is to be parked.
    Unsupported(u32),
    /// Nothing, ever: the run diverged. Stay pending.
    Never,
}

impl Replay {
    /// A version gate was reached, in code whose newest version is `latest`.
    ///
    /// A run that has passed here under older code, so that something recorded lies sequentially after, gets 1; any other
    /// gets `latest`. What it gets is recorded, and is a choice: no body begins before that is durable.
    pub fn pin(&mut self, scope: Scope, site: &'static Site, latest: u32) -> Pinned {
        if self.is_stopped() {
            return Pinned::Never;
        }
        self.reached = Some(site);
        let location = self.tree.location(scope.node).site(site.name);
        match self.facts.get_mut(&location) {
            Some(Fact::Pin { value, read, .. }) => {
                *read = true;
                return if *value <= latest {
                    Pinned::Version(*value)
                } else {
                    Pinned::Unsupported(*value)
                };
            }
            Some(&mut Fact::Said { kind, seq }) => {
                let recorded = Recorded::Site {
                    location: location.clone(),
                    kind: Some(kind),
                    seq,
                };
                self.diverge(location, recorded, Issued::Site(*site));
                return Pinned::Never;
            }
            Some(&mut Fact::Removed(kind)) => {
                self.diverge(location, Recorded::Removed(kind), Issued::Site(*site));
                return Pinned::Never;
            }
            None => {}
        }
        if let Some(other) = self.recorded_site(scope, site) {
            let recorded = self.recorded_at(other);
            self.diverge(location, recorded, Issued::Site(*site));
            return Pinned::Never;
        }
        let value = if self.has_later(scope.node) {
            1
        } else {
            latest
        };
        self.open_above(scope.node);
        self.push(Queued {
            choice: true,
            ..Queued::new(location, Body::Pin { value, latest }, Class::Rider)
        });
        Pinned::Version(value)
    }

    /// The code says that this scope no longer has a site of this name, which was of that kind. What is recorded of it is
    /// covered, with everything under it, and deleted with the next batch. False when the run diverged: what is
    /// recorded there is of another kind.
    pub fn removed(&mut self, scope: Scope, site: &'static Site, kind: Kind) -> bool {
        if self.is_stopped() {
            return false;
        }
        let location = self.tree.location(scope.node).site(site.name);
        let found = self.recorded_site(scope, site);
        let recorded = match (found, self.facts.get(&location)) {
            (Some(node), _) => match self.kind_of(node) {
                Some(is) if !is.is_like(kind) => self.recorded_at(node),
                _ => return self.cover(location, found, kind),
            },
            (None, Some(Fact::Pin { .. })) if kind == Kind::Version => {
                return self.cover(location, None, kind);
            }
            (None, Some(&Fact::Pin { value, latest, .. })) => Recorded::Pinned { value, latest },
            (None, Some(&Fact::Removed(before))) if !before.is_like(kind) => {
                Recorded::Removed(before)
            }
            (None, _) => return true,
        };
        self.diverge(location, recorded, Issued::Removed { site: *site, kind });
        false
    }

    fn cover(&mut self, location: Location, node: Option<u32>, kind: Kind) -> bool {
        if let Some(node) = node {
            let dropped = self.drop_branch(node);
            // What it had taken stays taken; what it started, nobody waits for any more.
            self.inbox.cancels.extend(dropped.children);
        }
        self.forget_facts(&location);
        self.facts.insert(location.clone(), Fact::Removed(kind));
        self.deletes.push(location.clone());
        let body = Body::Removed { kind };
        self.push(Queued::new(location, body, Class::Rider));
        true
    }

    /// Takes a recorded fact in.
    pub(super) fn load_fact(&mut self, location: Location, seq: u64, body: &Body) {
        let fact = match *body {
            Body::Pin { value, latest } => Fact::Pin {
                value,
                latest,
                read: false,
            },
            Body::Removed { kind } => Fact::Removed(kind),
            Body::Checkpoint => Fact::Said {
                kind: Kind::Checkpoint,
                seq,
            },
            Body::Settled { .. } => Fact::Said {
                kind: Kind::Settle,
                seq,
            },
            _ => return,
        };
        self.facts.insert(location, fact);
    }

    /// Whether something is said at or under a scope.
    pub(super) fn has_facts(&self, scope: &Location) -> bool {
        let mut from = self.facts.range(scope..);
        from.next()
            .is_some_and(|(location, _)| location.is_under(scope))
    }

    /// Forgets what is said at and under a scope that is covered.
    pub(super) fn forget_facts(&mut self, scope: &Location) {
        let gone: Vec<_> = self
            .facts
            .range(scope..)
            .map(|(location, _)| location)
            .take_while(|location| location.is_under(scope))
            .cloned()
            .collect();
        for location in gone {
            self.facts.remove(&location);
        }
    }

    /// A site of a name that was declared removed, in code that has it again.
    pub(super) fn is_removed(&self, location: &Location) -> Option<Kind> {
        match self.facts.get(location) {
            Some(Fact::Removed(kind)) => Some(*kind),
            _ => None,
        }
    }

    /// Diverges when the code has no version gate any more at which the run took another way than the newest.
    pub(super) fn check_pins(&mut self) {
        let unread = self.facts.iter().find_map(|(location, fact)| match *fact {
            Fact::Pin {
                value,
                latest,
                read: false,
            } if value != latest => Some((location.clone(), Recorded::Pinned { value, latest })),
            _ => None,
        });
        if let Some((location, recorded)) = unread {
            self.diverge(location, recorded, Issued::NotReached);
        }
    }

    fn recorded_site(&mut self, scope: Scope, site: &Site) -> Option<u32> {
        let found = self.tree.find(scope.node, Segment::Site(site.name))?;
        self.tree.get(found).recorded.then_some(found)
    }

    /// True when something recorded, and not reached yet, lies sequentially after this point of a scope: anything but what
    /// is under a branch beside it or beside one that it lies in.
    fn has_later(&self, scope: u32) -> bool {
        let mut at = scope;
        loop {
            let node = self.tree.get(at);
            let branching = node.rare.as_ref().is_some_and(|rare| rare.branching);
            if node.unconsumed > 0 || (!branching && self.tree.head(at).is_some()) {
                return true;
            }
            if at == Scope::ROOT.node {
                return false;
            }
            at = node.parent;
        }
    }
}
