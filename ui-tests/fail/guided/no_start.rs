//! GDE-DEF-07: no stage is the start, whatever comes first.

use workflow::guided;

#[derive(Clone, serde::Serialize, serde::Deserialize)]
struct Project {
    cloud: bool,
}

#[guided(id = "project")]
impl Project {
    #[stage(to = [done])]
    fn details() {}

    #[stage(terminal)]
    fn done() {}
}

fn main() {}
