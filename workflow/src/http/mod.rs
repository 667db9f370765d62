//! Floor 4, feature `axum`: the HTTP API of an engine, and errors and runs as responses.
//!
//! [`router`] gives what can be nested anywhere; the [guide](crate::guide::http) has its routes, and the table of its problems:
//!
//! ```
//! # use serde::{Deserialize, Serialize};
//! # use workflow::{Channel, Engine, Failure, recv, workflow};
//! use axum::Router;
//! use workflow::http::{Policy, router};
//!
//! static PAYMENT: Channel<u64> = Channel::new("payment");
//!
//! #[workflow]
//! async fn order(item: String) -> Result<u64, Failure> {
//!     recv!(paid, PAYMENT).await
//! }
//!
//! fn service(engine: Engine) -> Router {
//!     let api = router(engine).channel(&PAYMENT).policy(Policy::open());
//!     Router::new().nest("/api", api.into_router())
//! }
//! ```
//!
//! Without a [`Policy`] nobody may change anything over it.
//!
//! # Handlers of your own
//!
//! An [`Engine`] is `Clone + Send + Sync`, so it is Axum state as it is, alone or as a part that Axum takes by its
//! `FromRef`. A handler calls it as it would call anything else:
//!
//! ```
//! # use workflow::{Engine, step, workflow};
//! use axum::extract::{Path, State};
//! use axum::routing::{get, post};
//! use axum::{Json, Router};
//! use workflow::http::Accepted;
//!
//! #[step]
//! async fn greet(name: &str) -> String {
//!     format!("hello, {name}")
//! }
//!
//! #[workflow]
//! async fn hello(name: String) -> Result<String, workflow::Failure> {
//!     greet(&name).await
//! }
//!
//! /// Runs it and waits.
//! async fn run(State(engine): State<Engine>, Path(name): Path<String>) -> Result<Json<String>, workflow::Error> {
//!     Ok(Json(engine.run(name.clone(), hello(name)).await?))
//! }
//!
//! /// Starts it, and answers 202 with a place to look.
//! async fn start(State(engine): State<Engine>, Path(name): Path<String>) -> Result<Accepted, workflow::Error> {
//!     let run = engine.start(name.clone(), hello(name)).await?;
//!     Ok(Accepted::at(format!("/hello/{}", run.id())))
//! }
//!
//! fn router(engine: Engine) -> Router {
//!     Router::new().route("/hello/{name}", post(run)).route("/later/{name}", post(start)).with_state(engine)
//! }
//! ```

mod allowed;
mod api;
mod asked;
mod control;
mod counts;
mod events;
mod guides;
mod lines;
#[cfg(feature = "openapi")]
mod openapi;
mod policy;
mod problem;
mod reply;
mod runs;
#[cfg(feature = "schedules")]
mod schedules;
mod show;
mod values;

use std::pin::Pin;

pub use api::Api;
#[doc(hidden)]
pub use lines::Line;
pub use lines::Serves;
#[cfg(feature = "openapi")]
pub use openapi::Shape;
pub use policy::{Action, Ask, Policy, Verdict};
pub use reply::Accepted;

use crate::Engine;

type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// The HTTP API of an engine, to be nested anywhere: `Router::new().nest("/api", router(engine).into_router())`.
///
/// Given as it is, it lets everybody look and nobody change anything; [`Api::policy`] says who may do what. Clients may send on the
/// channels, lead the guides and read the values that it is given: [`Api::channel`], [`Api::guided`], [`Api::values`].
pub fn router(engine: Engine) -> Api {
    Api::new(engine)
}

/// Axum takes state by `Clone + Send + Sync + 'static`; this fails to compile when an engine is no longer that.
const _: fn() = || {
    fn is_state<S: Clone + Send + Sync + 'static>() {}
    is_state::<Engine>();
};
