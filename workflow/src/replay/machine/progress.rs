//! How far the run says it has come: no record, a field of its row.

use super::{Phase, Replay};

impl Replay {
    /// Whether what the code publishes now is news: it is live, or has consumed every record. In the second case what it
    /// publishes may have been cut off before it was stored.
    pub fn publishes(&self) -> bool {
        match self.phase {
            Phase::Live => true,
            Phase::Replaying => self.unconsumed == 0,
            Phase::Diverged | Phase::Done => false,
        }
    }

    /// The same, and it is written as soon as nothing else is.
    pub fn publish_now(&mut self, json: String) {
        self.publish(json);
        self.forced |= self.progress.is_some();
    }

    /// The code published this. It goes with the next batch, and forces none before the run leaves memory.
    pub fn publish(&mut self, json: String) {
        if self.publishes() {
            self.progress = Some(json);
        }
    }
}
