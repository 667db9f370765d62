//! The guide: a tutorial, the language with a page per construct, and what it takes to run it for years. All code on these pages is run as a
//! test, or must not compile. `.ci/book` makes a book of them.
//!
//! | page | what it is about |
//! |---|---|
//! | [`tutorial`] | from nothing to a service that a kill does not hurt |
//! | [`concepts`] | the words, and one value on its way through a crash |
//! | [`steps`] | what touches the world |
//! | [`waiting`] | time, messages, requests |
//! | [`concurrency`] | branches: all, the first, one per item |
//! | [`loops`] | iterations, keys, loops that run for years |
//! | [`failures`] | what fails, and what is done about it |
//! | [`undo`] | sagas: what is undone, and what is not |
//! | [`values`] | rows of your own in a step's transaction |
//! | [`composition`] | workflows in workflows, and shared code |
//! | [`replay`] | what a workflow may not ask of the world, and what sees it |
//! | [`guided`] | flows that a person is led through: wizards, onboarding |
#![cfg_attr(
    feature = "testing",
    doc = "| [`testing`] | a crash everywhere, time that jumps, steps that fail |"
)]
//! | [`change`] | new code under live runs |
//! | [`lock`] | edits that live runs would not survive do not compile |
//! | [`deploying`] | will live runs go on with the new program, and tests that say so early |
//! | [`operating`] | runs for years: when they begin, how many at once and in a time, how long they are kept, the size of the file |
//! | [`schedules`] | runs by the calendar: cron expressions, time zones, what was missed |
//! | [`http`] | an engine behind an API: starting, waiting, controlling, who may |
//! | [`dashboard`] | pages on which one sees what runs do, and operates them |
//! | [`cli`] | the command `workflow`: looking at runs and operating them |
//! | [`telemetry`] | what it says to the log and to metrics |
//! | [`graph`] | the picture of a workflow, and of a run |
//! | [`guarantees`] | what is promised, and what is not |
//! | [`limits`] | every number, and what is not there |
//! | [`performance`] | what things cost, how that is measured, and what makes them cheaper |
//! | [`coming_from`] | the same things in other engines |
//! | [`errors`] | every error of the macros, with a program that causes it |

#[doc = include_str!("tutorial.md")]
pub mod tutorial {}

#[doc = include_str!("concepts.md")]
pub mod concepts {}

#[doc = include_str!("steps.md")]
pub mod steps {}

#[doc = include_str!("waiting.md")]
pub mod waiting {}

#[doc = include_str!("concurrency.md")]
pub mod concurrency {}

#[doc = include_str!("loops.md")]
pub mod loops {}

#[doc = include_str!("failures.md")]
pub mod failures {}

#[doc = include_str!("undo.md")]
pub mod undo {}

#[doc = include_str!("values.md")]
pub mod values {}

#[doc = include_str!("composition.md")]
pub mod composition {}

#[doc = include_str!("replay.md")]
pub mod replay {}

#[doc = include_str!("guided.md")]
pub mod guided {}

#[cfg(feature = "testing")]
#[doc = include_str!("testing.md")]
pub mod testing {}

#[doc = include_str!("change.md")]
pub mod change {}

#[doc = include_str!("lock.md")]
pub mod lock {}

#[doc = include_str!("deploying.md")]
pub mod deploying {}

#[doc = include_str!("operating.md")]
pub mod operating {}

#[doc = include_str!("schedules.md")]
pub mod schedules {}

#[doc = include_str!("http.md")]
pub mod http {}

#[doc = include_str!("dashboard.md")]
pub mod dashboard {}

#[doc = include_str!("cli.md")]
pub mod cli {}

#[doc = include_str!("telemetry.md")]
pub mod telemetry {}

#[doc = include_str!("graph.md")]
pub mod graph {}

#[doc = include_str!("guarantees.md")]
pub mod guarantees {}

#[doc = include_str!("limits.md")]
pub mod limits {}

#[doc = include_str!("performance.md")]
pub mod performance {}

#[doc = include_str!("coming_from.md")]
pub mod coming_from {}

#[doc = include_str!("errors.md")]
pub mod errors {}
