//! GDE-DEF-07: two stages are the start.

use workflow::guided;

#[derive(Clone, serde::Serialize, serde::Deserialize)]
struct Project {
    cloud: bool,
}

#[guided(id = "project")]
impl Project {
    #[stage(start, to = [region])]
    fn details() {}

    #[stage(title = "Region", start, to = [done])]
    fn region() {}

    #[stage(terminal)]
    fn done() {}
}

fn main() {}
