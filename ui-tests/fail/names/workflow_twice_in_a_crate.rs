//! Two workflows of one name in the store, each in a module of its own.

// UA-05
mod orders {
    use workflow::{Failure, workflow};

    #[workflow]
    pub async fn checkout() -> Result<(), Failure> {
        Ok(())
    }
}

mod carts {
    use workflow::{Failure, workflow};

    #[workflow(name = "checkout")]
    pub async fn check_out() -> Result<(), Failure> {
        Ok(())
    }
}

fn main() {
    let _ = (orders::checkout(), carts::check_out());
}
