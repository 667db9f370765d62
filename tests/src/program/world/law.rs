//! What must hold.

use std::fmt;

/// A law of replay (the numbers are those of `SEMANTICS`, part 5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Law {
    /// 1: what is handed out is in the records' order, and repeats after a crash.
    Order,
    /// 1: a durable outcome is handed out after its commit, a rider not before its turn.
    Durable,
    /// 2: what is recorded never runs again.
    Rerun,
    /// 2: a location has one live body, and is issued once per drive.
    Twice,
    /// 3: a recorded operation is reached with the same arguments.
    Argument,
    /// 4: the hand-outs of the surviving prefix repeat identically.
    Repeat,
    /// 5: a body starts again only with the same arguments.
    Flip,
    /// 5: a body that started is on the path that the run takes.
    Abandoned,
    /// 5: no body begins while a choice is not durable.
    Barrier,
    /// 6: nothing is live before the whole history is consumed.
    Gate,
    /// 6: code that was not edited does not diverge.
    Diverged,
    /// 7, 8: a message is in one place, and taken in its turn.
    Message,
    /// 9: no record under a loser, none without its surroundings.
    Store,
    /// 11: the wake time is that of the pending waits.
    Wake,
    /// 1: one hand-out per pass.
    Pass,
    /// 12: the answer is that of a crash-free run with the same outcomes.
    Answer,
    /// 17: two replays of one history come to the same verdict.
    Preflight,
    /// 18: a wait ends not before its deadline.
    Early,
    /// A run that leaves memory in good time interrupts no step.
    Polite,
    /// No commit is made for nothing.
    Idle,
    /// The run goes on until it ends.
    Stuck,
    /// After an edit: no effect lies before what is recorded.
    Past,
    /// After an edit: a divergence has left everything as it was.
    Untouched,
}

/// A law that was broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    /// Which.
    pub law: Law,
    /// How.
    pub what: String,
}

impl Broken {
    /// The answer is not that of a crash-free run.
    pub fn answer(what: String) -> Self {
        let law = Law::Answer;
        Self { law, what }
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.law, self.what)
    }
}
