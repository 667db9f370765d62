//! GDE-DEF-09: hooks of stages that there are not, of none, and second ones.

use workflow::guided::{Problems, Stage, Undone};
use workflow::{Failure, guided};

#[derive(Clone, serde::Serialize, serde::Deserialize)]
struct Project {
    cloud: bool,
}

#[guided(id = "project")]
impl Project {
    #[stage(start, to = [create])]
    fn details() {}

    #[stage(to = [done])]
    async fn create(stage: Stage<Self>) -> Result<(), Failure> {
        let _ = stage;
        Ok(())
    }

    #[stage(terminal)]
    fn done() {}

    #[check(detials)]
    fn is_named(&self, problems: &mut Problems) {
        let _ = problems;
    }

    #[check(x)]
    fn is_long(&self, problems: &mut Problems) {
        let _ = problems;
    }

    #[check]
    fn is_short(&self, problems: &mut Problems) {
        let _ = problems;
    }

    #[leave(create = 1)]
    async fn publish(stage: Stage<Self>) -> Result<(), Failure> {
        let _ = stage;
        Ok(())
    }

    #[undo(create)]
    async fn delete(_: Undone<Self>) -> Result<(), Failure> {
        Ok(())
    }

    #[undo(create)]
    async fn delete_again(_: Undone<Self>) -> Result<(), Failure> {
        Ok(())
    }

    #[exit_guard]
    fn may_leave(&self) -> bool {
        true
    }

    #[exit_guard]
    fn might_leave(&self) -> bool {
        true
    }

    #[stage(to = [done])]
    #[check(details)]
    fn both() {}
}

fn main() {}
