//! Tells of a repair: of a file that the database has to read through before it opens. No kill leaves one; a program of
//! format 1 did, when it was killed amid commits of steps.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use redb::Builder;

/// So often whoever waits for a repair is told how far it is.
const EVERY: Duration = Duration::from_secs(1);

/// A repair that an opening may need. When it goes, so does the thread that tells of it.
pub(super) struct Repair {
    path: PathBuf,
    teller: Arc<Mutex<Option<JoinHandle<()>>>>,
}

impl Repair {
    pub(super) fn of(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            teller: Arc::default(),
        }
    }

    /// Has the database say how far it is. The builder must go before this.
    pub(super) fn watch(&self, builder: &mut Builder) {
        let (path, teller) = (self.path.clone(), Arc::clone(&self.teller));
        let telling = Mutex::new(None::<Sender<f64>>);
        builder.set_repair_callback(move |session| {
            let mut telling = telling.lock().unwrap_or_else(PoisonError::into_inner);
            let sender = telling.get_or_insert_with(|| {
                let (sender, progress) = mpsc::channel();
                *teller.lock().unwrap_or_else(PoisonError::into_inner) = tell(&path, progress);
                sender
            });
            // A teller that could not be started is none to wait for.
            let _ = sender.send(session.progress());
        });
    }
}

impl Drop for Repair {
    fn drop(&mut self) {
        let teller = self
            .teller
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(teller) = teller {
            drop(teller.join());
        }
    }
}

/// What is to be told.
#[derive(Debug, PartialEq, Eq)]
enum News {
    Begun,
    /// How far it is, in percent.
    Still(u8),
    Over,
}

/// A thread of its own: the one that opens is busy with the repair.
fn tell(path: &Path, progress: Receiver<f64>) -> Option<JoinHandle<()>> {
    let path = path.to_owned();
    let subscriber = tracing::dispatcher::get_default(Clone::clone);
    let bytes = std::fs::metadata(&path).map_or(0, |file| file.len());
    let begun = Instant::now();
    let say = move |news| {
        let (path, seconds) = (path.display(), begun.elapsed().as_secs_f32());
        match news {
            News::Begun => {
                tracing::info!(%path, bytes, "the store was not closed; its file is read through and repaired before it opens");
            }
            News::Still(percent) => {
                tracing::warn!(%path, bytes, percent, seconds, "the store's file is still being repaired");
            }
            News::Over => tracing::info!(%path, bytes, seconds, "the store's file is repaired"),
        }
    };
    let thread = thread::Builder::new().name("workflow-repair".to_owned());
    let spawned = thread.spawn(move || {
        tracing::dispatcher::with_default(&subscriber, || follow(&progress, EVERY, say));
    });
    spawned.ok()
}

/// Tells of a repair until whoever does it lets go.
fn follow(progress: &Receiver<f64>, every: Duration, mut say: impl FnMut(News)) {
    let mut percent = 0;
    let mut next = Instant::now() + every;
    say(News::Begun);
    loop {
        match progress.recv_timeout(next.saturating_duration_since(Instant::now())) {
            Ok(part) => percent = percent_of(part),
            Err(RecvTimeoutError::Timeout) => {
                say(News::Still(percent));
                next += every;
            }
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    say(News::Over);
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it is between 0 and 100"
)]
fn percent_of(part: f64) -> u8 {
    (part.clamp(0.0, 1.0) * 100.0) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    // UA-66
    #[test]
    fn who_waits_for_a_repair_is_told_again_and_again_how_far_it_is() {
        let (sender, progress) = mpsc::channel();
        sender.send(0.6).unwrap();
        let mut sender = Some(sender);
        let mut said = Vec::new();
        follow(&progress, Duration::from_millis(1), |news| {
            said.push(news);
            if said.len() == 4 {
                sender = None;
            }
        });
        let still = News::Still(60);
        assert_eq!(said.first(), Some(&News::Begun));
        assert_eq!(said.last(), Some(&News::Over));
        assert_eq!(
            said.iter().filter(|news| **news == still).count(),
            said.len() - 2
        );
        assert!(said.len() >= 5);
    }
}
