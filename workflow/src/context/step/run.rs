//! A step under way: from its site to its outcome.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use super::super::{CurrentStep, Cx, News, Watching};
use super::attempt::{Ended, Running};
use super::source::{Source, Thread};
use super::verdict::{Judge, Verdict, seen};
use super::{RetryIf, StepOptions, Typing};
use crate::replay::{Attempt, Ending, Failure, Issue, Location, Outcome, Site, Ticket, Timestamp};

/// A step under way.
#[must_use = "futures do nothing unless polled"]
pub struct StepRun<'s, R, T> {
    cx: Cx,
    site: &'static Site,
    source: Source<'s, R>,
    options: StepOptions,
    typing: Typing<R, T>,
    retry_if: Option<RetryIf<'s, R>>,
    state: State<'s, R, T>,
}

/// What is recorded never leaves `New` for anything but `Spent`: all that a live step needs is boxed.
enum State<'s, R, T> {
    New,
    Live(Box<Live<'s, R, T>>),
    /// It ended, or it never will.
    Spent,
}

struct Live<'s, R, T> {
    ticket: Ticket,
    attempt: Phase<'s, R>,
    /// The thread of a blocking attempt that was given up.
    occupied: Option<Thread>,
    /// What was recorded a moment ago, as it reads back.
    value: Option<T>,
    /// It is watched.
    seen: Option<Seen>,
}

/// A step that somebody watches.
struct Seen {
    watch: Arc<dyn Watching>,
    at: Location,
    ended: bool,
}

impl Seen {
    fn of(cx: &Cx, ticket: &Ticket) -> Option<Self> {
        let watch = Arc::clone(cx.run().watch()?);
        let at = cx.run().replay().location(ticket);
        watch.tell(&at, News::Issued);
        let ended = false;
        Some(Self { watch, at, ended })
    }

    fn tell(&self, news: News<'_>) {
        self.watch.tell(&self.at, news);
    }
}

impl Drop for Seen {
    fn drop(&mut self) {
        if !self.ended {
            self.tell(News::Dropped);
        }
    }
}

enum Phase<'s, R> {
    /// For its turn, for a commit, for a wake time.
    Waiting,
    Running(Running<'s, R>),
    /// Its end is recorded.
    Ended,
}

impl<R, T> std::fmt::Debug for StepRun<'_, R, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StepRun")
            .field("site", &self.site)
            .finish_non_exhaustive()
    }
}

/// Nothing in it is pinned but the body, which is boxed.
impl<R, T> Unpin for StepRun<'_, R, T> {}

impl<'s, R, T> StepRun<'s, R, T> {
    pub(super) fn new(
        cx: &Cx,
        site: &'static Site,
        source: Source<'s, R>,
        options: StepOptions,
        typing: Typing<R, T>,
        retry_if: Option<RetryIf<'s, R>>,
    ) -> Self {
        Self {
            cx: cx.clone(),
            site,
            source,
            options,
            typing,
            retry_if,
            state: State::New,
        }
    }
}

impl<R, T> Future for StepRun<'_, R, T> {
    type Output = Result<T, Failure>;

    fn poll(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        if let State::New = this.state {
            this.state = State::Spent;
            let issued =
                this.cx
                    .run()
                    .replay()
                    .issue(this.cx.scope(), this.site, this.options.op());
            match issued {
                Issue::Ready(outcome) => return this.hand_out(outcome, None),
                Issue::Pending(ticket) => {
                    let seen = Seen::of(&this.cx, &ticket);
                    this.state = State::Live(Box::new(Live::new(ticket, seen)));
                }
                Issue::Never => return Poll::Pending,
            }
        }
        let (outcome, value) = ready!(this.poll_live(task));
        if let State::Live(live) = &mut this.state
            && let Some(seen) = &mut live.seen
        {
            seen.ended = true;
        }
        this.state = State::Spent;
        this.hand_out(outcome, value)
    }
}

impl<R, T> StepRun<'_, R, T> {
    /// Alternates between asking the machine and running an attempt, until there is an outcome.
    fn poll_live(&mut self, task: &mut Context<'_>) -> Poll<(Outcome, Option<T>)> {
        loop {
            let State::Live(live) = &mut self.state else {
                return Poll::Pending;
            };
            if let Phase::Running(running) = &mut live.attempt {
                let ended = ready!(running.poll(&self.source, self.cx.run().host(), task));
                let (number, started_at) = (running.step.attempt(), running.started_at);
                self.ended(number, started_at, ended);
                continue;
            }
            match ready!(live.ask(&self.cx, task)) {
                Answer::Outcome(outcome) => return Poll::Ready((outcome, live.value.take())),
                Answer::Begin(attempt) => self.begin(attempt),
            }
        }
    }

    fn begin(&mut self, attempt: Attempt) {
        let State::Live(live) = &mut self.state else {
            return;
        };
        let run = self.cx.run();
        let (number, started_at, time) = (attempt.number, run.host().now(), self.options.time());
        let attempt = Attempt {
            last: attempt.last.map(|failure| seen(run, failure)),
            ..attempt
        };
        let (location, origin, identity) = {
            let mut replay = run.replay();
            let location = replay.location(&live.ticket);
            let origin = replay.origin(&location);
            (location, origin, replay.identity_of(&live.ticket))
        };
        let deadline = time.map(|time| started_at.after(time));
        let id = run.id().clone();
        let mut step = CurrentStep::recorded(id, location, origin, attempt, deadline, identity);
        if let Some(seen) = &live.seen {
            step = step.watched_by(Arc::clone(&seen.watch));
            seen.tell(News::Began(number));
        }
        match Running::begin(&self.source, run.host(), step, started_at, time) {
            Ok(running) => live.attempt = Phase::Running(running),
            Err(ended) => self.ended(number, started_at, ended),
        }
    }

    /// An attempt ended: the machine is told what that means.
    fn ended(&mut self, number: u32, started_at: Timestamp, ended: Ended<R>) {
        let State::Live(live) = &mut self.state else {
            return;
        };
        let run = self.cx.run();
        let location = match &live.attempt {
            Phase::Running(running) => running.step.location().clone(),
            _ => run.replay().location(&live.ticket),
        };
        let judge = Judge {
            run,
            location: &location,
            options: &self.options,
            typing: &self.typing,
            retry_if: self.retry_if.as_ref(),
            number,
        };
        let mut verdict = judge.judge(ended);
        let mut values = Vec::new();
        if let (Verdict::Value(..), Phase::Running(running)) = (&verdict, &live.attempt) {
            match run.seal_values(running.step.take_values()) {
                Ok(sealed) => values = sealed,
                Err(error) => verdict = judge.unwritten(&error),
            }
        }
        if let Phase::Running(running) = std::mem::replace(&mut live.attempt, Phase::Waiting) {
            live.occupied = running.into_thread();
        }
        if !matches!(verdict, Verdict::Value(..)) {
            run.host()
                .attempt_failed(&location, number, self.options.attempts() - 1);
        }
        let result = match verdict {
            Verdict::Again(failure) => {
                let backoff = self.options.waits();
                let random = if backoff.jitter > 0.0 {
                    run.host().random_unit()
                } else {
                    0.0
                };
                let wake_at = run.host().now().after(backoff.wait(number, random));
                if let Some(seen) = &live.seen {
                    let (failure, at) = (&failure, wake_at);
                    seen.tell(News::Again { failure, at });
                }
                run.replay()
                    .attempt_failed(&live.ticket, number, failure, wake_at);
                return;
            }
            Verdict::Value(payload, value) => {
                live.value = Some(value);
                Ok(payload)
            }
            Verdict::Failed(failure) => Err(failure),
        };
        live.attempt = Phase::Ended;
        run.replay().record(
            &live.ticket,
            Ending {
                result,
                attempts: number,
                started_at,
                values,
            },
        );
    }

    /// Gives the workflow what the history has.
    fn hand_out(&self, outcome: Outcome, value: Option<T>) -> Poll<Result<T, Failure>> {
        let run = self.cx.run();
        let outcome = outcome.into_result();
        if let Some(watch) = run.watch() {
            let news = News::Ended(outcome.as_ref().map(drop));
            watch.tell(&self.cx.location_of(self.site), news);
        }
        let payload = match outcome {
            Ok(payload) => payload,
            Err(failure) => return Poll::Ready(Err(seen(run, failure))),
        };
        if let Some(value) = value {
            // It was read back from these very bytes.
            return Poll::Ready(Ok(value));
        }
        match run.decode_by(&payload, self.typing.decode) {
            Ok(value) => Poll::Ready(Ok(value)),
            Err(error) => {
                run.park_at_decode::<T>(&self.cx.location_of(self.site), &error);
                Poll::Pending
            }
        }
    }
}

/// What the machine says to a step.
enum Answer {
    Outcome(Outcome),
    Begin(Attempt),
}

impl<R, T> Live<'_, R, T> {
    fn new(ticket: Ticket, seen: Option<Seen>) -> Self {
        Self {
            ticket,
            seen,
            attempt: Phase::Waiting,
            occupied: None,
            value: None,
        }
    }

    fn ask(&mut self, cx: &Cx, task: &mut Context<'_>) -> Poll<Answer> {
        let mut replay = cx.run().replay();
        if let Poll::Ready(outcome) = replay.poll_outcome(&self.ticket, task.waker()) {
            return Poll::Ready(Answer::Outcome(outcome));
        }
        if let Phase::Ended = self.attempt {
            return Poll::Pending;
        }
        // At most one body of a location is alive.
        if let Some(thread) = &self.occupied {
            ready!(thread.poll_free(task));
            self.occupied = None;
        }
        replay
            .may_run(&self.ticket, task.waker())
            .map(Answer::Begin)
    }
}
