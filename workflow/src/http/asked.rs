//! A request, as the handlers read it: every part of it is read here, and what cannot be read is a problem with a way out.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, OriginalUri, Path, Query, Request};
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, Method, header};
use axum::{RequestExt, RequestPartsExt};
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::api::Served;
use super::policy::{Action, Ask, Verdict};
use super::problem::{Kind, Problem};
use crate::Timestamp;

/// The header whose value makes a call that is made twice one call.
pub(super) const KEY: HeaderName = HeaderName::from_static("idempotency-key");
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
/// The longest key.
const LONGEST_KEY: usize = 512;

/// A request to one of the handlers.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) api: Arc<Served>,
    path: HashMap<String, String>,
    parts: Parts,
    /// Never locked: only so that a request may be looked at from a future that is `Send`.
    body: Mutex<Body>,
}

impl FromRequest<Arc<Served>> for Asked {
    type Rejection = Problem;

    async fn from_request(request: Request, api: &Arc<Served>) -> Result<Self, Problem> {
        let (mut parts, body) = request.with_limited_body().into_parts();
        let path = parts.extract::<Path<HashMap<String, String>>>().await;
        let Path(path) = path.map_err(|error| Problem::new(Kind::BadPath, error))?;
        Ok(Self {
            api: Arc::clone(api),
            path,
            parts,
            body: Mutex::new(body),
        })
    }
}

/// How long to wait, in whole seconds.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wait {
    wait: Option<u64>,
}

/// No parameters.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Nothing {}

impl Asked {
    /// A part of the path, decoded.
    pub(super) fn segment(&self, name: &str) -> &str {
        // All that is asked for stands in the route.
        self.path.get(name).map_or("", String::as_str)
    }

    pub(super) fn path(&self) -> &str {
        self.parts.uri.path()
    }

    pub(super) fn method(&self) -> &Method {
        &self.parts.method
    }

    /// As it was before anything was nested.
    fn whole_uri(&self) -> &axum::http::Uri {
        let whole = self.parts.extensions.get::<OriginalUri>();
        whole.map_or(&self.parts.uri, |OriginalUri(uri)| uri)
    }

    /// Where the router is nested: what stands before the paths that it knows.
    pub(super) fn prefix(&self) -> String {
        let own = self.parts.uri.path();
        let whole = self.parts.extensions.get::<OriginalUri>();
        let before = whole.and_then(|OriginalUri(uri)| uri.path().strip_suffix(own));
        before.unwrap_or_default().to_owned()
    }

    /// Where a run is found.
    pub(super) fn at_run(&self, id: &str) -> String {
        format!("{}/runs/{}", self.prefix(), escaped(id))
    }

    /// The parameters after the `?`.
    pub(super) fn query<T: DeserializeOwned>(&self) -> Result<T, Problem> {
        match Query::try_from_uri(&self.parts.uri) {
            Ok(Query(query)) => Ok(query),
            Err(error) => Err(Problem::new(Kind::BadParameter, error.body_text())),
        }
    }

    /// How long the client wants to wait, where that is all that may be asked.
    pub(super) fn wait(&self) -> Result<Option<Duration>, Problem> {
        let Wait { wait } = self.query()?;
        wait.map(|wait| self.within_patience(wait)).transpose()
    }

    /// A wait of so many seconds, if anybody may wait for so long.
    pub(super) fn within_patience(&self, seconds: u64) -> Result<Duration, Problem> {
        let (wait, most) = (Duration::from_secs(seconds), self.api.patience);
        if wait > most {
            let most = most.as_secs();
            let detail = format!("`wait` is at most {most} seconds: ask again when it is over");
            return Err(Problem::new(Kind::BadParameter, detail));
        }
        Ok(wait)
    }

    pub(super) fn header(&self, name: &HeaderName) -> Option<&[u8]> {
        self.parts.headers.get(name).map(HeaderValue::as_bytes)
    }

    /// The idempotency key: 1 to 512 visible characters but for `"` and `/`, in quotes or not.
    pub(super) fn key(&self) -> Result<Option<String>, Problem> {
        let Some(given) = self.header(&KEY) else {
            return Ok(None);
        };
        let quoted = given
            .strip_prefix(b"\"")
            .and_then(|rest| rest.strip_suffix(b"\""));
        let bare = quoted.unwrap_or(given);
        let usual = |byte: &u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'/');
        match str::from_utf8(bare) {
            Ok(key) if (1..=LONGEST_KEY).contains(&key.len()) && bare.iter().all(usual) => {
                Ok(Some(key.to_owned()))
            }
            _ => Err(Problem::new(
                Kind::BadKey,
                "an idempotency key is 1 to 512 visible ASCII characters, without `/` and `\"`",
            )),
        }
    }

    /// Asks the policy.
    pub(super) fn allow(&self, action: Action) -> Result<(), Problem> {
        self.allow_of(
            action,
            self.path
                .get("workflow")
                .or(self.path.get("flow"))
                .map(String::as_str),
            None,
        )
    }

    /// Asks the policy of something whose workflow, or run, is not in the path.
    pub(super) fn allow_of(
        &self,
        action: Action,
        workflow: Option<&str>,
        run: Option<&str>,
    ) -> Result<(), Problem> {
        Self::permit(self.decided(action, workflow, run, self.path.get("channel"), None, None))
    }

    /// Asks the policy of values.
    pub(super) fn allow_key(&self, key: &str) -> Result<(), Problem> {
        let none = None::<&str>;
        Self::permit(self.decided(Action::Values, None, None, none, Some(key), None))
    }

    /// Asks the policy of a fork again, with the id that its body gives it.
    pub(super) fn allow_fork_as(&self, id: &str) -> Result<(), Problem> {
        let none = None::<&str>;
        Self::permit(self.decided(Action::Fork, None, None, none, None, Some(id)))
    }

    /// The same request without its body: what may be asked when that is read.
    pub(super) fn without_body(&self) -> Self {
        Self {
            api: Arc::clone(&self.api),
            path: self.path.clone(),
            parts: self.parts.clone(),
            body: Mutex::new(Body::empty()),
        }
    }

    fn permit(verdict: Verdict) -> Result<(), Problem> {
        match verdict {
            Verdict::Allow => Ok(()),
            Verdict::Deny(why) => Err(Problem::new(Kind::Denied, why)),
        }
    }

    /// Whether the policy would let whoever asks do this on a channel.
    pub(super) fn allow_on(&self, action: Action, channel: &str) -> bool {
        self.decided(action, None, None, Some(channel), None, None) == Verdict::Allow
    }

    fn decided(
        &self,
        action: Action,
        workflow: Option<&str>,
        run: Option<&str>,
        channel: Option<impl AsRef<str>>,
        key: Option<&str>,
        forked_as: Option<&str>,
    ) -> Verdict {
        if self.api.same_origin && action.changes() && self.is_from_elsewhere() {
            return Verdict::Deny(
                "a page from elsewhere asks for this: only pages of this origin may".to_owned(),
            );
        }
        self.api.policy.decide(&Ask {
            action,
            workflow,
            run: run.or(self.path.get("run").map(String::as_str)),
            channel: channel.as_ref().map(AsRef::as_ref),
            schedule: self.path.get("schedule").map(String::as_str),
            key,
            forked_as,
            request: &self.parts,
        })
    }

    /// Whether a browser asks for a page of another origin. Every browser of these years says so by the first header, older ones by
    /// the second.
    fn is_from_elsewhere(&self) -> bool {
        if let Some(site) = self.header(&FETCH_SITE) {
            return !matches!(site, b"same-origin" | b"none");
        }
        let Some(origin) = self.header(&header::ORIGIN) else {
            return false;
        };
        // HTTP/2 has the host in the address.
        let authority = self
            .whole_uri()
            .authority()
            .map(|at| at.as_str().as_bytes());
        let host = self.header(&header::HOST).or(authority).unwrap_or_default();
        !origin
            .splitn(2, |byte| *byte == b':')
            .nth(1)
            .and_then(|rest| rest.strip_prefix(b"//"))
            .is_some_and(|origin| origin.eq_ignore_ascii_case(host))
    }

    /// The body, which is JSON and says so.
    pub(super) async fn json(self) -> Result<Bytes, Problem> {
        let json = self.maybe_json().await?;
        json.ok_or_else(|| {
            Problem::new(
                Kind::BadJson,
                "the body is empty; it has to be JSON: `-d '{..}'` with curl",
            )
        })
    }

    /// The body, which is JSON and says so, if there is one.
    pub(super) async fn maybe_json(self) -> Result<Option<Bytes>, Problem> {
        let says_so = self.says_json();
        let limit = self.api.body_limit;
        let body = self.body.into_inner();
        let body = body.unwrap_or_else(PoisonError::into_inner);
        let request = Request::from_parts(self.parts, body);
        let read = Bytes::from_request(request, &()).await;
        let body = read.map_err(|error| match error.status().as_u16() {
            413 => Problem::new(
                Kind::TooLarge,
                format!("it is over {limit} bytes: keep large things elsewhere, and send where"),
            ),
            _ => Problem::new(Kind::BadJson, error.body_text()),
        })?;
        if body.is_empty() {
            return Ok(None);
        }
        if !says_so {
            return Err(Problem::new(
                Kind::MediaType,
                "send it with the header `content-type: application/json`",
            ));
        }
        let checked = serde_json::from_slice::<&RawValue>(&body);
        checked.map_err(|error| Problem::new(Kind::BadJson, error))?;
        Ok(Some(whole_numbers(body)))
    }

    /// The body, as this call takes it.
    pub(super) async fn body<T: DeserializeOwned>(self) -> Result<T, Problem> {
        fit(&self.json().await?)
    }

    fn says_json(&self) -> bool {
        let given = self.header(&header::CONTENT_TYPE).unwrap_or_default();
        let kind = given.split(|byte| *byte == b';').next().unwrap_or_default();
        kind.trim_ascii().eq_ignore_ascii_case(b"application/json")
    }
}

/// JSON as a type of this API.
pub(super) fn fit<T: DeserializeOwned>(json: &[u8]) -> Result<T, Problem> {
    serde_json::from_slice(json).map_err(|error| Problem::new(Kind::BadBody, error))
}

/// A number that counts something: at most 2^53, so that every tool reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Count(pub(super) u64);

impl Count {
    pub(super) const MAX: u64 = 1 << 53;

    /// As milliseconds since the Unix epoch.
    pub(super) fn instant(self) -> Timestamp {
        Timestamp::from_millis(self.0.cast_signed())
    }
}

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = u64::deserialize(deserializer)?;
        if number > Self::MAX {
            let most = Self::MAX;
            return Err(D::Error::custom(format!("{number} is over {most}")));
        }
        Ok(Self(number))
    }
}

/// JSON whose numbers have no fraction where they are whole: `5.0` is the number 5, as JSON Schema has it, and as a client says it whose
/// language knows no other numbers. Our types would take `5.0` for no whole number.
fn whole_numbers(json: Bytes) -> Bytes {
    let mut whole = Vec::new();
    let (mut at, mut taken) = (0, 0);
    while let Some(byte) = json.get(at) {
        match byte {
            b'"' => at = end_of_text(&json, at),
            b'-' | b'0'..=b'9' => {
                let rest = json.get(at..).unwrap_or_default();
                let length = rest.iter().take_while(|byte| is_of_number(**byte)).count();
                let (number, _) = rest.split_at(length);
                if let Some(number) = without_fraction(number) {
                    whole.extend_from_slice(json.get(taken..at).unwrap_or_default());
                    whole.extend_from_slice(number.to_string().as_bytes());
                    taken = at + length;
                }
                at += length;
            }
            _ => at += 1,
        }
    }
    if taken == 0 {
        return json;
    }
    whole.extend_from_slice(json.get(taken..).unwrap_or_default());
    whole.into()
}

/// Where a text that begins here is over.
fn end_of_text(json: &[u8], begin: usize) -> usize {
    let mut at = begin + 1;
    while let Some(byte) = json.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    at
}

fn is_of_number(byte: u8) -> bool {
    byte.is_ascii_digit() || matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E')
}

/// The whole number that is written with a fraction or an exponent, if it is one.
fn without_fraction(number: &[u8]) -> Option<i64> {
    if !number.iter().any(|byte| matches!(byte, b'.' | b'e' | b'E')) {
        return None;
    }
    let number: f64 = str::from_utf8(number).ok()?.parse().ok()?;
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        reason = "up to there each whole number is exact"
    )]
    let whole =
        (number.fract() == 0.0 && number.abs() <= Count::MAX as f64).then_some(number as i64);
    whole
}

/// Whether a run with this id could be asked for: `.` and `..` in an address are taken for the folder and the one above it, however they are
/// written.
pub(super) fn addressable(id: &str) -> Result<(), Problem> {
    if matches!(id, "." | "..") {
        let detail = format!("`{id}` names no run in an address: choose another id");
        return Err(Problem::new(Kind::InvalidId, detail));
    }
    Ok(())
}

/// A text as one segment of a path.
pub(super) fn escaped(text: &str) -> String {
    use std::fmt::Write;
    let mut path = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            path.push(char::from(byte));
        } else {
            // Writing to a string does not fail.
            let _ = write!(path, "%{byte:02X}");
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_without_a_fraction_is_whole_however_it_is_written() {
        for (given, read) in [
            ("5.0", "5"),
            ("[1.50,-2.0,3e2,-0.0]", "[1.50,-2,300,0]"),
            (
                r#"{"a 1.0":"1.0 \\\" 2.0","b":4.0}"#,
                r#"{"a 1.0":"1.0 \\\" 2.0","b":4}"#,
            ),
            ("1e300", "1e300"),
            ("9007199254740994.0", "9007199254740994.0"),
            ("[1,2.5]", "[1,2.5]"),
        ] {
            assert_eq!(whole_numbers(Bytes::from_static(given.as_bytes())), read);
        }
    }

    #[test]
    fn an_id_is_one_segment_of_a_path_whatever_it_holds() {
        assert_eq!(escaped("order-17"), "order-17");
        assert_eq!(escaped("a/b c#1"), "a%2Fb%20c%231");
    }
}
