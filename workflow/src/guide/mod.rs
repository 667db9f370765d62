//! Pages on one subject each. There is no code here.

/// What a saga promises, and what not.
#[doc = include_str!("undo.md")]
pub mod undo {}
