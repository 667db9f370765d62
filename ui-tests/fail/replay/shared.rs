//! What all runs share is in another state on replay.

use std::cell::RefCell;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use workflow::{Failure, step, workflow};

static COUNT: AtomicU32 = AtomicU32::new(0);
static SEEN: Mutex<Vec<u32>> = Mutex::new(Vec::new());

#[step]
async fn reserve(order: u32) -> u32 {
    // In a step it is fine.
    order + COUNT.fetch_add(1, Ordering::Relaxed)
}

#[workflow]
async fn checkout(order: u32) -> Result<u32, Failure> {
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    SEEN.lock().unwrap().push(order);
    thread_local! {
        static LAST: RefCell<u32> = RefCell::new(0);
    }
    #[nondeterministic(reason = "it is only printed")]
    let seen = SEEN.lock().unwrap().len();
    println!("{seen}");
    reserve(number).await
}

fn main() {}
