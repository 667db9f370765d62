//! An exit behind one that is always open.

use workflow::guided;

#[derive(Clone, serde::Serialize, serde::Deserialize)]
struct Project {
    cloud: bool,
}

#[guided(id = "project")]
impl Project {
    #[stage(start, to = [done, region if Self::wants_cloud])]
    fn details() {}

    #[stage(to = [done])]
    fn region() {}

    #[stage(terminal)]
    fn done() {}

    fn wants_cloud(&self) -> bool {
        self.cloud
    }
}

fn main() {}
