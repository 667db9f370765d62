//! Random commands against a model that knows nothing of records, with a kill after every commit.
//!
//! The flow: `a` leads to `b` or `c`; `b` has two effects, the second of which may fail; `c` may be skipped, or passed over; `d`
//! has an effect of its own and one when it is left, and may lead back to `a`; `e` is the end.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use workflow::guided::{
    Failing, FailingKind, Flow, Guide, Moved, Press as Pressing, Refused, Stage, Status, Undone,
    View, stage,
};
use workflow::replay::{Body, Kind, RunId};
use workflow::store::Store as _;
use workflow::{Failure, fragment, step};
use workflow_tests::{Fault, FaultStore, World};

use super::{
    Effect, Form, Unlucky, completed, described, engine, have, history, one, skipped, trace,
};

/// How long each effect takes.
const TAKES: u64 = 10;

fn effect(name: String, fails: bool) -> Effect {
    Effect {
        name,
        millis: TAKES,
        fails,
    }
}

/// The names of effects tell one visit that begins anew from another, and not those that go on from one.
#[fragment]
async fn twice(number: u32) -> Result<(), Failure> {
    have(effect("b one".to_owned(), false)).await?;
    #[step(name = "two", retries = 0)]
    have(effect("b two".to_owned(), number % 4 == 2)).await?;
    Ok(())
}

async fn takes_back(gave: String, _: Undone<Form>) -> Result<(), Unlucky> {
    trace().say(format!("undo {gave}"));
    Ok(())
}

pub(super) fn model_flow() -> Flow<Form> {
    described([
        stage("a")
            .start()
            .check(|form: &Form, problems| problems.when(form.number > 8, "number", "too large"))
            .to_if("b", |form| form.number % 2 == 0)
            .to("c"),
        stage("b")
            .body(|stage: Stage<Form>| twice(stage.state().number))
            .undo_step("have", takes_back)
            .undo_step("two", takes_back)
            .to("c"),
        stage("c")
            .skippable()
            .when(|form: &Form| form.number != 5)
            .to("d"),
        stage("d")
            .body(|_: Stage<Form>| one(effect("d".to_owned(), false)))
            .leave(|_: Stage<Form>| one(effect("leave d".to_owned(), false)))
            .to_if("a", |form| form.number == 7)
            .to("e"),
        stage("e").terminal(),
    ])
    .build()
    .unwrap()
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Press {
    Next,
    Back,
    Skip,
    Retry,
    Edit(u32),
    Rollback,
    Start,
}

/// A press as it is given.
#[derive(Debug, Clone)]
pub(super) struct Given {
    pub(super) what: Press,
    /// The revision that it was decided on.
    pub(super) at: Option<u64>,
    pub(super) key: Option<String>,
}

impl From<Press> for Given {
    fn from(what: Press) -> Self {
        Self {
            what,
            at: None,
            key: None,
        }
    }
}

/// What came of a press that was obeyed.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Came {
    To(&'static str),
    End,
    Edited(u64),
}

/// What is under way.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Doing {
    Body { fails: bool },
    Leave { key: Option<String> },
    Undo,
}

/// Where the guide is, in the plainest words.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Model {
    pub(super) status: Status,
    pub(super) revision: u64,
    at: &'static str,
    stops: Vec<(&'static str, bool)>,
    completed: Vec<&'static str>,
    skipped: Vec<&'static str>,
    number: u32,
    /// The effects that succeeded: they are kept.
    pub(super) had: BTreeSet<&'static str>,
    /// So often `d` was left: each time has an effect of its own.
    leaves: usize,
    /// It was cut off between that effect and the move: the effect is not had again.
    left: bool,
    /// The keys that were obeyed, and what revision each led to.
    keys: BTreeMap<String, u64>,
    pub(super) doing: Option<Doing>,
    /// How long that takes.
    pub(super) millis: u64,
    /// What is to be heard of effects and undos, in order.
    pub(super) says: Vec<&'static str>,
}

impl Model {
    pub(super) fn new() -> Self {
        Self {
            status: Status::Waiting,
            revision: 1,
            at: "a",
            stops: vec![("a", false)],
            ..Self::idle()
        }
    }

    /// Before it begins again.
    fn idle() -> Self {
        Self {
            status: Status::Idle,
            revision: 0,
            at: "",
            stops: vec![],
            completed: vec![],
            skipped: vec![],
            number: 0,
            had: BTreeSet::new(),
            leaves: 0,
            left: false,
            keys: BTreeMap::new(),
            doing: None,
            millis: 0,
            says: vec![],
        }
    }

    /// It begins anew, and goes on counting.
    fn anew(&mut self, to: Self) {
        let Self {
            revision,
            keys,
            says,
            ..
        } = std::mem::replace(self, to);
        (self.revision, self.keys, self.says) = (revision, keys, says);
    }

    /// What a rollback undoes, in order.
    fn undone(&self) -> Vec<&'static str> {
        let both = [("b two", "undo b two"), ("b one", "undo b one")];
        both.into_iter()
            .filter_map(|(name, undo)| self.had.contains(name).then_some(undo))
            .collect()
    }

    /// The revision that the command with this key led to.
    pub(super) fn since(&self, given: &Given) -> Option<u64> {
        given
            .key
            .as_ref()
            .and_then(|key| self.keys.get(key))
            .copied()
    }

    /// A press that nothing comes in between.
    pub(super) fn obeys(&mut self, given: &Given) -> Result<Came, Refused> {
        match self.press(given)? {
            Some(came) => Ok(came),
            None => self.settle(),
        }
    }

    /// Gives nothing when it takes its time.
    pub(super) fn press(&mut self, given: &Given) -> Result<Option<Came>, Refused> {
        if let Some(revision) = self.since(given) {
            return Ok(Some(match given.what {
                Press::Edit(_) | Press::Rollback => Came::Edited(revision),
                _ if self.status == Status::Completed || self.at.is_empty() => Came::End,
                _ => Came::To(self.at),
            }));
        }
        let revision = self.revision;
        if given.at.is_some_and(|at| at != revision) {
            return Err(Refused::Stale { revision });
        }
        self.admit(given.what)?;
        let key = given.key.clone();
        match given.what {
            Press::Edit(number) => {
                self.number = number;
                if self.status == Status::Blocked {
                    self.status = Status::Waiting;
                }
                self.commit(key);
                Ok(Some(Came::Edited(self.revision)))
            }
            Press::Next if self.at == "a" && self.number > 8 => {
                self.status = Status::Blocked;
                self.commit(key);
                Err(Refused::Invalid(vec![]))
            }
            Press::Next if self.at == "d" => {
                self.doing = Some(Doing::Leave { key });
                if self.left {
                    // Nothing is waited for.
                    return self.settle().map(Some);
                }
                (self.millis, self.left) = (TAKES, true);
                self.leaves += 1;
                self.says.push("leave d");
                Ok(None)
            }
            Press::Next => Ok(self.forward(false, key)),
            Press::Skip => Ok(self.forward(true, key)),
            Press::Back => {
                let visited = self.stops.iter().filter(|(_, over)| !over).count();
                if visited < 2 {
                    return Err(Refused::AtStart);
                }
                self.stops.pop();
                while let Some(&(stage, true)) = self.stops.last() {
                    self.stops.pop();
                    self.forget(stage);
                }
                self.at = self.stops.last().unwrap().0;
                self.forget(self.at);
                Ok(self.enter(key))
            }
            Press::Retry => Ok(self.enter(key)),
            Press::Rollback => {
                self.status = Status::RollingBack;
                self.commit(key);
                self.takes(&self.undone(), Doing::Undo);
                self.millis = 0;
                Ok(None)
            }
            Press::Start => {
                self.anew(Self::new());
                self.commit(key);
                Ok(Some(Came::To("a")))
            }
        }
    }

    fn admit(&self, press: Press) -> Result<(), Refused> {
        use Status::{Blocked, Completed, Failed, Idle, RollingBack, Waiting, Working};
        let busy = self.doing.is_some();
        Err(match (press, self.status) {
            (Press::Start, Idle)
            | (Press::Edit(_), Idle | Waiting | Working | Blocked | Failed) => return Ok(()),
            (Press::Start, _) => Refused::AlreadyStarted,
            (_, Working) => Refused::Busy,
            (Press::Next, Waiting)
            | (Press::Back, Waiting | Blocked | Failed)
            | (Press::Retry, Blocked | Failed)
            | (Press::Rollback, Idle | Waiting | Blocked | Failed | RollingBack)
            | (Press::Skip, Waiting | Blocked)
                if busy =>
            {
                Refused::Busy
            }
            (Press::Skip, Waiting | Blocked) if self.at != "c" => Refused::NotSkippable,
            (Press::Next | Press::Skip, Waiting)
            | (Press::Skip, Blocked)
            | (Press::Back, Waiting | Blocked | Failed)
            | (Press::Retry, Blocked | Failed)
            | (Press::Rollback, Idle | Waiting | Blocked | Failed | RollingBack) => return Ok(()),
            // One that has come to its end is taken up again for that, when it is asked after it.
            (Press::Rollback, Completed) if self.doing.is_none() => return Ok(()),
            (Press::Retry, Idle | Waiting | Completed) => Refused::NothingToRetry,
            (Press::Skip, status) => Refused::NotRunning(status),
            (_, Completed) => Refused::Finished,
            (_, status) => Refused::NotRunning(status),
        })
    }

    /// What was under way has ended.
    pub(super) fn settle(&mut self) -> Result<Came, Refused> {
        match self.doing.take().unwrap() {
            Doing::Body { fails } => {
                self.commit(None);
                self.status = if fails {
                    Status::Failed
                } else {
                    Status::Waiting
                };
                let effects: &[_] = match (self.at, fails) {
                    ("b", true) => &["b one"],
                    ("b", false) => &["b one", "b two"],
                    _ => &["d"],
                };
                self.had.extend(effects);
                if fails {
                    return Err(failed());
                }
                Ok(Came::To(self.at))
            }
            Doing::Leave { key } => Ok(self.forward(false, key).unwrap()),
            Doing::Undo => {
                self.anew(Self::idle());
                self.commit(None);
                Ok(Came::Edited(self.revision))
            }
        }
    }

    fn commit(&mut self, key: Option<String>) {
        self.revision += 1;
        self.keys.extend(key.map(|key| (key, self.revision)));
    }

    fn takes(&mut self, says: &[&'static str], doing: Doing) {
        self.millis = TAKES * says.len() as u64;
        self.says.extend(says);
        self.doing = Some(doing);
    }

    fn forward(&mut self, skips: bool, key: Option<String>) -> Option<Came> {
        self.forget(self.at);
        if skips {
            self.skipped.push(self.at);
        } else {
            self.completed.push(self.at);
        }
        let mut to = match self.at {
            "a" if self.number.is_multiple_of(2) => "b",
            "a" | "b" => "c",
            "c" => "d",
            "d" if self.number == 7 => "a",
            "d" => "e",
            _ => {
                self.status = Status::Completed;
                self.commit(key);
                return Some(Came::End);
            }
        };
        if to == "c" && self.number == 5 {
            self.forget("c");
            self.skipped.push("c");
            self.stops.push(("c", true));
            to = "d";
        }
        self.at = to;
        self.stops.push((to, false));
        self.enter(key)
    }

    fn enter(&mut self, key: Option<String>) -> Option<Came> {
        self.commit(key);
        self.left = false;
        let effects: &[_] = match self.at {
            "b" => &["b one", "b two"],
            "d" => &["d"],
            _ => {
                self.status = Status::Waiting;
                return Some(Came::To(self.at));
            }
        };
        let had = |effect: &&'static str| self.had.contains(*effect);
        let says: Vec<_> = effects.iter().copied().filter(|it| !had(it)).collect();
        let fails = says.contains(&"b two") && self.number % 4 == 2;
        self.status = Status::Working;
        self.takes(&says, Doing::Body { fails });
        None
    }

    fn forget(&mut self, stage: &str) {
        // What was completed first stays where it is when it is completed again.
        self.completed.retain(|known| *known != stage);
        self.skipped.retain(|known| *known != stage);
    }

    fn history(&self) -> Vec<&'static str> {
        let visited = self.stops.iter().filter(|(_, over)| !over);
        visited.map(|(stage, _)| *stage).collect()
    }

    pub(super) fn shows(&self, view: &View<Form>) -> bool {
        self.status == view.status && self.revision == view.revision && self.stands(view)
    }

    /// The same, whatever became of the body.
    pub(super) fn stands(&self, view: &View<Form>) -> bool {
        let sorted = |mut names: Vec<&str>| {
            names.sort_unstable();
            names.into_iter().map(str::to_owned).collect::<Vec<_>>()
        };
        view.at.as_ref().map_or("", |at| at.as_str()) == self.at
            && history(view) == self.history()
            && sorted(completed(view)) == sorted(self.completed.clone())
            && sorted(skipped(view)) == sorted(self.skipped.clone())
            && view.state.number == self.number
    }

    /// The process was killed, and this is what lasts of it, as `view` shows it, and what goes on by itself. `recorded` are the effects
    /// that are known to have succeeded.
    pub(super) fn taken_up(&self, view: &View<Form>, recorded: &[String]) -> Option<Self> {
        let mut model = self.clone();
        let count = |name: &str| recorded.iter().filter(|known| *known == name).count();
        match model.doing.take() {
            Some(Doing::Body { .. }) if is_cut_off(view) => {
                model.status = Status::Failed;
                model.commit(None);
                let effects = ["b one", "b two", "d"].into_iter();
                model.had = effects.filter(|name| count(name) > 0).collect();
            }
            _ if is_cut_off(view) => return None,
            Some(Doing::Leave { .. }) => {
                model.left = count("leave d") == model.leaves;
                model.leaves = count("leave d");
            }
            None => {}
            doing => {
                model.doing = doing;
                // Nobody waits for it any more.
                let _ = model.settle();
            }
        }
        model.says.clear();
        model.shows(view).then_some(model)
    }
}

pub(super) fn is_cut_off(view: &View<Form>) -> bool {
    let failing = view.failure.as_ref();
    failing.is_some_and(|failing| failing.kind == FailingKind::Interrupted)
}

fn failed() -> Refused {
    Refused::Failed(Failing {
        kind: FailingKind::Error,
        text: String::new(),
        at: vec![],
    })
}

/// The same answer, whatever words explain it.
pub(super) fn agree(one: &Result<Came, Refused>, other: &Result<Came, Refused>) -> bool {
    match (one, other) {
        (Err(Refused::Invalid(_)), Err(Refused::Invalid(_)))
        | (Err(Refused::Failed(_)), Err(Refused::Failed(_))) => true,
        _ => one == other,
    }
}

pub(super) async fn press(guide: &Guide<Form>, given: &Given) -> Result<Came, Refused> {
    let Given { what, at, key } = given.clone();
    match what {
        Press::Next => moves(guide.next(), at, key).await,
        Press::Back => moves(guide.back(), at, key).await,
        Press::Skip => moves(guide.skip(), at, key).await,
        Press::Retry => moves(guide.retry(), at, key).await,
        Press::Edit(number) => {
            let edit = guide.edit(move |form| form.number = number);
            told(edit, at, key).await.map(Came::Edited)
        }
        Press::Rollback => told(guide.rollback(), at, key).await.map(Came::Edited),
        Press::Start => moves(guide.start(Form::default()), at, key).await,
    }
}

async fn told<T: 'static>(
    mut press: Pressing<Form, T>,
    at: Option<u64>,
    key: Option<String>,
) -> Result<T, Refused> {
    if let Some(at) = at {
        press = press.at(at);
    }
    if let Some(key) = key {
        press = press.key(key);
    }
    press.await
}

async fn moves(
    press: Pressing<Form, Moved>,
    at: Option<u64>,
    key: Option<String>,
) -> Result<Came, Refused> {
    let names = ["a", "b", "c", "d", "e"];
    told(press, at, key).await.map(|moved| match moved {
        Moved::Finished => Came::End,
        Moved::To(stage) => Came::To(names.into_iter().find(|name| stage == *name).unwrap()),
        Moved::Inside { .. } => panic!("nothing is in a stage of this flow"),
    })
}

/// Presses, and compares with the model. False when the store says nothing any more.
pub(super) async fn obey(guide: &Guide<Form>, model: &mut Model, given: impl Into<Given>) -> bool {
    let given = given.into();
    let mut next = model.clone();
    next.says.clear();
    let expected = next.obeys(&given);
    let told = trace().count();
    let came = tokio::time::timeout(Duration::from_secs(1), press(guide, &given)).await;
    match came {
        Err(_) | Ok(Err(Refused::Stopped(_) | Refused::Store(_))) => return false,
        Ok(came) => assert!(
            agree(&came, &expected),
            "{given:?}: {came:?}, not {expected:?}, of {model:?}"
        ),
    }
    assert_eq!(trace().since(told), next.says, "{given:?}: {model:?}");
    *model = next;
    let view = guide.view();
    assert!(model.shows(&view), "{given:?}: {model:?}\n{view:#?}");
    true
}

/// Numbers that look random, the same each time (splitmix64).
pub(super) struct Numbers(u64);

impl Numbers {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (bits ^ (bits >> 31)) % limit
    }
}

fn script(seed: u64, length: usize) -> Vec<Press> {
    let mut numbers = Numbers::new(seed);
    let mut script = Vec::new();
    for _ in 0..length {
        script.push(some_press(&mut numbers));
    }
    script
}

pub(super) fn some_press(numbers: &mut Numbers) -> Press {
    match numbers.below(14) {
        0..=5 => Press::Next,
        6 | 7 => Press::Back,
        8 => Press::Skip,
        9 => Press::Retry,
        10 => Press::Rollback,
        11 => Press::Start,
        _ => Press::Edit(u32::try_from(numbers.below(10)).unwrap()),
    }
}

#[tokio::test(start_paused = true)]
async fn random_commands_lead_where_the_model_says() {
    let flow = model_flow();
    for seed in 0..60 {
        let engine = engine(&World::new(), &flow).await;
        let guide = engine.guided(&flow, "g").start(Form::default());
        let (guide, mut model) = (guide.await.unwrap(), Model::new());
        for what in script(seed, 40) {
            assert!(obey(&guide, &mut model, what).await);
        }
    }
}

/// The effects that are recorded to have succeeded.
pub(super) async fn succeeded(world: &World) -> BTreeSet<String> {
    ended(world).await.into_iter().collect()
}

/// The same, each as often as it is recorded.
pub(super) async fn ended(world: &World) -> Vec<String> {
    let row = world.store.find(&RunId::new("g").unwrap()).await.unwrap();
    let Some(row) = row else {
        return Vec::new();
    };
    let loaded = world.store.load(row.key).await.unwrap().unwrap();
    let ended = loaded
        .history
        .into_iter()
        .filter_map(|record| match record.body {
            Body::Ended(ended) if ended.kind == Kind::Step => ended.outcome.ok(),
            _ => None,
        });
    ended
        .map(|payload| serde_json::from_slice(&payload.bytes).unwrap())
        .collect()
}

// GDE-CRX-03 GDE-PER-05
#[tokio::test(start_paused = true)]
async fn a_kill_after_any_commit_loses_nothing_that_was_shown_and_repeats_nothing_that_succeeded() {
    let flow = model_flow();
    let (mut cuts, mut interrupted) = (0, 0);
    for seed in 0..6 {
        let script = script(seed, 14);
        let mut whole = false;
        let mut cut = 1;
        while !whole {
            let world = World::new();
            let faults = (0..cut).map(|_| Fault::None);
            let faults = faults.chain(std::iter::repeat_n(Fault::Before, 1_000));
            let store = FaultStore::over(&world.store, faults);
            let builder = world.engine().shared_store(Arc::new(store.clone()));
            let first = builder.guided(&flow).build().await.unwrap();
            let starting = first.guided(&flow, "g").start(Form::default());
            let guide = tokio::time::timeout(Duration::from_secs(1), starting).await;
            let (mut model, mut done) = (Model::new(), 0);
            if let Ok(Ok(guide)) = &guide {
                while done < script.len() && obey(guide, &mut model, script[done]).await {
                    done += 1;
                }
            }
            whole = done == script.len();
            drop((guide, first));
            tokio::task::yield_now().await;
            let world = world.crash();
            let recorded = ended(&world).await;
            trace().take();

            let engine = engine(&world, &flow).await;
            let guide = engine.guided(&flow, "g").open_or_start(Form::default);
            let guide = guide.await.unwrap();
            super::rested(&guide).await;
            let view = guide.view();
            for again in trace().take() {
                assert!(
                    !recorded.contains(&again),
                    "seed {seed}, cut {cut}: {again}"
                );
            }
            if done < script.len() {
                let before = model.clone();
                let mut after = vec![before.clone()];
                let _ = model.press(&script[done].into());
                after.push(model.clone());
                if model.doing.is_some() {
                    let _ = model.settle();
                    after.push(model);
                }
                let mut after = after.iter().rev();
                let found = after.find_map(|model| model.taken_up(&view, &recorded));
                model = found.unwrap_or_else(|| panic!("{before:?}\n{view:#?}"));
                done += 1;
                if is_cut_off(&view) {
                    interrupted += 1;
                    assert!(obey(&guide, &mut model, Press::Retry).await);
                }
            }
            for what in &script[done..] {
                assert!(obey(&guide, &mut model, *what).await);
            }
            cut += 1;
            cuts += 1;
        }
    }
    assert!(cuts > 70 && interrupted > 5, "{cuts} {interrupted}");
}
