//! A version is a number from 1. (RVT-VER-07)

use workflow::{version, workflow};

#[workflow]
async fn checkout() -> u32 {
    let a = version!(a).await;
    let b = version!(b, 2, 3).await;
    let c = version!(c, 0).await;
    let d = version!(d, -1).await;
    let e = version!(2).await;
    a + b + c + d + e
}

fn main() {}
