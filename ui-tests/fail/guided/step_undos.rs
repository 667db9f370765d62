//! Undos of steps in the code of stages.

use workflow::guided;
use workflow::guided::{Stage, Undone};
use workflow::{step, Failure};

#[derive(Clone, serde::Serialize, serde::Deserialize)]
struct Project {
    name: String,
}

#[derive(Clone)]
struct Shop;

#[step]
async fn make(name: String) -> Result<u32, std::io::Error> {
    Ok(name.len() as u32)
}

async fn unmake(_: u32, _: Shop) {}

async fn forget(_: String, _: Undone<Project>) {}

#[guided(id = "project")]
impl Project {
    #[stage(start, to = publish)]
    async fn create(stage: Stage<Self>) -> Result<(), Failure> {
        #[step(undo(unmake))]
        make(stage.state().name.clone()).await?;
        Ok(())
    }

    #[stage(to = done)]
    async fn publish(stage: Stage<Self>) -> Result<(), Failure> {
        #[step(undo(forget))]
        make(stage.state().name.clone()).await?;
        Ok(())
    }

    #[leave(publish)]
    async fn left(stage: Stage<Self>) -> Result<(), Failure> {
        #[step(undo(|_: u32| async {}))]
        make(stage.state().name.clone()).await?;
        Ok(())
    }

    #[stage(terminal)]
    fn done() {}
}

fn main() {}
