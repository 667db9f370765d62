//! The command line.

use std::path::PathBuf;

#[derive(Debug)]
pub(crate) struct Args {
    pub(crate) dir: PathBuf,
    pub(crate) orders: PathBuf,
    pub(crate) fresh: bool,
    pub(crate) verify: bool,
}

pub(crate) const USAGE: &str = "\
usage: cargo run --example checkout -- [OPTIONS]
  --dir DIR      where the store and the effects file are (default: checkout-data in the temporary directory)
  --orders FILE  the orders, one JSON object a line (default: the file shipped with the example)
  --fresh        forget what was done before
  --verify       at the end, lay the effects file beside the histories; exits with 1 when they disagree
  --help         this";

impl Args {
    /// `None` when help is asked for.
    pub(crate) fn read(mut words: impl Iterator<Item = String>) -> Result<Option<Self>, String> {
        let mut args = Self {
            dir: std::env::temp_dir().join("checkout-data"),
            orders: concat!(env!("CARGO_MANIFEST_DIR"), "/checkout/orders.jsonl").into(),
            fresh: false,
            verify: false,
        };
        while let Some(word) = words.next() {
            let mut path = || words.next().ok_or(format!("{word} needs a path"));
            match word.as_str() {
                "--dir" => args.dir = path()?.into(),
                "--orders" => args.orders = path()?.into(),
                "--fresh" => args.fresh = true,
                "--verify" => args.verify = true,
                "--help" | "-h" => return Ok(None),
                _ => return Err(format!("{word} is not known")),
            }
        }
        Ok(Some(args))
    }
}
