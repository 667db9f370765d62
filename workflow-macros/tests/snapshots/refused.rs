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
fn checkout() -> workflow::Call<checkout> {
    workflow::__private::call(workflow::__private::Input::new())
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
    const SITES: &'static [workflow::Site] = &[];
    const OUTLINE: &'static str = "";
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
        #[allow(unused)]
        async fn __workflow_function_as_written(__workflow_cx: workflow::__private::Cx) {
            let __workflow_cx = &__workflow_cx;
            sleep!(
                @ unread::core::compile_error! {
                "`sleep!` begins with its name, a plain word under which it is recorded, and this is none\nhelp: write `sleep!(window, \"15m\")`"
                }
            );
        }
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
                    __workflow_function_as_written(__workflow_cx),
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
