//! Answers.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

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
        let response = json(StatusCode::ACCEPTED, JSON, body);
        at(response, &self.location)
    }
}

pub(super) const JSON: &str = "application/json";

/// An answer that says where something is found.
pub(super) fn at(mut response: Response, location: &str) -> Response {
    // A run's id may hold what a header may not; the body has it in any case.
    if let Ok(location) = HeaderValue::from_str(location) {
        response.headers_mut().insert(header::LOCATION, location);
    }
    response
}

/// What is told of runs is of now and for whoever asked: no cache keeps it, and no browser takes it for a page or a script.
pub(super) async fn kept_by_nobody(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    let sniffing = HeaderValue::from_static("nosniff");
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, sniffing);
    response
}

/// A value as JSON.
pub(super) fn value(status: StatusCode, value: &impl Serialize) -> Response {
    match serde_json::to_string(value) {
        Ok(body) => json(status, JSON, body),
        // All that is answered with has text for keys, so this does not happen.
        Err(error) => {
            tracing::error!(%error, "an answer cannot be written as JSON");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

pub(super) fn json(
    status: StatusCode,
    content_type: &'static str,
    body: impl Into<Body>,
) -> Response {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    let content_type = HeaderValue::from_static(content_type);
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, content_type);
    response
}
