//! The flow: a person sets up a project.

use std::io;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use workflow::guided::{Problems, Stage, Undone};
use workflow::operation::Progress;
use workflow::{Failure, current_step, guided, join, step};

/// What the person is asked for, and what came of it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Project {
    pub(crate) name: String,
    pub(crate) cloud: bool,
    pub(crate) region: Option<String>,
    /// Where it is, once it is created.
    pub(crate) repository: Option<String>,
    /// What was typed and not yet entered.
    pub(crate) draft: String,
}

#[guided(id = "project")]
impl Project {
    /// A short name: letters, digits and dashes.
    #[stage(start, title = "What is the project called?", to = [hosting])]
    fn name() {}

    #[check(name)]
    fn is_named(&self, problems: &mut Problems) {
        let fits = |char: char| char.is_ascii_alphanumeric() || char == '-';
        problems.when(self.name.is_empty(), "name", "a project needs a name");
        problems.when(
            !self.name.chars().all(fits),
            "name",
            "letters, digits and dashes",
        );
    }

    /// Your own machine costs nothing; the cloud is there when you sleep.
    #[stage(title = "Shall it run in the cloud?", to = [region if Self::is_in_the_cloud, create])]
    fn hosting() {}

    /// The one that is nearest to you, if you skip this.
    #[stage(title = "In which region?", skippable, to = [create])]
    fn region() {}

    /// Nothing has been done so far; this makes the repository and what belongs to it.
    #[stage(title = "Create it", to = [done], timeout = "5m")]
    async fn create(mut stage: Stage<Self>) -> Result<(), Failure> {
        let name = stage.state().name.clone();
        let repository = create_repository(&name).await?;
        join!(
            furnish,
            checks = add_checks(&repository).await?,
            readme = write_readme(&repository).await?,
        )
        .await?;
        stage
            .edit(|project| project.repository = Some(repository))
            .await
    }

    /// Of a visit that was cut off, too: it may have made the repository.
    #[undo(create, unfinished)]
    async fn delete(undone: Undone<Self>) -> Result<(), io::Error> {
        println!("  deleting the repository of `{}`", undone.state.name);
        tokio::time::sleep(Duration::from_millis(50)).await;
        Ok(())
    }

    #[stage(terminal, title = "That is all")]
    fn done() {}

    /// Whoever has a repository takes it back first.
    #[exit_guard]
    fn has_nothing_to_lose(&self) -> bool {
        self.repository.is_none()
    }

    fn is_in_the_cloud(&self) -> bool {
        self.cloud
    }
}

/// Stands for a call of a service that takes the key: cut off and made again, it makes one repository.
#[step(retries = 5)]
async fn create_repository(name: &str) -> Result<String, io::Error> {
    println!(
        "  creating `{name}`, key {}",
        current_step().idempotency_key()
    );
    tokio::time::sleep(Duration::from_millis(200)).await;
    Ok(format!("git.example/{name}"))
}

#[step(retries = 5)]
async fn add_checks(repository: &str) -> Result<(), io::Error> {
    tokio::time::sleep(Duration::from_millis(100)).await;
    println!("  checks run on {repository}");
    Ok(())
}

#[step(retries = 5)]
async fn write_readme(repository: &str) -> Result<(), io::Error> {
    let step = current_step();
    let parts = ["what it is", "how to build it", "who may use it"];
    for (done, part) in (0..).zip(parts) {
        step.progress(Progress::new(done).of(3).message(part));
        tokio::time::sleep(Duration::from_millis(70)).await;
    }
    println!("  {repository} has a README");
    Ok(())
}
