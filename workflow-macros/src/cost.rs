//! What expanding costs. Run by `.ci/expansion`; anywhere else it would only tell how busy the machine is.

use std::fmt::Write;
use std::time::{Duration, Instant};

use proc_macro2::TokenStream;

/// How long a workflow of 200 sites may take, with the macro crate unoptimised, as a user's debug build has it.
const LIMIT: Duration = Duration::from_millis(60);

/// Twenty parts of ten sites: calls, waits, a step in place, a loop, branches.
fn workflow() -> String {
    let mut text =
        "async fn checkout(order: Order) -> Result<u64, Failure> { let mut total = 0;".to_owned();
    for part in 0..20 {
        for call in 0..4 {
            write!(
                text,
                "let held_{part}_{call} = reserve_{part}_{call}(&order, total).await?; total += held_{part}_{call};"
            )
            .expect("a text takes all that is written to it");
        }
        write!(
            text,
            "sleep!(nap_{part}, \"15m\").await;
            #[step(name = \"send_{part}\", retries = 5, timeout = \"10s\")] let sent = client.post(&order.url).send().await?;
            'items_{part}: for item in &order.items {{ if item.count > 3 {{ ship(item, sent).await?; }} }}
            let (a, b) = join!(both_{part}, a = left(total).await?, b = 2).await?; total += a + b;"
        )
        .expect("a text takes all that is written to it");
    }
    text.push_str("Ok(total) }");
    text
}

#[test]
#[ignore = "measures: see .ci/expansion"]
#[allow(clippy::print_stdout, reason = "it is there to print what it measured")]
fn two_hundred_sites_expand_in_no_time() {
    let item: TokenStream = workflow().parse().expect("the workflow is Rust");
    let args: TokenStream = "crate = workflow".parse().expect("the arguments are Rust");
    let sites = crate::expand_workflow(args.clone(), item.clone())
        .to_string()
        .matches("Site { name :")
        .count();
    // Each stands in the list, and where it is: a loop twice.
    assert_eq!(sites, 2 * 200 + 20);
    let mut times: Vec<Duration> = (0..20)
        .map(|_| {
            let began = Instant::now();
            let expanded = crate::expand_workflow(args.clone(), item.clone());
            let took = began.elapsed();
            assert!(!expanded.is_empty());
            took
        })
        .collect();
    times.sort();
    let (least, median) = (times[0], times[times.len() / 2]);
    println!(
        "a workflow of 200 sites expands in {median:.1?} (the median of 20; {least:.1?} at least), at most {LIMIT:?}"
    );
    // Another's work on the machine adds to some, and takes from none.
    assert!(least < LIMIT, "{times:?}");
}
