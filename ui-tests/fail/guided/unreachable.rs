//! GDE-DEF-02: no way leads to a stage.

use workflow::guided;

#[derive(Clone, serde::Serialize, serde::Deserialize)]
struct Project {
    cloud: bool,
}

#[guided(id = "project")]
impl Project {
    #[stage(start, to = [done])]
    fn details() {}

    #[stage(to = [done])]
    fn region() {}

    #[stage(terminal)]
    fn done() {}
}

fn main() {}
