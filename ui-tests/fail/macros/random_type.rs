//! Only numbers and the like are random.

use workflow::{random, workflow};

#[workflow]
async fn checkout() {
    let _dice: String = random!(dice);
}

fn main() {}
