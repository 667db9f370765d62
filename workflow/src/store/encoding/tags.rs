//! The numbers that stand for the variants of an enum. One is never changed and never given twice.

use crate::replay::{FailureKind, Kind, ParkReason, RunState};

/// An enum that is written as one byte.
pub(crate) trait Tagged: Copy {
    /// What it is, for messages.
    const WHAT: &'static str;
    /// Its number.
    fn tag(self) -> u8;
    /// What the number stands for, if this program knows it.
    fn from_tag(tag: u8) -> Option<Self>;
}

macro_rules! tags {
    ($name:ident, $what:literal, { $($variant:ident = $tag:literal,)+ }) => {
        impl Tagged for $name {
            const WHAT: &'static str = $what;

            fn tag(self) -> u8 {
                match self {
                    $(Self::$variant => $tag,)+
                }
            }

            fn from_tag(tag: u8) -> Option<Self> {
                match tag {
                    $($tag => Some(Self::$variant),)+
                    _ => None,
                }
            }
        }
    };
}

tags!(Kind, "kind of site", {
    Step = 1,
    Sleep = 2,
    Now = 3,
    Join = 4,
    Race = 5,
    JoinAll = 6,
    Loop = 7,
    Fragment = 8,
    Derived = 9,
    Recv = 10,
    Send = 11,
    Reply = 12,
    Child = 13,
    Attempt = 14,
    Version = 15,
    Removed = 16,
    Checkpoint = 17,
    Settle = 18,
    Rollback = 19,
    Call = 20,
    Stage = 21,
    Guide = 22,
});

tags!(FailureKind, "kind of failure", {
    Exhausted = 1,
    TimedOut = 2,
    Critical = 3,
    Interrupted = 4,
    Panicked = 5,
    Join = 6,
    Race = 7,
    Child = 8,
    Cancelled = 9,
    Encode = 10,
    Decode = 11,
    DuplicateKey = 12,
    Gone = 13,
    Rollback = 14,
    Returned = 15,
    Blocked = 16,
});

tags!(RunState, "state", {
    Pending = 1,
    Running = 2,
    Waiting = 3,
    RollingBack = 4,
    Parked = 5,
    Completed = 6,
    Failed = 7,
    Cancelled = 8,
});

tags!(ParkReason, "reason for parking", {
    Diverged = 1,
    Decode = 2,
    Version = 3,
    Unregistered = 4,
    Panicked = 5,
    NotDurable = 6,
    UndoFailed = 7,
    UndoMissing = 8,
    Encode = 9,
    NewerFormat = 10,
    Storage = 11,
});
