//! GDE-DEF-04: no stage is the end.

use workflow::guided;

#[derive(Clone, serde::Serialize, serde::Deserialize)]
struct Project {
    cloud: bool,
}

#[guided(id = "project")]
impl Project {
    #[stage(start, to = [region])]
    fn details() {}

    #[stage(to = [details])]
    fn region() {}
}

fn main() {}
