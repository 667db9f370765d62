//! What goes wrong, as `application/problem+json` (RFC 9457).
//!
//! 1. Every kind stands in one table, [`kinds`], with the status it always has: a client may rely on `type` alone.
//! 2. What a client did wrong is never a 5xx, and what it cannot help is never a 4xx.
//! 3. The detail says what, where, and the way out. What exactly the store failed by is the operator's business, and not in it.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};

use super::reply;
#[cfg(feature = "schedules")]
use crate::ScheduleError;
use crate::guided::{OpenError, Refused};
use crate::store::StoreError;
use crate::{
    AttachError, BuildError, CancelError, ControlError, Error, RequestError, SendError,
    SkipUndoError, StartError,
};

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident $word:literal $status:ident $title:literal;)*) => {
        /// What kind of problem it is.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum Kind { $($(#[$doc])* $name,)* }

        impl Kind {
            /// All of them.
            #[cfg(test)]
            pub(super) const ALL: &[Self] = &[$(Self::$name,)*];

            /// The end of its `type`: `workflow:word`.
            pub(super) const fn word(self) -> &'static str {
                match self { $(Self::$name => $word,)* }
            }

            /// The status that it always has.
            pub(super) const fn status(self) -> StatusCode {
                match self { $(Self::$name => StatusCode::$status,)* }
            }

            /// What it is, in the same words each time.
            pub(super) const fn title(self) -> &'static str {
                match self { $(Self::$name => $title,)* }
            }
        }
    };
}

kinds! {
    BadPath "bad_path" BAD_REQUEST "the path cannot be read";
    BadParameter "bad_parameter" BAD_REQUEST "a parameter of the query cannot be read";
    BadCursor "bad_cursor" BAD_REQUEST "the place to go on from is not one that was given";
    BadKey "bad_key" BAD_REQUEST "the idempotency key cannot be one";
    BadJson "bad_json" BAD_REQUEST "the body is not JSON";
    InvalidId "invalid_id" BAD_REQUEST "the id cannot be that of a run";
    Denied "denied" FORBIDDEN "the policy does not allow this";
    NoRoute "no_route" NOT_FOUND "there is nothing at this path";
    NotFound "not_found" NOT_FOUND "there is no such run";
    UnknownWorkflow "unknown_workflow" NOT_FOUND "there is no such workflow";
    UnknownChannel "unknown_channel" NOT_FOUND "there is no such channel";
    UnknownFlow "unknown_flow" NOT_FOUND "there is no such flow, or no such command";
    #[cfg_attr(not(feature = "schedules"), allow(dead_code, reason = "there are none"))]
    UnknownSchedule "unknown_schedule" NOT_FOUND "there is no such schedule";
    UnknownValues "unknown_values" NOT_FOUND "the API has no such values";
    Method "method_not_allowed" METHOD_NOT_ALLOWED "the path does not take this method";
    OtherInput "other_input" CONFLICT "the id belongs to a run with another input";
    OtherWorkflow "other_workflow" CONFLICT "the id belongs to a run of another workflow";
    Exists "exists" CONFLICT "the id is taken";
    Ended "ended" CONFLICT "the run has ended";
    Cancelled "cancelled" CONFLICT "the run was cancelled";
    State "state" CONFLICT "the run is in a state in which this cannot be done";
    History "history" CONFLICT "the history does not allow this";
    NoReply "no_reply" CONFLICT "the run ended without a reply";
    Refused "refused" CONFLICT "the guide does not obey this as it stands";
    Stale "stale" CONFLICT "the guide has moved since that revision";
    TooLarge "too_large" PAYLOAD_TOO_LARGE "the body is too large";
    MediaType "unsupported_media_type" UNSUPPORTED_MEDIA_TYPE "the body has to be JSON and to say so";
    Input "input" UNPROCESSABLE_ENTITY "the input does not fit the workflow";
    Message "message" UNPROCESSABLE_ENTITY "the message does not fit the channel";
    BadBody "bad_body" UNPROCESSABLE_ENTITY "the body is not what this call takes";
    Invalid "invalid" UNPROCESSABLE_ENTITY "the checks of the stage found problems";
    Failed "failed" UNPROCESSABLE_ENTITY "the workflow returned an error";
    NotRegistered "not_registered" NOT_IMPLEMENTED "this program does not know the workflow";
    Result "result" INTERNAL_SERVER_ERROR "the result is not of the type that was asked for";
    Progress "progress" INTERNAL_SERVER_ERROR "the progress is not of the type that was asked for";
    Value "value" INTERNAL_SERVER_ERROR "the value is not of the type that was asked for";
    Answer "answer" INTERNAL_SERVER_ERROR "the answer is not of the type that was asked for";
    Build "build" INTERNAL_SERVER_ERROR "the engine could not be built";
    Flow "flow" INTERNAL_SERVER_ERROR "the flow's own code failed";
    #[cfg_attr(not(feature = "schedules"), allow(dead_code, reason = "there are none"))]
    Schedule "schedule" INTERNAL_SERVER_ERROR "the schedule's own code failed";
    Parked "parked" SERVICE_UNAVAILABLE "the run is parked";
    Busy "busy" SERVICE_UNAVAILABLE "the run keeps changing";
    Stopped "stopped" SERVICE_UNAVAILABLE "the guide is not driven as things are";
    Storage "storage" SERVICE_UNAVAILABLE "the store failed";
    ShuttingDown "shutting_down" SERVICE_UNAVAILABLE "the engine is shutting down";
}

/// What went wrong with one request.
#[derive(Debug)]
pub(super) struct Problem {
    kind: Kind,
    detail: String,
    more: Map<String, Value>,
}

impl Problem {
    pub(super) fn new(kind: Kind, detail: impl ToString) -> Self {
        Self {
            kind,
            detail: detail.to_string(),
            more: Map::new(),
        }
    }

    /// A member beside the standard ones.
    pub(super) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.more.insert(name.to_owned(), value.into());
        self
    }

    fn store(error: &StoreError) -> Self {
        let detail = if error.is_retryable() {
            "try again"
        } else {
            "the store failed"
        };
        Self::new(Kind::Storage, detail)
    }

    fn start(error: &StartError) -> Self {
        let kind = match error {
            StartError::Store(error) => return Self::store(error),
            StartError::InvalidId(_) => Kind::InvalidId,
            StartError::Input { .. } => Kind::Input,
            StartError::OtherInput { .. } => Kind::OtherInput,
            StartError::OtherWorkflow { .. } => Kind::OtherWorkflow,
            StartError::UnknownWorkflow { .. } => Kind::UnknownWorkflow,
            StartError::NotRegistered { .. } => Kind::NotRegistered,
            StartError::ShuttingDown => Kind::ShuttingDown,
        };
        Self::new(kind, error)
    }

    fn attach(error: &AttachError) -> Self {
        let kind = match error {
            AttachError::Store(error) => return Self::store(error),
            AttachError::NotFound { .. } => Kind::NotFound,
            AttachError::OtherWorkflow { .. } => Kind::OtherWorkflow,
        };
        Self::new(kind, error)
    }

    fn cancel(error: &CancelError) -> Self {
        let kind = match error {
            CancelError::Store(error) => return Self::store(error),
            CancelError::NotFound { .. } => Kind::NotFound,
            CancelError::Ended { .. } => Kind::Ended,
        };
        Self::new(kind, error)
    }

    fn send(error: &SendError) -> Self {
        let kind = match error {
            SendError::Store(error) => return Self::store(error),
            SendError::InvalidId(_) => Kind::InvalidId,
            SendError::Value { .. } => Kind::Message,
            SendError::Ended { .. } => Kind::Ended,
            SendError::ShuttingDown => Kind::ShuttingDown,
        };
        Self::new(kind, error)
    }

    fn request(error: &RequestError) -> Self {
        let kind = match error {
            RequestError::Send(error) => return Self::send(error),
            RequestError::NoReply { .. } => Kind::NoReply,
            RequestError::Answer { .. } => Kind::Answer,
            RequestError::ShutDown { .. } => Kind::ShuttingDown,
        };
        Self::new(kind, error)
    }

    fn control(error: &ControlError) -> Self {
        let kind = match error {
            ControlError::Store(error) => return Self::store(error),
            ControlError::NotFound { .. } => Kind::NotFound,
            ControlError::InvalidId(_) => Kind::InvalidId,
            ControlError::ShuttingDown => Kind::ShuttingDown,
            ControlError::Busy { .. } => Kind::Busy,
            ControlError::State { .. } | ControlError::Guide { .. } => Kind::State,
            ControlError::Exists { .. } => Kind::Exists,
            ControlError::History { .. } | ControlError::Child { .. } => Kind::History,
        };
        Self::new(kind, error)
    }

    #[cfg(feature = "schedules")]
    fn schedule(error: &ScheduleError) -> Self {
        let kind = match error {
            ScheduleError::Store(error) => return Self::store(error),
            ScheduleError::Start(error) => return Self::start(error),
            ScheduleError::NotFound { .. } => Kind::UnknownSchedule,
            ScheduleError::NotGiven { .. } => Kind::NotRegistered,
            ScheduleError::NotYet => Kind::BadBody,
            ScheduleError::Panicked { .. } => Kind::Schedule,
        };
        Self::new(kind, error)
    }

    fn build(error: &BuildError) -> Self {
        match error {
            BuildError::Store(error) => Self::store(error),
            _ => Self::new(Kind::Build, "the engine could not be built"),
        }
    }

    /// A guide that refused, as it stands now.
    pub(super) fn refused(refused: &Refused, view: Value) -> Self {
        let (kind, word) = match refused {
            Refused::Invalid(_) => (Kind::Invalid, "invalid"),
            Refused::Stale { .. } => (Kind::Stale, "stale"),
            Refused::Busy => (Kind::Refused, "busy"),
            Refused::NotRunning(_) => (Kind::Refused, "not_running"),
            Refused::StillStopping => (Kind::Refused, "still_stopping"),
            Refused::AtStart => (Kind::Refused, "at_start"),
            Refused::NoRoute => (Kind::Refused, "no_route"),
            Refused::NotSkippable => (Kind::Refused, "not_skippable"),
            Refused::NothingToRetry => (Kind::Refused, "nothing_to_retry"),
            Refused::NothingToResume => (Kind::Refused, "nothing_to_resume"),
            Refused::NotBlocked => (Kind::Refused, "not_blocked"),
            Refused::NoUndoFails => (Kind::Refused, "no_undo_fails"),
            Refused::GuardSaidNo => (Kind::Refused, "guard_said_no"),
            Refused::AlreadyStarted => (Kind::Refused, "already_started"),
            Refused::Cancelled => (Kind::Refused, "cancelled"),
            Refused::Finished => (Kind::Refused, "finished"),
            Refused::Failed(_) => (Kind::Refused, "failed"),
            Refused::NotThere => (Kind::Refused, "not_there"),
            Refused::Leave(_) => (Kind::Refused, "leave"),
            Refused::Check(_) => (Kind::Refused, "check"),
            Refused::Late(_) => (Kind::Refused, "late"),
            Refused::Closed => (Kind::Stopped, "closed"),
            Refused::Stopped(_) => (Kind::Stopped, "stopped"),
            Refused::Store(_) => (Kind::Storage, "store"),
            Refused::Encode(_) => (Kind::BadBody, "encode"),
            Refused::Panicked(_) => (Kind::Flow, "panicked"),
        };
        Self::new(kind, refused)
            .with("refused", word)
            .with("view", view)
    }

    fn log(&self, error: &dyn std::fmt::Display) {
        if self.kind.status().is_server_error() {
            tracing::error!(%error, kind = self.kind.word(), "a request failed");
        }
    }
}

impl From<&Error> for Problem {
    fn from(error: &Error) -> Self {
        match error {
            Error::Failed(failure) => Self::new(Kind::Failed, failure),
            Error::Cancelled(_) => Self::new(Kind::Cancelled, error),
            // The whole report is in the log and in the run's status; a client can only come again.
            Error::Parked(parked) => {
                let detail = format!(
                    "run `{}` is parked ({}) and goes on once that is mended",
                    parked.id, parked.reason
                );
                Self::new(Kind::Parked, detail)
            }
            Error::ShutDown(_) => Self::new(Kind::ShuttingDown, error),
            Error::Result { .. } => Self::new(Kind::Result, error),
            Error::Progress { .. } => Self::new(Kind::Progress, error),
            Error::Value { .. } => Self::new(Kind::Value, error),
            Error::Start(error) => Self::start(error),
            Error::Attach(error) => Self::attach(error),
            Error::Cancel(error) => Self::cancel(error),
            Error::Send(error) => Self::send(error),
            Error::Request(error) => Self::request(error),
            Error::Control(error) => Self::control(error),
            #[cfg(feature = "schedules")]
            Error::Schedule(error) => Self::schedule(error),
            Error::Build(error) => Self::build(error),
            Error::Store(error) => Self::store(error),
        }
    }
}

macro_rules! problems {
    ($($error:ident)*) => { $(
        impl From<$error> for Problem {
            fn from(error: $error) -> Self {
                let error = Error::from(error);
                let problem = Self::from(&error);
                problem.log(&error);
                problem
            }
        }
    )* };
}
problems!(Error StartError AttachError CancelError SendError RequestError ControlError);
#[cfg(feature = "schedules")]
problems!(ScheduleError);

impl From<SkipUndoError> for Problem {
    fn from(error: SkipUndoError) -> Self {
        let kind = match &error {
            SkipUndoError::Store(error) => return Self::store(error),
            SkipUndoError::NotFound { .. } => Kind::NotFound,
            SkipUndoError::NotParked { .. }
            | SkipUndoError::OtherEntry { .. }
            | SkipUndoError::Changed { .. } => Kind::State,
        };
        Self::new(kind, error)
    }
}

impl From<OpenError> for Problem {
    fn from(error: OpenError) -> Self {
        let kind = match error {
            OpenError::Store(error) => return Error::from(error).into(),
            OpenError::Start(error) => return error.into(),
            OpenError::InvalidId(_) => Kind::InvalidId,
            OpenError::AlreadyStarted { .. } => Kind::Exists,
            OpenError::OtherFlow { .. } => Kind::OtherWorkflow,
            OpenError::NotRegistered { .. } => Kind::NotRegistered,
            OpenError::Corrupt { .. }
            | OpenError::NeedsMigration { .. }
            | OpenError::Migration { .. }
            | OpenError::Stopped { .. } => Kind::Stopped,
        };
        let problem = Self::new(kind, &error);
        problem.log(&error);
        problem
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let Self { kind, detail, more } = self;
        let mut body = more;
        for (name, value) in [
            ("type", json!(format!("workflow:{}", kind.word()))),
            ("title", json!(kind.title())),
            ("status", json!(kind.status().as_u16())),
            ("detail", json!(detail)),
        ] {
            body.insert(name.to_owned(), value);
        }
        let body = Value::Object(body).to_string();
        let mut response = reply::json(kind.status(), "application/problem+json", body);
        if kind.status() == StatusCode::SERVICE_UNAVAILABLE {
            let headers = response.headers_mut();
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}

/// The status tells what happened: 422 the workflow returned an error (its message is the detail), 409 the id belongs to
/// another run, the run was cancelled, or it has ended and takes no message, 404 there is no such run, 400 and 422 the request cannot be one, 503 come
/// again later. The body is `application/problem+json`; the [module](crate::http) has the table of its types.
impl IntoResponse for Error {
    fn into_response(self) -> Response {
        Problem::from(self).into_response()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_problem_is_in_the_table_of_the_documentation_with_its_status() {
        let table = include_str!("../guide/http.md");
        for kind in Kind::ALL {
            let row = format!("| `{}` | {} |", kind.word(), kind.status().as_u16());
            assert!(table.contains(&row), "no row `{row}` in guide/http.md");
        }
        let rows = table.lines().filter(|line| {
            let mut cells = line.split('|').skip(2);
            cells
                .next()
                .is_some_and(|cell| cell.trim().parse::<u16>().is_ok_and(|status| status >= 400))
        });
        assert_eq!(rows.count(), Kind::ALL.len());
    }

    #[test]
    fn no_two_kinds_have_one_word() {
        let words: std::collections::BTreeSet<_> =
            Kind::ALL.iter().map(|kind| kind.word()).collect();
        assert_eq!(words.len(), Kind::ALL.len());
    }
}
