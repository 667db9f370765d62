//! What is taken back within a workflow, in the code of a guided flow.

use workflow::guided;
use workflow::guided::{Problems, Stage};
use workflow::{checkpoint, rollback, step, Failure};

#[derive(Clone, serde::Serialize, serde::Deserialize)]
struct Project {
    name: String,
}

#[step]
async fn make(name: String) -> Result<u32, std::io::Error> {
    Ok(name.len() as u32)
}

#[guided(id = "project")]
impl Project {
    #[stage(start, to = done)]
    async fn create(stage: Stage<Self>) -> Result<(), Failure> {
        checkpoint!(begun);
        make(stage.state().name.clone()).await?;
        rollback!(failed, to = begun).await;
        Ok(())
    }

    #[check(create)]
    async fn is_free(_: Stage<Self>) -> Result<Problems, Failure> {
        checkpoint!(begun);
        Ok(Problems::default())
    }

    #[stage(terminal)]
    fn done() {}
}

fn main() {}
