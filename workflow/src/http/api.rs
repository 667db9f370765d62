//! The router: what it serves, and under which rules.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::map_response;
use axum::routing::{MethodRouter, get, post};

use super::asked::Asked;
use super::guides::{Flowing, Flows};
use super::lines::{Line, Serves};
use super::policy::Policy;
use super::problem::{Kind, Problem};
#[cfg(feature = "schedules")]
use super::schedules;
use super::{allowed, control, counts, events, guides, lines, reply, runs, values};
use crate::Engine;
use crate::guided::{Flow, FlowState, Guided};

/// The largest body, unless it is said otherwise: the engine's own limit for a value.
const BODY: usize = 1 << 20;
/// The longest that a client is made to wait for something, unless it is said otherwise.
const PATIENCE: Duration = Duration::from_secs(60);

/// The HTTP API of an engine. Made by [`router`](super::router); [`into_router`](Self::into_router) makes it what Axum nests.
#[derive(Debug)]
#[must_use = "help: end it with `.into_router()`, and nest that"]
pub struct Api(pub(super) Served);

/// What all requests share.
#[derive(Clone)]
pub(super) struct Served {
    pub(super) engine: Engine,
    pub(super) policy: Policy,
    pub(super) lines: BTreeMap<&'static str, Arc<Line>>,
    pub(super) flows: Flows,
    /// What the keys of the values begin with that are served.
    pub(super) values: Vec<String>,
    pub(super) body_limit: usize,
    pub(super) patience: Duration,
    pub(super) same_origin: bool,
    #[cfg(feature = "openapi")]
    pub(super) shapes: super::openapi::Shapes,
}

impl fmt::Debug for Served {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Served")
            .field("engine", &self.engine)
            .field("channels", &self.lines.keys())
            .field("flows", &self.flows.keys())
            .finish_non_exhaustive()
    }
}

impl Api {
    pub(super) fn new(engine: Engine) -> Self {
        Self(Served {
            engine,
            policy: Policy::default(),
            lines: BTreeMap::new(),
            flows: BTreeMap::new(),
            values: Vec::new(),
            body_limit: BODY,
            patience: PATIENCE,
            same_origin: false,
            #[cfg(feature = "openapi")]
            shapes: super::openapi::Shapes::default(),
        })
    }

    /// Who may do what. Without one, nobody may change anything: [`Policy::read_only`].
    pub fn policy(mut self, policy: Policy) -> Self {
        self.0.policy = policy;
        self
    }

    /// Lets clients send on a channel: messages, or, on a channel that has answers, requests. What does not fit its type is refused at
    /// the door, and never lies in an inbox.
    pub fn channel(mut self, channel: &'static impl Serves) -> Self {
        let line = channel.line();
        self.0.lines.insert(line.name(), Arc::new(line));
        self
    }

    /// Lets clients lead the guides of the flow that `#[guided]` describes on this type.
    pub fn guide<F: Guided>(self) -> Self {
        self.guided(F::flow())
    }

    /// Lets clients lead the guides of a flow.
    pub fn guided<S: FlowState>(mut self, flow: &Flow<S>) -> Self {
        let name = flow.name().to_owned();
        let flow: Arc<dyn Flowing> = Arc::new(flow.clone());
        self.0.flows.insert(name, flow);
        self
    }

    /// Lets clients read the [values](crate::Engine::values) whose keys begin with this, all of them with `""`. They are the
    /// application's own rows, so an API has none that it was not given. May be said more than once.
    ///
    /// ```
    /// # use workflow::Engine;
    /// # use workflow::http::{Api, router};
    /// fn api(engine: Engine) -> Api {
    ///     router(engine).values("bookings/")
    /// }
    /// ```
    pub fn values(mut self, prefix: impl Into<String>) -> Self {
        self.0.values.push(prefix.into());
        self
    }

    /// The largest body of a request, in bytes; 1 MiB by default, as the engine's
    /// [`payload_limit`](crate::EngineBuilder::payload_limit): raise both.
    pub fn body_limit(mut self, bytes: usize) -> Self {
        self.0.body_limit = bytes;
        self
    }

    /// The longest that a client may wait in one request, by its `wait`; 60 s by default. Proxies in between have limits of their own.
    pub fn longest_wait(mut self, wait: Duration) -> Self {
        self.0.patience = wait;
        self
    }

    /// Refuses changes that a browser asks for on behalf of a page from elsewhere, whatever the policy says. Where who asks is known
    /// by what a browser sends by itself (a cookie, a password, being on this network), any page that a person opens could ask in their
    /// name. Programs that are no browsers notice nothing. The [dashboard](crate::guide::dashboard) has this on.
    pub fn same_origin(mut self) -> Self {
        self.0.same_origin = true;
        self
    }

    /// What Axum nests, or serves as it is. `S` is the state of the router that it is put into.
    pub fn into_router<S: Clone + Send + Sync + 'static>(self) -> Router<S> {
        let limit = self.0.body_limit;
        let mut router = Router::new();
        for (path, methods) in routes() {
            router = router.route(path, methods);
        }
        router
            .fallback(async |asked: Asked| no_route(&asked))
            .method_not_allowed_fallback(async |asked: Asked| no_method(&asked))
            .layer(DefaultBodyLimit::max(limit))
            .layer(map_response(reply::kept_by_nobody))
            .with_state(Arc::new(self.0))
    }
}

/// As [`router`](super::router) makes it: everybody may look, and nobody may change anything.
impl From<Engine> for Api {
    fn from(engine: Engine) -> Self {
        Self::new(engine)
    }
}

impl<S: Clone + Send + Sync + 'static> From<Api> for Router<S> {
    fn from(api: Api) -> Self {
        api.into_router()
    }
}

/// Every path, and what is done there.
fn routes() -> Vec<(&'static str, MethodRouter<Arc<Served>>)> {
    vec![
        ("/workflows", get(runs::describe)),
        ("/workflows/{workflow}/runs", post(runs::start)),
        ("/runs", get(runs::list)),
        ("/counts", get(counts::counts)),
        ("/changes", get(counts::changes)),
        ("/runs/{run}", get(runs::status)),
        ("/runs/{run}/allowed", get(allowed::allowed)),
        ("/runs/{run}/result", get(runs::result)),
        ("/runs/{run}/history", get(runs::history)),
        ("/runs/{run}/export", get(runs::export)),
        ("/runs/{run}/graph", get(runs::graph)),
        ("/runs/{run}/events", get(events::events)),
        ("/runs/{run}/dead-letters", get(lines::dead_letters)),
        ("/runs/{run}/messages/{channel}", post(lines::send)),
        ("/runs/{run}/requests/{channel}", post(lines::request)),
        ("/runs/{run}/cancel", post(control::cancel)),
        ("/runs/{run}/recover", post(control::recover)),
        ("/runs/{run}/rewind", post(control::rewind)),
        ("/runs/{run}/fork", post(control::fork)),
        ("/runs/{run}/resume", post(control::resume)),
        ("/runs/{run}/skip-undo", post(control::skip_undo)),
        #[cfg(feature = "schedules")]
        ("/schedules", get(schedules::list)),
        #[cfg(feature = "schedules")]
        ("/schedules/{schedule}", get(schedules::status)),
        #[cfg(feature = "schedules")]
        ("/schedules/{schedule}/pause", post(schedules::pause)),
        #[cfg(feature = "schedules")]
        ("/schedules/{schedule}/resume", post(schedules::resume)),
        #[cfg(feature = "schedules")]
        ("/schedules/{schedule}/trigger", post(schedules::trigger)),
        #[cfg(feature = "schedules")]
        ("/schedules/{schedule}/backfill", post(schedules::backfill)),
        ("/gc", post(control::gc)),
        ("/values", get(values::list)),
        ("/values/{key}", get(values::value)),
        ("/guides/{flow}/{run}", get(guides::view)),
        ("/guides/{flow}/{run}/{command}", post(guides::press)),
        #[cfg(feature = "openapi")]
        ("/openapi.json", get(super::openapi::document)),
    ]
}

fn no_route(asked: &Asked) -> Problem {
    let path = asked.path();
    let detail =
        format!("there is nothing at `{path}`; `workflows` and `runs` are where things begin");
    Problem::new(Kind::NoRoute, detail)
}

fn no_method(asked: &Asked) -> Problem {
    let (method, path) = (asked.method(), asked.path());
    let detail = format!("`{path}` does not take {method}; the `allow` header has what it takes");
    Problem::new(Kind::Method, detail)
}
