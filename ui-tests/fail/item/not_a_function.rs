//! The attribute stands on something else.

#[workflow::workflow]
struct Checkout;

fn main() {}
