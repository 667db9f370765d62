//! Durable code that workflows share, run in place under its own name.

use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use super::{BoxFut, Cx, Durable, opaque_debug};
use crate::replay::{Container, Entered, Scope, Site};

/// What a `#[fragment]` function returns: durable code, to be awaited in a workflow.
#[must_use = "help: `.await` it in a workflow: a fragment that was only called does nothing"]
pub struct Fragment<'s, R>(pub(super) Box<dyn FnOnce(Cx) -> BoxFut<'s, R> + Send + 's>);

opaque_debug!(<R> Fragment<'_, R>, <R> FragmentRun<'_, R>);

/// A fragment, from its code.
pub fn fragment<'s, R>(code: impl FnOnce(Cx) -> BoxFut<'s, R> + Send + 's) -> Fragment<'s, R> {
    Fragment(Box::new(code))
}

#[diagnostic::do_not_recommend]
impl<'s, R> Durable for Fragment<'s, R> {
    type Output = R;
    type Future = FragmentRun<'s, R>;

    fn run(self, cx: &Cx, site: &'static Site) -> FragmentRun<'s, R> {
        FragmentRun {
            cx: cx.clone(),
            site,
            state: State::New(self),
        }
    }
}

/// What may be lent something to change: a fragment, for it is run again on a replay, and changes it again.
#[diagnostic::on_unimplemented(
    message = "a step cannot change what is outside of it",
    label = "this is given a `&mut`",
    note = "on replay a step is not run, and the change would be lost",
    note = "help: return the new value, and put it in its place in the workflow; durable code that takes `&mut` is a `#[fragment]`"
)]
pub trait Lent: Durable {}

#[diagnostic::do_not_recommend]
impl<R> Lent for Fragment<'_, R> {}

/// Begins a fragment at a site that gives it another name.
pub fn run_lent<D: Lent>(durable: D, cx: &Cx, site: &'static Site) -> D::Future {
    durable.run(cx, site)
}

/// What may be awaited where no workflow is around: no fragment. It is only there to say so.
#[diagnostic::on_unimplemented(
    message = "a fragment is awaited in a workflow only",
    label = "there is no run here that it could be a part of",
    note = "help: put `#[workflow]` or `#[fragment]` on this function, and await it in its body; what stands alone is a `#[step]`"
)]
pub trait Apart {}

/// What is told of in the fragment's stead: of the awaited type itself, the compiler would say that it is no future.
#[derive(Debug)]
pub struct Durably<R>(PhantomData<fn() -> R>);

impl<R> Future for Fragment<'_, R>
where
    Durably<R>: Apart,
{
    type Output = R;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<R> {
        Poll::Pending
    }
}

/// What is made of something that there is once, so that a body that may be called again could not make it.
#[diagnostic::on_unimplemented(
    message = "this cannot be given a name where it stands",
    label = "not the reply to a `Request`, and not a child run",
    note = "help: make it a block, which is a step: `#[step(name = \"..\")] {{ call.await }}`"
)]
pub trait Once: Durable {}

#[diagnostic::do_not_recommend]
impl<R: super::Outcome<M>, M> Once for super::Step<'_, R, M> {}
#[diagnostic::do_not_recommend]
impl<R> Once for Fragment<'_, R> {}
#[diagnostic::do_not_recommend]
impl<R> Once for super::Reply<R> where Self: Durable {}
#[diagnostic::do_not_recommend]
impl<W> Once for super::Call<W> where Self: Durable {}
#[diagnostic::do_not_recommend]
impl<W> Once for super::Detached<W> where Self: Durable {}

/// Begins it at a site that gives it another name.
pub fn run_once<D: Once>(durable: D, cx: &Cx, site: &'static Site) -> D::Future {
    durable.run(cx, site)
}

/// A fragment under way.
#[must_use = "futures do nothing unless polled"]
pub struct FragmentRun<'s, R> {
    cx: Cx,
    site: &'static Site,
    state: State<'s, R>,
}

enum State<'s, R> {
    New(Fragment<'s, R>),
    Running(Scope, BoxFut<'s, R>),
    /// It ended, or it never will.
    Spent,
}

impl<R> Future for FragmentRun<'_, R> {
    type Output = R;

    fn poll(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<R> {
        let this = &mut *self;
        if let State::New(_) = this.state {
            let entered =
                this.cx
                    .run()
                    .replay()
                    .enter(this.cx.scope(), this.site, Container::Fragment);
            if let (State::New(fragment), Entered::Open { scope, .. }) =
                (std::mem::replace(&mut this.state, State::Spent), entered)
            {
                this.state = State::Running(scope, (fragment.0)(this.cx.at(scope)));
            }
        }
        let State::Running(scope, code) = &mut this.state else {
            return Poll::Pending;
        };
        let value = ready!(code.as_mut().poll(task));
        let scope = *scope;
        // Its locals are dropped before its scope is left.
        this.state = State::Spent;
        this.cx.run().replay().leave(scope);
        Poll::Ready(value)
    }
}
