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
            name: "both",
            kind: workflow::Kind::Join,
            path: "both",
            file: ::core::file!(),
            line: 1,
        },
        workflow::Site {
            name: "count",
            kind: workflow::Kind::Call,
            path: "both/a/count",
            file: ::core::file!(),
            line: 1,
        },
        workflow::Site {
            name: "every",
            kind: workflow::Kind::JoinAll,
            path: "every",
            file: ::core::file!(),
            line: 1,
        },
        workflow::Site {
            name: "count",
            kind: workflow::Kind::Call,
            path: "every[]/count",
            file: ::core::file!(),
            line: 1,
        },
    ];
    const OUTLINE: &'static str = "join both\n branch a\n  call count\n branch b\njoin_all every\n call count\n";
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
            orders: Vec<u32>,
        ) -> Result<u32, Failure> {
            let __workflow_cx = &__workflow_cx;
            let (a, b) = join!(
                @ site __workflow_cx & workflow::Site { name : "both", kind :
                workflow::Kind::Join, path : "both", file : ::core::file!(), line : 1 };
                __workflow_cx_1 "a", __workflow_cx_2 "b"; workflow::__private::arm({ let
                __workflow_branch = || workflow::__private::fut(async {
                workflow::__private::Ok:: < _, workflow::__private::Thrown >
                (workflow::__private::Durable::run(count(1), __workflow_cx_1, &
                workflow::Site { name : "count", kind : workflow::Kind::Call, path :
                "both/a/count", file : ::core::file!(), line : 1 }). await ?) });
                __workflow_branch }), workflow::__private::arm({ let __workflow_branch =
                || workflow::__private::fut(async { workflow::__private::Ok:: < _,
                workflow::__private::Thrown > ({ 2 }) }); __workflow_branch })
            )?;
            join_all!(
                @ site __workflow_cx & workflow::Site { name : "every", kind :
                workflow::Kind::JoinAll, path : "every", file : ::core::file!(), line : 1
                }; limit = workflow::__private::Some(2), items = orders, key = [],
                __workflow_slot => workflow::__private::item({ let __workflow_branch = ||
                workflow::__private::fut(async { let (__workflow_cx_3, order) =
                __workflow_slot.open(); let __workflow_cx_3 = & __workflow_cx_3;
                workflow::__private::Ok:: < _, workflow::__private::Thrown > ({
                workflow::__private::Durable::run(count(order), __workflow_cx_3, &
                workflow::Site { name : "count", kind : workflow::Kind::Call, path :
                "every[]/count", file : ::core::file!(), line : 1 }). await ? }) });
                __workflow_branch })
            )?;
            Ok(a + b)
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
