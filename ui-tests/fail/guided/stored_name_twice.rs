//! GDE-DEF-03: one by its name, one by a name of its own; and a name that is none.

use workflow::guided;

#[derive(Clone, serde::Serialize, serde::Deserialize)]
struct Project {
    cloud: bool,
}

#[guided(id = "project")]
impl Project {
    #[stage(start, to = [region])]
    fn details() {}

    #[stage(name = "details", to = [done])]
    fn region() {}

    #[stage(name = "the end", terminal)]
    fn done() {}
}

fn main() {}
