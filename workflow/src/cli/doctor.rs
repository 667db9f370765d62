//! `workflow doctor`: reads everything in a store.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use workflow::replay::RunKey;
use workflow::store::{RunFilter, RunRow, Store};
use workflow::{History, RunState, Timestamp};

use crate::backend::Backend;
use crate::fail::{Fail, whole};
use crate::file::{File, STATES};
use crate::out::Out;
use crate::text::{clean, count, one_line};
use crate::{bars, ways};

/// So much is read at a time.
const PAGE: usize = 1_000;
/// So many parked runs are told of one by one in text; all of them in JSON.
const TOLD: usize = 20;
/// After so many numbers that no run has, no run of that opening is expected any more.
const MISSING: u64 = 1_024;
/// In each opening, a store numbers its runs from the next multiple of this on.
const OPENING: u64 = 1 << 40;

/// What was found.
#[derive(Debug, Default, Serialize)]
struct Found {
    store: String,
    runs: u64,
    records: u64,
    messages: u64,
    dead_letters: u64,
    values: u64,
    states: BTreeMap<&'static str, u64>,
    workflows: BTreeMap<String, u64>,
    parked: Vec<Parked>,
    problems: Vec<Problem>,
}

#[derive(Debug, Serialize)]
struct Parked {
    id: String,
    workflow: String,
    reason: &'static str,
    detail: String,
    ways_out: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Problem {
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<String>,
    problem: String,
}

pub(crate) async fn doctor(backend: &Backend, out: &mut Out) -> Result<(), Fail> {
    let Backend::File(file) = backend else {
        return Err(Fail::Usage(
            "a doctor reads the file itself: stop the service, and give `--store`".to_owned(),
        ));
    };
    let mut doctor = Doctor {
        file,
        found: Found {
            store: file.path.display().to_string(),
            ..Found::default()
        },
        active: BTreeSet::new(),
        due: BTreeSet::new(),
    };
    let rows = doctor.rows().await?;
    let bar = bars::through("reading runs", rows.len() as u64);
    for row in &rows {
        doctor.run(row).await;
        bar.inc(1);
    }
    bar.finish_and_clear();
    doctor.indexes().await;
    doctor.values().await;
    let found = doctor.found;
    if out.is_json() {
        out.value(&found)?;
    } else {
        found.tell(out)?;
    }
    if found.problems.is_empty() {
        return Ok(());
    }
    Err(Fail::Found)
}

struct Doctor<'a> {
    file: &'a File,
    found: Found,
    /// What the rows say is active, and due when.
    active: BTreeSet<RunKey>,
    due: BTreeSet<(Timestamp, RunKey)>,
}

impl Doctor<'_> {
    fn problem(&mut self, run: Option<&RunRow>, problem: String) {
        let run = run.map(|row| row.id.to_string());
        self.found.problems.push(Problem { run, problem });
    }

    /// Every row that can be read.
    async fn rows(&mut self) -> Result<Vec<RunRow>, Fail> {
        let bar = bars::counting("runs found");
        let mut rows: Vec<RunRow> = Vec::new();
        let mut filter = RunFilter {
            limit: PAGE,
            ..RunFilter::default()
        };
        loop {
            match self.file.store.list(&filter).await {
                Ok(page) => {
                    bar.inc(page.rows.len() as u64);
                    rows.extend(page.rows);
                    filter.after = page.next;
                }
                Err(error) => {
                    let problems = self.found.problems.len();
                    filter.after = self.one_by_one(filter.after, &mut rows).await;
                    if self.found.problems.len() == problems {
                        self.problem(None, format!("the rows: {}", whole(&error)));
                    }
                }
            }
            if filter.after.is_none() {
                break;
            }
        }
        bar.finish_and_clear();
        for row in &rows {
            self.row(row);
        }
        Ok(rows)
    }

    /// Reads rows one by one, until they can be listed again after the number that this gives. Those that cannot be read are told.
    async fn one_by_one(
        &mut self,
        after: Option<RunKey>,
        rows: &mut Vec<RunRow>,
    ) -> Option<RunKey> {
        let store = &self.file.store;
        let openings = store.identity().boot;
        let mut number = after.map_or(0, |key| key.0.saturating_add(1));
        let mut missing = 0;
        loop {
            missing += 1;
            match store.row(RunKey(number)).await {
                Ok(None) => {}
                Ok(Some(row)) => {
                    rows.push(row);
                    missing = 0;
                }
                Err(error) => {
                    missing = 0;
                    let before = rows.last().map(|row| format!(" after `{}`", row.id));
                    self.found.problems.push(Problem {
                        run: None,
                        problem: format!(
                            "the row{}: {}",
                            before.unwrap_or_default(),
                            whole(&error)
                        ),
                    });
                    let beyond = RunFilter {
                        after: Some(RunKey(number)),
                        limit: 1,
                        ..RunFilter::default()
                    };
                    if store.list(&beyond).await.is_ok() {
                        return Some(RunKey(number));
                    }
                }
            }
            number = number.checked_add(1)?;
            if missing > MISSING {
                missing = 0;
                let opening = number / OPENING + 1;
                if opening > openings {
                    return None;
                }
                number = opening.checked_mul(OPENING)?;
            }
        }
    }

    /// What a row says.
    fn row(&mut self, row: &RunRow) {
        self.found.runs += 1;
        *self.found.states.entry(row.state.word()).or_default() += 1;
        *self
            .found
            .workflows
            .entry(row.workflow.clone())
            .or_default() += 1;
        if row.state.is_active() {
            self.active.insert(row.key);
        }
        if let Some(at) = row.wake_at {
            self.due.insert((at, row.key));
        }
        match &row.parked {
            Some(parked) => self.found.parked.push(Parked {
                id: row.id.to_string(),
                workflow: row.workflow.clone(),
                reason: parked.reason.word(),
                detail: parked.detail.clone(),
                ways_out: ways::out_of(parked.reason.word(), row.id.as_str()),
            }),
            None if row.state == RunState::Parked => {
                self.problem(
                    Some(row),
                    "it is parked, and its row does not say why".to_owned(),
                );
            }
            None => {}
        }
    }

    /// Everything that a run has.
    async fn run(&mut self, row: &RunRow) {
        match self.file.store.load(row.key).await {
            Ok(Some(loaded)) => {
                self.found.records += loaded.history.len() as u64;
                let last = loaded.history.last().map_or(0, |record| record.seq);
                match History::new(row.id.clone(), loaded.history) {
                    Err(error) => self.problem(Some(row), whole(&error)),
                    Ok(history) => {
                        if last > row.last_seq {
                            let said = row.last_seq;
                            self.problem(
                                Some(row),
                                format!("its last record is {last}, and its row says {said}"),
                            );
                        }
                        if row.state.is_final() != history.finished().is_some() {
                            let state = row.state;
                            self.problem(
                                Some(row),
                                format!("it is {state}, and its history says otherwise"),
                            );
                        }
                    }
                }
            }
            Ok(None) => self.problem(Some(row), "it is listed, and is not there".to_owned()),
            Err(error) => self.problem(Some(row), whole(&error)),
        }
        self.mail(row).await;
        match self.file.store.find(&row.id).await {
            Ok(Some(found)) if found.key == row.key => {}
            Ok(_) => self.problem(Some(row), "it is not found by its id".to_owned()),
            Err(error) => self.problem(Some(row), whole(&error)),
        }
    }

    /// Its inbox and its dead letters.
    async fn mail(&mut self, row: &RunRow) {
        let mut after = 0;
        loop {
            match self.file.store.inbox(row.key, after, PAGE).await {
                Ok(page) => {
                    self.found.messages += page.len() as u64;
                    match page.last().filter(|_| page.len() == PAGE) {
                        Some(last) => after = last.arrival,
                        None => break,
                    }
                }
                Err(error) => {
                    self.problem(Some(row), format!("its inbox: {}", whole(&error)));
                    break;
                }
            }
        }
        after = 0;
        loop {
            match self.file.store.dead_letters(row.key, after, PAGE).await {
                Ok(page) => {
                    self.found.dead_letters += page.len() as u64;
                    match page.last().filter(|_| page.len() == PAGE) {
                        Some(last) => after = last.message.arrival,
                        None => break,
                    }
                }
                Err(error) => {
                    self.problem(Some(row), format!("its dead letters: {}", whole(&error)));
                    break;
                }
            }
        }
    }

    /// Whether a program would find what it has to drive.
    async fn indexes(&mut self) {
        let mut active = BTreeSet::new();
        let mut after = None;
        loop {
            match self.file.store.active(after, PAGE).await {
                Ok(page) => {
                    after = page.last().copied();
                    active.extend(&page);
                    if page.len() < PAGE {
                        break;
                    }
                }
                Err(error) => {
                    return self
                        .problem(None, format!("the index of active runs: {}", whole(&error)));
                }
            }
        }
        let (missing, extra) = apart(&self.active, &active);
        if missing + extra > 0 {
            self.problem(
                None,
                format!("the index of active runs: {missing} are missing, {extra} are too many"),
            );
        }
        let mut due = BTreeSet::new();
        let mut after = None;
        loop {
            match self.file.store.due(after, Timestamp::MAX, PAGE).await {
                Ok(page) => {
                    after = page.last().copied();
                    due.extend(&page);
                    if page.len() < PAGE {
                        break;
                    }
                }
                Err(error) => {
                    return self
                        .problem(None, format!("the index of deadlines: {}", whole(&error)));
                }
            }
        }
        let (missing, extra) = apart(&self.due, &due);
        if missing + extra > 0 {
            self.problem(
                None,
                format!("the index of deadlines: {missing} are missing, {extra} are too many"),
            );
        }
    }

    /// The values that steps put into the store.
    async fn values(&mut self) {
        let mut after: Option<String> = None;
        loop {
            match self.file.store.values("", after.as_deref(), PAGE).await {
                Ok(page) => {
                    self.found.values += page.len() as u64;
                    match page.last().filter(|_| page.len() == PAGE) {
                        Some((key, _)) => after = Some(key.clone()),
                        None => break,
                    }
                }
                Err(error) => return self.problem(None, format!("the values: {}", whole(&error))),
            }
        }
    }
}

/// How many are in one and not in the other.
fn apart<T: Ord>(one: &BTreeSet<T>, other: &BTreeSet<T>) -> (usize, usize) {
    (one.difference(other).count(), other.difference(one).count())
}

impl Found {
    fn tell(&self, out: &mut Out) -> Result<(), Fail> {
        let Self { runs, records, .. } = self;
        out.line(&clean(&format!(
            "{}: {}, {}, {} in inboxes, {}, {}",
            self.store,
            count(*runs, "run"),
            count(*records, "record"),
            count(self.messages, "message"),
            count(self.dead_letters, "dead letter"),
            count(self.values, "value"),
        )))?;
        for state in STATES.map(RunState::word) {
            if let Some(number) = self.states.get(state) {
                out.line(&format!("  {number:>8}  {state}"))?;
            }
        }
        for (workflow, number) in &self.workflows {
            out.line(&format!("  {number:>8}  of {}", one_line(workflow)))?;
        }
        for parked in self.parked.iter().take(TOLD) {
            out.line(&format!(
                "parked: `{}` ({})",
                one_line(&parked.id),
                parked.reason
            ))?;
            for line in parked.detail.lines() {
                out.line(&format!("    {}", clean(line)))?;
            }
            for way in &parked.ways_out {
                out.line(&format!("  - {way}"))?;
            }
        }
        if let Some(more) = self.parked.len().checked_sub(TOLD).filter(|more| *more > 0) {
            out.line(&format!(
                "and {more} more are parked: workflow list --state parked"
            ))?;
        }
        for Problem { run, problem } in &self.problems {
            let whose = run.as_ref().map(|run| format!("run `{}`: ", one_line(run)));
            out.line(&format!(
                "problem: {}{}",
                whose.unwrap_or_default(),
                one_line(problem)
            ))?;
        }
        if self.problems.is_empty() {
            out.line("everything in it can be read")?;
        }
        Ok(())
    }
}
