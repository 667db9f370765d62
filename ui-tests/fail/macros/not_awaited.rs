//! Without `.await` it would do nothing.

use workflow::{Failure, join, sleep, workflow};

#[workflow]
async fn checkout() -> Result<(), Failure> {
    sleep!(nap, "1s");
    let both = join!(both, a = 1, b = 2);
    Ok(())
}

fn main() {}
