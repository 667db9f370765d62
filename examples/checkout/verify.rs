//! Checks the world against the store: what is recorded happened exactly once.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use workflow::replay::Body;
use workflow::store::RunFilter;
use workflow::{Engine, Error, RunState};

use crate::effects;

/// What was found.
#[derive(Debug, Default)]
pub struct Verdict {
    pub states: BTreeMap<&'static str, usize>,
    pub recorded: usize,
    /// Effects had before their outcome was recorded, because the process was killed in between: allowed, and seldom.
    pub unrecorded: usize,
    /// What must never be.
    pub wrong: Vec<String>,
}

/// Reads every history and the effects file, and compares.
pub async fn verify(engine: &Engine, effects_file: &Path) -> Result<Verdict, Error> {
    let mut verdict = Verdict::default();
    let mut had: HashMap<(String, String), Vec<String>> = HashMap::new();
    let effects = effects::read(effects_file).unwrap_or_default();
    for effect in effects {
        had.entry((effect.run, effect.location))
            .or_default()
            .push(effect.receipt);
    }
    let mut filter = RunFilter {
        limit: 500,
        ..RunFilter::default()
    };
    loop {
        let page = engine.list(&filter).await?;
        for row in &page.rows {
            *verdict.states.entry(row.state.word()).or_default() += 1;
            let run = row.id.to_string();
            if !row.state.is_final() {
                verdict.wrong.push(format!("{run} is {}", row.state));
            }
            let lost_race = row.state == RunState::Completed;
            let history = engine
                .attach::<crate::flow::checkout>(row.id.as_str())
                .await?
                .history()
                .await?;
            for record in history {
                let Body::Ended(ended) = record.body else {
                    continue;
                };
                let Ok(payload) = ended.outcome else { continue };
                let Ok(receipt) = serde_json::from_slice::<String>(&payload.bytes) else {
                    continue;
                };
                let receipts = had
                    .remove(&(run.clone(), record.location.to_string()))
                    .unwrap_or_default();
                verdict.recorded += 1;
                // A recorded effect is the last of its step: nothing was done again after it was recorded.
                match receipts.iter().position(|found| *found == receipt) {
                    None => verdict.wrong.push(format!(
                        "{run} {}: recorded, and never happened",
                        record.location
                    )),
                    Some(at) if at + 1 < receipts.len() => {
                        verdict.wrong.push(format!(
                            "{run} {}: happened again after it was recorded",
                            record.location
                        ));
                    }
                    Some(at) => verdict.unrecorded += at,
                }
            }
            // A payment that lost against the window leaves no record; its effect may stand all the same.
            let lost = (run.clone(), "settle/paid/charge".to_owned());
            if lost_race && let Some(receipts) = had.remove(&lost) {
                verdict.unrecorded += receipts.len();
            }
        }
        let Some(next) = page.next else { break };
        filter.after = Some(next);
    }
    for ((run, location), receipts) in had {
        verdict.wrong.push(format!(
            "{run} {location}: happened {} times, and is in no history",
            receipts.len()
        ));
    }
    verdict.wrong.sort();
    Ok(verdict)
}
