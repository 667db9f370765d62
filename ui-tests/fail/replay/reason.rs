//! What is lifted is lifted for a reason.

use workflow::workflow;

#[workflow]
async fn checkout() {
    #[nondeterministic]
    let _started = std::time::Instant::now();
    #[nondeterministic(reason = "")]
    let _ended = std::time::Instant::now();
}

fn main() {}
