//! `attempt!`: a block at whose edge failures stop.

use super::entry::{Entry, Inside};
use super::{Cx, opaque_debug};
use crate::replay::{Container, Site};

/// Enters a block.
pub fn enter_attempt(cx: &Cx, site: &'static Site) -> Entry<Attempt> {
    Entry::new(cx, site, Container::Attempt, |inside| Attempt {
        cx: inside.cx.at(inside.scope),
        _inside: inside,
    })
}

/// A block that was entered.
pub struct Attempt {
    cx: Cx,
    _inside: Inside,
}

opaque_debug!(Attempt);

impl Attempt {
    /// Its scope.
    pub fn scope(&self) -> &Cx {
        &self.cx
    }
}
