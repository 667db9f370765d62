//! A workflow made by a macro.

use workflow::{Failure, sleep, step, workflow};

#[step]
async fn reserve(order: u32) -> u32 {
    order
}

macro_rules! checkout {
    ($name:ident, $ty:ty, $duration:literal, $step:path, $more:expr, $body:block) => {
        #[workflow]
        async fn $name(order: $ty) -> Result<$ty, Failure> {
            let held = $step(order).await?;
            sleep!(nap, $duration).await;
            #[step(name = "more")]
            let more = $more.await?;
            let $name = $body;
            Ok(held + more + $name)
        }
    };
}

checkout!(first, u32, "1s", reserve, reserve(3), { 3 });
checkout!(second, u32, "1s", crate::reserve, crate::reserve(4), { 3 });

fn main() {}
