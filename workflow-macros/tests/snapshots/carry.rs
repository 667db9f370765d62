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
fn checkout(items: Vec<u32>, limit: u32) -> workflow::Call<checkout> {
    workflow::__private::call(
        workflow::__private::Input::new()
            .with(&workflow::__private::Parameter::<Vec<u32>>::new("items"), &items)
            .with(&workflow::__private::Parameter::<u32>::new("limit"), &limit),
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
            name: "items",
            kind: workflow::Kind::Loop,
            path: "items",
            file: ::core::file!(),
            line: 1,
        },
        workflow::Site {
            name: "count",
            kind: workflow::Kind::Call,
            path: "items[]/count",
            file: ::core::file!(),
            line: 1,
        },
    ];
    const OUTLINE: &'static str = "loop items carry total\n call count\n choice\n  arm\n   leaves break items\n  arm\n";
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
            items: Vec<u32>,
            limit: u32,
        ) -> Result<u32, Failure> {
            let __workflow_cx = &__workflow_cx;
            let mut total = 0;
            match workflow::__private::iterate(&items) {
                __workflow_items => {
                    let mut __workflow_loop = workflow::__private::enter_carry(
                            __workflow_cx,
                            &workflow::Site {
                                name: "items",
                                kind: workflow::Kind::Loop,
                                path: "items",
                                file: ::core::file!(),
                                line: 1,
                            },
                            &["total"],
                        )
                        .await
                        .every(5)
                        .keep(2);
                    (total,) = __workflow_loop.resume((total,)).await;
                    let __workflow_held_0 = workflow::__private::hold(&limit);
                    let __workflow_value = 'items: for item in __workflow_items
                        .skip(__workflow_loop.skipped())
                    {
                        __workflow_held_0.held();
                        (total,) = __workflow_loop.top((total,)).await;
                        let __workflow_cx_1 = &__workflow_loop.iteration();
                        if __workflow_loop.never() {
                            continue 'items;
                        }
                        total
                            += workflow::__private::Durable::run(
                                    count(*item),
                                    __workflow_cx_1,
                                    &workflow::Site {
                                        name: "count",
                                        kind: workflow::Kind::Call,
                                        path: "items[]/count",
                                        file: ::core::file!(),
                                        line: 1,
                                    },
                                )
                                .await?;
                        if total > limit {
                            break 'items;
                        }
                    };
                    __workflow_loop.finish();
                    __workflow_value
                }
            }
            Ok(total)
        }
        let __workflow_a0 = workflow::__private::Parameter::<Vec<u32>>::new("items")
            .read(&__workflow_args)?;
        let __workflow_a1 = workflow::__private::Parameter::<u32>::new("limit")
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
                    __workflow_function_as_written(
                        __workflow_cx,
                        __workflow_a0,
                        __workflow_a1,
                    ),
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
