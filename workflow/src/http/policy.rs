//! Who may do what.

use std::fmt;
use std::sync::Arc;

use axum::http::HeaderMap;
use axum::http::request::Parts;

/// Decides which calls of an API are obeyed. Given to [`Api::policy`](super::Api::policy).
///
/// It decides on what is to be done and on the request that asks for it. Who asks is known by a layer of your own around the
/// router, which puts it into the request's extensions:
///
/// ```
/// # use workflow::{Engine, workflow};
/// use axum::Router;
/// use axum::extract::Request;
/// use axum::http::StatusCode;
/// use axum::middleware::{Next, from_fn};
/// use axum::response::{IntoResponse, Response};
/// use workflow::http::{Policy, router};
///
/// /// Who asks.
/// #[derive(Clone)]
/// struct User {
///     operates: bool,
/// }
///
/// /// Your authentication: a session, a token.
/// async fn authenticate(mut request: Request, next: Next) -> Response {
///     let token = request.headers().get("authorization");
///     let user = match token.and_then(|token| token.to_str().ok()) {
///         Some("Bearer reads") => User { operates: false },
///         Some("Bearer operates") => User { operates: true },
///         _ => return StatusCode::UNAUTHORIZED.into_response(),
///     };
///     request.extensions_mut().insert(user);
///     next.run(request).await
/// }
///
/// fn service(engine: Engine) -> Router {
///     let policy = Policy::new(|ask| {
///         let user = ask.extension::<User>();
///         user.is_some_and(|user| user.operates || !ask.action().changes())
///     });
///     let api = router(engine).policy(policy).into_router();
///     Router::new().nest("/api", api.layer(from_fn(authenticate)))
/// }
/// ```
#[derive(Clone)]
pub struct Policy(Arc<Decide>);

type Decide = dyn Fn(&Ask<'_>) -> Verdict + Send + Sync;

impl Policy {
    /// A policy of your own: gives a [`Verdict`], or whether the call is allowed. It is asked before the body of a request is read
    /// (of a fork again after that: [`Ask::forked_as`]), and must not block.
    pub fn new<V: Into<Verdict>>(decide: impl Fn(&Ask<'_>) -> V + Send + Sync + 'static) -> Self {
        Self(Arc::new(move |ask| decide(ask).into()))
    }

    /// Everybody may do everything: for a service that nobody else reaches.
    pub fn open() -> Self {
        Self::new(|_| Verdict::Allow)
    }

    /// Everybody may look, and nobody may change anything. This is the policy of a router that was given none.
    pub fn read_only() -> Self {
        Self::new(|ask| {
            let action = ask.action();
            if !action.changes() {
                return Verdict::Allow;
            }
            Verdict::Deny(format!(
                "this API only reads: to let it {}, whoever serves it gives its router a policy, `.policy(..)`",
                action.phrase()
            ))
        })
    }

    pub(super) fn decide(&self, ask: &Ask<'_>) -> Verdict {
        (self.0)(ask)
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self::read_only()
    }
}

impl fmt::Debug for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Policy").finish_non_exhaustive()
    }
}

/// What a [`Policy`] says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It may be done.
    Allow,
    /// It may not, with what the client is told: `403` with this as the problem's detail.
    Deny(String),
}

impl From<bool> for Verdict {
    fn from(allowed: bool) -> Self {
        if allowed {
            Self::Allow
        } else {
            Self::Deny("you may not do this".to_owned())
        }
    }
}

/// What a call of the API does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Action {
    /// Looks at what the API has: workflows, channels, flows, schedules, its own description.
    Describe,
    /// Lists runs.
    List,
    /// Reads a run or a guide: status, result, history, events, view; also what a rewind would do.
    Read,
    /// Starts a run.
    Start,
    /// Sends a message to a run.
    Send,
    /// Sends a request to a run, and gets its answer.
    Request,
    /// Cancels a run.
    Cancel,
    /// Retries a run that failed.
    Recover,
    /// Takes a run back.
    Rewind,
    /// Starts a run from a copy of another's history.
    Fork,
    /// Drives a run that is parked or was evicted.
    Resume,
    /// Skips an undo that keeps failing.
    SkipUndo,
    /// Starts a guide, or gives it a command.
    Guide,
    /// Pauses a schedule or resumes it, or starts runs of it.
    Schedule,
    /// Reads values of the application, of those that the API was given by [`Api::values`](super::Api::values).
    Values,
    /// Deletes the runs that the engine's retention keeps no longer.
    Gc,
}

impl Action {
    /// Whether it changes anything.
    pub const fn changes(self) -> bool {
        !matches!(
            self,
            Self::Describe | Self::List | Self::Read | Self::Values
        )
    }

    const fn phrase(self) -> &'static str {
        match self {
            Self::Describe => "describe itself",
            Self::List => "list runs",
            Self::Read => "read runs",
            Self::Start => "start runs",
            Self::Send => "send messages",
            Self::Request => "send requests",
            Self::Cancel => "cancel runs",
            Self::Recover => "recover runs",
            Self::Rewind => "rewind runs",
            Self::Fork => "fork runs",
            Self::Resume => "resume runs",
            Self::SkipUndo => "skip undos",
            Self::Guide => "lead guides",
            Self::Schedule => "operate schedules",
            Self::Values => "read values",
            Self::Gc => "delete old runs",
        }
    }
}

/// What a [`Policy`] is asked: may this request do that?
#[derive(Debug)]
pub struct Ask<'a> {
    pub(super) action: Action,
    pub(super) workflow: Option<&'a str>,
    pub(super) run: Option<&'a str>,
    pub(super) channel: Option<&'a str>,
    pub(super) schedule: Option<&'a str>,
    pub(super) key: Option<&'a str>,
    pub(super) forked_as: Option<&'a str>,
    pub(super) request: &'a Parts,
}

impl<'a> Ask<'a> {
    /// What is to be done.
    pub fn action(&self) -> Action {
        self.action
    }

    /// The workflow or flow, where the path or the query names one: a call on a run names the run only.
    pub fn workflow(&self) -> Option<&'a str> {
        self.workflow
    }

    /// The id of the run, as it was asked for: there may be none. When one is started, its id if the client chose it.
    pub fn run(&self) -> Option<&'a str> {
        self.run
    }

    /// The channel of a message or a request.
    pub fn channel(&self) -> Option<&'a str> {
        self.channel
    }

    /// The id that a fork is to have. Of a fork it is asked twice: whether the run may be forked, and, when the body is read, with this. A
    /// policy that keeps some ids to some people looks at both.
    pub fn forked_as(&self) -> Option<&'a str> {
        self.forked_as
    }

    /// The schedule that is operated.
    pub fn schedule(&self) -> Option<&'a str> {
        self.schedule
    }

    /// The key of a value, or what the keys of values begin with that are listed.
    pub fn key(&self) -> Option<&'a str> {
        self.key
    }

    /// The headers of the request.
    pub fn headers(&self) -> &'a HeaderMap {
        &self.request.headers
    }

    /// What a layer around the router put into the request: who asks, say.
    pub fn extension<T: Clone + Send + Sync + 'static>(&self) -> Option<&'a T> {
        self.request.extensions.get::<T>()
    }

    /// The whole request, but for its body.
    pub fn request(&self) -> &'a Parts {
        self.request
    }
}
