//! A world to run workflows in: a clock, timers, a history that is kept, and code that can be cut off anywhere.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use workflow::__private as p;
use workflow::context::{Body, CurrentStep, Host, Park, Run, States, StepSpan, Workflow};
use workflow::replay::{Begun, CodeId, Finished, Replay, Standing, Suspend};
use workflow::store::BoxFuture;
use workflow::{Codec, Failure, Json, Payload, Record, RunId, RunState, Step, Timestamp};

/// What effects write into.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    pub(crate) fn add(&self, entry: impl Into<String>) {
        self.0.lock().unwrap().push(entry.into());
    }

    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }

    /// How often this was written.
    pub(crate) fn count(&self, entry: &str) -> usize {
        self.0
            .lock()
            .unwrap()
            .iter()
            .filter(|line| *line == entry)
            .count()
    }
}

/// An error that can be recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, serde::Deserialize, thiserror::Error)]
#[error("out of {item}")]
pub(crate) struct SoldOut {
    pub(crate) item: String,
}

/// A site of a test.
macro_rules! site {
    ($name:literal, $kind:ident) => {
        &const { workflow::Site::new($name, workflow::Kind::$kind, $name, file!(), line!()) }
    };
    ($name:literal) => {
        crate::driver::site!($name, Call)
    };
}
pub(crate) use site;

/// What `#[step]` writes: a step from its options and body, `Result` or plain.
macro_rules! step {
    ($options:expr, $ret:ty, $body:expr) => {
        workflow::__private::step($options, crate::driver::via!($ret), Box::new($body))
    };
}
pub(crate) use step;

macro_rules! via {
    ($ret:ty) => {{
        #[allow(unused_imports)]
        use workflow::__private::lookup::*;
        (&&&&&workflow::__private::tag::<$ret>()).via()
    }};
}
pub(crate) use via;

/// What `.await` becomes.
macro_rules! run {
    ($cx:ident, $name:literal, $durable:expr) => {
        workflow::__private::Durable::run($durable, $cx, crate::driver::site!($name)).await
    };
}
pub(crate) use run;

/// What `#[workflow]` writes: the type, from a body that takes the context and the log, and maybe one argument.
macro_rules! workflow {
    ($name:ident, $mark:ident, $ret:ty, |$cx:ident, $log:ident $(, $arg:ident: $ty:ty)*| $body:block) => {
        #[allow(non_camel_case_types)]
        struct $name {}
        impl workflow::Workflow for $name {
            const NAME: &'static str = stringify!($name);
            const SITES: &'static [workflow::Site] = &[];
            type Mark = workflow::__private::$mark;
            type Returns = $ret;
            fn states() -> Vec<workflow::__private::StateType> {
                vec![workflow::__private::state_type::<crate::driver::Log>("log")]
            }
            fn run(args: workflow::__private::Args) -> Result<workflow::__private::Body, workflow::__private::ArgError> {
                #[allow(unused_variables)]
                async fn body($cx: &workflow::__private::Cx, $log: crate::driver::Log $(, $arg: $ty)*) -> $ret $body
                let log = args.state("log")?;
                $(let $arg = args.input(stringify!($arg))?;)*
                Ok(workflow::__private::body::<Self>(
                    args,
                    crate::driver::via!($ret),
                    move |cx| workflow::__private::fut(async move { body(&cx, log $(, $arg)*).await }),
                ))
            }
        }
    };
}
pub(crate) use workflow;

/// A step that writes its name and gives a value.
pub(crate) fn value<'s, T>(log: &'s Log, name: &'s str, value: T) -> Step<'s, T, p::Infallible>
where
    T: Clone + Send + Serialize + DeserializeOwned + 's,
{
    step!(p::StepOptions::new(), T, move || {
        let value = value.clone();
        p::fut(async move {
            log.add(name);
            value
        })
    })
}

/// A step that writes its name and fails with a typed error, once: no retries.
pub(crate) fn sold_out<'s>(log: &'s Log, name: &'s str) -> Step<'s, Result<u32, SoldOut>> {
    step!(p::StepOptions::new().retries(0), Result<u32, SoldOut>, move || p::fut(async move {
        log.add(name);
        Err(SoldOut { item: name.to_owned() })
    }))
}

/// A future that is ready when it was polled so many times; it wakes itself.
pub(crate) async fn after_polls(polls: usize) {
    let mut left = polls;
    std::future::poll_fn(move |task| {
        if left == 0 {
            return Poll::Ready(());
        }
        left -= 1;
        task.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// A clock and its timers.
#[derive(Default)]
pub(crate) struct TestHost {
    now: AtomicI64,
    timers: Arc<Mutex<BTreeMap<(i64, usize), Waker>>>,
    serial: AtomicUsize,
    held: AtomicBool,
    /// Where spans tell of themselves, if there are any.
    pub(crate) spans: Mutex<Option<Log>>,
    pub(crate) timers_made: AtomicUsize,
    jobs: Mutex<Vec<Box<dyn FnOnce() + Send>>>,
}

impl TestHost {
    pub(crate) fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.now.load(Ordering::SeqCst))
    }

    pub(crate) fn set_now(&self, millis: i64) {
        self.now.store(millis, Ordering::SeqCst);
        let due: Vec<_> = {
            let mut timers = self.timers.lock().unwrap();
            let later = timers.split_off(&(millis + 1, 0));
            std::mem::replace(&mut *timers, later)
                .into_values()
                .collect()
        };
        due.into_iter().for_each(Waker::wake);
    }

    fn next_timer(&self) -> Option<i64> {
        self.timers.lock().unwrap().keys().next().map(|(at, _)| *at)
    }

    /// Gives blocking jobs no thread for now.
    pub(crate) fn hold_jobs(&self, hold: bool) {
        self.held.store(hold, Ordering::SeqCst);
    }

    /// Runs the blocking jobs that wait for a thread.
    pub(crate) fn run_jobs(&self) -> bool {
        if self.held.load(Ordering::SeqCst) {
            return false;
        }
        let jobs = std::mem::take(&mut *self.jobs.lock().unwrap());
        let any = !jobs.is_empty();
        for job in jobs {
            job();
        }
        any
    }
}

struct Hosted(Arc<TestHost>);

impl Host for Hosted {
    fn now(&self) -> Timestamp {
        self.0.now()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        let host = Arc::clone(&self.0);
        host.timers_made.fetch_add(1, Ordering::SeqCst);
        let until = self.now().after(duration).as_millis();
        let key = (until, host.serial.fetch_add(1, Ordering::SeqCst));
        let guard = Unset(Arc::clone(&host), key);
        Box::pin(std::future::poll_fn(move |task| {
            let _ = &guard;
            if host.now().as_millis() >= until {
                return Poll::Ready(());
            }
            host.timers
                .lock()
                .unwrap()
                .insert(key, task.waker().clone());
            Poll::Pending
        }))
    }

    fn run_blocking(&self, job: Box<dyn FnOnce() + Send>) {
        self.0.jobs.lock().unwrap().push(job);
    }

    fn random_unit(&self) -> f64 {
        0.5
    }

    fn step_span(&self, step: &CurrentStep) -> Option<Box<dyn StepSpan>> {
        let log = self.0.spans.lock().unwrap().clone()?;
        log.add(format!("{} attempt {}", step.location(), step.attempt()));
        Some(Box::new(Span(log)))
    }
}

/// Tells when it is entered.
struct Span(Log);

impl StepSpan for Span {
    fn in_scope(&self, poll: &mut dyn FnMut()) {
        self.0.add("in");
        poll();
        self.0.add("out");
    }
}

/// Forgets a timer whose future was dropped.
struct Unset(Arc<TestHost>, (i64, usize));

impl Drop for Unset {
    fn drop(&mut self) {
        self.0.timers.lock().unwrap().remove(&self.1);
    }
}

/// A run that is kept between drives, as a store would.
pub(crate) struct Sim {
    pub(crate) history: Vec<Record>,
    /// How many records there were after each batch.
    pub(crate) batches: Vec<usize>,
    pub(crate) log: Log,
    pub(crate) host: Arc<TestHost>,
    codec: Arc<dyn Codec>,
    payload_limit: usize,
    input: Payload,
    /// Let time pass when nothing else is to be done.
    pub(crate) patient: bool,
    /// How often the body was polled in the last drive.
    pub(crate) polls: usize,
}

/// How a drive ended.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum End {
    Finished(Finished),
    Parked(Park),
    /// The code and the history part.
    Diverged(String),
    /// It only waits.
    Waits(Option<Timestamp>),
    /// It was cut off after so many batches.
    Cut,
    /// It waits for nothing durable.
    Stuck,
}

impl End {
    #[track_caller]
    pub(crate) fn value<T: DeserializeOwned>(self) -> T {
        match self {
            Self::Finished(Finished::Completed(payload)) => {
                serde_json::from_slice(&payload.bytes).unwrap()
            }
            other => panic!("{other:?}"),
        }
    }

    #[track_caller]
    pub(crate) fn failure(self) -> Failure {
        match self {
            Self::Finished(Finished::Failed(failure)) => failure,
            other => panic!("{other:?}"),
        }
    }
}

impl Default for Sim {
    fn default() -> Self {
        Self {
            history: Vec::new(),
            batches: Vec::new(),
            log: Log::default(),
            host: Arc::default(),
            codec: Arc::new(Json),
            payload_limit: 1024,
            input: Payload::json("{}"),
            patient: true,
            polls: 0,
        }
    }
}

impl fmt::Debug for Sim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for record in &self.history {
            writeln!(f, "{record:?}")?;
        }
        Ok(())
    }
}

impl Sim {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn with_input(json: &'static str) -> Self {
        Self {
            input: Payload::json(json),
            ..Self::default()
        }
    }

    pub(crate) fn with_codec(codec: impl Codec + 'static) -> Self {
        Self {
            codec: Arc::new(codec),
            ..Self::default()
        }
    }

    /// The same run as it was after so many batches, in a new process with an empty log.
    pub(crate) fn cut_at(&self, batches: usize) -> Self {
        let kept = if batches == 0 {
            0
        } else {
            self.batches[batches - 1]
        };
        let host = Arc::<TestHost>::default();
        host.set_now(
            self.history[..kept]
                .last()
                .map_or(0, |record| record.at.as_millis()),
        );
        Self {
            history: self.history[..kept].to_vec(),
            batches: self.batches[..batches].to_vec(),
            codec: Arc::clone(&self.codec),
            input: self.input.clone(),
            payload_limit: self.payload_limit,
            host,
            ..Self::default()
        }
    }

    /// Drives the run to its end.
    pub(crate) fn drive<W: Workflow>(&mut self) -> End {
        self.drive_for::<W>(usize::MAX)
    }

    /// Drives the run until it has written so many batches, and cuts it off there.
    pub(crate) fn drive_for<W: Workflow>(&mut self, batches: usize) -> End {
        let mut states = States::default();
        states.insert(self.log.clone());
        let host: Arc<dyn Host> = Arc::new(Hosted(Arc::clone(&self.host)));
        let run = Run::new(
            RunId::new("r1").unwrap(),
            self.replay(),
            host,
            Arc::clone(&self.codec),
            self.payload_limit,
        );
        let body = p::Args::new(Arc::clone(&run), &self.input, Arc::new(states)).and_then(W::run);
        let body = match body {
            Ok(body) => body,
            Err(error) => return End::Parked(error.park()),
        };
        self.polls = 0;
        self.go(&run, body, batches)
    }

    fn replay(&self) -> Replay {
        if !self.history.is_empty() {
            return Replay::load(
                self.history.clone(),
                CodeId(1),
                Standing {
                    state: RunState::Running,
                    ..Standing::default()
                },
            )
            .unwrap();
        }
        let begun = Begun {
            workflow: "w".into(),
            input: self.input.clone(),
            input_hash: 0,
            seed: 7,
            generation: 0,
            parent: None,
            forked_from: None,
        };
        Replay::begin(begun, CodeId(1))
    }

    fn go(&mut self, run: &Run, body: Body, batches: usize) -> End {
        let mut body = Some(Box::pin(body));
        let mut finished = None;
        let flag = Arc::new(Flag(AtomicBool::new(true)));
        let waker = Waker::from(Arc::clone(&flag));
        let mut written = 0;
        loop {
            while flag.0.swap(false, Ordering::SeqCst) {
                let Some(polled) = &mut body else { break };
                self.polls += 1;
                match polled.as_mut().poll(&mut Context::from_waker(&waker)) {
                    Poll::Ready(Ok(end)) => {
                        body = None;
                        run.replay().finish(end.clone());
                        finished = Some(end);
                    }
                    Poll::Ready(Err(park)) => return End::Parked(park),
                    Poll::Pending => {}
                }
            }
            let mut replay = run.replay();
            if let Some(divergence) = replay.divergence() {
                return End::Diverged(divergence.to_string());
            }
            if replay.poll_handout() || replay.handle_quiet() {
                continue;
            }
            if let Some(batch) = replay.poll_append(self.host.now()) {
                if written == batches {
                    return End::Cut;
                }
                written += 1;
                self.history.retain(|record| {
                    !batch
                        .deletes
                        .iter()
                        .any(|scope| record.location.is_under(scope))
                });
                self.history.extend(batch.records);
                self.batches.push(self.history.len());
                replay.handle_appended();
                if finished.is_none() {
                    continue;
                }
            }
            if let Some(end) = finished {
                return End::Finished(end);
            }
            if flag.0.load(Ordering::SeqCst) {
                continue;
            }
            let suspended = replay.poll_suspend();
            let deadline = replay.next_deadline().map(Timestamp::as_millis);
            let pending = replay.pending();
            drop(replay);
            if self.host.run_jobs() {
                continue;
            }
            if let Some(Suspend { wake_at }) = suspended
                && !self.patient
            {
                return End::Waits(wake_at);
            }
            let next = deadline.into_iter().chain(self.host.next_timer()).min();
            match next {
                Some(at) if self.patient => {
                    let at = at.max(self.host.now().as_millis());
                    self.host.set_now(at);
                    run.replay().handle_due(Timestamp::from_millis(at));
                }
                _ if pending == 0 => return End::Stuck,
                _ => return End::Waits(None),
            }
        }
    }
}

struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Runs a workflow to its end; then again from after each of its batches, and to the same end. What the log holds must be
/// what one run without a cut writes, less what was recorded. Gives the uncut run.
#[track_caller]
pub(crate) fn survives<W: Workflow>(sim: impl Fn() -> Sim) -> (Sim, End) {
    let mut whole = sim();
    let end = whole.drive::<W>();
    for cut in 0..whole.batches.len() {
        let mut again = whole.cut_at(cut);
        let other = again.drive::<W>();
        assert_eq!(other, end, "cut after {cut} batches\n{whole:?}");
        assert_eq!(
            again.history.len(),
            whole.history.len(),
            "cut after {cut} batches"
        );
        let replayed = {
            let mut last = again.cut_at(again.batches.len() - 1);
            last.drive::<W>();
            last.log.take()
        };
        assert_eq!(replayed, [""; 0], "a replay runs no effect");
    }
    (whole, end)
}
