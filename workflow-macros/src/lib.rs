//! The attribute macros of `workflow`.
