//! Every form of `attempt!`.

#![deny(warnings, clippy::all, clippy::pedantic)]

use workflow::{Channel, Failure, attempt, join, race, recv, sleep, step, workflow};

static PAYMENT: Channel<u32> = Channel::new("payment");

#[step]
async fn reserve(order: u32) -> Result<u32, std::io::Error> {
    Ok(order)
}

#[workflow]
async fn checkout(orders: Vec<u32>) -> Result<u32, Failure> {
    let mut done = 0;
    let mut names = Vec::new();
    // It changes locals, and moves them.
    let booked = attempt!(book, {
        let held = reserve(1).await?;
        done += held;
        names.push(held.to_string());
        held
    })
    .await;
    let taken = names;
    let empty: Result<(), Failure> = attempt!(empty, {}).await;
    let unit = attempt!(unit, {
        reserve(2).await?;
    })
    .await;
    let nested = attempt!(outer, {
        let inner = attempt!(inner, { reserve(3).await? }).await;
        let both = join!(both, a = reserve(4).await?, b = attempt!(b, { reserve(5).await? }).await?).await?;
        both.0 + both.1 + inner.unwrap_or(0)
    })
    .await?;
    let won = race!(
        first,
        paid = attempt!(pay, { recv!(paid, PAYMENT).await? }).await.unwrap_or(0),
        late = {
            sleep!(window, "1h").await;
            0
        }
    )
    .await?;
    'orders: for order in &orders {
        if *order == 0 {
            continue;
        }
        let tried = workflow::attempt!(one, {
            let mut left = *order;
            'tries: loop {
                left -= reserve(left).await?;
                if left == 1 {
                    continue 'tries;
                }
                break;
            }
            let value = 'found: {
                if left == 0 {
                    break 'found 1;
                }
                2
            };
            let closure = |x: u32| {
                if x > 1 {
                    return 1;
                }
                x
            };
            closure(value)
        })
        .await;
        match tried {
            Ok(n) => done += n,
            Err(failure) if failure.attempts() > 3 => break 'orders,
            Err(_) => {}
        }
    }
    // A value that says where to go on.
    let found = attempt!(maybe, {
        if done == 0 { None } else { Some(reserve(done).await?) }
    })
    .await?;
    let Some(found) = found else { return Ok(0) };
    let result: Result<u32, Failure> = attempt!(of_result, { reserve(1).await }).await?;
    empty?;
    unit?;
    attempt!(tail, { done + found + won.value + nested + taken.len() as u32 + booked? + result? }).await
}

fn main() {}
