//! What checks and guards that are code of their own give.

use workflow::guided;
use workflow::guided::Stage;
use workflow::Failure;

#[derive(Clone, serde::Serialize, serde::Deserialize)]
struct Project {
    cloud: bool,
}

#[guided(id = "project")]
impl Project {
    #[stage(start, to = [region if Self::is_allowed, create])]
    fn details() {}

    #[check(details)]
    async fn is_free(_: Stage<Self>) -> Result<Vec<String>, Failure> {
        Ok(Vec::new())
    }

    #[guard]
    async fn is_allowed(_: Stage<Self>) -> Result<(), Failure> {
        Ok(())
    }

    #[stage(to = create)]
    fn region() {}

    #[stage(terminal)]
    fn create() {}
}

fn main() {}
