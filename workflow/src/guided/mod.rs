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
//!
//! # Flows in stages of others
//!
//! The body of a stage may go through another flow: it is part of the same guide. `next` goes to the innermost, and from its end it
//! leads on in the one around it; `back` at its first stage leads back out of it. [`View::nested`](field@View::nested) shows it, and [`Guide::within`]
//! reaches it. Where `#[guided]` describes it, the type of its data says which flow it is, and it is not named: `guide!(billing, Bank::default())`.
//! In a workflow the same line is a child run, which is driven by whoever opens its id.
//!
//! ```
//! use workflow::guided::{Flow, Moved, stage};
//! use workflow::{Engine, Failure, MemoryStore, fragment, guide};
//!
//! #[derive(Clone, Default, serde::Serialize, serde::Deserialize)]
//! struct Bank {
//!     iban: String,
//! }
//!
//! #[fragment]
//! async fn bills(flow: Flow<Bank>) -> Result<(), Failure> {
//!     let _bank = guide!(billing, Bank::default(), flow = flow).await?;
//!     Ok(())
//! }
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let billing = Flow::<Bank>::builder("billing")
//!     .stage(stage("account").start().terminal())
//!     .build()?;
//! let within = billing.clone();
//! let flow = Flow::<()>::builder("order")
//!     .nests(&billing)
//!     .stage(stage("basket").start().to("pay"))
//!     .stage(stage("pay").body(move |_| bills(within.clone())).terminal())
//!     .build()?;
//! let engine = Engine::builder().guided(&flow).store(MemoryStore::new()).build().await?;
//!
//! let guide = engine.guided(&flow, "order 7").open_or_start(|| ()).await?;
//! let moved = guide.next().await?;
//! assert!(matches!(moved, Moved::Inside { path, .. } if path == "pay/billing"));
//! let bank = guide.within::<Bank>("pay/billing");
//! bank.edit(|bank| bank.iban = "DE1".into()).await?;
//! assert_eq!(guide.next().await?, Moved::Finished);
//! # Ok(())
//! # }
//! ```

mod commands;
mod committing;
mod decide;
mod deciding;
mod described;
mod desk;
mod doing;
mod faults;
mod flow;
mod graph;
mod handle;
mod key;
mod levels;
mod migrate;
mod moving;
mod nested;
mod observing;
mod operations;
mod position;
mod refused;
mod reopening;
mod run;
mod stage;
mod standing;
mod undoing;
mod view;

#[doc(hidden)]
pub use described::described;
#[cfg(feature = "testing")]
pub(crate) use faults::distance;
pub use faults::{Fault, Faults};
pub use flow::{Flow, FlowBuilder, FlowState, Interrupt, Revisit, StageBuilder, UndoneWith, stage};
pub use graph::{Exit, Graph, Node};
pub use handle::{Changes, Guide, GuideAt, Inside, Moved, OpenError, Press};
pub use key::{Guided, StageKey};
pub use nested::{Nest, Nesting};
pub use observing::{Heard, Observer, Told};
pub use position::{Entry, Event, Failing, FailingKind, Problem, Problems, StageName, Status};
pub use refused::Refused;
pub use stage::{Edit, Editing, Stage, Undone};
pub use view::{Actions, NestedView, Progress, StageView, View};
