//! `for`, `while`, `while let`, `loop`, with `continue`, labels and values.

use workflow::{Failure, join, sleep, step, workflow};

#[step]
async fn count(order: u32) -> u32 {
    order
}

#[workflow]
async fn checkout(items: Vec<u32>) -> Result<u32, Failure> {
    let mut total = 0;
    #[key(item)]
    'items: for item in &items {
        if *item == 7 {
            continue;
        }
        'inner: for n in 0..*item {
            if n == 3 {
                continue 'items;
            }
            total += count(n).await?;
            if n == 5 {
                break 'inner;
            }
        }
    }
    let mut left = 3;
    'down: while count(left).await? > 0 {
        left -= 1;
    }
    let mut stack = items.clone();
    'stack: while let Some(top) = stack.pop() {
        total += count(top).await?;
    }
    let found = 'search: loop {
        sleep!(nap, "1s").await;
        left += 1;
        if left > 3 {
            break 'search left;
        }
    };
    let value = 'block: {
        if total > 3 {
            break 'block 1;
        }
        2
    };
    let (a, b) = join!(
        both,
        a = {
            let mut n = 0;
            'branch: loop {
                n += count(1).await?;
                if n > 2 {
                    break 'branch n;
                }
            }
        },
        b = 3
    )
    .await?;
    Ok(total + found + value + a + b)
}

fn main() {}
