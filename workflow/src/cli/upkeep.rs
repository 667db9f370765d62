//! What keeps a store in good order: copies of it, its size, and what is kept of its past.

use std::path::Path;

use serde::Serialize;
use tokio::task::JoinSet;
use workflow::{DeleteError, Engine};

use crate::arguments::Gc;
use crate::backend::{Backend, Filter};
use crate::bars;
use crate::fail::Fail;
use crate::file::File;
use crate::out::Out;
use crate::shown::Swept;
use crate::text::{clean, count};

/// So many rows are read at a time.
const PAGE: usize = 1_000;
/// So many deletions are under way at once: they share commits.
const TOGETHER: usize = 64;

pub(crate) async fn backup(to: &Path, backend: &Backend, out: &mut Out) -> Result<(), Fail> {
    #[derive(Serialize)]
    struct Copied {
        file: String,
        bytes: u64,
    }
    let file = of_file(backend, "a backup is made of a file")?;
    let bar = bars::working("copying");
    file.store.backup(to).await?;
    bar.finish_and_clear();
    let copied = Copied {
        file: to.display().to_string(),
        bytes: length(to),
    };
    if out.is_json() {
        return out.value(&copied);
    }
    let Copied { file: to, bytes } = copied;
    let of = file.path.display();
    out.line(&clean(&format!(
        "copied `{of}` to `{to}`: {}",
        count(bytes, "byte")
    )))
}

pub(crate) fn compact(backend: &Backend, out: &mut Out) -> Result<(), Fail> {
    #[derive(Serialize)]
    struct Compacted {
        file: String,
        before: u64,
        after: u64,
    }
    let file = of_file(backend, "what is compacted is a file")?;
    let before = length(&file.path);
    let bar = bars::working("compacting");
    file.store.compact()?;
    bar.finish_and_clear();
    let compacted = Compacted {
        file: file.path.display().to_string(),
        before,
        after: length(&file.path),
    };
    if out.is_json() {
        return out.value(&compacted);
    }
    let Compacted { file, after, .. } = compacted;
    out.line(&clean(&format!(
        "compacted `{file}`: {}, of {before}",
        count(after, "byte")
    )))
}

/// Deletes runs that ended long ago: those that are asked for in a file, those that a service keeps no longer.
pub(crate) async fn gc(asked: &Gc, backend: &Backend, out: &mut Out) -> Result<(), Fail> {
    let swept = match backend {
        Backend::File(file) => of_old(asked, backend, file).await?,
        Backend::Service(service) => {
            if asked.older_than.is_some() || asked.is_narrowed() || asked.dry_run {
                return Err(Fail::Usage(
                    "a service deletes what its own retention says: ask it with `gc` alone, or stop it, and give `--store`"
                        .to_owned(),
                ));
            }
            let bar = bars::working("the service deletes");
            let swept = service.gc()?;
            bar.finish_and_clear();
            swept
        }
    };
    if out.is_json() {
        return out.value(&swept);
    }
    let Swept {
        deleted,
        awaited,
        matching,
    } = swept;
    let done = match matching {
        Some(matching) => format!(
            "would delete {}, with their children",
            count(matching, "run")
        ),
        None => format!("deleted {}", count(deleted, "run")),
    };
    let left = match awaited {
        0 => String::new(),
        awaited => format!("; left {awaited}: their parent or a child has not ended"),
    };
    out.line(&(done + &left))
}

/// Deletes what ended before the instant that is asked for.
async fn of_old(asked: &Gc, backend: &Backend, file: &File) -> Result<Swept, Fail> {
    let Some(before) = asked.older_than else {
        return Err(Fail::Usage(
            "say what is to go: `--older-than 30d` deletes runs that ended longer ago than that"
                .to_owned(),
        ));
    };
    let mut sweep = Sweep {
        engine: file.engine(),
        under_way: JoinSet::new(),
        swept: Swept::default(),
    };
    if asked.dry_run {
        sweep.swept.matching = Some(0);
    }
    let bar = bars::counting("runs looked at");
    let mut after = None;
    loop {
        let filter = Filter {
            workflow: asked.workflow.as_deref(),
            state: None,
            after: after.as_deref(),
            limit: PAGE,
        };
        let page = backend.list(filter).await?;
        for run in page.runs {
            bar.inc(1);
            let ended = run.finished_at.is_some_and(|at| at < before.0);
            if !ended || !asked.takes(&run.state) {
                continue;
            }
            match &mut sweep.swept.matching {
                Some(matching) => *matching += 1,
                None => sweep.delete(run.id).await?,
            }
        }
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    let swept = sweep.end().await?;
    bar.finish_and_clear();
    Ok(swept)
}

/// Deletions, some at a time.
struct Sweep<'a> {
    engine: &'a Engine,
    under_way: JoinSet<Result<(), DeleteError>>,
    swept: Swept,
}

impl Sweep<'_> {
    async fn delete(&mut self, id: String) -> Result<(), Fail> {
        while self.under_way.len() >= TOGETHER {
            self.next().await?;
        }
        let engine = self.engine.clone();
        self.under_way.spawn(async move { engine.delete(id).await });
        Ok(())
    }

    async fn next(&mut self) -> Result<bool, Fail> {
        match self.under_way.join_next().await {
            None => return Ok(false),
            // What went with its parent meanwhile is gone, too.
            Some(Ok(Ok(()) | Err(DeleteError::NotFound { .. }))) => self.swept.deleted += 1,
            Some(Ok(Err(
                DeleteError::Awaited { .. } | DeleteError::Child { .. } | DeleteError::Live { .. },
            ))) => self.swept.awaited += 1,
            Some(Ok(Err(error))) => return Err(Fail::refused(error)),
            Some(Err(error)) => return Err(Fail::refused(error)),
        }
        Ok(true)
    }

    async fn end(mut self) -> Result<Swept, Fail> {
        while self.next().await? {}
        Ok(self.swept)
    }
}

impl Gc {
    fn is_narrowed(&self) -> bool {
        self.workflow.is_some() || !self.state.is_empty()
    }

    fn takes(&self, state: &str) -> bool {
        self.state.is_empty() || self.state.iter().any(|asked| asked == state)
    }
}

fn of_file<'a>(backend: &'a Backend, what: &str) -> Result<&'a File, Fail> {
    match backend {
        Backend::File(file) => Ok(file),
        Backend::Service(_) => Err(Fail::Usage(format!(
            "{what}: stop the service and give `--store`, or let its program do it, by its `RedbStore`"
        ))),
    }
}

/// A file's length, as far as it is known.
fn length(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |file| file.len())
}
