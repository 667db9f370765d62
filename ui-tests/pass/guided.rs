//! A guided flow under lints that are denied, beside names that are the library's or the macro's own.
#![deny(warnings, missing_docs, unreachable_pub, clippy::all, clippy::pedantic)]

use workflow::guided::{Guided, Moved, Problems, Stage, StageKey as _, Undone};
use workflow::{Engine, Failure, MemoryStore, guided, step};

mod forms {
    use serde::{Deserialize, Serialize};
    use workflow::guided;

    /// Private to this module, with stages of raw and odd names.
    #[derive(Debug, Clone, Default, Serialize, Deserialize)]
    struct Form {
        r#type: String,
    }

    #[guided(id = "form", history = 5)]
    impl Form {
        #[stage(start, to = [self_ if |form| form.r#type.is_empty(), some])]
        fn r#type() {}

        #[stage(to = [some])]
        fn self_() {}

        #[stage(to = [none])]
        fn some() {}

        #[stage(terminal)]
        fn none() {}

        const LONG: usize = 3;

        /// Beside the flow.
        fn is_long(&self) -> bool {
            self.r#type.len() > Self::LONG
        }
    }

    pub(crate) fn shown() -> String {
        assert!(!Form::default().is_long());
        let names: Vec<_> = FormStage::ALL.iter().map(ToString::to_string).collect();
        names.join(" ")
    }
}

/// The data.
#[derive(Debug, Clone, Default, serde::Serialize, serde::Deserialize)]
pub struct Project {
    name: String,
    made: u32,
}

struct Option;
#[allow(non_camel_case_types)]
struct condition;
#[allow(non_camel_case_types)]
struct check;
const FLOW: u32 = 0;
const NODES: Option = Option;

#[step(retries = 1)]
async fn make(name: String) -> std::result::Result<u32, std::io::Error> {
    u32::try_from(name.len()).map_err(std::io::Error::other)
}

#[guided(id = "project", version = 2)]
impl Project {
    /// What is it called?
    ///
    /// It can be changed later.
    #[stage(start, title = "Details", to = [done if |project| project.made > FLOW, create if Self::is_made, create])]
    fn details() {}

    #[check(details)]
    fn is_named(&self, problems: &mut Problems) {
        problems.when(self.name.is_empty(), "name", "a project needs a name");
    }

    /// Makes it.
    #[stage(to = [done], timeout = "30s", revisit = fresh, on_interrupt = rerun)]
    async fn create(mut stage: Stage<Self>) -> Result<(), Failure> {
        let made = make(stage.state().name.clone()).await?;
        stage.edit(move |project| project.made = made).await?;
        Ok(())
    }

    #[leave(create)]
    async fn left(_: Stage<Self>) -> Result<(), Failure> {
        #[step(name = "again")]
        make("left".to_owned()).await?;
        Ok(())
    }

    #[undo(create, unfinished)]
    async fn unmake(undone: Undone<Self>) -> Result<(), std::io::Error> {
        let () = std::future::ready(()).await;
        assert!(undone.finished);
        Ok(())
    }

    #[stage(terminal)]
    fn done() {}

    #[exit_guard]
    async fn may_leave(self) -> bool {
        std::future::ready(self.made == 0).await
    }

    fn is_made(&self) -> bool {
        self.made > FLOW
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let _ = (NODES, condition, check);
    assert_eq!(forms::shown(), "type self_ some none");
    assert_eq!(Project::flow().graph(), &Project::GRAPH);
    assert_eq!(ProjectStage::Create.name(), "create");
    let builder = Engine::builder().guide::<Project>();
    let engine = builder.store(MemoryStore::new()).build().await?;
    let guide = engine.guide::<Project>("acme");
    let guide = guide.start(Project::default()).await?;
    guide.edit(|project| project.name = "acme".to_owned()).await?;
    let Moved::To(ProjectStage::Create) = guide.next().await? else {
        panic!("it is created");
    };
    assert_eq!(guide.view().state.made, 4);
    assert_eq!(guide.next().await?, Moved::To(ProjectStage::Done));
    assert_eq!(guide.next().await?, Moved::Finished);
    Ok(())
}
