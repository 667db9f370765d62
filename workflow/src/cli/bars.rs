//! How far long work has come: on standard error, and only where a person looks at it.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// Work of which nobody knows how much it is.
pub(crate) fn counting(what: &'static str) -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    bar.set_style(style("{spinner} {msg}: {human_pos}"));
    begun(bar, what)
}

/// Work that does not tell how far it is.
pub(crate) fn working(what: &'static str) -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    bar.set_style(style("{spinner} {msg}: {elapsed}"));
    begun(bar, what)
}

/// Work on so many things.
pub(crate) fn through(what: &'static str, number: u64) -> ProgressBar {
    let bar = ProgressBar::new(number);
    bar.set_style(style("{msg} {wide_bar} {human_pos}/{human_len} {eta}"));
    begun(bar, what)
}

fn begun(bar: ProgressBar, what: &'static str) -> ProgressBar {
    bar.set_message(what);
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
