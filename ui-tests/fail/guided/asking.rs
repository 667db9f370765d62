//! Checks and guards that are code of their own.

use workflow::guided;
use workflow::guided::{Problems, Stage};
use workflow::Failure;

#[derive(Clone, serde::Serialize, serde::Deserialize)]
struct Project {
    cloud: bool,
}

#[guided(id = "project")]
impl Project {
    #[stage(start, to = [region if Self::may_go, create])]
    fn details() {}

    #[check(details)]
    async fn is_free(&self, problems: &mut Problems) {
        problems.when(self.cloud, "cloud", "it is taken");
    }

    #[guard]
    fn may_go(&self) -> bool {
        self.cloud
    }

    #[guard]
    async fn is_allowed(_: Stage<Self>) -> Result<bool, Failure> {
        Ok(true)
    }

    #[stage(when = Self::is_allowed, to = [details if Self::is_allowed, create])]
    fn region() {}

    #[guard]
    async fn is_new(_: Stage<Self>) -> Result<bool, Failure> {
        Ok(true)
    }

    #[stage(terminal)]
    fn create() {}
}

fn main() {}
