//! The orders file: one JSON object a line, as a shop's export has it. What cannot be read is reported, not fatal.

use std::fs;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// An order, as the shop wrote it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Order {
    pub id: String,
    pub customer: String,
    pub items: Vec<Item>,
    /// How long the customer takes to pay, in milliseconds; absent when the customer never does.
    pub pays_after: Option<u64>,
}

/// One line of an order.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Item {
    pub sku: String,
    pub count: u32,
    pub cents: u64,
}

/// A line that is no order.
#[derive(Debug)]
pub struct Malformed {
    pub line: usize,
    pub why: String,
}

/// Reads the file: the orders, and the lines that are none.
pub fn read(path: &Path) -> io::Result<(Vec<Order>, Vec<Malformed>)> {
    let (mut orders, mut malformed) = (Vec::new(), Vec::new());
    for (index, line) in fs::read_to_string(path)?.lines().enumerate() {
        let parsed = serde_json::from_str::<Order>(line).map_err(|error| error.to_string());
        match parsed.and_then(check) {
            Ok(order) => orders.push(order),
            Err(why) => malformed.push(Malformed {
                line: index + 1,
                why,
            }),
        }
    }
    Ok((orders, malformed))
}

fn check(order: Order) -> Result<Order, String> {
    workflow::RunId::new(&order.id).map_err(|error| error.to_string())?;
    if order.items.is_empty() {
        return Err("the order has no items".to_owned());
    }
    if order.items.iter().any(|item| item.count == 0) {
        return Err("an item is ordered zero times".to_owned());
    }
    Ok(order)
}
