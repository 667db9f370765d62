#[allow(
    single_use_lifetimes,
    clippy::needless_lifetimes,
    clippy::extra_unused_lifetimes,
    clippy::must_use_candidate
)]
#[allow(
    clippy::needless_pass_by_value,
    clippy::too_many_arguments,
    clippy::type_complexity
)]
fn settle<'__workflow>(
    total: &'__workflow mut u32,
    n: u32,
) -> workflow::Fragment<'__workflow, Result<(), Failure>> {
    const _: ::core::option::Option<&::core::primitive::str> = ::core::option_env!(
        "WORKFLOW_LOCK"
    );
    workflow::__private::fragment(move |__workflow_cx: workflow::__private::Cx| workflow::__private::fut::<
        Result<(), Failure>,
    >(async move {
        let __workflow_cx = &__workflow_cx;
        *total
            += workflow::__private::Durable::run(
                    count(n),
                    __workflow_cx,
                    &workflow::Site {
                        name: "count",
                        kind: workflow::Kind::Call,
                        path: "count",
                        file: ::core::file!(),
                        line: 1,
                    },
                )
                .await?;
        Ok(())
    }))
}
