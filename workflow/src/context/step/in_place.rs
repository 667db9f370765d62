//! `#[step]` on an expression: a body built from a closure that borrows, or a step that is there already.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::super::{
    BoxFut, Call, Cx, Detached, Durable, Fallible, Fragment, FragmentRun, Outcome, Recorded,
    StepError, Workflow,
};
use super::RetryIf;
use super::source::Source;
use super::{Step, StepOptions, StepRun, Tag, Typing, Via, on_errors, tag};
use crate::replay::{Failure, Site};

/// An expression made a step where it stands.
pub struct InPlace<'s, R> {
    cx: Cx,
    site: &'static Site,
    options: StepOptions,
    body: &'s (dyn Fn() -> BoxFut<'s, R> + Sync + 's),
    retry_if: Option<RetryIf<'s, R>>,
}

/// A step in place, from a closure that makes its body. `Fn`, so that it can change nothing of the workflow's.
pub fn in_place<'s, R>(
    cx: &Cx,
    site: &'static Site,
    options: StepOptions,
    body: &'s (dyn Fn() -> BoxFut<'s, R> + Sync + 's),
) -> InPlace<'s, R> {
    InPlace {
        cx: cx.clone(),
        site,
        options,
        body,
        retry_if: None,
    }
}

impl<'s, R> InPlace<'s, R> {
    /// Its type, to look methods up on.
    pub fn tag(&self) -> Tag<R> {
        tag()
    }

    fn start<M>(self, via: Via<R>) -> StepRun<'s, R, R::Value>
    where
        R: Outcome<M>,
        R::Value: Recorded,
        R::Error: StepError,
    {
        let source = Source::Borrowed(self.body);
        StepRun::new(
            &self.cx,
            self.site,
            source,
            self.options,
            Typing::of(via),
            self.retry_if,
        )
    }
}

impl<'s, T, E> InPlace<'s, Result<T, E>> {
    /// Runs an expression that can fail.
    pub fn run(self, via: Via<Result<T, E>>) -> StepRun<'s, Result<T, E>, T>
    where
        T: Recorded + Send,
        E: StepError,
    {
        self.start::<Fallible>(via)
    }

    /// An error for which `retry_if` is false ends the step.
    #[must_use]
    pub fn retry_if<F: Fn(&E) -> bool + Sync>(mut self, retry_if: &'s F) -> Self {
        self.retry_if = Some(on_errors(retry_if));
        self
    }
}

/// Finds what runs an expression that cannot fail.
pub trait Plain<'s, R> {
    /// Runs it.
    fn run(self, via: Via<R>) -> StepRun<'s, R, R>
    where
        R: Recorded + Send;
}

/// Bound by method and not as a whole, so that a value that cannot be recorded is told in our words.
impl<'s, R> Plain<'s, R> for InPlace<'s, R> {
    fn run(self, via: Via<R>) -> StepRun<'s, R, R>
    where
        R: Recorded + Send,
    {
        self.start::<super::super::Infallible>(via)
    }
}

/// The expression in `#[step] EXPRESSION.await`.
#[derive(Debug)]
pub struct Awaited<X>(pub X);

/// Finds what to do with any other expression: it is awaited as it is, as part of the body.
pub trait Foreign: Sized {
    /// What is awaited.
    type Awaited;

    /// What is awaited. The site and its options are the surrounding step's.
    fn go(self, cx: &Cx, site: &'static Site, options: StepOptions) -> Self::Awaited;

    /// The same, where nothing but a name was given.
    fn named(self, cx: &Cx, site: &'static Site, options: StepOptions) -> Self::Awaited {
        self.go(cx, site, options)
    }

    /// The surrounding step's.
    #[must_use]
    fn retry_if<F>(self, retry_if: &F) -> Self {
        let _ = retry_if;
        self
    }
}

impl<X> Foreign for Awaited<X> {
    type Awaited = X;

    fn go(self, _: &Cx, _: &'static Site, _: StepOptions) -> X {
        self.0
    }
}

/// A step that is there already, under a site of its own: marked, so that the surrounding one does not record it again.
impl<'s, R: Outcome<M>, M> Awaited<Step<'s, R, M>> {
    /// Begins the step at this site, with the site's options over its own.
    pub fn go(
        self,
        cx: &Cx,
        site: &'static Site,
        options: StepOptions,
    ) -> RenamedStep<'s, R, R::Value> {
        RenamedStep(self.0.overridden(options).run(cx, site))
    }

    /// Begins the step at this site, with its own options.
    pub fn named(
        self,
        cx: &Cx,
        site: &'static Site,
        options: StepOptions,
    ) -> RenamedStep<'s, R, R::Value> {
        self.go(cx, site, options)
    }
}

/// What has options of its own to override. No fragment has: the bound is there for its words.
#[diagnostic::on_unimplemented(
    message = "a fragment takes no options but a name",
    label = "this is a fragment: what is tried again, and for how long, are the steps in it",
    note = "help: put the options on the steps in the fragment, and only `#[step(name = \"..\")]` here"
)]
pub trait Optioned {}

/// A fragment can be given another name, and nothing else.
impl<'s, R> Awaited<Fragment<'s, R>> {
    /// Refuses options.
    pub fn go(self, cx: &Cx, site: &'static Site, options: StepOptions) -> RenamedFragment<'s, R>
    where
        Fragment<'s, R>: Optioned,
    {
        self.named(cx, site, options)
    }

    /// Enters the fragment at this site.
    pub fn named(
        self,
        cx: &Cx,
        site: &'static Site,
        options: StepOptions,
    ) -> RenamedFragment<'s, R> {
        let _ = options;
        RenamedFragment(self.0.run(cx, site))
    }
}

/// A fragment under another name, under way.
#[must_use = "futures do nothing unless polled"]
pub struct RenamedFragment<'s, R>(FragmentRun<'s, R>);

impl<R> Future for RenamedFragment<'_, R> {
    type Output = Renamed<R>;

    fn poll(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(task).map(Renamed)
    }
}

impl<R> fmt::Debug for RenamedFragment<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RenamedFragment").finish_non_exhaustive()
    }
}

/// What has options of its own to override. No child run has: the bound is there for its words.
#[diagnostic::on_unimplemented(
    message = "a child run takes no options but a name",
    label = "this is a workflow: what is tried again, and for how long, are the steps in it",
    note = "help: put the options on the steps in the workflow, and only `#[step(name = \"..\")]` here"
)]
pub trait ChildOptioned {}

/// A child run can be given another name, which is in its id, and nothing else.
impl<W: Workflow> Awaited<Call<W>> {
    /// Refuses options.
    pub fn go(
        self,
        cx: &Cx,
        site: &'static Site,
        options: StepOptions,
    ) -> RenamedChild<<Call<W> as Durable>::Future>
    where
        Call<W>: ChildOptioned,
    {
        self.named(cx, site, options)
    }

    /// Starts the child at this site.
    pub fn named(
        self,
        cx: &Cx,
        site: &'static Site,
        options: StepOptions,
    ) -> RenamedChild<<Call<W> as Durable>::Future> {
        let _ = options;
        RenamedChild(self.0.run(cx, site))
    }
}

/// The same for one that is not waited for.
impl<W: Workflow> Awaited<Detached<W>> {
    /// Refuses options.
    pub fn go(
        self,
        cx: &Cx,
        site: &'static Site,
        options: StepOptions,
    ) -> RenamedChild<<Detached<W> as Durable>::Future>
    where
        Detached<W>: ChildOptioned,
    {
        self.named(cx, site, options)
    }

    /// Starts the child at this site.
    pub fn named(
        self,
        cx: &Cx,
        site: &'static Site,
        options: StepOptions,
    ) -> RenamedChild<<Detached<W> as Durable>::Future> {
        let _ = options;
        RenamedChild(self.0.run(cx, site))
    }
}

/// A child run under another name, under way.
#[must_use = "futures do nothing unless polled"]
#[derive(Debug)]
pub struct RenamedChild<F>(F);

impl<F: Future + Unpin> Future for RenamedChild<F> {
    type Output = Renamed<F::Output>;

    fn poll(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(task).map(Renamed)
    }
}

impl<'s, T, E> Awaited<Step<'s, Result<T, E>, Fallible>> {
    /// The site's `retry_if` in place of the step's own.
    #[must_use]
    pub fn retry_if<F: Fn(&E) -> bool + Sync>(self, retry_if: &'s F) -> Self {
        Self(self.0.retry_if(retry_if))
    }
}

/// The outcome of a step that is there already.
#[derive(Debug)]
pub struct Renamed<T>(T);

/// A step that is there already, under way.
#[must_use = "futures do nothing unless polled"]
#[derive(Debug)]
pub struct RenamedStep<'s, R, T>(StepRun<'s, R, T>);

impl<R, T> Future for RenamedStep<'_, R, T> {
    type Output = Renamed<Result<T, Failure>>;

    fn poll(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(task).map(Renamed)
    }
}

impl<'s, T> InPlace<'s, Renamed<T>> {
    /// Runs the step that is there already: once, for it retries by itself.
    pub fn run(self, via: Via<Renamed<T>>) -> RenamedRun<'s, T> {
        let _ = via;
        RenamedRun((self.body)())
    }

    /// The step's own, by now.
    #[must_use]
    pub fn retry_if<F>(self, retry_if: &F) -> Self {
        let _ = retry_if;
        self
    }
}

/// A step that is there already, under way where it stands.
#[must_use = "futures do nothing unless polled"]
pub struct RenamedRun<'s, T>(BoxFut<'s, Renamed<T>>);

impl<T> Future for RenamedRun<'_, T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<T> {
        self.0.as_mut().poll(task).map(|renamed| renamed.0)
    }
}
