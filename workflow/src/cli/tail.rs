//! `workflow tail`: the records of a run as they come.

use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use workflow::Record;

use crate::arguments::{History, Tail};
use crate::backend::Backend;
use crate::fail::Fail;
use crate::history::{self, row};
use crate::out::Out;
use crate::service::{Event, Followed, Service};
use crate::shown::Run;
use crate::text::{one_line, table};

/// So long is waited before a service is asked again that broke off.
const PAUSE: Duration = Duration::from_secs(1);
/// So often is it asked again.
const TRIES: u32 = 30;

pub(crate) async fn tail(asked: &Tail, backend: &Backend, out: &mut Out) -> Result<(), Fail> {
    let service = match backend {
        Backend::Service(service) => service,
        Backend::File(_) => {
            let asked = History {
                run: asked.run.clone(),
                after: asked.after,
                limit: None,
                at: None,
            };
            history::history(&asked, backend, out).await?;
            out.note(
                "nothing happens in a file that nobody else has open: this is what was recorded",
            );
            return Ok(());
        }
    };
    follow(asked, service, out)
}

/// Follows a run until it has ended, also over restarts of its service.
fn follow(asked: &Tail, service: &Service, out: &mut Out) -> Result<(), Fail> {
    let mut after = asked.after;
    let mut left = TRIES;
    loop {
        let followed = service.follow(&asked.run, after, |event| {
            left = TRIES;
            after = event.id.unwrap_or(after);
            told(&event, out)?;
            // Whoever watches sees it now.
            out.end()
        });
        match followed {
            Ok(Followed::ToTheEnd) => return Ok(()),
            Ok(Followed::BrokenOff) => {}
            // It was there before.
            Err(Fail::Unopened(_)) if left < TRIES || after > asked.after => {}
            Err(fail) => return Err(fail),
        }
        if left == 0 {
            return Err(Fail::Unopened(format!(
                "the service broke off and did not come back: `--after {after}` goes on"
            )));
        }
        left -= 1;
        thread::sleep(PAUSE);
    }
}

fn told(event: &Event, out: &mut Out) -> Result<(), Fail> {
    #[derive(Serialize)]
    struct Line<'a> {
        event: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<u64>,
        data: &'a RawValue,
    }
    #[derive(Deserialize)]
    struct Gap {
        from: u64,
        to: u64,
    }
    let unread = |error: serde_json::Error| {
        Fail::Refused(format!(
            "an event is not one of this API, or of a newer version of it: {error}"
        ))
    };
    if out.is_json() {
        let data = serde_json::from_str(&event.data).map_err(unread)?;
        return out.value(&Line {
            event: &event.kind,
            id: event.id,
            data,
        });
    }
    let line = match &*event.kind {
        "record" => {
            let record: Record = serde_json::from_str(&event.data).map_err(unread)?;
            table(&[row(&record)], out.width()).concat()
        }
        "gap" => {
            let Gap { from, to } = serde_json::from_str(&event.data).map_err(unread)?;
            if from == to {
                format!("{from}  deleted since")
            } else {
                format!("{from} to {to}  deleted since")
            }
        }
        "end" => {
            let run: Run = serde_json::from_str(&event.data).map_err(unread)?;
            out.note(&format!("`{}` is {}", one_line(&run.id), run.state));
            return Ok(());
        }
        // Of a newer version of the API.
        other => one_line(&format!("{other}: {}", event.data)),
    };
    out.line(&line)
}
