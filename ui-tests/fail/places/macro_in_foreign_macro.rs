//! What another macro does with its tokens is not known.

use workflow::workflow;

#[workflow]
async fn checkout() {
    println!("{}", workflow::uuid!(key));
}

fn main() {}
