//! GDE-DEF-15: what the compiler says of conditions and hooks of another type, where they stand.

use workflow::guided::Stage;
use workflow::{Failure, guided};

#[derive(Clone, serde::Serialize, serde::Deserialize)]
struct Project {
    cloud: bool,
}

#[guided(id = "project")]
impl Project {
    #[stage(start, to = [create if Self::how_many, done if |project| project.cloud, done])]
    fn details() {}

    #[check(details)]
    fn is_named(&self, problems: &mut Vec<String>) {
        let _ = problems;
    }

    #[stage(when = Self::gone, to = [done])]
    async fn create(stage: Stage<u32>) -> Result<u32, Failure> {
        Ok(*stage.state())
    }

    #[undo(create)]
    async fn delete(_: String) -> Option<()> {
        None
    }

    #[stage(terminal)]
    fn done() {}

    fn how_many(&self) -> u32 {
        u32::from(self.cloud)
    }
}

fn main() {}
