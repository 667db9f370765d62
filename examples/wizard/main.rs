//! A wizard in a terminal that can be killed at any keystroke, and goes on there. `cargo run --example wizard`.
//!
//! ```text
//! cargo run --example wizard          # answer; Esc offers `back` and what else there is
//! kill -9 $(pgrep -x wizard)          # at any moment: half of a name typed, or half of the project created
//! cargo run --example wizard          # goes on: what was typed is there, and what succeeded is not done again
//! printf 'acme\nno\n:next\n:next\n' | cargo run --example wizard     # without a terminal: a line is an answer, `:back` a button
//! ```
//!
//! What is asked, checked and done stands in `project.rs`, and knows nothing of terminals: the `onboarding` example shows the same
//! flow to browsers. Here is only what looks at the view, asks, and presses.
//!
//! The guide is in a file (`DATA` says where) that is removed when the project is set up.
#![expect(clippy::print_stdout, reason = "what the program is for")]

mod person;
mod project;

use std::error::Error;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::Duration;

use workflow::Engine;
use workflow::guided::{Refused, Status};

use self::person::{Answer, Button, Said, Wizard};
use self::project::{Project, ProjectStage};

const REGIONS: &[&str] = &["Dublin", "Lyon", "Oslo"];

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let data = std::env::var_os("DATA").map_or_else(
        || std::env::temp_dir().join("workflow-wizard.redb"),
        PathBuf::from,
    );
    let engine = Engine::builder().guide::<Project>().open(&data).await?;
    let wizard = engine.guide("the-wizard");
    let wizard = wizard.open_or_start(Project::default).await?;
    let ended = run(&wizard).await?;
    engine.shutdown(Duration::from_secs(5)).await?;
    if ended {
        std::fs::remove_file(&data)?;
    } else {
        println!("run it again to go on");
    }
    // Whoever was asked may still wait for a key.
    std::process::exit(0)
}

/// Leads the person on until the guide ends, or they leave. Whether it has ended.
async fn run(wizard: &Wizard) -> Result<bool, Box<dyn Error>> {
    loop {
        // A body that a restart took up again is waited for.
        let mut changes = wizard.watch();
        while wizard.view().busy {
            changes.next().await;
        }
        let view = wizard.view();
        match view.status {
            Status::Completed => {
                let at = view.state.repository.as_deref().unwrap_or("nowhere");
                println!("the project is at {at}");
                return Ok(true);
            }
            Status::Cancelled => {
                println!("given up");
                return Ok(true);
            }
            Status::Idle => {
                println!("everything is taken back; from the beginning");
                wizard.start(Project::default()).await?;
                continue;
            }
            _ => {}
        }
        if let Some(failure) = &view.failure {
            println!("! {failure}");
        }
        for problem in &view.problems {
            println!("! {}", problem.text);
        }
        let said = ask(wizard).await?;
        if said == Said::Left {
            return Ok(false);
        }
        match obey(wizard, said).await {
            // These refusals are in the view, and told from there.
            Ok(()) | Err(Refused::Invalid(_) | Refused::Failed(_)) => {}
            Err(Refused::Stopped(why)) => return Err(why.into()),
            Err(refused) => println!("! {refused}"),
        }
    }
}

/// Asks what the stage asks. A `match` over the stages: a stage that is added does not compile before it is shown here.
async fn ask(wizard: &Wizard) -> Result<Said, Box<dyn Error>> {
    let view = wizard.view();
    let answer = match view.at {
        _ if view.status == Status::Failed => Answer::Button,
        Some(ProjectStage::Name) => Answer::Line,
        Some(ProjectStage::Hosting) => Answer::YesOrNo,
        Some(ProjectStage::Region) => Answer::OneOf(REGIONS),
        Some(ProjectStage::Create | ProjectStage::Done) | None => Answer::Button,
    };
    let stage = view.stages.iter().find(|stage| Some(stage.name) == view.at);
    let title = stage.map_or_else(String::new, |stage| stage.title.clone());
    let wizard = wizard.clone();
    // Prompts hold their thread, and the guide is driven meanwhile.
    let said = tokio::task::spawn_blocking(move || {
        if std::io::stdin().is_terminal() {
            person::ask_at_the_terminal(&wizard, &title, answer)
                .or_else(|error| match error {
                    inquire::InquireError::OperationInterrupted => Ok(Said::Left),
                    error => Err(error),
                })
                .map_err(|error| error.to_string())
        } else {
            person::read_a_line(&wizard, &title, answer).map_err(|error| error.to_string())
        }
    });
    Ok(said.await??)
}

/// Does what the person said: an answer is kept, and leads on.
async fn obey(wizard: &Wizard, said: Said) -> Result<(), Refused> {
    let press = match said {
        Said::Text(text) => {
            let text = text.trim().to_owned();
            let at = wizard.view().at;
            wizard
                .edit(move |project| {
                    match at {
                        Some(ProjectStage::Name) => project.name = text,
                        Some(ProjectStage::Hosting) => project.cloud = text == "yes",
                        Some(ProjectStage::Region) => project.region = Some(text),
                        _ => {}
                    }
                    project.draft.clear();
                })
                .await?;
            Button::Next
        }
        Said::Press(button) => button,
        Said::Left => return Ok(()),
    };
    match press {
        Button::Next => wizard.next().await.map(drop),
        Button::Back => wizard.back().await.map(drop),
        Button::Skip => wizard.skip().await.map(drop),
        Button::Retry => wizard.retry().await.map(drop),
        Button::Cancel => wizard.cancel().await.map(drop),
        Button::Undo => wizard.rollback().await.map(drop),
    }
}
