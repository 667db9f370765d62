//! What does not go with `terminal`.

use workflow::guided;

#[derive(Clone, serde::Serialize, serde::Deserialize)]
struct Project {
    cloud: bool,
}

#[guided(id = "project")]
impl Project {
    #[stage(start, to = [done])]
    fn details() {}

    #[stage(terminal, skippable, to = [details])]
    fn done() {}
}

fn main() {}
