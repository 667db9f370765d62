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
fn reserve<'__workflow>(
    stock: &'__workflow Stock,
    order: u32,
) -> workflow::Step<
    '__workflow,
    Result<u32, StockError>,
    workflow::__private::Fallible,
> {
    workflow::__private::step::<
        Result<u32, StockError>,
        workflow::__private::Fallible,
    >(
        workflow::__private::StepOptions::new()
            .retries(3u32)
            .timeout(workflow::__private::millis(10000u64)),
        {
            #[allow(unused_imports)]
            use workflow::__private::lookup::*;
            (&&&&&workflow::__private::tag::<Result<u32, StockError>>()).via()
        },
        workflow::__private::Box::new(move || {
            let order = workflow::__private::Clone::clone(&order);
            workflow::__private::fut::<
                Result<u32, StockError>,
            >(async move {
                #[allow(
                    unreachable_code,
                    clippy::all,
                    clippy::pedantic,
                    clippy::nursery,
                    clippy::restriction
                )]
                if false {
                    let __workflow_returned: Result<u32, StockError> = loop {};
                    return __workflow_returned;
                }
                stock.hold(order).await
            })
        }),
    )
}
