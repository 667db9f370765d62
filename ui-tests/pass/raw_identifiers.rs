//! `r#` is no part of a name.

use workflow::{Failure, join, sleep, step, workflow};

#[step]
async fn r#move(r#type: u32) -> u32 {
    r#type
}

#[workflow]
async fn r#try(r#fn: u32) -> Result<u32, Failure> {
    let r#let = r#move(r#fn).await?;
    sleep!(r#while, "1s").await;
    let (a, b) = join!(r#for, r#if = 1, r#else = r#let).await?;
    Ok(a + b)
}

fn main() {
    assert_eq!(r#try::NAME, "try");
    let paths: Vec<_> = r#try::SITES.iter().map(|site| site.path).collect();
    assert_eq!(paths, ["move", "while", "for"]);
}
