//! Two step functions of one name, in two modules: in one workflow their records could not be told apart. (UA-05)

use workflow::{Failure, workflow};

mod stock {
    #[workflow::step]
    pub async fn reserve(order: u32) -> u32 {
        order
    }
}

mod seats {
    #[workflow::step]
    pub async fn reserve(order: u32) -> u32 {
        order + 1
    }
}

#[workflow]
async fn checkout(order: u32) -> Result<u32, Failure> {
    let item = stock::reserve(order).await?;
    let seat = seats::reserve(order).await?;
    Ok(item + seat)
}

fn main() {}
