//! A program's code over a machine, without an engine.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use workflow::context::{Args, Host, Run, States};
use workflow::replay::{
    Begun, CodeId, Location, Payload, Record, Replay, RunId, Standing, Timestamp,
};
use workflow::store::{BoxFuture, NewRun};
use workflow::{Json, Workflow};

use super::walk::{Interpreted, Interpreter};
use super::world::{Timer, World};

/// The code that drives.
pub(super) const CODE: CodeId = CodeId(1);

/// What replaying a history comes to, with nothing live: the report of the divergence, or what would be written first.
pub(super) fn preflight(
    interpreter: &Interpreter,
    history: Vec<Record>,
    row: Standing,
) -> Result<Vec<Record>, String> {
    let world = &interpreter.world;
    world.begin_drive(&history);
    let replay = Replay::load(history, CODE, row).expect("our own history");
    let (run, mut body) = code(interpreter, replay);
    let flag = Arc::new(Flag(AtomicBool::new(true)));
    let waker = Waker::from(Arc::clone(&flag));
    loop {
        if flag.0.swap(false, Ordering::AcqRel)
            && let Poll::Ready(ended) = Pin::new(&mut body).poll(&mut Context::from_waker(&waker))
        {
            let finished = ended.map_err(|park| park.detail)?;
            if !run.replay().finish(finished) {
                break;
            }
            world.went_live();
            let batch = run.replay().poll_append(Timestamp::from_millis(0));
            return Ok(batch.map(|batch| batch.records).unwrap_or_default());
        }
        if flag.0.load(Ordering::Acquire) {
            continue;
        }
        let mut replay = run.replay();
        if replay.poll_handout() {
            drop(replay);
            world.pass();
            continue;
        }
        if replay.handle_quiet() {
            // Not polled any more, so nothing begins.
            let batch = replay.poll_append(Timestamp::from_millis(0));
            drop(replay);
            world.went_live();
            return Ok(batch.map(|batch| batch.records).unwrap_or_default());
        }
        break;
    }
    let replay = run.replay();
    Err(replay.divergence().map_or_else(
        || "neither live nor diverged".to_owned(),
        ToString::to_string,
    ))
}

/// The code of a program, over this machine.
pub(super) fn code(
    interpreter: &Interpreter,
    replay: Replay,
) -> (Arc<Run>, workflow::__private::Body) {
    let host = Arc::new(Outside(Arc::clone(&interpreter.world)));
    let run = Run::new(new_run().id, replay, host, Arc::new(Json), 1 << 20);
    let mut states = States::default();
    states.insert(interpreter.clone());
    let args = Args::new(Arc::clone(&run), &begun().input, Arc::new(states)).expect("an input");
    let body = Interpreted::run(args).expect("a state and no input");
    (run, body)
}

/// How the run begins.
pub(super) fn begun() -> Begun {
    Begun {
        workflow: Interpreted::NAME.into(),
        input: Payload::json("{}"),
        input_hash: 0,
        seed: 0x5eed,
        generation: 0,
        parent: None::<(RunId, Location)>,
        forked_from: None,
    }
}

/// The row with which it does.
pub(super) fn new_run() -> NewRun {
    NewRun {
        id: RunId::new("run").expect("a valid id"),
        workflow: Interpreted::NAME.into(),
        parent: None,
        detached: false,
        not_before: None,
        priority: 0,
    }
}

/// Whether the code was woken.
#[derive(Debug)]
pub(super) struct Flag(pub(super) AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Release);
    }
}

/// The world, as the floor below sees it.
struct Outside(Arc<World>);

impl Host for Outside {
    fn now(&self) -> Timestamp {
        self.0.now()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        Box::pin(Timer::new(Arc::clone(&self.0), duration))
    }

    fn run_blocking(&self, job: Box<dyn FnOnce() + Send>) {
        job();
    }

    fn random_unit(&self) -> f64 {
        0.5
    }
}
