//! Another value on replay.

use workflow::workflow;

#[workflow]
async fn checkout() {
    let _home = std::env::var("HOME");
    let _file = std::fs::read("order");
}

fn main() {}
