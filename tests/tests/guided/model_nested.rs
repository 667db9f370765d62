//! The same for a flow with another in a stage of it: random commands against a model, with a kill after every commit.
//!
//! The flow: `a` leads to `n`, in which is a flow of `x`, that only asks, and `y`, which has two effects, the second of which may
//! fail; after it `n` has an effect of its own; `c` is the end.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use workflow::guided::{
    FailingKind, Flow, Guide, Moved, Refused, Stage, StageName, Status, Undone, View, stage,
};
use workflow::{Failure, fragment, step};
use workflow_tests::{Fault, FaultStore, World};

use super::model::{Numbers, succeeded};
use super::{Effect, Form, Unlucky, described, engine, have, history, trace};

/// What the person gives within.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Bank {
    number: u32,
}

const PATH: &str = "n/guide";

fn effect(name: &str, fails: bool) -> Effect {
    Effect {
        name: name.to_owned(),
        millis: 5,
        fails,
    }
}

#[fragment]
async fn twice(number: u32) -> Result<(), Failure> {
    have(effect("y one", false)).await?;
    #[step(name = "two", retries = 0)]
    have(effect("y two", number % 4 == 2)).await?;
    Ok(())
}

#[fragment]
async fn goes(flow: Flow<Bank>) -> Result<(), Failure> {
    flow.guide(Bank::default()).await?;
    #[step(name = "after", retries = 0)]
    have(effect("after", false)).await?;
    Ok(())
}

async fn takes_back<S>(gave: String, _: Undone<S>) -> Result<(), Unlucky> {
    trace().say(format!("undo {gave}"));
    Ok(())
}

fn flow() -> Flow<Form> {
    let inner = Flow::<Bank>::builder("inner")
        .stage(
            stage("x")
                .start()
                .check(|bank: &Bank, problems| {
                    problems.when(bank.number > 8, "number", "too large");
                })
                .to("y"),
        )
        .stage(
            stage("y")
                .body(|stage: Stage<Bank>| twice(stage.state().number))
                .undo_step("have", takes_back)
                .undo_step("two", takes_back)
                .terminal(),
        )
        .build()
        .unwrap();
    let in_stage = inner.clone();
    described([
        stage("a").start().to("n"),
        stage("n")
            .body(move |_: Stage<Form>| goes(in_stage.clone()))
            .undo_step("after", takes_back)
            .to("c"),
        stage("c").terminal(),
    ])
    .nests(&inner)
    .build()
    .unwrap()
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Press {
    Next,
    Back,
    Retry,
    Edit(u32),
    EditWithin(u32),
    Rollback,
    Start,
}

/// What came of a press.
#[derive(Debug, Clone, PartialEq)]
enum Came {
    To(String),
    Within(String),
    End,
    Edited,
    No,
}

/// Where the guide is, in the plainest words.
#[derive(Debug, Clone, PartialEq)]
struct Model {
    status: Status,
    stops: Vec<&'static str>,
    number: u32,
    /// The stage and the data of the flow within, while there is one.
    within: Option<(&'static str, u32)>,
    /// The flow within has ended once: it is kept.
    through: bool,
    /// What was had, in order.
    had: Vec<&'static str>,
}

impl Model {
    fn new() -> Self {
        Self {
            status: Status::Waiting,
            stops: vec!["a"],
            number: 0,
            within: None,
            through: false,
            had: Vec::new(),
        }
    }

    fn at(&self) -> &'static str {
        self.stops.last().copied().unwrap_or("")
    }

    fn has(&mut self, effect: &'static str) {
        if !self.had.contains(&effect) {
            self.had.push(effect);
        }
    }

    fn press(&mut self, press: Press) -> Came {
        match (press, self.status) {
            (Press::Edit(number), status) if status != Status::Completed => {
                self.number = number;
                // What is found wrong within is not mended around it.
                Came::Edited
            }
            (Press::EditWithin(number), _) => {
                let Some((_, within)) = &mut self.within else {
                    return Came::No;
                };
                *within = number;
                if self.status == Status::Blocked {
                    self.status = Status::Waiting;
                }
                Came::Edited
            }
            (Press::Next, Status::Waiting) => match (self.at(), self.within) {
                ("a", _) => {
                    self.stops.push("n");
                    self.enter_n()
                }
                (_, Some(("x", number))) if number > 8 => {
                    self.status = Status::Blocked;
                    Came::No
                }
                (_, Some(("x", number))) => {
                    self.within = Some(("y", number));
                    self.enter_y()
                }
                (_, Some(_)) => {
                    (self.within, self.through) = (None, true);
                    self.has("after");
                    self.stops.push("c");
                    Came::To("c".into())
                }
                ("n", None) => {
                    self.stops.push("c");
                    Came::To("c".into())
                }
                _ => {
                    self.status = Status::Completed;
                    Came::End
                }
            },
            (Press::Back, Status::Waiting | Status::Blocked | Status::Failed) => {
                if let Some(("y", number)) = self.within {
                    self.within = Some(("x", number));
                    self.status = Status::Waiting;
                    return Came::Within("x".into());
                }
                if self.stops.len() < 2 {
                    return Came::No;
                }
                self.stops.pop();
                self.within = None;
                self.status = Status::Waiting;
                if self.at() == "n" {
                    return self.enter_n();
                }
                Came::To("a".into())
            }
            (Press::Retry, Status::Blocked | Status::Failed) => self.again(),
            (Press::Rollback, _) => {
                *self = Self {
                    status: Status::Idle,
                    stops: Vec::new(),
                    ..Self::new()
                };
                Came::Edited
            }
            (Press::Start, Status::Idle) => {
                *self = Self::new();
                Came::To("a".into())
            }
            _ => Came::No,
        }
    }

    fn again(&mut self) -> Came {
        match self.within {
            Some(("y", _)) => self.enter_y(),
            Some(_) => {
                self.status = Status::Waiting;
                Came::Within("x".into())
            }
            None => {
                self.status = Status::Waiting;
                self.has("after");
                Came::To("n".into())
            }
        }
    }

    fn enter_n(&mut self) -> Came {
        self.status = Status::Waiting;
        if self.through {
            return Came::To("n".into());
        }
        self.within = Some(("x", 0));
        Came::Within("x".into())
    }

    fn enter_y(&mut self) -> Came {
        let number = self.within.map_or(0, |(_, number)| number);
        self.has("y one");
        if number % 4 == 2 && !self.had.contains(&"y two") {
            self.status = Status::Failed;
            return Came::No;
        }
        self.has("y two");
        self.status = Status::Waiting;
        Came::Within("y".into())
    }

    fn undone(&self) -> Vec<String> {
        let had = self.had.iter().rev();
        had.map(|name| format!("undo {name}")).collect()
    }

    fn shows(&self, view: &View<Form>) -> bool {
        self.status == view.status && self.stands(view)
    }

    /// The same, whatever became of the body.
    fn stands(&self, view: &View<Form>) -> bool {
        let within = view.nested.last().map(|inner| {
            let at = inner.at.as_ref().map_or("", StageName::as_str);
            (at, inner.state["number"].as_u64().unwrap())
        });
        view.at.as_ref().map_or("", StageName::as_str) == self.at()
            && history(view) == self.stops
            && view.state.number == self.number
            && within == self.within.map(|(at, number)| (at, number.into()))
    }
}

async fn press(guide: &Guide<Form>, press: Press) -> Result<Came, Refused> {
    let moved = match press {
        Press::Next => guide.next().await,
        Press::Back => guide.back().await,
        Press::Retry => guide.retry().await,
        Press::Edit(number) => {
            let edited = guide.edit(move |form| form.number = number).await;
            return edited.map(|_| Came::Edited);
        }
        Press::EditWithin(number) => {
            let within = guide.within::<Bank>(PATH);
            let edited = within.edit(move |bank| bank.number = number).await;
            return edited.map(|_| Came::Edited);
        }
        Press::Rollback => return guide.rollback().await.map(|_| Came::Edited),
        Press::Start => guide.start(Form::default()).await,
    };
    moved.map(|moved| match moved {
        Moved::Finished => Came::End,
        Moved::To(stage) => Came::To(stage.to_string()),
        Moved::Inside { path, to } => {
            assert_eq!(path, PATH);
            Came::Within(to.to_string())
        }
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
            let refused = came.as_ref().err().cloned();
            let came = came.unwrap_or(Came::No);
            assert_eq!(came, expected, "{what:?} of {model:?}: {refused:?}");
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

fn script(seed: u64, length: usize) -> Vec<Press> {
    let mut numbers = Numbers::new(seed);
    let mut script = Vec::new();
    for _ in 0..length {
        let mut number = || u32::try_from(numbers.below(10)).unwrap();
        script.push(match number() + number() {
            0..=8 => Press::Next,
            9 | 10 => Press::Back,
            11 => Press::Retry,
            12 => Press::Edit(number()),
            13..=15 => Press::EditWithin(number()),
            16 => Press::Rollback,
            _ => Press::Start,
        });
    }
    script
}

#[tokio::test(start_paused = true)]
async fn random_commands_within_and_around_lead_where_the_model_says() {
    let flow = flow();
    for seed in 0..80 {
        let engine = engine(&World::new(), &flow).await;
        let guide = engine.guided(&flow, "g").start(Form::default());
        let (guide, mut model) = (guide.await.unwrap(), Model::new());
        for what in script(seed, 40) {
            assert!(obey(&guide, &mut model, what).await, "seed {seed}");
        }
        // What was had is not had again before it is undone. The one that may fail is had until it does not.
        let mut had = BTreeSet::new();
        for said in trace().take() {
            if let Some(undone) = said.strip_prefix("undo ") {
                assert!(had.remove(undone) || undone == "y two", "seed {seed}");
            } else if said != "y two" {
                assert!(had.insert(said.clone()), "seed {seed}: {said}");
            }
        }
    }
}

// GDE-NST-06 GDE-CRX-03
#[tokio::test(start_paused = true)]
async fn a_kill_after_any_commit_within_or_around_loses_nothing_and_repeats_nothing() {
    let flow = flow();
    let (mut cuts, mut interrupted) = (0, 0);
    for seed in 0..10 {
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
            let mut cut_off = false;
            if done < script.len() {
                let mut after = model.clone();
                after.press(script[done]);
                // The flow within ended, and what comes after it was cut off.
                let mut between = model.clone();
                between.through |= between.within.take().is_some();
                if between.through && !between.had.contains(&"after") {
                    between.has("after");
                }
                let failure = guide.view().failure.clone();
                cut_off = failure.is_some_and(|it| it.kind == FailingKind::Interrupted);
                if cut_off {
                    interrupted += 1;
                    // It may fail, as it would have.
                    let _ = press(&guide, Press::Retry).await;
                }
                let view = guide.view();
                let candidates = [model.clone(), after, between];
                let found = candidates.iter().position(|it| it.shows(&view));
                let Some(found) = found else {
                    panic!("seed {seed}, cut {cut}: {candidates:#?}\n{view:#?}");
                };
                assert!(found < 2 || cut_off, "seed {seed}, cut {cut}: {view:#?}");
                done += usize::from(found > 0);
                model = candidates[found].clone();
            }
            for what in &script[done..] {
                assert!(obey(&guide, &mut model, *what).await);
            }
            let again: BTreeSet<_> = trace().take().into_iter().collect();
            let twice: Vec<_> = again.intersection(&recorded).collect();
            let undone = script[done..].contains(&Press::Rollback);
            assert!(
                undone || twice.is_empty(),
                "seed {seed}, cut {cut}, cut off {cut_off}: {twice:?}"
            );
            cut += 1;
            cuts += 1;
        }
    }
    assert!(cuts > 70 && interrupted > 5, "{cuts} {interrupted}");
}

// A flow that begins anew counts its visits anew: what a later try within did is kept all the same.
#[tokio::test(start_paused = true)]
async fn what_a_second_try_within_did_is_kept_when_the_flow_begins_anew() {
    let flow = flow();
    let engine = engine(&World::new(), &flow).await;
    let guide = engine.guided(&flow, "g").start(Form::default());
    let (guide, mut model) = (guide.await.unwrap(), Model::new());
    let script = [
        Press::Next,
        Press::EditWithin(2),
        Press::Next,
        Press::EditWithin(1),
        Press::Retry,
        Press::Back,
        Press::Back,
        Press::Next,
        Press::EditWithin(2),
        Press::Next,
    ];
    for what in script {
        assert!(obey(&guide, &mut model, what).await);
    }
    assert_eq!(trace().take(), ["y one", "y two", "y two"]);
}
