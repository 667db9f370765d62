#[allow(
    non_camel_case_types,
    missing_debug_implementations,
    missing_docs,
    clippy::empty_structs_with_brackets
)]
struct checkout {}
#[allow(
    missing_docs,
    clippy::needless_pass_by_value,
    clippy::must_use_candidate,
    clippy::too_many_arguments
)]
fn checkout(order: u32) -> workflow::Call<checkout> {
    workflow::__private::call(
        workflow::__private::Input::new()
            .with(&workflow::__private::Parameter::<u32>::new("order"), &order),
    )
}
#[allow(dead_code)]
impl checkout {
    /// The workflow's name in a store.
    pub const NAME: &'static str = <Self as workflow::Workflow>::NAME;
    /// Everything durable it does, in source order.
    pub const SITES: &'static [workflow::Site] = <Self as workflow::Workflow>::SITES;
    /// How they stand in each other and follow each other: to be drawn.
    pub const GRAPH: workflow::Graph = <Self as workflow::Workflow>::GRAPH;
}
#[allow(clippy::all, clippy::pedantic, clippy::nursery)]
impl workflow::Workflow for checkout {
    const NAME: &'static str = "checkout";
    const SITES: &'static [workflow::Site] = &[
        workflow::Site {
            name: "other",
            kind: workflow::Kind::Step,
            path: "other",
            file: ::core::file!(),
            line: 1,
        },
    ];
    const OUTLINE: &'static str = "step other of get\n";
    type Mark = workflow::__private::Fallible;
    type Returns = Result<u32, Failure>;
    fn states() -> workflow::__private::Vec<workflow::__private::StateType> {
        workflow::__private::vec![]
    }
    fn run(
        __workflow_args: workflow::__private::Args,
    ) -> workflow::__private::Result<
        workflow::__private::Body,
        workflow::__private::ArgError,
    > {
        #[allow(unused_variables)]
        async fn __workflow_function_as_written(
            __workflow_cx: workflow::__private::Cx,
            order: u32,
        ) -> Result<u32, Failure> {
            let __workflow_cx = &__workflow_cx;
            #[step(__workflow_is_imported)]
            const _: () = ();
            let n = {
                #[allow(unused_imports)]
                use workflow::__private::lookup::*;
                let __workflow_body = || workflow::__private::fut(async {
                    workflow::__private::Awaited(get(order))
                        .go(
                            __workflow_cx,
                            &workflow::Site {
                                name: "other",
                                kind: workflow::Kind::Step,
                                path: "other",
                                file: ::core::file!(),
                                line: 1,
                            },
                            workflow::__private::StepOptions::new().retries(2u32),
                        )
                        .await
                });
                let __workflow_step = workflow::__private::in_place(
                    __workflow_cx,
                    &workflow::Site {
                        name: "other",
                        kind: workflow::Kind::Step,
                        path: "other",
                        file: ::core::file!(),
                        line: 1,
                    },
                    workflow::__private::StepOptions::new().retries(2u32),
                    &__workflow_body,
                );
                let __workflow_via = (&&&&&__workflow_step.tag()).via();
                __workflow_step.run(__workflow_via).await
            }?;
            Ok(n)
        }
        let __workflow_a0 = workflow::__private::Parameter::<u32>::new("order")
            .read(&__workflow_args)?;
        workflow::__private::Ok(
            workflow::__private::body::<
                Self,
            >(
                __workflow_args,
                {
                    #[allow(unused_imports)]
                    use workflow::__private::lookup::*;
                    (&&&&&workflow::__private::tag::<Result<u32, Failure>>()).via()
                },
                move |__workflow_cx| workflow::__private::fut(
                    __workflow_function_as_written(__workflow_cx, __workflow_a0),
                ),
            ),
        )
    }
}
#[cfg(not(test))]
#[doc(hidden)]
#[allow(non_local_definitions)]
#[macro_export]
macro_rules! two_workflows_of_this_crate_are_named__checkout__give_one_another_name {
    () => {};
}
const _: ::core::option::Option<&::core::primitive::str> = ::core::option_env!(
    "WORKFLOW_LOCK"
);
