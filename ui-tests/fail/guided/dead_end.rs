//! GDE-DEF-04: from one stage no way leads to the end, and another leads nowhere.

use workflow::guided;

#[derive(Clone, serde::Serialize, serde::Deserialize)]
struct Project {
    cloud: bool,
}

#[guided(id = "project")]
impl Project {
    #[stage(start, to = [region if Self::wants_cloud, create if Self::wants_cloud, done])]
    fn details() {}

    #[stage(to = [region])]
    fn region() {}

    #[stage]
    fn create() {}

    #[stage(terminal)]
    fn done() {}

    fn wants_cloud(&self) -> bool {
        self.cloud
    }
}

fn main() {}
