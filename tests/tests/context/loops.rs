//! Labelled loops.

use workflow::__private as p;
use workflow::Failure;

use crate::driver::{Sim, run, site, sold_out, survives, value, workflow};

workflow!(summing, Fallible, Result<u32, Failure>, |cx, log| {
    let mut total = 0;
    {
        let mut lap = p::enter_loop(cx, site!("items", Loop)).await;
        'items: for n in [1u32, 2, 3, 4, 5] {
            let cx = &lap.iteration();
            if lap.never() {
                continue 'items;
            }
            if n == 2 {
                continue;
            }
            total += run!(cx, "price", value(&log, "price", n * 10))?;
            if n == 4 {
                break;
            }
        }
    }
    run!(cx, "charge", value(&log, "charge", total))
});

// U1
#[test]
fn a_loop_is_entered_again_so_what_it_changes_comes_out_right() {
    let (whole, end) = survives::<summing>(Sim::new);
    assert_eq!(end.value::<u32>(), 80);
    let at: Vec<_> = whole
        .history
        .iter()
        .map(|record| record.location.to_string())
        .filter(|at| at.starts_with("items"))
        .collect();
    assert_eq!(at, ["items[0]/price", "items[2]/price", "items[3]/price"]);
}

workflow!(keyed, Fallible, Result<u32, Failure>, |cx, log| {
    let mut total = 0;
    {
        let mut lap = p::enter_loop(cx, site!("items", Loop)).await;
        'items: for sku in ["pen", "ink", "pen"] {
            let cx = &lap.keyed(&(sku));
            if lap.never() {
                continue 'items;
            }
            total += run!(cx, "ship", value(&log, sku, 1u32))?;
        }
    }
    Ok(total)
});

// U25
#[test]
fn a_key_that_comes_again_is_another_iteration() {
    let (whole, end) = survives::<keyed>(Sim::new);
    assert_eq!(end.value::<u32>(), 3);
    assert_eq!(whole.log.take(), ["pen", "ink", "pen"]);
    let last = whole
        .history
        .iter()
        .rfind(|record| record.body.is_outcome())
        .unwrap();
    assert_eq!(last.location.to_string(), "items[pen#2]/ship");
}

workflow!(thrown, Fallible, Result<u32, Failure>, |cx, log| {
    let found = {
        let mut lap = p::enter_loop(cx, site!("tries", Loop)).await;
        'tries: loop {
            let cx = &lap.iteration();
            if lap.never() {
                continue 'tries;
            }
            let inner: Result<u32, Failure> = run!(cx, "search", sold_out(&log, "search"));
            if log.count("search") > 1 {
                inner?;
            }
            break 5;
        }
    };
    run!(cx, "after", value(&log, "after", found + 1u32))
});

#[test]
fn a_loop_may_be_left_with_a_value_and_code_goes_on_behind_it() {
    let mut sim = Sim::new();
    assert_eq!(sim.drive::<thrown>().value::<u32>(), 6);
}
