//! Visibility and modules; a function inside a function. (UA-50)

mod shop {
    pub mod steps {
        #[workflow::step]
        pub(crate) async fn reserve(order: u32) -> u32 {
            order
        }
    }

    #[workflow::workflow]
    pub async fn checkout(order: u32) -> Result<u32, workflow::Failure> {
        Ok(self::steps::reserve(order).await? + super::outer(order).await?)
    }
}

#[workflow::step]
async fn outer(order: u32) -> u32 {
    order
}

fn main() {
    #[workflow::step(retries = 0)]
    async fn inner(order: u32) -> u32 {
        order
    }
    #[workflow::workflow]
    async fn local(order: u32) -> Result<u32, workflow::Failure> {
        Ok(inner(order).await?)
    }
    let _ = (shop::checkout::NAME, local::SITES);
}
