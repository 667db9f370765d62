//! What a run says of how far it has come.

use serde::Serialize;

use super::Cx;

/// Publishes a value, unless this is a replay of what was published before.
pub fn progress<T: Serialize + ?Sized>(cx: &Cx, value: &T) {
    let run = cx.run();
    if !run.replay().publishes() {
        return;
    }
    // User code, so not under the machine's lock.
    let written = serde_json::to_string(value).map_err(|error| error.to_string());
    let limit = run.payload_limit();
    let written = written.and_then(|json| {
        if json.len() > limit {
            let size = json.len();
            return Err(format!(
                "it is {size} bytes, over the payload limit of {limit}"
            ));
        }
        Ok(json)
    });
    match written {
        Ok(json) => {
            run.host().progress(&json);
            run.replay().publish(json);
        }
        Err(detail) => run.host().unpublished(&detail),
    }
}
