//! GDE-DEF-12: mistakes of several kinds are told at once, and one misspelt word says nothing of what can be reached.

use workflow::guided;

#[derive(Clone, serde::Serialize, serde::Deserialize)]
struct Project {}

#[guided(id = "project")]
impl Project {
    #[stage(start, to = [regoin])]
    fn details() {}

    #[stage(title = 1, to = [done])]
    fn region() {}

    #[stage(terminal, skippable)]
    fn done() {}

    #[check(doen)]
    fn is_done(&self) {}
}

fn main() {
    let _ = workflow::Engine::builder().guide::<Project>();
    let _ = ProjectStage::Region;
}
