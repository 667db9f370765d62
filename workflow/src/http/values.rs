//! Values of the application: what its steps [`put`](crate::CurrentStep::put).
//!
//! They are the application's own rows, and not of the runs that are looked at here: nobody gets any but those that the API was given,
//! by what their keys begin with.

use axum::http::StatusCode;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::asked::{Asked, Nothing};
use super::problem::{Kind, Problem};
use super::reply;
use super::runs::limit;

#[derive(Debug, Serialize)]
struct Row {
    key: String,
    value: Box<RawValue>,
}

/// `GET /values`: values whose keys begin with something, in the order of their keys.
pub(super) async fn list(asked: Asked) -> Result<Response, Problem> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Which {
        #[serde(default)]
        prefix: String,
        after: Option<String>,
        limit: Option<usize>,
    }
    #[derive(Serialize)]
    struct Rows {
        values: Vec<Row>,
        #[serde(skip_serializing_if = "Option::is_none")]
        next: Option<String>,
    }
    let which: Which = asked.query()?;
    asked.allow_key(&which.prefix)?;
    asked.serves(&which.prefix)?;
    let most = limit(which.limit)?;
    let engine = &asked.api.engine;
    // One more tells whether there are more.
    let mut found = engine
        .values(&which.prefix, which.after.as_deref(), most + 1)
        .await?;
    let more = found.len() > most;
    found.truncate(most);
    let rows = Rows {
        next: found.last().filter(|_| more).map(|(key, _)| key.clone()),
        values: found
            .into_iter()
            .map(|(key, value)| Row { key, value })
            .collect(),
    };
    Ok(reply::value(StatusCode::OK, &rows))
}

/// `GET /values/{key}`.
pub(super) async fn value(asked: Asked) -> Result<Response, Problem> {
    asked.query::<Nothing>()?;
    let key = asked.segment("key").to_owned();
    asked.allow_key(&key)?;
    asked.serves(&key)?;
    match asked.api.engine.value(&key).await? {
        Some(value) => Ok(reply::value(StatusCode::OK, &Row { key, value })),
        None => Err(Problem::new(
            Kind::NotFound,
            format!("there is no value `{key}`"),
        )),
    }
}

impl Asked {
    /// Whether the API was given the values whose keys begin with this.
    fn serves(&self, key: &str) -> Result<(), Problem> {
        let given = &self.api.values;
        if given.iter().any(|prefix| key.starts_with(prefix.as_str())) {
            return Ok(());
        }
        let detail = if given.is_empty() {
            "this API has no values: whoever serves it gives them to its router, `.values(\"bookings/\")`".to_owned()
        } else {
            let given: Vec<_> = given.iter().map(|prefix| format!("`{prefix}`")).collect();
            let given = given.join(", ");
            format!("this API has no values whose keys begin with `{key}`; it has those of {given}")
        };
        Err(Problem::new(Kind::UnknownValues, detail))
    }
}
