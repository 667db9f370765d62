//! What a flow collects is recorded with every revision, and cloned for its views.

use workflow::guided;

#[derive(serde::Serialize, serde::Deserialize)]
struct Project {}

#[guided(id = "project")]
impl Project {
    #[stage(start, to = [done])]
    fn details() {}

    #[stage(terminal)]
    fn done() {}
}

fn main() {}
