//! What the code's futures need from outside: the engine's clock, timers, threads and spans.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::live::Live;
use super::{Inner, telemetry};
use crate::context::{CurrentStep, Desk, Host, Intervening, StepSpan};
use crate::replay::{Location, Record, Timestamp};
use crate::store::{BoxFuture, StoreError};

/// The host of one run.
pub(crate) struct RunHost {
    inner: Arc<Inner>,
    live: Arc<Live>,
}

impl RunHost {
    pub(crate) fn new(inner: Arc<Inner>, live: Arc<Live>) -> Self {
        Self { inner, live }
    }
}

impl Host for RunHost {
    fn now(&self) -> Timestamp {
        self.inner.clock.now()
    }

    fn clock(&self) -> Arc<dyn Fn() -> Timestamp + Send + Sync> {
        let inner = Arc::downgrade(&self.inner);
        Arc::new(move || {
            let inner = inner.upgrade();
            inner.map_or_else(Timestamp::default, |inner| inner.clock.now())
        })
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(duration))
    }

    fn run_blocking(&self, job: Box<dyn FnOnce() + Send>) {
        let occupied = self.live.threads.occupy();
        // The job reports through its own channel; nobody waits for the handle.
        drop(tokio::task::spawn_blocking(move || {
            job();
            drop(occupied);
        }));
    }

    fn stopping(&self) -> usize {
        self.live.threads.count()
    }

    fn random_unit(&self) -> f64 {
        self.inner.random.unit()
    }

    fn progress(&self, json: &str) {
        self.live.set_progress(json.to_owned());
    }

    fn published(&self) -> Option<String> {
        self.live.progress()
    }

    fn unpublished(&self, detail: &str) {
        tracing::warn!(run = %self.live.id, detail, "the run's progress cannot be published");
    }

    fn desk(&self, make: fn() -> Arc<dyn Desk>) -> Arc<dyn Desk> {
        self.inner.desks.desk(self.live.run, make)
    }

    fn strayed(&self, visit: &Location) -> Option<String> {
        let mut strayed = self.inner.strayed(self.live.run).into_iter();
        let strayed = strayed.find(|strayed| strayed.visit == *visit)?;
        Some(strayed.report)
    }

    fn history(&self) -> BoxFuture<'static, Result<Vec<Record>, StoreError>> {
        let (store, run) = (Arc::clone(&self.inner.store), self.live.run);
        Box::pin(async move {
            let loaded = store.load(run).await?;
            Ok(loaded.map(|loaded| loaded.history).unwrap_or_default())
        })
    }

    fn intervening(&self) -> Option<(&Arc<dyn Intervening>, &str)> {
        let intervening = self.inner.intervening.as_ref()?;
        Some((intervening, self.live.workflow))
    }

    fn step_span(&self, step: &CurrentStep) -> Option<Box<dyn StepSpan>> {
        let span = tracing::info_span!(telemetry::STEP, location = %step.location(), attempt = step.attempt());
        (!span.is_disabled()).then(|| Box::new(Span(span)) as Box<dyn StepSpan>)
    }

    fn attempt_failed(&self, location: &Location, attempt: u32, max_retries: u32) {
        if self.inner.reporter.listens() {
            self.live.failing(location.clone(), attempt, max_retries);
        }
    }
}

struct Span(tracing::Span);

impl StepSpan for Span {
    fn in_scope(&self, poll: &mut dyn FnMut()) {
        self.0.in_scope(poll);
    }
}

/// Randomness for jitter only: what it picks is recorded.
#[derive(Debug)]
pub(crate) struct Random(AtomicU64);

impl Random {
    pub(crate) fn seeded(seed: u64) -> Self {
        Self(AtomicU64::new(seed))
    }

    /// A number in `0.0..1.0` (splitmix64).
    fn unit(&self) -> f64 {
        let mut bits = self.0.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^= bits >> 31;
        let mantissa = u32::try_from(bits >> 40).unwrap_or_default();
        f64::from(mantissa) / f64::from(1u32 << 24)
    }
}
