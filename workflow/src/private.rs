//! What the macros' expansions name. Not for people: it changes without notice.

pub use std::borrow::Cow;
pub use std::boxed::Box;
pub use std::clone::Clone;
pub use std::option::Option::{self, None, Some};
pub use std::result::Result::{self, Err, Ok};
pub use std::string::String;
pub use std::sync::{Arc, OnceLock};
pub use std::vec;
pub use std::vec::Vec;

pub use crate::context::sites::*;
pub use crate::context::{
    ArgError, Args, Awaited, Body, BoxFut, Cx, Durable, Fallible, Infallible, Input, Lent, Outcome,
    Parameter, Recorded, StateType, StepOptions, Thrown, Undo, UndoArgs, UndoBegun, Via,
};
#[cfg(feature = "engine")]
pub use crate::guided::described;
pub use crate::lock::lock;
pub use crate::replay::{Backoff, Failure, Kind};
pub use crate::workflow_outside as outside;
#[cfg(feature = "schedules")]
pub use workflow_macros::cron as read_cron;

/// What `cron!` has read.
#[cfg(feature = "schedules")]
pub const fn cron(text: &'static str, fields: [u64; 8], both: bool) -> crate::schedule::Cron {
    crate::schedule::Cron::of(text, fields, both)
}

/// Goes through the flow that `#[guided]` describes on this data.
#[cfg(feature = "engine")]
pub fn guide<F: crate::guided::Guided>(
    cx: &Cx,
    site: &'static crate::replay::Site,
    initial: F,
) -> crate::guided::Nesting<F> {
    F::flow().guide(initial).run(cx, site)
}

/// Goes through this flow.
#[cfg(feature = "engine")]
pub fn guide_through<S: crate::guided::FlowState>(
    cx: &Cx,
    site: &'static crate::replay::Site,
    flow: &crate::guided::Flow<S>,
    initial: S,
) -> crate::guided::Nesting<S> {
    flow.guide(initial).run(cx, site)
}

/// What a macro of the body says when `#[workflow]` did not rewrite it.
#[doc(hidden)]
#[macro_export]
macro_rules! workflow_outside {
    ($name:literal) => {
        ::core::compile_error!(::core::concat!(
            "`",
            $name,
            "!` stands outside of a `#[workflow]` or `#[fragment]` function\n",
            "help: write it directly in the body of one: not in a closure, a nested function, a step, or another macro's input"
        ))
    };
}

/// The newest version of a gate.
///
/// # Panics
/// At compile time, when it is 0: versions are counted from 1, which is the code before the gate.
pub const fn latest(version: u32) -> u32 {
    assert!(
        version > 0,
        "versions are counted from 1, which is the code before the gate\nhelp: write 2 for the first change"
    );
    version
}

/// Stands for a place that may not be assigned to where it is: that was reported, and the compiler goes on with this one.
pub fn unchanged<'a, T: ?Sized>(_: &T) -> &'a mut T {
    unreachable!("what was reported does not compile")
}

/// Refuses, at compile time, two sites of one path: they stood under conditions that were both met.
#[track_caller]
pub const fn assert_unique(sites: &[crate::replay::Site]) {
    let mut one = 0;
    while one < sites.len() {
        let mut other = one + 1;
        while other < sites.len() {
            assert!(
                !same(sites[one].path.as_bytes(), sites[other].path.as_bytes()),
                "two sites of this function share a name, and the conditions they stand under are both met\nhelp: give one of them another name",
            );
            other += 1;
        }
        one += 1;
    }
}

const fn same(one: &[u8], other: &[u8]) -> bool {
    if one.len() != other.len() {
        return false;
    }
    let mut at = 0;
    while at < one.len() {
        if one[at] != other[at] {
            return false;
        }
        at += 1;
    }
    true
}
