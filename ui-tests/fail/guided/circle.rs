//! Stages that may all be passed over lead in a circle.

use workflow::guided;

#[derive(Clone, serde::Serialize, serde::Deserialize)]
struct Project {
    cloud: bool,
}

#[guided(id = "project")]
impl Project {
    #[stage(start, to = [region])]
    fn details() {}

    #[stage(when = Self::wants_cloud, to = [network if Self::wants_cloud, done])]
    fn region() {}

    #[stage(when = Self::wants_cloud, to = [region if Self::wants_cloud, done])]
    fn network() {}

    #[stage(terminal)]
    fn done() {}

    fn wants_cloud(&self) -> bool {
        self.cloud
    }
}

fn main() {}
