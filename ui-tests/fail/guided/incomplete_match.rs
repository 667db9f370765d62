//! A `match` over the stages has to say something of each.

use workflow::guided;

#[derive(Clone, serde::Serialize, serde::Deserialize)]
struct Project {}

#[guided(id = "project")]
impl Project {
    #[stage(start, to = [region])]
    fn details() {}

    #[stage(to = [done])]
    fn region() {}

    #[stage(terminal)]
    fn done() {}
}

fn shown(stage: ProjectStage) -> &'static str {
    match stage {
        ProjectStage::Details => "?",
        ProjectStage::Done => "!",
    }
}

fn main() {
    let _ = shown;
}
