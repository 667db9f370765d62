//! The input is stored under the names of the parameters.

use workflow::workflow;

#[workflow]
async fn checkout((order, customer): (u32, u32)) -> u32 {
    order + customer
}

fn main() {}
