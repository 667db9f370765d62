//! A channel has a name.

use workflow::Channel;

static PAYMENT: Channel<u32> = Channel::new("");

fn main() {
    println!("{PAYMENT:?}");
}
