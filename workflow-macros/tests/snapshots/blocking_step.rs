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
fn hash(
    text: String,
) -> workflow::Step<'static, usize, workflow::__private::Infallible> {
    workflow::__private::blocking_step::<
        usize,
        workflow::__private::Infallible,
    >(
        workflow::__private::StepOptions::new(),
        {
            #[allow(unused_imports)]
            use workflow::__private::lookup::*;
            (&&&&&workflow::__private::tag::<usize>().plain()).via()
        },
        workflow::__private::Arc::new(move || {
            let text = workflow::__private::Clone::clone(&text);
            (move || -> usize { text.len() })()
        }),
    )
}
