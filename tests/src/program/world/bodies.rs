//! The bodies of steps, and the timers of their attempts.

use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use workflow::{Location, Timestamp};

use super::super::ast::How;
use super::super::walk::hash;
use super::{Law, World};

/// A body that waits to be completed.
#[derive(Debug)]
pub(super) struct Working {
    number: u64,
    at: Location,
    waker: Waker,
    done: bool,
}

/// A timer that waits for its time.
#[derive(Debug)]
pub(super) struct Sleeping {
    number: u64,
    until: Timestamp,
    waker: Waker,
}

impl World {
    /// A step's body, from its entry to its end.
    pub(in crate::program) async fn body(
        &self,
        at: &Location,
        arg: u64,
        how: How,
    ) -> Result<u64, String> {
        let step = workflow::current_step();
        let attempt = step.attempt();
        let (_alive, entry, paused) = self.enter(at, step.location(), arg, attempt, how);
        match how {
            How::TimesOut => std::future::pending().await,
            How::AtOnce => {}
            _ => match paused {
                Some(time) => tokio::time::sleep(time).await,
                None => Work::new(self, at).await,
            },
        }
        let fails = match how {
            How::Fails | How::Exhausts(_) | How::EphemeralFails => true,
            How::FailsFirst(times) => attempt <= times,
            _ => false,
        };
        if fails {
            return Err(format!("attempt {attempt} of {at} fails"));
        }
        Ok(hash(&(at, entry)))
    }

    /// Watches a body begin. With an engine, also how long it takes.
    fn enter(
        &self,
        at: &Location,
        given: &Location,
        arg: u64,
        attempt: u32,
        how: How,
    ) -> (Alive<'_>, u64, Option<Duration>) {
        let mut state = self.state();
        state.trace(|| format!("body {at} begins, attempt {attempt}"));
        if at != given {
            state.broken(
                Law::Argument,
                format!("the body of `{at}` is told it is `{given}`"),
            );
        }
        if state.ended.contains_key(at) {
            state.broken(
                Law::Rerun,
                format!("`{at}` is recorded, and its body begins"),
            );
        }
        if state.pruned.iter().any(|scope| at.is_under(scope)) {
            let what = format!("`{at}` is pruned, and its body begins");
            state.broken(Law::Rerun, what);
        }
        let failed = state.failed.get(at).copied().unwrap_or_default();
        // With an engine, owners that died count as attempts, too.
        if attempt <= failed || (state.clock.is_none() && attempt > failed + 1) {
            let what = format!("attempt {attempt} of `{at}` begins, {failed} are recorded");
            state.broken(Law::Rerun, what);
        }
        if !state.alive.insert(at.clone()) {
            state.broken(Law::Twice, format!("`{at}` has two bodies"));
        }
        if !state.drive.live && state.clock.is_none() {
            state.broken(
                Law::Gate,
                format!("the body of `{at}` begins before the gate"),
            );
        }
        state.judge_consumed("a body began");
        state.drive.live = true;
        if let Some(choice) = state.drive.choices.first().cloned() {
            let what = format!("the body of `{at}` begins while `{choice}` is not durable");
            state.broken(Law::Barrier, what);
        }
        let (raced, fickle) = (state.is_raced(at), state.fickle);
        let (first, times) = state.started.entry(at.clone()).or_insert((arg, 0));
        *times += 1;
        let (first, times) = (*first, *times);
        if first != arg && !fickle && !raced {
            state.broken(
                Law::Flip,
                format!("`{at}` begins with {first:x}, then with {arg:x}"),
            );
        }
        if how == How::AtMostOnce && times > 1 {
            state.broken(
                Law::Rerun,
                format!("`{at}` begins {times} times, at most once"),
            );
        }
        state.drive.effects.push(at.clone());
        state.numbers += 1;
        let entry = if state.fresh { state.numbers } else { 0 };
        let millis = state.random.below(12);
        let paused = state.clock.map(|_| Duration::from_millis(millis));
        let alive = Alive {
            world: self,
            at: at.clone(),
        };
        (alive, entry, paused)
    }

    /// How many bodies could be completed.
    pub(in crate::program) fn working(&self) -> usize {
        self.state()
            .working
            .iter()
            .filter(|body| !body.done)
            .count()
    }

    /// Completes one of them.
    pub(in crate::program) fn complete(&self, index: usize) {
        let mut state = self.state();
        let Some(body) = state
            .working
            .iter_mut()
            .filter(|body| !body.done)
            .nth(index)
        else {
            return;
        };
        body.done = true;
        let (waker, at) = (body.waker.clone(), body.at.clone());
        state.trace(|| format!("body {at} ends"));
        drop(state);
        waker.wake();
    }

    /// When the first timer of an attempt fires.
    pub(in crate::program) fn next_timer(&self) -> Option<Timestamp> {
        self.state().sleeping.iter().map(|timer| timer.until).min()
    }

    /// Wakes the timers whose time has come.
    pub(in crate::program) fn fire_timers(&self) {
        let state = self.state();
        let due: Vec<_> = state
            .sleeping
            .iter()
            .filter(|timer| timer.until <= state.now)
            .map(|timer| timer.waker.clone())
            .collect();
        drop(state);
        due.into_iter().for_each(Waker::wake);
    }
}

/// Says that a body is alive, until it is dropped.
struct Alive<'w> {
    world: &'w World,
    at: Location,
}

impl Drop for Alive<'_> {
    fn drop(&mut self) {
        self.world.state().alive.remove(&self.at);
    }
}

struct Work<'w> {
    world: &'w World,
    at: &'w Location,
    number: Option<u64>,
}

impl<'w> Work<'w> {
    fn new(world: &'w World, at: &'w Location) -> Self {
        Self {
            world,
            at,
            number: None,
        }
    }
}

impl Future for Work<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<()> {
        let mut state = self.world.state();
        if let Some(number) = self.number {
            let mut working = state.working.iter_mut();
            let Some(body) = working.find(|body| body.number == number) else {
                return Poll::Ready(());
            };
            if body.done {
                return Poll::Ready(());
            }
            body.waker.clone_from(task.waker());
            return Poll::Pending;
        }
        state.numbers += 1;
        let number = state.numbers;
        state.working.push(Working {
            number,
            at: self.at.clone(),
            waker: task.waker().clone(),
            done: false,
        });
        drop(state);
        self.number = Some(number);
        Poll::Pending
    }
}

impl Drop for Work<'_> {
    fn drop(&mut self) {
        let mut state = self.world.state();
        let number = self.number;
        state.working.retain(|body| Some(body.number) != number);
    }
}

/// A timer by the world's virtual clock.
pub(in crate::program) struct Timer {
    world: std::sync::Arc<World>,
    time: Duration,
    number: Option<(u64, Timestamp)>,
}

impl Timer {
    pub(in crate::program) fn new(world: std::sync::Arc<World>, time: Duration) -> Self {
        Self {
            world,
            time,
            number: None,
        }
    }
}

impl Future for Timer {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        let mut state = this.world.state();
        let Some((number, until)) = this.number else {
            state.numbers += 1;
            let (number, until) = (state.numbers, state.now.after(this.time));
            this.number = Some((number, until));
            state.sleeping.push(Sleeping {
                number,
                until,
                waker: task.waker().clone(),
            });
            return Poll::Pending;
        };
        if until <= state.now {
            return Poll::Ready(());
        }
        let mut sleeping = state.sleeping.iter_mut();
        if let Some(timer) = sleeping.find(|timer| timer.number == number) {
            timer.waker.clone_from(task.waker());
        }
        Poll::Pending
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        let mut state = self.world.state();
        let number = self.number.map(|(number, _)| number);
        state.sleeping.retain(|timer| Some(timer.number) != number);
    }
}
