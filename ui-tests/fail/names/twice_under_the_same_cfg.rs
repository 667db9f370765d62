//! Both are there, or neither.

use workflow::{sleep, workflow};

#[workflow]
async fn checkout() {
    #[cfg(not(windows))]
    let () = sleep!(wait, "1s").await;
    #[cfg(not(windows))]
    let () = sleep!(wait, "2s").await;
}

fn main() {}
