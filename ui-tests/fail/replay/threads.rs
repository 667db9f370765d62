//! Outside of the workflow.

use workflow::workflow;

#[workflow]
async fn checkout() {
    std::thread::spawn(|| {});
    tokio::spawn(async {});
}

fn main() {}
