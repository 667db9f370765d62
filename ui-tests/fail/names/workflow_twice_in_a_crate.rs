// UA-05: two workflows of one durable name, each in a module of its own.
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
