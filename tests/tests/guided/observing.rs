//! Observers: told of everything, and of no consequence.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};

use workflow::guided::{Event, Flow, FlowBuilder, Heard, Moved, Told, stage};
use workflow_tests::{World, pass};

use super::{Form, described, engine, started};

/// What observers heard. They are called on threads of their own.
#[derive(Clone, Default)]
struct Ear(Arc<Mutex<Vec<String>>>);

impl Ear {
    fn say(&self, what: impl Into<String>) {
        let mut heard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        heard.push(what.into());
    }

    /// What was heard, once all that has happened was told.
    async fn heard(&self) -> Vec<String> {
        pass(1).await;
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn hears(&self, name: &'static str) -> impl FnMut(&Told<Form>) -> Heard + Send + use<> {
        let ear = self.clone();
        move |told| {
            ear.say(format!("{name}: {}", word(&told.event)));
            Ok(ControlFlow::Continue(()))
        }
    }
}

fn word(event: &Event) -> String {
    match event {
        Event::Started => "start".to_owned(),
        Event::Entered(stage) => format!("enter {stage}"),
        Event::Checked(stage) => format!("check {stage}"),
        Event::Left(stage) => format!("leave {stage}"),
        Event::PassedOver(stage) => format!("over {stage}"),
        Event::Completed => "complete".to_owned(),
        Event::Edited => "edit".to_owned(),
        other => format!("{other:?}"),
    }
}

fn described_row() -> FlowBuilder<Form> {
    described([
        stage("a").start().to("b"),
        stage("b").when(|form: &Form| form.number > 0).to("c"),
        stage("c").terminal(),
    ])
}

// GDE-EVT-01: the flow's own observer hears it from the start.
#[tokio::test(start_paused = true)]
async fn everything_that_happens_is_told_in_order() {
    let (ear, world) = (Ear::default(), World::new());
    let own = ear.clone();
    let flow = described_row().analytics(move |told| {
        own.say(word(&told.event));
        Ok(())
    });
    let guide = started(&world, &flow.build().unwrap()).await;
    assert_eq!(ear.heard().await, ["start", "enter a"]);
    guide.next().await.unwrap();
    assert_eq!(
        ear.heard().await,
        ["check a", "leave a", "over b", "enter c"]
    );
    assert_eq!(guide.next().await, Ok(Moved::Finished));
    assert_eq!(ear.heard().await, ["check c", "leave c", "complete"]);
}

fn failing(ear: &Ear, sink_fails: bool) -> Flow<Form> {
    let sink = ear.clone();
    described_row()
        .analytics(|_| Err("no analytics".into()))
        .on_observer_error(move |text| {
            sink.say(text);
            assert!(!sink_fails, "no sink");
        })
        .build()
        .unwrap()
}

// GDE-EVT-02 GDE-EVT-03
#[tokio::test(start_paused = true)]
async fn observers_that_fail_are_told_to_the_sink_and_hurt_nobody() {
    for sink_fails in [false, true] {
        let ear = Ear::default();
        let guide = started(&World::new(), &failing(&ear, sink_fails)).await;
        assert_eq!(ear.heard().await, ["no analytics", "no analytics"]);
        let _bad = guide.observe(|_| panic!("no observer"));
        let _good = guide.observe(ear.hears("good"));
        guide.edit(|form| form.number = 1).await.unwrap();
        assert_eq!(
            ear.heard().await,
            ["no analytics", "no observer", "good: edit"]
        );
        for _ in 0..3 {
            guide.next().await.unwrap();
        }
        assert!(guide.view().completed_at.is_some());
        assert!(ear.heard().await.ends_with(&["good: complete".to_owned()]));
    }
}

// GDE-EVT-04
#[tokio::test(start_paused = true)]
async fn an_observer_that_stops_itself_takes_nobody_along() {
    let ear = Ear::default();
    let own = ear.clone();
    let flow = described_row().analytics(move |told| {
        own.say(format!("own: {}", word(&told.event)));
        Ok(())
    });
    let guide = started(&World::new(), &flow.build().unwrap()).await;
    ear.heard().await;
    let first = guide.observe(ear.hears("first"));
    let once = ear.clone();
    let _once = guide.observe(move |_| {
        once.say("once");
        Ok(ControlFlow::Break(()))
    });
    let _last = guide.observe(ear.hears("last"));
    guide.edit(|_| {}).await.unwrap();
    assert_eq!(
        ear.heard().await,
        ["own: edit", "first: edit", "once", "last: edit"]
    );
    guide.edit(|_| {}).await.unwrap();
    assert_eq!(
        ear.heard().await,
        ["own: edit", "first: edit", "last: edit"]
    );
    first.stop();
    guide.edit(|_| {}).await.unwrap();
    assert_eq!(ear.heard().await, ["own: edit", "last: edit"]);
}

// GDE-EVT-05 GDE-EDT-09
#[tokio::test(start_paused = true)]
async fn an_event_that_was_kept_stays_as_it_was() {
    let guide = started(&World::new(), &described_row().build().unwrap()).await;
    let kept = Arc::new(Mutex::new(Vec::new()));
    let keeps = Arc::clone(&kept);
    let _observer = guide.observe(move |told| {
        keeps.lock().unwrap().push(told.clone());
        Ok(ControlFlow::Continue(()))
    });
    let revision = guide.edit(|form| form.number = 7).await.unwrap();
    guide.edit(|form| form.number = 8).await.unwrap();
    guide.next().await.unwrap();
    pass(1).await;
    let kept = kept.lock().unwrap();
    assert_eq!(
        (&kept[0].event, kept[0].view.revision),
        (&Event::Edited, revision)
    );
    assert_eq!(kept[0].view.state.number, 7);
    assert_eq!(kept[0].view.at.as_ref().unwrap(), &"a");
    assert_eq!(guide.view().state.number, 8);
}

// GDE-EVT-08: in real time, for it holds a thread.
#[tokio::test(flavor = "multi_thread")]
async fn a_slow_observer_delays_nobody_and_is_told_what_it_missed() {
    let flow = described_row().build().unwrap();
    let engine = workflow::Engine::builder()
        .store(workflow::MemoryStore::new())
        .guided(&flow);
    let engine = engine.build().await.unwrap();
    let guide = engine.guided(&flow, "g").start(Form::default());
    let guide = guide.await.unwrap();
    let (let_go, held) = std::sync::mpsc::channel::<()>();
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    let _slow = guide.observe(move |event| {
        // Until it is let go of, once and for all.
        let _ = held.recv();
        let _ = tell.send((event.view.state.number, event.missed));
        Ok(ControlFlow::Continue(()))
    });
    for number in 1..=1_100 {
        guide.edit(move |form| form.number = number).await.unwrap();
    }
    assert_eq!(guide.view().state.number, 1_100);
    drop(let_go);
    let mut heard = Vec::new();
    while heard.last().is_none_or(|(number, _)| *number < 1_100) {
        heard.push(told.recv().await.unwrap());
    }
    let missed: u64 = heard.iter().map(|(_, missed)| missed).sum();
    assert_eq!(heard.len() as u64 + missed, 1_100);
    assert!(missed > 0);
    assert!(heard.is_sorted());
    // It is told where they are missing.
    for next in heard.windows(2) {
        assert_eq!(u64::from(next[1].0 - next[0].0), 1 + next[1].1);
    }
}

// An observer may give commands: it is not in the guide's way.
#[tokio::test(start_paused = true)]
async fn an_observer_may_stop_others_and_give_commands() {
    let (ear, world) = (Ear::default(), World::new());
    let flow = described_row().build().unwrap();
    let engine = engine(&world, &flow).await;
    let guide = engine.guided(&flow, "g").start(Form::default());
    let guide = guide.await.unwrap();
    let other = guide.observe(ear.hears("other"));
    let (runtime, driver) = (tokio::runtime::Handle::current(), guide.clone());
    let _busy = guide.observe(move |told| {
        other.stop();
        if told.view.state.number == 1 {
            runtime.spawn(driver.edit(|form| form.number = 2).into_future());
        }
        Ok(ControlFlow::Continue(()))
    });
    guide.edit(|form| form.number = 1).await.unwrap();
    pass(10).await;
    assert_eq!(ear.heard().await, ["other: edit"]);
    assert_eq!(guide.view().state.number, 2);
}
