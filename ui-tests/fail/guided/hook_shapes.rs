//! Functions that are not what their hook asks for.

use workflow::guided;
use workflow::guided::{Stage, Undone};

#[derive(Clone, serde::Serialize, serde::Deserialize)]
struct Project {
    cloud: bool,
}

#[guided(id = "project")]
impl Project {
    #[stage(start, to = [region])]
    fn details(&self) {}

    #[stage(to = [create])]
    fn region() {
        println!("hello");
    }

    #[stage(to = [done])]
    async fn create(&self) {}

    #[stage(terminal)]
    #[cfg(unix)]
    fn done() {}

    #[check(details)]
    fn is_named(&self) -> bool {
        self.cloud
    }

    #[leave(details)]
    fn left(_: Stage<Self>) {}

    #[undo(create)]
    async fn delete(_: Undone<Self>) {}

    #[exit_guard]
    fn may_leave(self) -> bool {
        true
    }
}

fn main() {}
