//! The smallest program: one step, one workflow, one file. Run it twice: the second time the step is not run again.
//!
//!     cargo run --example hello
#![allow(clippy::print_stdout, reason = "an example talks")]

use workflow::{Engine, Error, Failure, step, workflow};

#[step]
async fn greet(name: &str) -> String {
    println!("greeting {name} (this line is an effect)");
    format!("hello, {name}")
}

#[workflow]
async fn hello(name: String) -> Result<String, Failure> {
    greet(&name).await
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let file = std::env::temp_dir().join("workflow-hello.redb");
    let engine = Engine::builder().workflow(hello).open(file).await?;
    println!(
        "{}",
        engine.run("greeting-1", hello("world".to_owned())).await?
    );
    engine.shutdown(std::time::Duration::from_secs(1)).await
}
