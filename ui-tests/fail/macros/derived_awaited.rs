//! What is derived is there at once.

use workflow::{random, uuid, workflow};

#[workflow]
async fn checkout() -> u32 {
    let _key = uuid!(key).await;
    let dice: u32 = random!(dice).await;
    dice
}

fn main() {}
