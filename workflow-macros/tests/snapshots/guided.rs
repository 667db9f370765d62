#[allow(clippy::unused_async)]
impl Project {
    fn is_named(&self, problems: &mut Problems) {
        problems.when(self.name.is_empty(), "name", "a project needs a name");
    }
    #[workflow::fragment(crate = workflow, of = "project", body)]
    async fn create(stage: Stage<Self>) -> Result<(), Failure> {
        make(stage.state().name.clone()).await?;
        Ok(())
    }
    async fn unmake(undone: Undone<Self>) -> Result<(), MakeError> {
        unmake(undone.state.name).await
    }
    fn may_leave(&self) -> bool {
        !self.is_made()
    }
    fn is_made(&self) -> bool {
        self.made
    }
}
/// A stage of the flow `project`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, unreachable_pub, dead_code, clippy::module_name_repetitions)]
pub enum ProjectStage {
    /// What is it called?
    Details,
    /// Stage `make`.
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
            "make" => workflow::__private::Some(Self::Create),
            "done" => workflow::__private::Some(Self::Done),
            _ => workflow::__private::None,
        }
    }
    fn name(&self) -> &::core::primitive::str {
        match self {
            Self::Details => "details",
            Self::Create => "make",
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
                title: workflow::__private::Some(
                    workflow::__private::Cow::Borrowed("Details"),
                ),
                help: workflow::__private::Some(
                    workflow::__private::Cow::Borrowed("What is it called?"),
                ),
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
                            target: workflow::__private::Cow::Borrowed("make"),
                            guarded: false,
                        },
                    ];
                    EXITS
                }),
            },
            workflow::guided::Node {
                name: workflow::__private::Cow::Borrowed("make"),
                title: workflow::__private::None,
                help: workflow::__private::None,
                start: false,
                terminal: false,
                skippable: true,
                conditional: true,
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
            kind: workflow::Kind::Call,
            path: "make[]/make",
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
                    .version(2u32)
                    .stage(
                        workflow::guided::stage::<Project>("details")
                            .start()
                            .title("Details")
                            .help("What is it called?")
                            .to_if(
                                "done",
                                {
                                    let __workflow_condition: fn(
                                        &Project,
                                    ) -> ::core::primitive::bool = Self::is_made;
                                    __workflow_condition
                                },
                            )
                            .to("make")
                            .check({
                                let __workflow_check: fn(
                                    &Project,
                                    &mut workflow::guided::Problems,
                                ) = <Project>::is_named;
                                __workflow_check
                            }),
                    )
                    .stage(
                        workflow::guided::stage::<Project>("make")
                            .skippable()
                            .when({
                                let __workflow_condition: fn(
                                    &Project,
                                ) -> ::core::primitive::bool = |project| {
                                    !project.name.is_empty()
                                };
                                __workflow_condition
                            })
                            .to("done")
                            .body(|__workflow_given: workflow::guided::Stage<Project>| <Project>::create(
                                __workflow_given,
                            ))
                            .undo(|__workflow_given: workflow::guided::Undone<Project>| <Project>::unmake(
                                __workflow_given,
                            ))
                            .on_interrupt(workflow::guided::Interrupt::Rerun)
                            .timeout(workflow::__private::millis(30000u64)),
                    )
                    .stage(workflow::guided::stage::<Project>("done").terminal())
                    .exit_guard({
                        let __workflow_condition: fn(
                            &Project,
                        ) -> ::core::primitive::bool = <Project>::may_leave;
                        __workflow_condition
                    })
            },
        )
    }
}
const _: ::core::option::Option<&::core::primitive::str> = ::core::option_env!(
    "WORKFLOW_LOCK"
);
