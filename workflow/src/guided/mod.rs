//! Guided flows: durable flows of several steps that a person drives.
//!
//! A [`Flow`] is a graph of **stages**: what a person is asked, what is checked, what is done, and where to go on. A [`Guide`] is one
//! person's way through it. Whoever holds one, a terminal, a browser's tab, presses [`next`](Guide::next), [`back`](Guide::back) and
//! so on, and shows the [`view`](Guide::view).
//!
//! A guide is a run of the engine, under an id of your choice: what it was told is durable before it is shown, it may be closed and
//! opened at any time, and it goes on where it was. The body of a stage is durable code, a `#[fragment]` function: its steps are
//! recorded, retried and replayed like those of any workflow.
//!
//! ```
//! use workflow::guided::{Flow, Moved, Refused, stage};
//! use workflow::{Engine, MemoryStore};
//!
//! #[derive(Clone, Default, serde::Serialize, serde::Deserialize)]
//! struct Project {
//!     name: String,
//! }
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let flow = Flow::<Project>::builder("project")
//!     .stage(
//!         stage("details")
//!             .start()
//!             .check(|project: &Project, problems| {
//!                 problems.when(project.name.is_empty(), "name", "a project needs a name");
//!             })
//!             .to("done"),
//!     )
//!     .stage(stage("done").terminal())
//!     .build()?;
//! let engine = Engine::builder().guided(&flow).store(MemoryStore::new()).build().await?;
//!
//! let guide = engine.guided(&flow, "acme").open_or_start(Project::default).await?;
//! assert!(matches!(guide.next().await, Err(Refused::Invalid(_))));
//! guide.edit(|project| project.name = "acme".into()).await?;
//! assert!(matches!(guide.next().await?, Moved::To(stage) if stage == "done"));
//! assert_eq!(guide.next().await?, Moved::Finished);
//! # Ok(())
//! # }
//! ```

mod commands;
mod decide;
mod deciding;
mod desk;
mod doing;
mod faults;
mod flow;
mod graph;
mod handle;
mod levels;
mod migrate;
mod nested;
mod position;
mod refused;
mod run;
mod stage;
mod undoing;
mod view;

pub use faults::{Fault, Faults};
pub use flow::{Flow, FlowBuilder, FlowState, Interrupt, Revisit, StageBuilder, stage};
pub use graph::{Exit, Graph, Node};
pub use handle::{Changes, Guide, GuideAt, Inside, Moved, OpenError, Press};
pub use nested::{Nest, Nesting};
pub use position::{Entry, Event, Failing, FailingKind, Problem, Problems, StageName, Status};
pub use refused::Refused;
pub use stage::{Edit, Editing, Stage, Undone};
pub use view::{Actions, NestedView, Progress, StageView, View};
