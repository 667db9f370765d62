//! The flows of one guide: its own, and those that are under way in stages of it.
//!
//! 1. A flow is here as long as the code of the stage that it is in runs.
//! 2. All flows of a guide number their revisions together, so that a revision tells how far the whole of it is.
//! 3. Nothing of this is recorded: each level has its own positions, and what is here is made anew from them.

use std::any::Any;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use super::decide::Asked;
use super::desk::{Answering, Key};
use super::operations::Operations;
use super::position::{Event, StageName};
use super::view::NestedView;
use crate::context::{BoxFut, News, Watching};
use crate::replay::Location;

/// A flow in a stage, as the flows around it see it.
pub(super) trait Within: Send {
    /// Obeys a command, or gives it back when it falls outward. `over`: the code of its stage is given up for it.
    fn press(&mut self, press: Pressed, over: bool) -> Option<Pressed>;
    /// Changes the person's data.
    fn edit(&mut self, edit: Editing, answering: Answering, key: Key);
    /// Asks whether it may be left.
    fn ask_exit(&mut self) -> Option<BoxFut<'static, bool>>;
    /// It is given up.
    fn cancelled(&mut self, answering: Vec<(Answering, Key)>);
    /// Effects of the code of its stage were cut off.
    fn interrupted(&mut self, effects: &[Location]);
    /// What it said could not be written, and is written again.
    fn unwritten(&mut self, error: &str);
    /// What happened in it that is not durable yet.
    fn untold(&mut self) -> Vec<Event>;
    /// The revision that the command with this key led to.
    fn answer_to(&self, key: &str) -> Option<u64>;
}

/// A command for a flow in a stage, whatever its data is.
pub(super) struct Pressed {
    pub(super) asked: Asked,
    /// What comes with it, as JSON.
    pub(super) with: Option<String>,
    pub(super) answering: Answering,
    pub(super) key: Key,
}

/// A change of the data of a flow that is found at run time; false when it is of another type.
pub(super) type Editing = Box<dyn FnOnce(&mut dyn Any) -> bool + Send>;

pub(super) type Inner = Arc<Mutex<dyn Within>>;

/// A flow that is under way.
#[derive(Clone)]
pub(super) struct Level {
    pub(super) base: Location,
    pub(super) inner: Inner,
    waker: Option<Waker>,
    /// What it shows, once it shows anything; and its view, whatever its type.
    pub(super) shows: Option<(NestedView, Arc<dyn Any + Send + Sync>)>,
}

impl Level {
    /// It waits for the person.
    pub(super) fn waits(&self) -> bool {
        let shows = self.shows.as_ref();
        shows.is_some_and(|(view, _)| !view.busy)
    }

    /// What is asked of it is asked outside of the code that it is in: that is told.
    pub(super) fn with<T>(&self, ask: impl FnOnce(&mut dyn Within) -> T) -> T {
        let asked = {
            let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
            ask(&mut *inner)
        };
        if let Some(waker) = &self.waker {
            waker.wake_by_ref();
        }
        asked
    }
}

/// Whoever waits for what a flow does, until it has ended.
struct Follow {
    base: Location,
    answering: Answering,
    key: Key,
}

#[derive(Default)]
pub(super) struct Levels {
    state: Mutex<State>,
    pub(super) operations: Operations,
}

impl Watching for Levels {
    fn tell(&self, at: &Location, news: News<'_>) {
        self.operations.tell(at, &news);
    }

    fn released(&self, at: &Location) -> Option<String> {
        self.operations.released(at)
    }
}

#[derive(Default)]
struct State {
    /// The newest revision.
    revision: u64,
    inside: Vec<Level>,
    /// Those who wait for the code of a flow's stage.
    waiting: Vec<(Location, Answering)>,
    /// Those whose `next` goes on in this flow, when the code of its stage has ended.
    following: Vec<Follow>,
    deciding: bool,
    changed: bool,
    /// What happened in flows in stages, and was not told to the guide's observers.
    told: Vec<(String, Vec<Event>)>,
    /// The flows that may be in stages of this guide.
    declared: Vec<String>,
}

impl Levels {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A drive begins.
    pub(super) fn begin(&self, revision: u64, declared: Vec<String>) {
        let mut state = self.state();
        let gone = std::mem::take(&mut state.inside);
        state.revision = revision;
        state.declared = declared;
        state.deciding = false;
        state.changed = false;
        state.told.clear();
        drop(state);
        drop(gone);
    }

    pub(super) fn is_declared(&self, flow: &str) -> bool {
        self.state().declared.iter().any(|known| known == flow)
    }

    pub(super) fn revision(&self) -> u64 {
        self.state().revision
    }

    pub(super) fn came_to(&self, revision: u64) {
        let mut state = self.state();
        state.revision = state.revision.max(revision);
    }

    // ===== who is there =====

    pub(super) fn enter(&self, base: Location, inner: Inner) {
        self.state().inside.push(Level {
            base,
            inner,
            waker: None,
            shows: None,
        });
    }

    pub(super) fn leave(&self, base: &Location) {
        let mut state = self.state();
        let at = state.inside.iter().position(|level| level.base == *base);
        let gone = at.map(|at| state.inside.remove(at));
        state.changed = true;
        drop(state);
        drop(gone);
    }

    /// Who polls it.
    pub(super) fn polled_by(&self, base: &Location, waker: &Waker) {
        let mut state = self.state();
        if let Some(level) = state.inside.iter_mut().find(|level| level.base == *base) {
            level.waker = Some(waker.clone());
        }
    }

    pub(super) fn show(&self, base: &Location, shows: (NestedView, Arc<dyn Any + Send + Sync>)) {
        let mut state = self.state();
        state.changed = true;
        if let Some(level) = state.inside.iter_mut().find(|level| level.base == *base) {
            level.shows = Some(shows);
        }
    }

    /// Whether what is shown has changed since this was asked last.
    pub(super) fn take_changed(&self) -> bool {
        std::mem::take(&mut self.state().changed)
    }

    /// The flows on the way from the outermost to the one that the next command is for: of several in one stage, the first that waits.
    pub(super) fn outside_in(&self) -> Vec<Level> {
        let state = self.state();
        let mut chain: Vec<Level> = Vec::new();
        loop {
            let base = chain
                .last()
                .map_or_else(Location::root, |it| it.base.clone());
            let below = |level: &&Level| level.base != base && level.base.is_under(&base);
            let mut below: Vec<&Level> = state.inside.iter().filter(below).collect();
            // One that is in another of them is not the next on the way.
            let all = below.clone();
            below.retain(|level| {
                !all.iter()
                    .any(|other| other.base != level.base && level.base.is_under(&other.base))
            });
            let next = below.iter().find(|level| level.waits()).or(below.first());
            match next {
                Some(next) => chain.push((*next).clone()),
                None => return chain,
            }
        }
    }

    /// All flows, those within before those around them.
    pub(super) fn inside_out(&self) -> Vec<Level> {
        let mut all = self.state().inside.clone();
        all.sort_by_key(|level| std::cmp::Reverse(level.base.as_bytes().len()));
        all
    }

    /// The flow that is shown at this path.
    pub(super) fn at(&self, path: &str) -> Option<Level> {
        let state = self.state();
        let mut inside = state.inside.iter();
        inside.find(|level| path_of(&level.base) == path).cloned()
    }

    /// Something happened in the flow there.
    pub(super) fn tells(&self, base: &Location, events: Vec<Event>) {
        if !events.is_empty() {
            self.state().told.push((path_of(base), events));
        }
    }

    /// What happened in flows in stages since this was asked last.
    pub(super) fn take_told(&self) -> Vec<(String, Vec<Event>)> {
        std::mem::take(&mut self.state().told)
    }

    // ===== deciding =====

    pub(super) fn set_deciding(&self, deciding: bool) {
        let mut state = self.state();
        state.deciding = deciding;
        let inside = if deciding {
            Vec::new()
        } else {
            state.inside.clone()
        };
        drop(state);
        for waker in inside.iter().filter_map(|level| level.waker.as_ref()) {
            waker.wake_by_ref();
        }
    }

    /// All flows in stages look again.
    pub(super) fn wake_inside(&self) {
        for level in self.inside_out() {
            if let Some(waker) = &level.waker {
                waker.wake_by_ref();
            }
        }
    }

    pub(super) fn is_deciding(&self) -> bool {
        self.state().deciding
    }

    // ===== who waits =====

    pub(super) fn wait(&self, base: &Location, answering: Answering) {
        self.state().waiting.push((base.clone(), answering));
    }

    /// Those who wait for the code of this flow's stage, or for that of one within it: with the one the other is over.
    pub(super) fn waiting_at(&self, base: &Location) -> Vec<Answering> {
        self.take_waiting(|at| at.is_under(base))
    }

    /// Where another flow is that is in the same stage as this one.
    pub(super) fn beside(&self, base: &Location) -> Option<(String, StageName)> {
        let around = self.around(base);
        let state = self.state();
        let mut others = state.inside.iter().filter(|level| {
            let apart = !level.base.is_under(base) && !base.is_under(&level.base);
            apart && level.base != around && level.base.is_under(&around)
        });
        others.find_map(|level| {
            let (view, _) = level.shows.as_ref()?;
            Some((path_of(&level.base), view.at.clone()?))
        })
    }

    /// Those who wait for anything.
    pub(super) fn waiting(&self) -> Vec<Answering> {
        let follow = std::mem::take(&mut self.state().following);
        let follow = follow.into_iter().map(|follow| follow.answering);
        let mut waiting = self.take_waiting(|_| true);
        waiting.extend(follow);
        waiting
    }

    fn take_waiting(&self, wanted: impl Fn(&Location) -> bool) -> Vec<Answering> {
        let mut state = self.state();
        let all = std::mem::take(&mut state.waiting);
        let (taken, left) = all.into_iter().partition(|(at, _)| wanted(at));
        state.waiting = left;
        taken.into_iter().map(|(_, answering)| answering).collect()
    }

    /// A flow in a stage of the one that lies here has ended: its `next` goes on there.
    pub(super) fn follow(&self, base: &Location, answering: Answering, key: Key) {
        let base = base.clone();
        self.state().following.push(Follow {
            base,
            answering,
            key,
        });
    }

    pub(super) fn following(&self, base: &Location) -> Vec<(Answering, Key)> {
        let mut state = self.state();
        let all = std::mem::take(&mut state.following);
        let (taken, left) = all.into_iter().partition(|it| it.base == *base);
        state.following = left;
        let taken: Vec<Follow> = taken;
        taken.into_iter().map(|it| (it.answering, it.key)).collect()
    }

    /// A flow in a stage waits for the person, or works: those who waited for the code around it have come to it.
    pub(super) fn come_to(&self, base: &Location) -> Vec<Answering> {
        let around = |at: &Location| at != base && base.is_under(at);
        let mut come = self.take_waiting(around);
        let mut state = self.state();
        let all = std::mem::take(&mut state.following);
        let (taken, left) = all.into_iter().partition(|it: &Follow| around(&it.base));
        state.following = left;
        let taken: Vec<Follow> = taken;
        come.extend(taken.into_iter().map(|it| it.answering));
        come
    }

    /// Where the flow lies in whose stage the one that lies here is.
    pub(super) fn around(&self, base: &Location) -> Location {
        let state = self.state();
        let around = state.inside.iter().map(|level| &level.base);
        let around = around.filter(|around| *around != base && base.is_under(around));
        let around = around.max_by_key(|around| around.as_bytes().len());
        around.cloned().unwrap_or_else(Location::root)
    }

    /// The revision that the command with this key led to, wherever it went.
    pub(super) fn answer_to(&self, key: &str) -> Option<u64> {
        let mut inside = self.inside_out().into_iter();
        inside.find_map(|level| {
            let inner = level.inner.lock().unwrap_or_else(PoisonError::into_inner);
            inner.answer_to(key)
        })
    }

    /// The first guard, from the outside in, that says no; asked one after the other.
    pub(super) async fn may_leave(self: Arc<Self>, within: Option<String>) -> bool {
        let levels = self.inside_out().into_iter().rev();
        let levels: Vec<_> = levels
            .filter(|level| match &within {
                Some(path) => {
                    let at = path_of(&level.base);
                    at == *path || at.starts_with(&format!("{path}/"))
                }
                None => true,
            })
            .collect();
        for level in levels {
            let guard = {
                let mut inner = level.inner.lock().unwrap_or_else(PoisonError::into_inner);
                inner.ask_exit()
            };
            if let Some(guard) = guard
                && !guard.await
            {
                return false;
            }
        }
        true
    }
}

/// The way to a flow, as people see it: the stages and the flows in them.
pub(super) fn path_of(base: &Location) -> String {
    base.path().replace("[]", "")
}
