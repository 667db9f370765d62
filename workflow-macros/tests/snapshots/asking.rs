#[allow(clippy::unused_async)]
impl Project {
    #[workflow::fragment(crate = workflow, of = "project")]
    async fn is_right(stage: Stage<Self>) -> Result<Problems, Failure> {
        Ok(Problems::default())
    }
    #[workflow::fragment(crate = workflow, of = "project")]
    async fn is_free(stage: Stage<Self>) -> Result<bool, Failure> {
        Ok(true)
    }
    #[workflow::fragment(crate = workflow, of = "project", body)]
    async fn create(stage: Stage<Self>) -> Result<(), Failure> {
        #[step(undo(unmake))] make(1).await?;
        Ok(())
    }
}
/// A stage of the flow `project`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, unreachable_pub, dead_code, clippy::module_name_repetitions)]
pub enum ProjectStage {
    /// Stage `details`.
    Details,
    /// Stage `create`.
    Create,
    /// Stage `done`.
    Done,
}
#[allow(dead_code, unreachable_pub, clippy::all, clippy::pedantic, clippy::nursery)]
impl ProjectStage {
    /// All of them, as they were written.
    pub const ALL: &'static [Self] = &[Self::Details, Self::Create, Self::Done];
}
#[allow(unreachable_code, clippy::all, clippy::pedantic, clippy::nursery)]
impl workflow::guided::StageKey for ProjectStage {
    fn of(
        __workflow_name: &workflow::guided::StageName,
    ) -> workflow::__private::Option<Self> {
        match __workflow_name.as_str() {
            "details" => workflow::__private::Some(Self::Details),
            "create" => workflow::__private::Some(Self::Create),
            "done" => workflow::__private::Some(Self::Done),
            _ => workflow::__private::None,
        }
    }
    fn name(&self) -> &::core::primitive::str {
        match self {
            Self::Details => "details",
            Self::Create => "create",
            Self::Done => "done",
        }
    }
}
#[allow(clippy::all, clippy::pedantic, clippy::nursery)]
impl ::core::fmt::Display for ProjectStage {
    fn fmt(&self, __workflow_f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
        __workflow_f.write_str(workflow::guided::StageKey::name(self))
    }
}
#[allow(clippy::all, clippy::pedantic, clippy::nursery)]
impl workflow::guided::Guided for Project {
    type Stage = ProjectStage;
    const GRAPH: workflow::guided::Graph = {
        const NODES: &[workflow::guided::Node] = &[
            workflow::guided::Node {
                name: workflow::__private::Cow::Borrowed("details"),
                title: workflow::__private::None,
                help: workflow::__private::None,
                start: true,
                terminal: false,
                skippable: false,
                conditional: false,
                stays: false,
                exits: workflow::__private::Cow::Borrowed({
                    const EXITS: &[workflow::guided::Exit] = &[
                        workflow::guided::Exit {
                            target: workflow::__private::Cow::Borrowed("done"),
                            guarded: true,
                        },
                        workflow::guided::Exit {
                            target: workflow::__private::Cow::Borrowed("create"),
                            guarded: false,
                        },
                    ];
                    EXITS
                }),
            },
            workflow::guided::Node {
                name: workflow::__private::Cow::Borrowed("create"),
                title: workflow::__private::None,
                help: workflow::__private::None,
                start: false,
                terminal: false,
                skippable: false,
                conditional: false,
                stays: false,
                exits: workflow::__private::Cow::Borrowed({
                    const EXITS: &[workflow::guided::Exit] = &[
                        workflow::guided::Exit {
                            target: workflow::__private::Cow::Borrowed("done"),
                            guarded: false,
                        },
                    ];
                    EXITS
                }),
            },
            workflow::guided::Node {
                name: workflow::__private::Cow::Borrowed("done"),
                title: workflow::__private::None,
                help: workflow::__private::None,
                start: false,
                terminal: true,
                skippable: false,
                conditional: false,
                stays: false,
                exits: workflow::__private::Cow::Borrowed({
                    const EXITS: &[workflow::guided::Exit] = &[];
                    EXITS
                }),
            },
        ];
        workflow::guided::Graph::fixed(NODES)
    };
    const SITES: &'static [workflow::Site] = &[
        workflow::Site {
            name: "make",
            kind: workflow::Kind::Step,
            path: "create[]/make",
            file: ::core::file!(),
            line: 1,
        },
    ];
    fn flow() -> &'static workflow::guided::Flow<Self> {
        static __WORKFLOW_FLOW: workflow::__private::OnceLock<
            workflow::guided::Flow<Project>,
        > = workflow::__private::OnceLock::new();
        workflow::__private::described(
            &__WORKFLOW_FLOW,
            "project",
            || {
                workflow::guided::Flow::<Project>::builder("project")
                    .version(1u32)
                    .hooks_timeout(workflow::__private::millis(10000u64))
                    .reopen(true)
                    .nests_described::<Bank>()
                    .stage(
                        workflow::guided::stage::<Project>("details")
                            .start()
                            .to_if_async(
                                "done",
                                |__workflow_given: workflow::guided::Stage<Project>| <Project>::is_free(
                                    __workflow_given,
                                ),
                            )
                            .to("create")
                            .check_async(|
                                __workflow_given: workflow::guided::Stage<Project>|
                            <Project>::is_right(__workflow_given)),
                    )
                    .stage(
                        workflow::guided::stage::<Project>("create")
                            .to("done")
                            .body(|__workflow_given: workflow::guided::Stage<Project>| <Project>::create(
                                __workflow_given,
                            ))
                            .undo_site(
                                "make",
                                {
                                    #[allow(unused_imports)]
                                    use workflow::__private::lookup::*;
                                    let __workflow_undo = unmake;
                                    let __workflow_unknown = workflow::__private::first_of(
                                            &__workflow_undo,
                                        )
                                        .unknown();
                                    (__workflow_undo, __workflow_unknown)
                                },
                            )
                            .retries(2u32, workflow::__private::Backoff::DEFAULT),
                    )
                    .stage(workflow::guided::stage::<Project>("done").terminal())
            },
        )
    }
}
const _: ::core::option::Option<&::core::primitive::str> = ::core::option_env!(
    "WORKFLOW_LOCK"
);
