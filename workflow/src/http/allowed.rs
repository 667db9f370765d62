//! What the policy lets whoever asks do: for a page that shows no button that does nothing.

use axum::http::StatusCode;
use axum::response::Response;
use serde::Serialize;

use super::asked::{Asked, Nothing};
use super::policy::Action;
use super::problem::Problem;
use super::reply;

/// What may be done to a run, by the names of the calls.
pub(super) const CONTROLS: [(&str, Action); 6] = [
    ("cancel", Action::Cancel),
    ("recover", Action::Recover),
    ("resume", Action::Resume),
    ("rewind", Action::Rewind),
    ("fork", Action::Fork),
    ("skip-undo", Action::SkipUndo),
];

/// `GET /runs/{run}/allowed`. Whether the run is in a state for it is not asked here.
pub(super) async fn allowed(asked: Asked) -> Result<Response, Problem> {
    #[derive(Serialize)]
    struct Allowed<'a> {
        controls: Vec<&'static str>,
        messages: Vec<&'a str>,
        requests: Vec<&'a str>,
    }
    asked.allow(Action::Read)?;
    asked.query::<Nothing>()?;
    asked.run().await?;
    let controls = CONTROLS
        .into_iter()
        .filter(|(_, action)| asked.allow(*action).is_ok());
    let channels = |answers: bool, action: Action| {
        let lines = asked.api.lines.values();
        let lines = lines.filter(move |line| line.answers() == answers);
        let may = lines.filter(|line| asked.allow_on(action, line.name()));
        may.map(|line| line.name()).collect()
    };
    let allowed = Allowed {
        controls: controls.map(|(name, _)| name).collect(),
        messages: channels(false, Action::Send),
        requests: channels(true, Action::Request),
    };
    Ok(reply::value(StatusCode::OK, &allowed))
}
