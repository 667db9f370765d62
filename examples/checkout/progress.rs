//! How far it is: a bar on a terminal, a line each tenth otherwise.

use std::cell::Cell;
use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressStyle};

#[derive(Debug)]
pub(crate) struct Progress {
    all: usize,
    bar: Option<ProgressBar>,
    tenth: Cell<usize>,
}

impl Progress {
    /// `done` of `all` were done before and are soon looked up.
    pub(crate) fn new(all: usize, done: usize) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let style = ProgressStyle::with_template("{bar:40} {pos}/{len} orders, {elapsed}");
            let bar = ProgressBar::new(all as u64).with_position(done as u64);
            match style {
                Ok(style) => bar.with_style(style),
                Err(_) => bar,
            }
        });
        Self {
            all,
            bar,
            tenth: Cell::new(0),
        }
    }

    pub(crate) fn show(&self, orders: usize) {
        if let Some(bar) = &self.bar {
            bar.set_position(orders as u64);
            return;
        }
        let tenth = orders * 10 / self.all.max(1);
        if tenth > self.tenth.replace(tenth) {
            println!("  {orders} of {} orders", self.all);
        }
    }

    pub(crate) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
