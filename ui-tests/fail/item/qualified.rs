//! `unsafe` and `extern` mean nothing here.

use workflow::workflow;

#[workflow]
async unsafe extern "C" fn checkout(order: u32) -> u32 {
    order
}

fn main() {}
