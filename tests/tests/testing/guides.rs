//! Guided flows, and whatever else a test drives, cut off everywhere.

use std::collections::BTreeSet;
use std::sync::Mutex;

use workflow::guided::{Problems, Refused, Stage, Status};
use workflow::testing::{Broken, Steps, crash_driven};
use workflow::{Engine, Failure, current_step, guided, sleep, step, workflow};
use workflow_tests::pass;

/// What the steps of a stage find where they look: something global. Made anew, it is empty.
static HOST: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

#[derive(Debug, Clone)]
struct Host;

impl Host {
    fn empty() -> Self {
        HOST.lock().unwrap().clear();
        Self
    }
}

#[derive(Debug, Clone, Default, PartialEq, serde::Serialize, serde::Deserialize)]
struct Project {
    name: String,
    repository: Option<String>,
}

#[step]
async fn create(name: &str) -> String {
    let key = current_step().idempotency_key();
    HOST.lock().unwrap().insert(key);
    format!("git.example/{name}")
}

#[guided(id = "project")]
impl Project {
    #[stage(start, to = [making])]
    fn name() {}

    #[check(name)]
    fn is_named(&self, problems: &mut Problems) {
        problems.when(self.name.is_empty(), "name", "a project needs a name");
    }

    #[stage(to = [done])]
    async fn making(mut stage: Stage<Self>) -> Result<(), Failure> {
        let name = stage.state().name.clone();
        let repository = create(&name).await?;
        sleep!(settle, "1d").await;
        stage
            .edit(|project| project.repository = Some(repository))
            .await
    }

    #[stage(terminal)]
    fn done() {}
}

/// A person, who presses what there is to be pressed until it is done.
async fn person(engine: Engine) -> Result<Project, Box<dyn std::error::Error + Send + Sync>> {
    let guide = engine.guide::<Project>("acme");
    let guide = guide.open_or_start(Project::default).await?;
    loop {
        let view = guide.view();
        let pressed = match view.status {
            Status::Completed => return Ok(view.state.clone()),
            Status::Failed => guide.resume().await.map(drop),
            Status::Working => {
                pass(3_600_000).await;
                Ok(())
            }
            _ if view.state.name.is_empty() => {
                let named = guide.edit(|project| project.name.push_str("acme"));
                named.await.map(drop)
            }
            _ => guide.next().await.map(drop),
        };
        match pressed {
            // It has moved since the view was taken.
            Ok(()) | Err(Refused::Busy | Refused::Finished) => {}
            Err(refused) => return Err(refused.into()),
        }
    }
}

#[tokio::test]
async fn a_guide_comes_out_the_same_whatever_it_is_cut_off_at() -> Result<(), Broken> {
    let crashes = crash_driven(person)
        .engine(workflow::EngineBuilder::guide::<Project>)
        .fresh(Host::empty)
        .effect("repositories", |_: &Host| HOST.lock().unwrap().len())
        .await?;
    let points = crashes.points().join("\n");
    assert!(
        points.contains("the body of attempt 1 of `making[1]/create`"),
        "{points}"
    );
    assert!(crashes.crashes() > 12, "{crashes}");
    Ok(())
}

#[step]
async fn ship(n: u32) -> u32 {
    n
}

#[workflow]
async fn order(n: u32) -> Result<u32, Failure> {
    let shipped = ship(n).await?;
    sleep!(rest, "1d").await;
    Ok(shipped)
}

#[tokio::test]
async fn several_runs_come_out_the_same() -> Result<(), Broken> {
    let both = |engine: Engine| async move {
        let (one, other) =
            tokio::try_join!(engine.run("one", order(1)), engine.run("other", order(2)))?;
        Ok(one + other)
    };
    let steps = Steps::of(order).fail("ship", 1, "no van");
    let crashes = crash_driven(both).workflow(order).steps(&steps).await?;
    crashes.assert_all_sites();
    Ok(())
}
