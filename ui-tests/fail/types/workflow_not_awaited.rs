//! A child run that is only called is not started. (UA-77)

#![deny(unused_must_use)]

use workflow::workflow;

#[workflow]
async fn parcel(order: u32) -> u32 {
    order
}

#[workflow]
async fn checkout(order: u32) {
    parcel(order);
    parcel(order).detach();
}

fn main() {}
