//! Labelled loops: each iteration is a scope.

use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use super::entry::{Entry, Inside};
use super::{Cx, Park, Recorded, opaque_debug};
use crate::codec::{self, BoxError};
use crate::replay::{
    Container, Issue, Keeping, Member, Outcome, ParkReason, Payload, Scope, Site, Ticket,
};

/// Enters a loop.
pub fn enter_loop(cx: &Cx, site: &'static Site) -> Entry<Loop> {
    Entry::new(cx, site, Container::Loop, Loop::new)
}

/// Enters a loop that is started again from its carried locals.
pub fn enter_carry(cx: &Cx, site: &'static Site, locals: &'static [&'static str]) -> Entry<Carry> {
    Entry::new(cx, site, Container::Carry(locals), |inside| Carry {
        iterations: Loop::new(inside),
        keeping: Keeping {
            every: EVERY,
            keep: EVERY,
        },
        resumed: false,
    })
}

/// After so many iterations that nothing else made durable, a carried loop's locals are.
const EVERY: u64 = 20;

/// A loop under way. It is left when it is dropped: by `break`, by `?`, or with the whole run.
#[derive(Debug)]
pub struct Loop {
    iteration: Option<Scope>,
    next: u64,
    inside: Inside,
}

impl Loop {
    fn new(inside: Inside) -> Self {
        Self {
            iteration: None,
            next: 0,
            inside,
        }
    }

    /// The next iteration, by its index. The one before is left.
    pub fn iteration(&mut self) -> Cx {
        let index = self.next;
        self.next += 1;
        self.enter(Member::Iter(index))
    }

    /// The next iteration, by its key. The one before is left.
    pub fn keyed<K: ToString + ?Sized>(&mut self, key: &K) -> Cx {
        let key = key.to_string();
        self.enter(Member::Key(&key))
    }

    /// False. It lets the expansion use the user's label.
    pub fn never(&self) -> bool {
        false
    }

    fn enter(&mut self, member: Member<'_>) -> Cx {
        self.leave_iteration();
        let scope = self.replay().member(self.inside.scope, member);
        self.iteration = Some(scope);
        self.inside.cx.at(scope)
    }

    fn leave_iteration(&mut self) {
        if let Some(before) = self.iteration.take() {
            self.replay().leave(before);
        }
    }

    fn replay(&self) -> std::sync::MutexGuard<'_, crate::replay::Replay> {
        self.inside.cx.run().replay()
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        self.leave_iteration();
    }
}

/// A carried loop under way: what its iterations leave to the next is recorded, and a replay starts there.
#[derive(Debug)]
pub struct Carry {
    iterations: Loop,
    keeping: Keeping,
    /// The locals are those of the iteration that comes next.
    resumed: bool,
}

impl Carry {
    /// Records the locals at least after so many iterations. Every iteration's are recorded with whatever else is written; this is
    /// for iterations in which nothing is.
    #[must_use]
    pub fn every(mut self, iterations: u64) -> Self {
        self.keeping = Keeping {
            every: iterations.max(1),
            keep: iterations.max(1),
        };
        self
    }

    /// Keeps the records of so many iterations before the next.
    #[must_use]
    pub fn keep(mut self, iterations: u64) -> Self {
        self.keeping.keep = iterations.max(1);
        self
    }

    /// The locals to start with: those that the history has, or these.
    pub fn resume<S: Recorded + Unpin>(&mut self, initial: S) -> Resume<'_, S> {
        Resume {
            carry: self,
            state: Step::New(initial),
        }
    }

    /// The top of an iteration: the locals as the iteration before left them, as they read back from the history.
    pub fn top<S: Recorded + Unpin>(&mut self, locals: S) -> Top<'_, S> {
        Top {
            carry: self,
            state: Step::New(locals),
        }
    }

    /// How many iterations the history has behind it.
    pub fn skipped(&self) -> usize {
        usize::try_from(self.iterations.next).unwrap_or(usize::MAX)
    }

    /// The next iteration.
    pub fn iteration(&mut self) -> Cx {
        self.iterations.iteration()
    }

    /// False. It lets the expansion use the user's label.
    pub fn never(&self) -> bool {
        false
    }

    /// The loop has ended.
    pub fn finish(&mut self) {
        self.iterations.leave_iteration();
        let (scope, iterations) = (self.iterations.inside.scope, self.iterations.next);
        self.iterations
            .replay()
            .finish_loop(scope, iterations, self.keeping);
    }

    fn park(&self, error: BoxError) {
        let cx = &self.iterations.inside.cx;
        let location = cx
            .run()
            .replay()
            .scope_location(self.iterations.inside.scope);
        cx.run().park(Park {
            reason: ParkReason::Encode,
            detail: format!(
                "what the loop `{location}` carries does not survive the codec: {error}\n  \
                 ways out: carry only what is `Serialize` and `DeserializeOwned` and reads back from JSON"
            ),
            location: Some(location),
        });
    }

    fn read<S: Recorded>(&mut self, outcome: Outcome) -> Poll<S> {
        let Outcome::Carried { next, state } = outcome else {
            return Poll::Pending;
        };
        self.iterations.next = next;
        self.resumed = true;
        let cx = &self.iterations.inside.cx;
        match cx.run().decode(&state) {
            Ok(locals) => Poll::Ready(locals),
            Err(error) => {
                let scope = self.iterations.inside.scope;
                let location = cx.run().replay().scope_location(scope);
                cx.run().park_at_decode::<S>(&location, &error);
                Poll::Pending
            }
        }
    }

    fn poll_ticket(&self, ticket: &Ticket, task: &mut Context<'_>) -> Poll<Outcome> {
        self.iterations.replay().poll_outcome(ticket, task.waker())
    }
}

/// What an awaited step of a loop is at.
enum Step<S> {
    New(S),
    Issued(Ticket),
    /// It ended, or it never will.
    Spent,
}

/// The locals that a carried loop starts with.
#[must_use = "futures do nothing unless polled"]
pub struct Resume<'a, S> {
    carry: &'a mut Carry,
    state: Step<S>,
}

impl<S: Recorded + Unpin> Future for Resume<'_, S> {
    type Output = S;

    fn poll(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<S> {
        let this = &mut *self;
        let ticket = match std::mem::replace(&mut this.state, Step::Spent) {
            Step::New(initial) => {
                let scope = this.carry.iterations.inside.scope;
                let recorded = this.carry.iterations.replay().resume(scope);
                match recorded {
                    None => {
                        this.carry.resumed = true;
                        return Poll::Ready(initial);
                    }
                    Some(Issue::Ready(outcome)) => return this.carry.read(outcome),
                    Some(Issue::Pending(ticket)) => ticket,
                    Some(Issue::Never) => return Poll::Pending,
                }
            }
            Step::Issued(ticket) => ticket,
            Step::Spent => return Poll::Pending,
        };
        if let Poll::Ready(outcome) = this.carry.poll_ticket(&ticket, task) {
            return this.carry.read(outcome);
        }
        this.state = Step::Issued(ticket);
        Poll::Pending
    }
}

/// The boundary before an iteration.
#[must_use = "futures do nothing unless polled"]
pub struct Top<'a, S> {
    carry: &'a mut Carry,
    state: Step<S>,
}

opaque_debug!(<S> Resume<'_, S>, <S> Top<'_, S>);

impl<S: Recorded + Unpin> Future for Top<'_, S> {
    type Output = S;

    fn poll(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<S> {
        let this = &mut *self;
        let ticket = match std::mem::replace(&mut this.state, Step::Spent) {
            Step::New(locals) => {
                if std::mem::take(&mut this.carry.resumed) {
                    return Poll::Ready(locals);
                }
                let payload = match this.encode(&locals) {
                    Ok(payload) => payload,
                    Err(error) => {
                        this.carry.park(error);
                        return Poll::Pending;
                    }
                };
                this.carry.iterations.leave_iteration();
                let (scope, next) = (
                    this.carry.iterations.inside.scope,
                    this.carry.iterations.next,
                );
                let issue = this.carry.iterations.replay().boundary(
                    scope,
                    next,
                    payload,
                    this.carry.keeping,
                );
                match issue {
                    Issue::Ready(outcome) => return this.cross(outcome),
                    Issue::Pending(ticket) => ticket,
                    Issue::Never => return Poll::Pending,
                }
            }
            Step::Issued(ticket) => ticket,
            Step::Spent => return Poll::Pending,
        };
        if let Poll::Ready(outcome) = this.carry.poll_ticket(&ticket, task) {
            return this.cross(outcome);
        }
        this.state = Step::Issued(ticket);
        Poll::Pending
    }
}

impl<S: Recorded + Unpin> Top<'_, S> {
    fn encode(&self, locals: &S) -> Result<Payload, BoxError> {
        let encoded = codec::encode(locals)?;
        self.carry.iterations.inside.cx.run().seal(encoded.json)
    }

    fn cross(&mut self, outcome: Outcome) -> Poll<S> {
        let locals = ready!(self.carry.read(outcome));
        self.carry.resumed = false;
        Poll::Ready(locals)
    }
}

/// A local that a carried loop uses and does not carry: borrowed while the loop runs, so that nothing in it can change it.
#[derive(Debug, Clone, Copy)]
pub struct Hold<'a>(PhantomData<&'a ()>);

/// Holds a local.
pub fn hold<T: ?Sized>(local: &T) -> Hold<'_> {
    let _ = local;
    Hold(PhantomData)
}

impl Hold<'_> {
    /// It is held up to here.
    pub fn held(self) {}
}

/// What a carried `for` goes over, told before the loop is entered.
pub fn iterate<I: IntoIterator>(items: I) -> I::IntoIter {
    items.into_iter()
}
