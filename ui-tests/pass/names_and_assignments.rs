//! A function of the user's that is called as ours could be, and steps in place whose value is assigned.

use workflow::{Failure, step, workflow};

fn body(cents: u32) -> u32 {
    cents + 1
}

async fn price(item: &str) -> Result<u32, std::io::Error> {
    Ok(u32::try_from(item.len()).unwrap_or(u32::MAX))
}

#[workflow]
async fn sum(mut total: u32) -> Result<u32, Failure> {
    #[step(name = "first")]
    total += price("first").await?;
    let more;
    #[step(name = "second")]
    more = price("second").await?;
    Ok(body(total + more))
}

fn main() {
    let names: Vec<_> = sum::SITES.iter().map(|site| site.name).collect();
    assert_eq!(names, ["first", "second"]);
}
