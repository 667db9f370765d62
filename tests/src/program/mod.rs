//! Random programs, run by the real futures over the real machine, under crashes at any instant.
//!
//! A [`Program`] is a small syntax tree. `walk` is what `#[workflow]` would have made of it. A [`World`] is all that
//! outlives a crash, and it watches: every operation, hand-out, body and batch passes by it, and the laws of replay
//! are checked there. A [`Life`] is one run from its beginning to its end, through as many crashes as its plan says.

mod ast;

mod chaos;
mod code;
mod drive;
mod edit;

mod generate;
mod ground;
mod life;
mod post;
mod random;
mod shrink;
mod sites;
mod walk;
mod world;

pub use ast::{Branch, Carried, How, Node, Program, Wants};

pub use chaos::{live_cut_everywhere, live_in_engine, live_on_disk};
pub use drive::{Cut, Drive, End};

pub use edit::{Edit, edited};
pub use generate::{Features, generate};
pub use life::{Life, Plan, Verdict, replayed};
pub use random::Random;
pub use shrink::{cases, check, seed};
pub use walk::{Interpreted, Interpreter, Offspring};
pub use world::{Broken, Law, World};
