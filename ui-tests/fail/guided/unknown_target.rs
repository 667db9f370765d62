//! GDE-DEF-01: a target that is misspelt, and one that is like no stage.

use workflow::guided;

#[derive(Clone, serde::Serialize, serde::Deserialize)]
struct Project {
    cloud: bool,
}

#[guided(id = "project")]
impl Project {
    #[stage(start, to = [regoin if Self::wants_cloud, create])]
    fn details() {}

    #[stage(to = [nowhere])]
    fn region() {}

    #[stage(terminal)]
    fn create() {}

    fn wants_cloud(&self) -> bool {
        self.cloud
    }
}

fn main() {}
