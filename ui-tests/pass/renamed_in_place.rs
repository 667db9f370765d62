//! `#[step(name = ..)]` on whatever may be called: step functions, methods, steps behind a pointer, and fragments, also those
//! that are lent something to change. (UA-50)

use std::sync::Arc;

use workflow::{Failure, fragment, step, workflow};

trait Gateway: Send + Sync {
    #[step]
    async fn charge(&self, cents: u64) -> Result<String, std::io::Error>;
}

struct Bank;

impl Gateway for Bank {
    #[step(retries = 0)]
    async fn charge(&self, cents: u64) -> Result<String, std::io::Error> {
        Ok(cents.to_string())
    }
}

impl Bank {
    #[step]
    async fn open() -> Result<u32, std::io::Error> {
        Ok(1)
    }

    #[fragment]
    async fn settle(&self, total: &mut u64) -> Result<(), Failure> {
        *total += 1;
        Ok(())
    }
}

#[fragment]
async fn add(total: &mut u64, n: u64) -> Result<u64, Failure> {
    *total += n;
    Ok(*total)
}

#[fragment]
async fn add_twice(total: &mut u64) -> Result<(), Failure> {
    #[step(name = "first")]
    add(&mut *total, 1).await?;
    #[step(name = "second")]
    add(total, 2).await?;
    #[step(name = "third")]
    add(total, 3).await?;
    Ok(())
}

#[fragment]
async fn peek(n: &u64) -> Result<u64, Failure> {
    Ok(*n)
}

#[workflow]
async fn checkout(
    cents: u64,
    #[state] gateway: Arc<dyn Gateway>,
    #[state] banks: Vec<Arc<dyn Gateway>>,
) -> Result<String, Failure> {
    #[step(name = "first_charge")]
    let first = gateway.charge(cents).await?;
    let second = #[step(name = "second_charge", retries = 2)]
    gateway.charge(cents).await?;
    #[step(name = "third_charge", retry_if(|_: &std::io::Error| true))]
    gateway.charge(cents).await?;
    #[step(name = "path_charge", timeout = "1s")]
    let fourth = Gateway::charge(&*gateway, cents).await;
    #[step(name = "indexed_charge")]
    banks[0].charge(cents).await?;
    #[step(name = "opened")]
    Bank::open().await?;
    let bank = Bank;
    let mut total = cents;
    #[step(name = "settled")]
    bank.settle(&mut total).await?;
    #[step(name = "added")]
    let added = add(&mut total, 1).await?;
    #[step(name = "added_more")]
    let failed = add(&mut total, added).await;
    #[step(name = "both")]
    add_twice(&mut total).await?;
    #[step(name = "peeked")]
    let peeked = peek(&total).await?;
    if let Ok(n) = failed {
        total = n + peeked;
    }
    Ok(first + &second + &fourth.unwrap_or_default() + &total.to_string())
}

fn main() {
    let _: Arc<dyn Gateway> = Arc::new(Bank);
}
