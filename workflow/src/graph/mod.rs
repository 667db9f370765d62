//! The picture of a workflow: which site stands in which, which follows which, and how far a run is with them.
//!
//! `checkout::GRAPH` is a [`Graph`]. It prints itself for [Mermaid](Graph::mermaid), for [Graphviz](Graph::dot) and as
//! [data](Graph::json). [`Graph::of_run`] lays one run over it, which prints itself in the same ways.

mod dot;
mod drawing;
mod json;
mod look;
mod mermaid;
mod outline;
mod run;
mod state;

use self::drawing::Drawing;
use crate::replay::Site;

pub use self::outline::{Arm, Body, Jump, Node, Part};
pub use self::run::{RunGraph, Unknown};
pub use self::state::{SiteState, State};

/// How control goes through a workflow, as the macros read it off its code: `checkout::GRAPH`.
///
/// It knows what stands in the function. What a call is (a step, a fragment, a child) only its type tells, so it is drawn as a
/// call; the body of a fragment is not drawn in the workflows that call it. That a failure
/// leaves by a `?` is drawn only where an `attempt!` stops it: it may do so at every site.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Graph {
    name: &'static str,
    sites: &'static [Site],
    outline: &'static str,
}

impl Graph {
    /// A graph from what the macros wrote down.
    #[doc(hidden)]
    pub const fn new(name: &'static str, sites: &'static [Site], outline: &'static str) -> Self {
        Self {
            name,
            sites,
            outline,
        }
    }

    /// The workflow's name in the store.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Everything durable that it does, in source order.
    pub const fn sites(&self) -> &'static [Site] {
        self.sites
    }

    /// Its body, in source order. Sites under a condition that this build does not fulfil are not in it.
    ///
    /// ```
    /// use workflow::graph::{Jump, Part};
    /// # use workflow::{Failure, now, workflow};
    ///
    /// #[workflow]
    /// async fn clock(runs: bool) -> Result<(), Failure> {
    ///     if !runs {
    ///         return Ok(());
    ///     }
    ///     'ticks: for _ in 0..3 {
    ///         now!(tick).await;
    ///     }
    ///     Ok(())
    /// }
    ///
    /// let parts = clock::GRAPH.parts();
    /// let [Part::Choice(arms), Part::Site(ticks)] = &parts[..] else {
    ///     panic!("it is written otherwise")
    /// };
    /// assert_eq!(arms[0].parts, [Part::Leaves(Jump::Return)]);
    /// assert_eq!(arms[1].parts, []);
    /// assert_eq!(ticks.site.name, "ticks");
    /// assert_eq!(ticks.bodies[0].parts.len(), 1);
    /// ```
    pub fn parts(&self) -> Vec<Part> {
        outline::read(self.outline, self.sites)
    }

    /// The picture, as [Mermaid](https://mermaid.js.org) reads it: it is drawn where Markdown is, on GitHub for example.
    ///
    /// The same code gives the same text, so it can be kept in a file and compared.
    ///
    /// ```
    /// # use workflow::{Failure, sleep, step, workflow};
    /// # #[step]
    /// # async fn brew() -> String {
    /// #     "tea".to_owned()
    /// # }
    /// #[workflow]
    /// async fn tea() -> Result<String, Failure> {
    ///     let tea = brew().await?;
    ///     sleep!(steep, "3m").await;
    ///     Ok(tea)
    /// }
    ///
    /// let text = tea::GRAPH.mermaid();
    /// assert!(text.starts_with("flowchart TD"));
    /// assert!(text.contains(r#"n3("steep<br/>sleep"):::wait"#));
    /// assert!(text.contains("n2 --> n3"));
    /// ```
    pub fn mermaid(&self) -> String {
        mermaid::print(&Drawing::of(self))
    }

    /// The picture, as [Graphviz](https://graphviz.org) reads it: `dot -Tsvg`.
    ///
    /// ```
    /// # use workflow::{Failure, sleep, workflow};
    /// #[workflow]
    /// async fn nap() -> Result<(), Failure> {
    ///     sleep!(doze, "20m").await;
    ///     Ok(())
    /// }
    ///
    /// let text = nap::GRAPH.dot();
    /// assert!(text.starts_with("digraph \"nap\" {"));
    /// assert!(text.contains("n2 [label=\"doze\\nsleep\""));
    /// ```
    pub fn dot(&self) -> String {
        dot::print(&Drawing::of(self))
    }

    /// The picture as data, in JSON.
    ///
    /// | field | what it is |
    /// |---|---|
    /// | `format` | 1. Fields may be added to it |
    /// | `workflow` | its name in the store |
    /// | `nodes` | `id`, `kind`, `label` (with line breaks), `group`, `site` (its path); of a site also `calls`, `channels`, `carries`, `latest`, `was`, `to`, `undo` |
    /// | `edges` | `from`, `to`, `kind`, `label` |
    /// | `groups` | what is drawn around nodes: `id`, `kind`, `label`, `site`, `parent` |
    /// | `sites` | everything durable in source order: `path`, `name`, `kind`, `file`, `line`, `node` |
    ///
    /// What does not apply is left out. A node's `kind` is `start`, `end`, `choice`, `channel`, `after` (where branches meet, or an
    /// `attempt!` ends), or a site's, as [`Kind::word`](crate::Kind::word) says it. An edge's `kind` is `on`, `back` (to the next
    /// iteration), `leaves`, `fails` (to the edge of an `attempt!`), `message`, `undoes` or `stood` (to what the code no longer has).
    ///
    /// With a run laid over it ([`RunGraph::json`]) each of `sites` has a `state` (`state`, `kind`, `attempt`, `times`, `failures`,
    /// and `places`, each with `location` and `state`), and there is a `run` (`ended`, `failure` with `location` and `kind`, and
    /// `unknown` with `location`, `recorded`, `found`).
    ///
    /// ```
    /// # use workflow::{Failure, sleep, workflow};
    /// #[workflow]
    /// async fn nap() -> Result<(), Failure> {
    ///     sleep!(doze, "20m").await;
    ///     Ok(())
    /// }
    ///
    /// let graph: serde_json::Value = serde_json::from_str(&nap::GRAPH.json())?;
    /// assert_eq!(graph["workflow"], "nap");
    /// assert_eq!(graph["sites"][0]["path"], "doze");
    /// assert_eq!(graph["sites"][0]["node"], "n2");
    /// assert_eq!(graph["nodes"][2]["kind"], "sleep");
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn json(&self) -> String {
        json::print(&Drawing::of(self), self.sites, None)
    }
}
