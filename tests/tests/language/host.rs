//! What the program around the engine sees: its own state, other runs, an operator who comes at the wrong time.

use std::sync::{Arc, Mutex, OnceLock};

use workflow::{
    Channel, Engine, Error, Failure, RequestError, RunState, attempt, recv, step, workflow,
};
use workflow_tests::{Counter, World, pass};

/// An account of the application, in its memory.
#[derive(Debug, Clone, Default)]
struct Account(Arc<Mutex<Vec<i64>>>);

#[derive(Debug, thiserror::Error)]
#[error("the bank is closed")]
struct Closed;

#[step(retries = 0)]
async fn withdraw(account: &Account, amount: i64) -> Result<(), Closed> {
    account.0.lock().unwrap().push(-amount);
    Err(Closed)
}

#[step]
async fn confirm(account: &Account) -> usize {
    account.0.lock().unwrap().len()
}

#[workflow]
async fn purchase(#[state] account: Account) -> Result<(usize, bool), Failure> {
    let taken = attempt!(taken, { withdraw(&account, 7).await? }).await;
    Ok((confirm(&account).await?, taken.is_ok()))
}

// RVT-HOST-03
#[tokio::test(start_paused = true)]
async fn what_a_step_did_to_the_applications_state_before_it_failed_for_good_stays_done_once() {
    let world = World::new();
    let account = Account::default();
    let engine = world.engine().state(account.clone()).workflow(purchase);
    let engine = engine.build().await.unwrap();
    assert_eq!(engine.run("a", purchase()).await.unwrap(), (1, false));
    assert_eq!(*account.0.lock().unwrap(), [-7]);
    // Nor is it done again by whoever comes later.
    drop(engine);
    let world = world.crash();
    let engine = world.engine().state(account.clone()).workflow(purchase);
    let engine = engine.build().await.unwrap();
    let run = engine.attach::<purchase>("a").await.unwrap();
    assert_eq!(run.result().await.unwrap(), (1, false));
    assert_eq!(*account.0.lock().unwrap(), [-7]);
}

const DOUBLE: Channel<u32, u32> = Channel::new("double");

#[workflow]
async fn worker() -> Result<u32, Failure> {
    let request = recv!(next, DOUBLE).await?;
    let double = 2 * *request.value();
    request.reply(double).await?;
    Ok(double)
}

#[derive(Clone, Default)]
struct Self_(Arc<OnceLock<Engine>>);

#[derive(Debug, thiserror::Error)]
enum Asking {
    #[error(transparent)]
    Engine(#[from] Error),
    #[error(transparent)]
    Request(#[from] RequestError),
}

#[step]
async fn ask(engine: &Self_, id: &str, number: u32) -> Result<u32, Asking> {
    let engine = engine.0.get().unwrap();
    let worker = engine.start(id, worker()).await.map_err(Error::from)?;
    Ok(worker.request(&DOUBLE, &number).await?)
}

#[workflow]
async fn asks(number: u32, #[state] engine: Self_) -> Result<u32, Failure> {
    ask(&engine, "helper", number).await
}

// RVT-HOST-06
#[tokio::test(start_paused = true)]
async fn a_step_starts_another_run_asks_it_and_has_its_answer() {
    let world = World::new();
    let itself = Self_::default();
    let builder = world.engine().state(itself.clone());
    let engine = builder
        .workflow(worker)
        .workflow(asks)
        .build()
        .await
        .unwrap();
    assert!(itself.0.set(engine.clone()).is_ok());
    assert_eq!(engine.run("a", asks(21)).await.unwrap(), 42);
    let helper = engine.attach::<worker>("helper").await.unwrap();
    assert_eq!(helper.result().await.unwrap(), 42);
    assert_eq!(helper.status().await.unwrap().state, RunState::Completed);
}

/// Bodies under way, and the most there ever were at once.
#[derive(Debug, Clone, Default)]
struct Busy(Arc<Mutex<(u32, u32)>>, Counter);

struct Within(Busy);

impl Busy {
    fn enter(&self) -> Within {
        let mut inner = self.0.lock().unwrap();
        inner.0 += 1;
        inner.1 = inner.1.max(inner.0);
        self.1.hit();
        Within(self.clone())
    }
}

impl Drop for Within {
    fn drop(&mut self) {
        self.0.0.lock().unwrap().0 -= 1;
    }
}

#[step(timeout = "none")]
async fn work(busy: &Busy) -> u32 {
    let _within = busy.enter();
    pass(1_000).await;
    1
}

#[workflow]
async fn two(#[state] busy: Busy) -> Result<u32, Failure> {
    let first = {
        #[step(name = "first")]
        work(&busy).await?
    };
    let second = {
        #[step(name = "second")]
        work(&busy).await?
    };
    Ok(first + second)
}

// RVT-HOST-09: it is not refused, for it need not be: the drive is stopped first, and what was under way is not recorded.
#[tokio::test(start_paused = true)]
async fn a_rewind_of_a_run_that_is_being_driven_stops_that_drive_first() {
    let world = World::new();
    let busy = Busy::default();
    let engine = world.engine().state(busy.clone()).workflow(two);
    let engine = engine.build().await.unwrap();
    let run = engine.start("a", two()).await.unwrap();
    pass(1_500).await;
    assert_eq!(busy.1.count(), 2, "the second is under way");
    let rewound = run.rewind("first").await.unwrap();
    assert_eq!(rewound.generation, 1);
    assert_eq!(run.result().await.unwrap(), 2);
    assert_eq!(busy.1.count(), 4, "both were done again");
    assert_eq!(busy.0.lock().unwrap().1, 1, "never two at once");
}
