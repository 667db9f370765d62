//! Random commands against a model that knows nothing of records, with a kill after every commit.
//!
//! The flow: `a` leads to `b` or `c`; `b` has two effects, the second of which may fail; `c` may be skipped, or passed over; `d`
//! has an effect of its own and one when it is left, and may lead back to `a`; `e` is the end.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use workflow::guided::{
    FailingKind, Flow, Guide, Moved, Refused, Stage, Status, Undone, View, stage,
};
use workflow::replay::{Body, Kind, RunId};
use workflow::store::Store as _;
use workflow::{Failure, fragment, step};
use workflow_tests::{Fault, FaultStore, World};

use super::{
    Effect, Form, Unlucky, completed, described, engine, have, history, one, skipped, trace,
};

fn effect(name: String, fails: bool) -> Effect {
    Effect {
        name,
        millis: 5,
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

fn model_flow() -> Flow<Form> {
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
enum Press {
    Next,
    Back,
    Skip,
    Retry,
    Edit(u32),
    Rollback,
    Start,
}

/// What came of a press.
#[derive(Debug, Clone, PartialEq)]
enum Came {
    To(&'static str),
    End,
    Edited,
    No,
}

/// Where the guide is, in the plainest words.
#[derive(Debug, Clone, PartialEq)]
struct Model {
    status: Status,
    at: &'static str,
    stops: Vec<(&'static str, bool)>,
    completed: Vec<&'static str>,
    skipped: Vec<&'static str>,
    number: u32,
    /// The effect that may fail has succeeded once: it is kept.
    lucky: bool,
    /// The effect before it was had.
    had: bool,
}

impl Model {
    fn new() -> Self {
        Self {
            status: Status::Waiting,
            at: "a",
            stops: vec![("a", false)],
            completed: vec![],
            skipped: vec![],
            number: 0,
            lucky: false,
            had: false,
        }
    }

    /// Before it begins again.
    fn idle() -> Self {
        Self {
            status: Status::Idle,
            at: "",
            stops: vec![],
            ..Self::new()
        }
    }

    /// What a rollback undoes, in order.
    fn undone(&self) -> Vec<&'static str> {
        let both = [(self.lucky, "undo b two"), (self.had, "undo b one")];
        both.into_iter()
            .filter_map(|(had, name)| had.then_some(name))
            .collect()
    }

    fn press(&mut self, press: Press) -> Came {
        match (press, self.status) {
            (Press::Edit(number), status) if status != Status::Completed => {
                self.number = number;
                if status == Status::Blocked {
                    self.status = Status::Waiting;
                }
                Came::Edited
            }
            (Press::Next, Status::Waiting) if self.at == "a" && self.number > 8 => {
                self.status = Status::Blocked;
                Came::No
            }
            (Press::Next, Status::Waiting) => self.forward(false),
            (Press::Skip, Status::Waiting | Status::Blocked) if self.at == "c" => {
                self.forward(true)
            }
            (Press::Back, Status::Waiting | Status::Blocked | Status::Failed) => {
                let visited = self.stops.iter().filter(|(_, over)| !over).count();
                if visited < 2 {
                    return Came::No;
                }
                self.stops.pop();
                while let Some(&(stage, true)) = self.stops.last() {
                    self.stops.pop();
                    self.forget(stage);
                }
                self.at = self.stops.last().unwrap().0;
                self.forget(self.at);
                self.enter()
            }
            (Press::Retry, Status::Blocked | Status::Failed) => self.enter(),
            (Press::Rollback, _) => {
                *self = Self::idle();
                Came::Edited
            }
            (Press::Start, Status::Idle) => {
                *self = Self::new();
                Came::To("a")
            }
            _ => Came::No,
        }
    }

    fn forward(&mut self, skips: bool) -> Came {
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
                return Came::End;
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
        self.enter()
    }

    fn enter(&mut self) -> Came {
        self.status = Status::Waiting;
        self.had |= self.at == "b";
        if self.at == "b" && !self.lucky {
            self.lucky = self.number % 4 != 2;
            if !self.lucky {
                self.status = Status::Failed;
                return Came::No;
            }
        }
        Came::To(self.at)
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

    fn shows(&self, view: &View<Form>) -> bool {
        self.status == view.status && self.stands(view)
    }

    /// The same, whatever became of the body.
    fn stands(&self, view: &View<Form>) -> bool {
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
}

async fn press(guide: &Guide<Form>, press: Press) -> Result<Came, Refused> {
    let moved = match press {
        Press::Next => guide.next().await,
        Press::Back => guide.back().await,
        Press::Skip => guide.skip().await,
        Press::Retry => guide.retry().await,
        Press::Edit(number) => {
            let edited = guide.edit(move |form| form.number = number).await;
            return edited.map(|_| Came::Edited);
        }
        Press::Rollback => return guide.rollback().await.map(|_| Came::Edited),
        Press::Start => guide.start(Form::default()).await,
    };
    let names = ["a", "b", "c", "d", "e"];
    moved.map(|moved| match moved {
        Moved::Finished => Came::End,
        Moved::To(stage) => Came::To(names.into_iter().find(|name| stage == *name).unwrap()),
        Moved::Inside { .. } => panic!("nothing is in a stage of this flow"),
    })
}

/// Presses, and compares with the model. False when the store says nothing any more.
async fn obey(guide: &Guide<Form>, model: &mut Model, what: Press) -> bool {
    let mut next = model.clone();
    let expected = next.press(what);
    let told = trace().count();
    let came = tokio::time::timeout(Duration::from_secs(1), press(guide, what)).await;
    match came {
        Err(_) | Ok(Err(Refused::Stopped(_) | Refused::Store(_))) => return false,
        Ok(came) => {
            let came = came.unwrap_or(Came::No);
            assert_eq!(came, expected, "{what:?} of {model:?}");
        }
    }
    if what == Press::Rollback {
        assert_eq!(trace().since(told), model.undone(), "{model:?}");
    }
    *model = next;
    let view = guide.view();
    assert!(model.shows(&view), "{what:?}: {model:?}\n{view:#?}");
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
        script.push(match numbers.below(14) {
            0..=5 => Press::Next,
            6 | 7 => Press::Back,
            8 => Press::Skip,
            9 => Press::Retry,
            10 => Press::Rollback,
            11 => Press::Start,
            _ => Press::Edit(u32::try_from(numbers.below(10)).unwrap()),
        });
    }
    script
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
    let row = world.store.find(&RunId::new("g").unwrap()).await.unwrap();
    let Some(row) = row else {
        return BTreeSet::new();
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
            let recorded = succeeded(&world).await;
            trace().take();

            let engine = engine(&world, &flow).await;
            let guide = engine.guided(&flow, "g").open_or_start(Form::default);
            let guide = guide.await.unwrap();
            super::rested(&guide).await;
            let view = guide.view();
            if done < script.len() {
                let before = model.clone();
                let mut after = model.clone();
                after.press(script[done]);
                let cut_off = view.failure.as_ref();
                if cut_off.is_some_and(|failing| failing.kind == FailingKind::Interrupted) {
                    assert!(after.stands(&view), "{after:?}\n{view:#?}");
                    interrupted += 1;
                    let came = press(&guide, Press::Retry).await.unwrap_or(Came::No);
                    assert_eq!(came, after.enter());
                    (model, done) = (after, done + 1);
                } else if after.shows(&view) {
                    (model, done) = (after, done + 1);
                }
                assert!(model.shows(&guide.view()), "{before:?}\n{view:#?}");
            }
            for what in &script[done..] {
                assert!(obey(&guide, &mut model, *what).await);
            }
            let again: BTreeSet<_> = trace().take().into_iter().collect();
            let twice: Vec<_> = again
                .intersection(&recorded)
                // Each time that `d` is left is a time of its own.
                .filter(|name| *name != "leave d")
                .collect();
            let undone = script[done..].contains(&Press::Rollback);
            assert!(
                undone || twice.is_empty(),
                "seed {seed}, cut {cut}: {twice:?}"
            );
            cut += 1;
            cuts += 1;
        }
    }
    assert!(cuts > 70 && interrupted > 5, "{cuts} {interrupted}");
}
