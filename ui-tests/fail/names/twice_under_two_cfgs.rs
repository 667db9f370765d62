//! Each has a condition, and both hold: the compiler finds that out.

use workflow::{sleep, workflow};

#[workflow]
async fn checkout() {
    #[cfg(not(any()))]
    let () = sleep!(wait, "1s").await;
    #[cfg(all())]
    let () = sleep!(wait, "2s").await;
}

fn main() {}
