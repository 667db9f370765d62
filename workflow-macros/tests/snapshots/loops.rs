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
fn checkout(orders: Vec<u32>) -> workflow::Call<checkout> {
    workflow::__private::call(
        workflow::__private::Input::new()
            .with(&workflow::__private::Parameter::<Vec<u32>>::new("orders"), &orders),
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
            name: "orders",
            kind: workflow::Kind::Loop,
            path: "orders",
            file: ::core::file!(),
            line: 1,
        },
        workflow::Site {
            name: "nap",
            kind: workflow::Kind::Sleep,
            path: "orders[]/nap",
            file: ::core::file!(),
            line: 1,
        },
        workflow::Site {
            name: "again",
            kind: workflow::Kind::Loop,
            path: "again",
            file: ::core::file!(),
            line: 1,
        },
        workflow::Site {
            name: "nap",
            kind: workflow::Kind::Sleep,
            path: "again[]/nap",
            file: ::core::file!(),
            line: 1,
        },
    ];
    const OUTLINE: &'static str = "loop orders\n sleep nap\nloop again\n sleep nap\n";
    type Mark = workflow::__private::Infallible;
    type Returns = ();
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
            orders: Vec<u32>,
        ) {
            let __workflow_cx = &__workflow_cx;
            {
                let mut __workflow_loop = workflow::__private::enter_loop(
                        __workflow_cx,
                        &workflow::Site {
                            name: "orders",
                            kind: workflow::Kind::Loop,
                            path: "orders",
                            file: ::core::file!(),
                            line: 1,
                        },
                    )
                    .await;
                'orders: for order in &orders {
                    let __workflow_cx_1 = &__workflow_loop.keyed(&(order));
                    if __workflow_loop.never() {
                        continue 'orders;
                    }
                    sleep!(
                        @ site __workflow_cx_1 & workflow::Site { name : "nap", kind :
                        workflow::Kind::Sleep, path : "orders[]/nap", file :
                        ::core::file!(), line : 1 }; workflow::__private::millis(1000u64)
                    );
                }
            }
            {
                let mut __workflow_loop = workflow::__private::enter_loop(
                        __workflow_cx,
                        &workflow::Site {
                            name: "again",
                            kind: workflow::Kind::Loop,
                            path: "again",
                            file: ::core::file!(),
                            line: 1,
                        },
                    )
                    .await;
                'again: loop {
                    let __workflow_cx_2 = &__workflow_loop.iteration();
                    if __workflow_loop.never() {
                        continue 'again;
                    }
                    if more() {
                        sleep!(
                            @ site __workflow_cx_2 & workflow::Site { name : "nap", kind
                            : workflow::Kind::Sleep, path : "again[]/nap", file :
                            ::core::file!(), line : 1 };
                            workflow::__private::millis(1000u64)
                        );
                    } else {
                        break
                    }
                }
            }
        }
        let __workflow_a0 = workflow::__private::Parameter::<Vec<u32>>::new("orders")
            .read(&__workflow_args)?;
        workflow::__private::Ok(
            workflow::__private::body::<
                Self,
            >(
                __workflow_args,
                {
                    #[allow(unused_imports)]
                    use workflow::__private::lookup::*;
                    (&&&&&workflow::__private::tag::<()>().plain()).via()
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
