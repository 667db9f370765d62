//! Every form of a carried loop.

#![deny(warnings, clippy::all, clippy::pedantic)]
#![allow(clippy::while_let_loop)]

use std::collections::{BTreeMap, VecDeque};

use workflow::{Channel, Failure, recv, sleep, step, workflow};

static ORDERS: Channel<u32> = Channel::new("orders");
const PAGES: u64 = 100;

#[step]
async fn page(cursor: u32) -> Result<Option<u32>, std::io::Error> {
    Ok((cursor < 9).then_some(cursor + 1))
}

#[workflow]
async fn for_ever() -> Result<(), Failure> {
    let mut seen: BTreeMap<u32, u32> = BTreeMap::new();
    #[carry(seen, every = 50, keep = 3)]
    'orders: loop {
        let order = recv!(order, ORDERS).await?;
        *seen.entry(order).or_insert(0) += 1;
    }
}

#[workflow]
async fn ends() -> Result<u32, Failure> {
    let mut cursor = Some(0);
    let mut total = 0;
    #[carry(cursor, total, every = PAGES)]
    'pages: while let Some(at) = cursor {
        cursor = page(at).await?;
        total += at;
    }
    let mut left = 3;
    #[carry(left)]
    'down: while left > 0 && page(left).await?.is_some() {
        left -= 1;
        if left == 2 {
            continue;
        }
        if left == 1 {
            break;
        }
    }
    Ok(total + left)
}

#[workflow]
async fn gives(items: Vec<u32>, limit: u32) -> Result<u32, Failure> {
    let mut queue: VecDeque<u32> = items.iter().copied().collect();
    let mut total = 0;
    #[carry(queue, total)]
    let value = 'queue: loop {
        let Some(item) = queue.pop_front() else {
            break 'queue total;
        };
        total += item;
        if total > limit {
            break total + 1;
        }
        page(item).await?;
    };
    #[carry(total)]
    'items: for (index, item) in items.iter().enumerate() {
        if *item == 0 {
            continue 'items;
        }
        let here = page(*item).await?.unwrap_or(0) + u32::try_from(index).unwrap_or(0);
        total += here;
    }
    #[carry(total)]
    'owned: for item in items {
        let mut own = item;
        own += 1;
        total += page(own).await?.unwrap_or(0);
    }
    Ok(value + total)
}

/// Loops in loops, which jump out of each other.
#[workflow]
async fn nested(rows: Vec<Vec<u32>>) -> Result<u32, Failure> {
    let mut total = 0;
    let mut rounds = 0;
    'rounds: loop {
        rounds += 1;
        #[carry(total)]
        'rows: for row in &rows {
            #[carry(total)]
            'cells: for cell in row {
                let next = page(*cell).await?;
                match next {
                    None if total > 10 => break 'rounds,
                    None if total > 5 => continue 'rounds,
                    None => continue 'rows,
                    Some(next) => total += next,
                }
                if total == 7 {
                    break 'cells;
                }
            }
            sleep!(pause, "1h").await;
        }
        if rounds > 3 {
            return Ok(total);
        }
    }
    Ok(total)
}

fn main() {}
