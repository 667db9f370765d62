//! Floor 4, feature `dashboard`: the dashboard of an engine, as an Axum router.
//!
//! One call serves it. The page, its scripts and styles are in the program, so there is nothing to build and nothing to copy, and no
//! other host is asked for anything:
//!
//! ```
//! # use workflow::Engine;
//! use axum::Router;
//!
//! fn service(engine: Engine) -> Router {
//!     Router::new().nest_service("/dashboard", workflow::dashboard::router(engine))
//! }
//! ```
//!
//! It shows what the HTTP API under it tells, and does what that lets whoever asks do. Given an engine alone, it only shows; given an
//! [`Api`] with a [`Policy`](crate::http::Policy), channels and flows, it has buttons for what the policy allows. The
//! [guide](crate::guide::dashboard) has a page on it.

mod assets;
mod page;

use axum::Router;
use axum::routing::get;

use crate::http::Api;

/// The dashboard of an engine, to be nested anywhere: `Router::new().nest_service("/dashboard", router(engine))`.
///
/// What is given is an [`Engine`](crate::Engine), or an [`Api`] that says more: who may do what, on which channels may be sent, which
/// flows are led. It is served under `api` within the dashboard, and obeys changes from pages of the same origin only
/// ([`Api::same_origin`]).
///
/// ```
/// # use workflow::{Channel, Engine};
/// use axum::Router;
/// use workflow::http::{self, Policy};
/// use workflow::dashboard;
///
/// static PAYMENT: Channel<u64> = Channel::new("payment");
///
/// fn service(engine: Engine) -> Router {
///     let api = http::router(engine)
///         .policy(Policy::open()) // whoever reaches it may do everything
///         .channel(&PAYMENT);
///     Router::new().nest_service("/dashboard", dashboard::router(api))
/// }
/// ```
pub fn router<S: Clone + Send + Sync + 'static>(api: impl Into<Api>) -> Router<S> {
    let api = api.into().same_origin().into_router();
    Router::new()
        .route("/", get(page::page))
        .route("/assets/{version}/{*name}", get(page::asset))
        .nest("/api", api)
        .fallback(page::elsewhere)
}
