//! Flows that `#[guided]` describes.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use workflow::guided::{
    Event, Fault, Flow, Graph, Guide, Guided, Moved, Problems, Refused, Stage, StageKey, Status,
    Undone, stage,
};
use workflow::{Engine, Failure, guide, guided, join, step, workflow};
use workflow_tests::{World, pass};

use super::{Effect, have, trace};

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Project {
    name: String,
    cloud: bool,
    repo: Option<String>,
}

#[guided(id = "project", version = 3)]
impl Project {
    /// What is it called,
    /// and where will it live?
    #[stage(start, title = "Details", to = [region if Self::wants_cloud, create])]
    fn details() {}

    #[check(details)]
    fn is_named(&self, problems: &mut Problems) {
        problems.when(self.name.is_empty(), "name", "a project needs a name");
    }

    #[stage(skippable, when = |project| project.cloud, to = create)]
    fn region() {}

    #[stage(name = "make", to = [done], timeout = "30s", revisit = keep)]
    async fn create(mut stage: Stage<Self>) -> Result<(), Failure> {
        let name = stage.state().name.clone();
        #[step(name = "first", retries = 0)]
        have(effect(&name)).await?;
        stage
            .edit(|project| project.repo = Some(project.name.clone()))
            .await?;
        Ok(())
    }

    #[undo(create)]
    async fn delete(undone: Undone<Self>) -> Result<(), std::io::Error> {
        tokio::task::yield_now().await;
        trace().say(format!("delete {:?}", undone.state.repo));
        Ok(())
    }

    #[leave(create)]
    async fn publish(stage: Stage<Self>) -> Result<(), Failure> {
        have(effect(&format!("publish {:?}", stage.state().repo))).await?;
        Ok(())
    }

    #[stage(terminal)]
    fn done() {}

    #[exit_guard]
    fn may_leave(&self) -> bool {
        self.repo.is_none()
    }

    fn wants_cloud(&self) -> bool {
        self.cloud
    }
}

fn effect(name: &str) -> Effect {
    Effect {
        name: name.to_owned(),
        millis: 0,
        fails: false,
    }
}

async fn engine(world: &World) -> Engine {
    trace().take();
    world.engine().guide::<Project>().build().await.unwrap()
}

async fn named(world: &World, cloud: bool) -> Guide<Project, ProjectStage> {
    let engine = engine(world).await;
    let project = Project {
        name: "acme".to_owned(),
        cloud,
        repo: None,
    };
    engine.guide("acme").start(project).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_flow_that_is_known_at_compile_time_is_driven_by_its_enum() {
    let world = World::new();
    let guide = engine(&world).await.guide::<Project>("acme");
    let guide = guide.open_or_start(Project::default).await.unwrap();
    assert!(matches!(guide.next().await, Err(Refused::Invalid(found)) if found.len() == 1));
    let edit = |project: &mut Project| (project.name, project.cloud) = ("acme".to_owned(), true);
    guide.edit(edit).await.unwrap();
    assert_eq!(guide.next().await.unwrap(), Moved::To(ProjectStage::Region));
    assert_eq!(guide.skip().await.unwrap(), Moved::To(ProjectStage::Create));
    assert_eq!(trace().take(), ["acme"]);
    let view = guide.view();
    assert_eq!(view.state.repo.as_deref(), Some("acme"));
    assert_eq!(view.at, Some(ProjectStage::Create));
    assert_eq!(view.skipped, [ProjectStage::Region]);
    assert_eq!(view.ahead, [ProjectStage::Done]);
    assert!(matches!(guide.cancel().await, Err(Refused::GuardSaidNo)));
    assert_eq!(guide.next().await.unwrap(), Moved::To(ProjectStage::Done));
    assert_eq!(trace().take(), ["publish Some(\"acme\")"]);
    let mut changes = guide.watch();
    assert_eq!(guide.next().await.unwrap(), Moved::Finished);
    let last = changes.next().await.unwrap();
    assert_eq!(
        (last.status, last.at),
        (Status::Completed, Some(ProjectStage::Done))
    );
}

#[tokio::test(start_paused = true)]
async fn what_the_flow_did_is_taken_back_by_its_undo() {
    let world = World::new();
    let guide = named(&world, false).await;
    assert_eq!(guide.next().await.unwrap(), Moved::To(ProjectStage::Create));
    assert_eq!(guide.next().await.unwrap(), Moved::To(ProjectStage::Done));
    trace().take();
    guide.rollback().await.unwrap();
    assert_eq!(trace().take(), ["delete Some(\"acme\")"]);
    assert_eq!((guide.view().status, guide.view().at), (Status::Idle, None));
}

#[test]
fn the_shape_that_is_a_constant_is_the_one_that_runs() {
    let flow = Project::flow();
    assert_eq!(flow.graph(), &Project::GRAPH);
    assert_eq!((flow.name(), flow.version()), ("project", 3));
    let names: Vec<_> = ProjectStage::ALL.iter().map(StageKey::name).collect();
    assert_eq!(names, ["details", "region", "make", "done"]);
    assert_eq!(ProjectStage::Create.to_string(), "make");
    let details = flow.graph().node("details").unwrap();
    let help = "What is it called, and where will it live?";
    assert_eq!(details.help.as_deref(), Some(help));
    assert_eq!(details.title.as_deref(), Some("Details"));
}

// A program that says what each stage looks like says it for all of them.
#[test]
fn a_match_over_the_stages_is_checked_to_be_complete() {
    let shown = |stage: ProjectStage| match stage {
        ProjectStage::Details => "?",
        ProjectStage::Region | ProjectStage::Create => "..",
        ProjectStage::Done => "!",
    };
    let shown: Vec<_> = ProjectStage::ALL.iter().copied().map(shown).collect();
    assert_eq!(shown, ["?", "..", "..", "!"]);
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Named {
    name: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Document {
    title: String,
}

#[guided(id = "document", version = 2, migrate(1 => Self::from_named))]
impl Document {
    #[stage(start, to = done)]
    fn draft() {}

    #[stage(terminal)]
    fn done() {}

    fn from_named(mut data: Value) -> Result<Value, Box<dyn std::error::Error + Send + Sync>> {
        let name = data.get_mut("name").ok_or("no name")?.take();
        Ok(json!({ "title": name }))
    }
}

// GDE-RES-08
#[tokio::test(start_paused = true)]
async fn what_an_older_version_recorded_is_migrated_by_the_function_that_the_attribute_names() {
    let older = Flow::<Named>::builder("document")
        .stage(stage("draft").start().to("done"))
        .stage(stage("done").terminal())
        .build()
        .unwrap();
    let world = World::new();
    let engine = world.engine().guided(&older).build().await.unwrap();
    let named = Named {
        name: "the plan".to_owned(),
    };
    let guide = engine.guided(&older, "plan").start(named).await.unwrap();
    guide.next().await.unwrap();
    drop((guide, engine));
    let world = world.crash();
    tokio::task::yield_now().await;

    let engine = world.engine().guide::<Document>().build().await.unwrap();
    let guide = engine.guide::<Document>("plan").open().await.unwrap();
    let guide = guide.unwrap();
    assert_eq!(guide.view().state.title, "the plan");
    assert_eq!(guide.view().at, Some(DocumentStage::Done));
    let migrated = Event::Migrated { from: 1, to: 2 };
    assert!(
        guide.view().events.contains(&migrated),
        "{:?}",
        guide.view()
    );
    assert_eq!(guide.next().await.unwrap(), Moved::Finished);
}

/// What is asked for in a stage of an order.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Bank {
    iban: String,
}

#[guided(id = "bank")]
impl Bank {
    #[stage(start, terminal)]
    fn account() {}

    #[check(account)]
    async fn is_known(stage: Stage<Self>) -> Result<Problems, Failure> {
        let iban = have(effect(&stage.state().iban)).await?;
        let mut problems = Problems::default();
        problems.when(iban == "bad", "iban", "no such account");
        Ok(problems)
    }
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Order {
    item: String,
    paid_by: Option<String>,
}

#[guided(id = "order", nests(Bank), hooks_timeout = "10s", reopen)]
impl Order {
    #[stage(start, to = [gift if Self::is_gift, pay])]
    fn basket() {}

    #[guard]
    async fn is_gift(stage: Stage<Self>) -> Result<bool, Failure> {
        let item = have(effect(&stage.state().item)).await?;
        Ok(item == "flowers")
    }

    #[stage(to = done)]
    fn gift() {}

    #[stage(to = done, retries = 1, backoff(fixed, wait = "1m"))]
    async fn pay(mut stage: Stage<Self>) -> Result<(), Failure> {
        let bank = guide!(bank, Bank::default()).await?;
        #[step(name = "charge", retries = 0, undo(Self::refund))]
        have(Effect {
            fails: bank.iban == "empty" && stage.visit() == 1,
            ..effect(&format!("charge {}", bank.iban))
        })
        .await?;
        join!(
            both,
            mail = {
                #[step(name = "mail", undo(|gave: Option<String>| async move {
                    trace().say(format!("recall {gave:?}"));
                }))]
                have(effect("mail")).await?
            }
        )
        .await?;
        let paid_by = Some(bank.iban);
        stage.edit(|order| order.paid_by = paid_by).await?;
        Ok(())
    }

    async fn refund(gave: String, undone: Undone<Self>) -> Result<(), std::io::Error> {
        tokio::task::yield_now().await;
        trace().say(format!("refund {gave} of {}", undone.state.item));
        Ok(())
    }

    #[stage(terminal)]
    fn done() {}
}

async fn ordering(world: &World, item: &str) -> Guide<Order, OrderStage> {
    trace().take();
    let engine = world.engine().guide::<Order>().build().await.unwrap();
    let order = Order {
        item: item.to_owned(),
        ..Order::default()
    };
    engine.guide("o").start(order).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn checks_and_guards_that_are_durable_code_and_flows_within_are_described_by_the_attribute() {
    let world = World::new();
    let guide = ordering(&world, "flowers").await;
    assert_eq!(guide.next().await.unwrap(), Moved::To(OrderStage::Gift));
    assert_eq!(guide.next().await.unwrap(), Moved::To(OrderStage::Done));
    assert_eq!(guide.next().await.unwrap(), Moved::Finished);
    assert_eq!(guide.back().await.unwrap(), Moved::To(OrderStage::Gift));

    let guide = ordering(&World::new(), "book").await;
    let Moved::Inside { path, to } = guide.next().await.unwrap() else {
        panic!()
    };
    assert_eq!((path.as_str(), to.as_str()), ("pay/bank", "account"));
    let within = guide.within::<Bank>("pay/bank");
    within.edit(|bank| bank.iban = "bad".into()).await.unwrap();
    assert!(matches!(guide.next().await, Err(Refused::Invalid(_))));
    within
        .edit(|bank| bank.iban = "empty".into())
        .await
        .unwrap();
    trace().take();
    let before = tokio::time::Instant::now();
    assert_eq!(guide.next().await.unwrap(), Moved::To(OrderStage::Done));
    // The first charge failed; it was tried again by itself, a minute later.
    assert!(before.elapsed().as_secs() >= 60);
    assert_eq!(
        trace().take(),
        ["empty", "charge empty", "charge empty", "mail"]
    );
    assert_eq!(guide.view().state.paid_by.as_deref(), Some("empty"));
    // What stands at the steps takes them back.
    guide.rollback().await.unwrap();
    assert_eq!(
        trace().take(),
        ["recall Some(\"mail\")", "refund charge empty of book"]
    );
}

#[workflow]
async fn sells(item: String) -> Result<String, Failure> {
    let order = Order {
        item,
        ..Order::default()
    };
    let order = guide!(ordering, order).await?;
    let again = guide!(again, order.clone(), flow = Order::flow().clone()).await?;
    Ok(format!("{} {:?}", again.item, again.paid_by))
}

#[tokio::test(start_paused = true)]
async fn a_workflow_waits_for_a_guide_that_it_names() {
    let world = World::new();
    let engine = world.engine().workflow(sells).guide::<Order>();
    let engine = engine.build().await.unwrap();
    let run = engine
        .start("s", sells("flowers".to_owned()))
        .await
        .unwrap();
    for name in ["ordering", "again"] {
        pass(10).await;
        let guide = engine.guide::<Order>(format!("s/{name}"));
        let guide = guide.open().await.unwrap().unwrap();
        for _ in 0..3 {
            guide.next().await.unwrap();
        }
    }
    assert_eq!(run.result().await.unwrap(), "flowers None");
}

#[test]
fn the_sites_of_the_stages_code_are_known_to_the_program() {
    let paths: Vec<_> = Order::SITES.iter().map(|site| site.path).collect();
    let own = [
        "pay[]/bank",
        "pay[]/charge",
        "pay[]/both",
        "pay[]/both/mail/mail",
    ];
    assert!(own.iter().all(|path| paths.contains(path)), "{paths:?}");
    assert!(
        Order::SITES
            .iter()
            .all(|site| site.file.ends_with("attribute.rs"))
    );
}

/// Nests `Shelf`, which nests this: neither can be built before the other.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Room {}

#[guided(id = "room", nests(Shelf))]
impl Room {
    #[stage(start, terminal)]
    fn inside() {}
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Shelf {}

#[guided(id = "shelf", nests(Bank, Room))]
impl Shelf {
    #[stage(start, terminal)]
    fn inside() {}
}

fn told<R: std::fmt::Debug>(panics: impl FnOnce() -> R + std::panic::UnwindSafe) -> String {
    let panic = std::panic::catch_unwind(panics).unwrap_err();
    panic.downcast_ref::<String>().unwrap().clone()
}

#[test]
fn flows_that_nest_each_other_in_a_circle_are_told_so_from_wherever_one_begins() {
    let circle = |flows: [&str; 2]| {
        let [from, to] = flows;
        let circle = format!(
            "the flow `{to}` cannot be built\n- the flows `{from}`, `{to}` nest each other in a circle"
        );
        move |text: String| assert!(text.starts_with(&circle), "{text}")
    };
    for _ in 0..2 {
        circle(["room", "shelf"])(told(Room::flow));
        circle(["shelf", "room"])(told(Shelf::flow));
    }
    // Both at once do not wait for each other.
    let threads = [0, 1].map(|thread| {
        std::thread::spawn(move || match thread {
            0 => told(Room::flow),
            _ => told(Shelf::flow),
        })
    });
    for thread in threads {
        let text = thread.join().unwrap();
        assert!(text.contains("in a circle"), "{text}");
    }
}

#[test]
fn a_circle_is_told_with_everything_else_that_is_wrong() {
    #[derive(Debug, Clone, Serialize, Deserialize)]
    struct Wall {}

    impl Guided for Wall {
        type Stage = BankStage;
        const GRAPH: Graph = Bank::GRAPH;

        fn flow() -> &'static Flow<Self> {
            use std::sync::OnceLock;
            static FLOW: OnceLock<Flow<Wall>> = OnceLock::new();
            workflow::__private::described(&FLOW, "wall", || {
                let builder = Flow::<Wall>::builder("wall").nests_described::<Self>();
                let faults = builder.build().unwrap_err();
                assert_eq!(
                    faults.faults(),
                    [
                        Fault::NoStart,
                        Fault::NoTerminal,
                        Fault::NestedInCircle {
                            flows: vec!["wall".to_owned()],
                        },
                    ]
                );
                let stage = stage("only").start().terminal();
                Flow::builder("wall").stage(stage)
            })
        }
    }

    assert_eq!(Wall::flow().name(), "wall");
}
