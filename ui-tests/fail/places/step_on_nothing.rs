//! There is no value to record.

use workflow::workflow;

#[workflow]
async fn checkout() {
    #[step]
    let order: u32;
    order = 3;
    let _ = order;
}

fn main() {}
