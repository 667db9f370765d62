//! GDE-DEF-05: every exit has a condition. With `otherwise = stay` that is meant.

use workflow::guided;

#[derive(Clone, serde::Serialize, serde::Deserialize)]
struct Project {
    cloud: bool,
}

#[guided(id = "project")]
impl Project {
    #[stage(start, to = [region if Self::wants_cloud, done if Self::wants_cloud])]
    fn details() {}

    #[stage(to = [done if Self::wants_cloud], otherwise = stay)]
    fn region() {}

    #[stage(terminal)]
    fn done() {}

    fn wants_cloud(&self) -> bool {
        self.cloud
    }
}

fn main() {}
