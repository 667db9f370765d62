//! Floor 4, feature `axum`: errors and runs as responses.
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

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::engine::{
    AttachError, BuildError, CancelError, ControlError, Engine, RequestError, SendError, StartError,
};
use crate::error::Error;
use crate::store::StoreError;

/// A run was started, and is found at a path: `202 Accepted` with a `Location` header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accepted {
    location: String,
}

impl Accepted {
    /// The path to look at, as the client is to ask for it.
    pub fn at(location: impl Into<String>) -> Self {
        Self {
            location: location.into(),
        }
    }
}

impl IntoResponse for Accepted {
    fn into_response(self) -> Response {
        let body = serde_json::json!({ "location": self.location }).to_string();
        let mut response = json(StatusCode::ACCEPTED, "application/json", body);
        // A run's id may hold what a header may not; the body has it in any case.
        if let Ok(location) = HeaderValue::from_str(&self.location) {
            response.headers_mut().insert(header::LOCATION, location);
        }
        response
    }
}

/// What went wrong, as `application/problem+json`.
struct Problem {
    status: StatusCode,
    kind: &'static str,
    detail: String,
}

impl Problem {
    fn new(status: StatusCode, kind: &'static str, detail: impl ToString) -> Self {
        Self {
            status,
            kind,
            detail: detail.to_string(),
        }
    }

    fn store(error: &StoreError) -> Self {
        // What exactly failed is the operator's business, not the client's.
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "storage",
            if error.is_retryable() {
                "try again"
            } else {
                "the store failed"
            },
        )
    }

    fn start(error: &StartError) -> Self {
        match error {
            StartError::InvalidId(error) => Self::new(StatusCode::BAD_REQUEST, "invalid_id", error),
            StartError::Input { .. } => Self::new(StatusCode::UNPROCESSABLE_ENTITY, "input", error),
            StartError::OtherInput { .. } => Self::new(StatusCode::CONFLICT, "other_input", error),
            StartError::OtherWorkflow { .. } => {
                Self::new(StatusCode::CONFLICT, "other_workflow", error)
            }
            StartError::NotRegistered { .. } => {
                Self::new(StatusCode::NOT_IMPLEMENTED, "not_registered", error)
            }
            StartError::ShuttingDown => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "shutting_down", error)
            }
            StartError::Store(error) => Self::store(error),
        }
    }

    fn attach(error: &AttachError) -> Self {
        match error {
            AttachError::NotFound { .. } => Self::new(StatusCode::NOT_FOUND, "not_found", error),
            AttachError::OtherWorkflow { .. } => {
                Self::new(StatusCode::CONFLICT, "other_workflow", error)
            }
            AttachError::Store(error) => Self::store(error),
        }
    }

    fn cancel(error: &CancelError) -> Self {
        match error {
            CancelError::NotFound { .. } => Self::new(StatusCode::NOT_FOUND, "not_found", error),
            CancelError::Ended { .. } => Self::new(StatusCode::CONFLICT, "ended", error),
            CancelError::Store(error) => Self::store(error),
        }
    }

    fn send(error: &SendError) -> Self {
        match error {
            SendError::InvalidId(error) => Self::new(StatusCode::BAD_REQUEST, "invalid_id", error),
            SendError::Value { .. } => {
                Self::new(StatusCode::UNPROCESSABLE_ENTITY, "message", error)
            }
            SendError::Ended { .. } => Self::new(StatusCode::CONFLICT, "ended", error),
            SendError::ShuttingDown => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "shutting_down", error)
            }
            SendError::Store(error) => Self::store(error),
        }
    }

    fn request(error: &RequestError) -> Self {
        match error {
            RequestError::Send(error) => Self::send(error),
            RequestError::NoReply { .. } => Self::new(StatusCode::CONFLICT, "no_reply", error),
            RequestError::Answer { .. } => {
                Self::new(StatusCode::INTERNAL_SERVER_ERROR, "answer", error)
            }
            RequestError::ShutDown { .. } => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "shutting_down", error)
            }
        }
    }

    fn control(error: &ControlError) -> Self {
        let (status, kind) = match error {
            ControlError::Store(error) => return Self::store(error),
            ControlError::NotFound { .. } => (StatusCode::NOT_FOUND, "not_found"),
            ControlError::InvalidId(_) => (StatusCode::BAD_REQUEST, "invalid_id"),
            ControlError::ShuttingDown => (StatusCode::SERVICE_UNAVAILABLE, "shutting_down"),
            ControlError::Busy { .. } => (StatusCode::SERVICE_UNAVAILABLE, "busy"),
            ControlError::State { .. } | ControlError::Guide { .. } => {
                (StatusCode::CONFLICT, "state")
            }
            ControlError::Exists { .. } => (StatusCode::CONFLICT, "exists"),
            ControlError::History { .. } | ControlError::Child { .. } => {
                (StatusCode::CONFLICT, "history")
            }
        };
        Self::new(status, kind, error)
    }

    fn build(error: &BuildError) -> Self {
        match error {
            BuildError::Store(error) => Self::store(error),
            _ => Self::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "build",
                "the engine could not be built",
            ),
        }
    }
}

impl From<&Error> for Problem {
    fn from(error: &Error) -> Self {
        match error {
            Error::Failed(failure) => {
                Self::new(StatusCode::UNPROCESSABLE_ENTITY, "failed", failure)
            }
            Error::Cancelled(_) => Self::new(StatusCode::CONFLICT, "cancelled", error),
            // The whole report is in the log and in the run's status; a client can only come again.
            Error::Parked(parked) => {
                let detail = format!(
                    "run `{}` is parked ({}) and goes on once that is mended",
                    parked.id, parked.reason
                );
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "parked", detail)
            }
            Error::ShutDown(_) => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "shutting_down", error)
            }
            Error::Result { .. } => Self::new(StatusCode::INTERNAL_SERVER_ERROR, "result", error),
            Error::Progress { .. } => {
                Self::new(StatusCode::INTERNAL_SERVER_ERROR, "progress", error)
            }
            Error::Value { .. } => Self::new(StatusCode::INTERNAL_SERVER_ERROR, "value", error),
            Error::Start(error) => Self::start(error),
            Error::Attach(error) => Self::attach(error),
            Error::Cancel(error) => Self::cancel(error),
            Error::Send(error) => Self::send(error),
            Error::Request(error) => Self::request(error),
            Error::Control(error) => Self::control(error),
            Error::Build(error) => Self::build(error),
            Error::Store(error) => Self::store(error),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = serde_json::json!({
            "type": format!("workflow:{}", self.kind),
            "title": self.status.canonical_reason().unwrap_or_default(),
            "status": self.status.as_u16(),
            "detail": self.detail,
        });
        json(self.status, "application/problem+json", body.to_string())
    }
}

fn json(status: StatusCode, content_type: &'static str, body: String) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// The status tells what happened: 422 the workflow returned an error (its message is the detail), 409 the id belongs to
/// another run, the run was cancelled, or it has ended and takes no message, 404 there is no such run, 400 and 422 the request cannot be one, 503 come
/// again later. The body is `application/problem+json`.
impl IntoResponse for Error {
    fn into_response(self) -> Response {
        let problem = Problem::from(&self);
        if problem.status.is_server_error() {
            tracing::error!(error = %self, "a request failed");
        }
        problem.into_response()
    }
}

macro_rules! as_umbrella {
    ($($error:ident)*) => {
        $(
            /// As [`Error`].
            impl IntoResponse for $error {
                fn into_response(self) -> Response {
                    Error::from(self).into_response()
                }
            }
        )*
    };
}
as_umbrella!(StartError AttachError CancelError SendError RequestError);

/// Axum takes state by `Clone + Send + Sync + 'static`; this fails to compile when an engine is no longer that.
const _: fn() = || {
    fn is_state<S: Clone + Send + Sync + 'static>() {}
    is_state::<Engine>();
};
