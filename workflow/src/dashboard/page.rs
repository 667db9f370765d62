//! How the page and its files are answered.
//!
//! 1. Nothing on the page comes from elsewhere, and no script or style stands in it: the policy that goes with it says so, and a browser
//!    holds to that whatever a payload has in it.
//! 2. The page is asked for each time, and is short. Its files have the program's version in their path, and are kept.

use axum::body::Body;
use axum::extract::{OriginalUri, Path};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};

use super::assets::{ASSETS, PAGE, VERSION};

/// What the page may do: ask this origin, and nothing else.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

const HEADERS: [(HeaderName, &str); 5] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        "same-origin",
    ),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        "same-origin",
    ),
];

/// `GET /`: the page.
pub(super) async fn page(OriginalUri(uri): OriginalUri, headers: HeaderMap) -> Response {
    let at = beside(uri.path());
    // Where the page is nested is in it, so it is a part of what is named.
    let tag = format!("\"{}-{at}\"", *VERSION);
    let tag = HeaderValue::from_str(&tag).unwrap_or(HeaderValue::from_static("\"page\""));
    let known = headers.get(header::IF_NONE_MATCH);
    let mut response = if known.is_some_and(|known| known == tag) {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        let assets = format!("{at}assets/{}/", *VERSION);
        answer(
            "text/html; charset=utf-8",
            PAGE.replace("{assets}", &escaped(&assets)),
        )
    };
    response.headers_mut().insert(header::ETAG, tag);
    with(response, "no-cache")
}

/// `GET /assets/{version}/{name}`: one of its files.
pub(super) async fn asset(Path((version, name)): Path<(String, String)>) -> Response {
    let asset = ASSETS.iter().find(|asset| asset.name == name);
    match asset.filter(|_| version == *VERSION) {
        Some(asset) => {
            let response = answer(asset.content_type, asset.bytes);
            with(response, "public, max-age=31536000, immutable")
        }
        // A page of an earlier program: it is to be loaded again.
        None => with(StatusCode::NOT_FOUND.into_response(), "no-store"),
    }
}

/// Everything else. Nested at `/dashboard`, the page is at `/dashboard/`, too.
pub(super) async fn elsewhere(uri: Uri, whole: OriginalUri, headers: HeaderMap) -> Response {
    if uri.path() == "/" {
        return page(whole, headers).await;
    }
    with(StatusCode::NOT_FOUND.into_response(), "no-store")
}

fn answer(content_type: &'static str, body: impl Into<Body>) -> Response {
    let content_type = HeaderValue::from_static(content_type);
    ([(header::CONTENT_TYPE, content_type)], body.into()).into_response()
}

fn with(mut response: Response, kept: &'static str) -> Response {
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(kept));
    response
}

/// How the page names what lies beside it. It does not say where it is itself: a proxy in between may have taken a part of the path off.
fn beside(path: &str) -> String {
    match path.rsplit('/').next() {
        Some("") | None => "./".to_owned(),
        Some(last) => format!("./{last}/"),
    }
}

/// As the value of an attribute.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            _ => out.push(char),
        }
    }
    out
}
