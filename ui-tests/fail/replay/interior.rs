//! Changed where a replay would not change it.

use workflow::workflow;

#[workflow]
async fn checkout() {
    let _count = std::sync::atomic::AtomicU32::new(0);
    let _list = std::sync::Mutex::new(Vec::<u32>::new());
}

fn main() {}
