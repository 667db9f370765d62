//! The whole idea in ten lines: `cargo run --example hello`.

use workflow::{Engine, Failure, MemoryStore, step, workflow};

#[step]
async fn greet(name: &str) -> String {
    format!("hello, {name}")
}

#[workflow]
async fn hello(name: String) -> Result<String, Failure> {
    greet(&name).await
}

#[tokio::main]
#[expect(clippy::print_stdout, reason = "what the program is for")]
async fn main() -> Result<(), workflow::Error> {
    let engine = Engine::builder()
        .workflow(hello)
        .store(MemoryStore::new())
        .build()
        .await?;
    println!(
        "{}",
        engine.run("greeting-1", hello("world".to_owned())).await?
    );
    engine.shutdown(std::time::Duration::from_secs(1)).await
}
