//! The orders file: one JSON object a line. A line that is no order is told of, and the rest goes on.

use std::collections::HashSet;
use std::io::{self, BufRead};
use std::path::Path;

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) id: String,
    pub(crate) customer: String,
    pub(crate) items: Vec<Item>,
    pub(crate) cents: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Item {
    pub(crate) sku: String,
    pub(crate) quantity: u32,
}

/// A line that is no order.
#[derive(Debug)]
pub(crate) struct Malformed {
    pub(crate) line: usize,
    pub(crate) reason: String,
}

/// Reads the whole file.
pub(crate) fn read(path: &Path) -> io::Result<(Vec<Order>, Vec<Malformed>)> {
    let file = io::BufReader::new(std::fs::File::open(path)?);
    let (mut orders, mut malformed) = (Vec::new(), Vec::new());
    let mut seen = HashSet::new();
    for (index, line) in file.lines().enumerate() {
        match parse(&line?, &mut seen) {
            Ok(order) => orders.push(order),
            Err(reason) => malformed.push(Malformed {
                line: index + 1,
                reason,
            }),
        }
    }
    Ok((orders, malformed))
}

fn parse(line: &str, seen: &mut HashSet<String>) -> Result<Order, String> {
    let order: Order = serde_json::from_str(line).map_err(|error| error.to_string())?;
    if order.items.is_empty() {
        return Err(format!("{} has no items", order.id));
    }
    if let Some(item) = order.items.iter().find(|item| item.quantity == 0) {
        return Err(format!("{} wants 0 of {}", order.id, item.sku));
    }
    if !seen.insert(order.id.clone()) {
        return Err(format!("{} stands above already", order.id));
    }
    Ok(order)
}
