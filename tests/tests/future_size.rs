//! How large the future of a workflow is: what is kept of it while it waits in memory.

#![allow(
    clippy::print_stdout,
    reason = "what was measured is printed, for .ci/expansion"
)]
#![allow(
    unused_qualifications,
    reason = "the library is reached by a path of this crate's own"
)]

use std::sync::atomic::{AtomicUsize, Ordering};

use workflow::{Engine, Failure, MemoryStore, step, workflow};

/// The library, as the attributes reach it, with one thing measured.
mod measured {
    pub(crate) use workflow::*;

    pub(crate) mod __private {
        pub(crate) use workflow::__private::*;

        /// Boxes it, having noted its size.
        pub(crate) fn fut<'a, T>(future: impl Future<Output = T> + Send + 'a) -> BoxFut<'a, T> {
            super::super::LARGEST.fetch_max(size_of_val(&future), super::super::Ordering::Relaxed);
            workflow::__private::fut(future)
        }
    }
}

static LARGEST: AtomicUsize = AtomicUsize::new(0);

/// 3 KB.
const LIMIT: usize = 3072;

macro_rules! steps {
    ($($name:ident)*) => { $(
        #[step]
        async fn $name(order: &str, count: u64) -> Result<u64, std::io::Error> {
            Ok(count + order.len() as u64)
        }
    )* };
}

steps! { a b c d e f g h i j k l m n o p q r s t }

#[workflow(crate = crate::measured)]
async fn checkout(order: String, count: u64) -> Result<u64, Failure> {
    let mut total = count;
    total += a(&order, total).await?;
    total += b(&order, total).await?;
    total += c(&order, total).await?;
    total += d(&order, total).await?;
    total += e(&order, total).await?;
    total += f(&order, total).await?;
    total += g(&order, total).await?;
    total += h(&order, total).await?;
    total += i(&order, total).await?;
    total += j(&order, total).await?;
    total += k(&order, total).await?;
    total += l(&order, total).await?;
    total += m(&order, total).await?;
    total += n(&order, total).await?;
    total += o(&order, total).await?;
    total += p(&order, total).await?;
    total += q(&order, total).await?;
    total += r(&order, total).await?;
    total += s(&order, total).await?;
    total += t(&order, total).await?;
    Ok(total)
}

#[tokio::test]
async fn a_workflow_of_twenty_sites_is_under_three_kilobytes() {
    let engine = Engine::builder()
        .workflow(checkout)
        .store(MemoryStore::new())
        .build()
        .await
        .unwrap();
    assert!(
        engine
            .run("1", checkout("book".to_owned(), 1))
            .await
            .is_ok()
    );
    let largest = LARGEST.load(Ordering::Relaxed);
    println!("the future of a workflow of 20 sites has {largest} bytes, under {LIMIT}");
    assert!(largest > 0 && largest < LIMIT, "{largest}");
}
