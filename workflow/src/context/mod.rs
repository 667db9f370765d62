//! Floor 2: the futures that a workflow awaits. std and serde only: no runtime, no clock, no store.
//!
//! Everything here is reached through the macros and [`__private`](crate::__private); what users name is re-exported at
//! the crate's root.
//!
//! # Invariants
//!
//! 1. The replay machine is never locked while user code runs: bodies, `retry_if`, serde, `Drop`.
//! 2. User code is given what was decoded from the record, also when it was encoded a moment ago.
//! 3. What the history cannot give (a divergence, a value that no longer decodes) is never an error that user code could
//!    catch: the future stays pending, and [`Body`] ends with why.
//! 4. A pass polls only what was woken: each branch of a join or race has its own waker.

#![deny(clippy::disallowed_methods)]

mod args;
mod attempt;
mod blocked;
mod body;
mod branches;
mod channel;
mod current;
mod derived;
mod durable;
mod entry;
mod fragment;
mod gate;
mod guide;
mod host;
mod intervene;
mod join;
mod join_all;
mod looping;
mod progress;
mod race;
mod recv;
mod run;
mod step;
mod telling;
mod thrown;
mod undo;
mod wait;
mod workflow;

pub use args::{ArgError, Args, Input, InputError, Noted, Parameter, StateType, States};
pub use attempt::Attempt;
pub use blocked::{Blocked, BlockedMark, blocked};
pub use body::Body;
pub use branches::Arm;
pub use channel::{Channel, ChannelOf, OneWay, Receive, Request};
pub use current::{Cancellation, Cancelled, CurrentStep, PutError, current_step, try_current_step};
pub use derived::{Random, RandomBytes};
pub use durable::{BoxFut, Durable, Fallible, Infallible, Outcome, Recorded};
pub use entry::{Entry, Inside};
pub use fragment::{Apart, Durably, Fragment, FragmentRun, Lent, Once};
pub use gate::Version;
pub use guide::{Asking, ChildOf, Claimed, Ground, GroundCode, Limit, Unmaking, Up, Visiting};
pub use host::{Desk, Host, Left, StepSpan};
#[cfg(feature = "engine")]
pub(crate) use intervene::intervened;
pub use intervene::{Instead, Intervening, Intervention};
pub use join::{ArmSet, Join, JoinRun};
pub use join_all::{Items, JoinAllRun, Slot};
pub use looping::{Carry, Hold, Loop, Resume, Top};
pub use race::{Race, RaceRun, Won};
pub use recv::{Many, Maybe, One, Recv, Reply, Sending, Shape, ToRun};
pub(crate) use run::Values;
pub use run::{Cx, Park, Run};
// Only the engine writes them.
#[cfg(feature = "engine")]
pub(crate) use run::seal_values;
pub use step::{
    Alone, Awaited, ChildOptioned, Critical, InPlace, NoResult, Optioned, Renamed, RenamedChild,
    RenamedFragment, RenamedRun, RenamedStep, Step, StepOptions, StepRun, Tag, Via, critical,
};
pub use telling::{News, Progress, Watching};
pub use thrown::{StepError, Thrown};
// Only the engine rolls back.
#[cfg(feature = "engine")]
pub(crate) use undo::{ATTEMPTS, TIMEOUT as UNDO_TIMEOUT, undo_failed, undo_missing};
pub use undo::{
    FirstTag, Itself, Optional, RollingBack, Undo, UndoArgs, UndoBegun, UndoFn, UndoResult, Undoes,
    Undone,
};
pub use wait::{Now, Sleep};
pub use workflow::{Call, ChildRun, Detached, Detaching, Output, Unattended, Workflow};

/// What the expansions call.
pub(crate) mod sites {
    pub use super::args::state_type;
    pub use super::attempt::enter_attempt;
    pub use super::body::body;
    pub use super::branches::{arm, item};
    pub use super::channel::channel;
    pub use super::derived::{random, uuid};
    pub use super::durable::fut;
    pub use super::fragment::{fragment, run_lent, run_once};
    pub use super::gate::{removed, version};
    pub use super::join::enter_join;
    pub use super::join_all::{enter_all, key};
    pub use super::looping::{enter_carry, enter_loop, hold, iterate};
    pub use super::progress::progress;
    pub use super::race::enter_race;
    pub use super::recv::{recv, recv_many, recv_within, send};
    pub use super::step::{blocking_step, in_place, lookup, millis, step, tag};
    pub use super::undo::{checkpoint, first_of, rollback, settle, undo};
    pub use super::wait::{now, sleep, sleep_until};
    pub use super::workflow::call;
}

/// What the library's own code of a guided flow asks for.
pub mod guiding {
    pub use super::body::panic_message;
    pub use super::guide::{
        aside, begin, keep, position_of, positions_of, result, sealed, shared, visit_location,
    };
}

/// A `Debug` that tells only the type: what is inside is code and plumbing.
macro_rules! opaque_debug {
    ($($(<$ty:ident>)? $name:ident $(<$($arg:tt),*>)?),* $(,)?) => { $(
        impl$(<$ty>)? ::std::fmt::Debug for $name$(<$($arg),*>)? {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.debug_struct(stringify!($name)).finish_non_exhaustive()
            }
        }
    )* };
}
use opaque_debug;
