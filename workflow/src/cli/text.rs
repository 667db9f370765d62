//! Text for people: what cannot be shown is escaped, and what is too long is cut.

use std::borrow::Cow;
use std::fmt::Write;

use console::{measure_text_width, pad_str, truncate_str};

/// The text without anything that would move the cursor, colour the terminal, or turn its lines around.
pub(crate) fn clean(text: &str) -> Cow<'_, str> {
    let hostile = |char: char| {
        (char.is_control() && char != '\n')
            || matches!(char, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
    };
    if !text.contains(hostile) {
        return text.into();
    }
    let mut cleaned = String::with_capacity(text.len() + 8);
    for char in text.chars() {
        if hostile(char) {
            cleaned.extend(char.escape_default());
        } else {
            cleaned.push(char);
        }
    }
    cleaned.into()
}

/// The text on one line.
pub(crate) fn one_line(text: &str) -> String {
    let words: Vec<_> = text.split(['\n', '\r']).map(str::trim).collect();
    clean(&words.join(" ")).into_owned()
}

/// The text in at most so many columns, if there is a limit.
pub(crate) fn cut(text: &str, width: Option<usize>) -> Cow<'_, str> {
    match width {
        Some(width) if measure_text_width(text) > width => {
            // The sign that it was cut takes one itself.
            truncate_str(text, width, if width > 1 { "…" } else { "" })
        }
        _ => text.into(),
    }
}

/// The text in exactly so many columns.
pub(crate) fn fit(text: &str, width: usize) -> String {
    pad_str(
        &cut(text, Some(width)),
        width,
        console::Alignment::Left,
        None,
    )
    .into_owned()
}

/// Rows of cells below each other. The last cell of each row takes the room that is left.
pub(crate) fn table(rows: &[Vec<String>], width: Option<usize>) -> Vec<String> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let mut widths: Vec<usize> = (0..columns)
        .map(|column| {
            let cells = rows.iter().filter_map(|row| row.get(column));
            cells
                .map(|cell| measure_text_width(cell))
                .max()
                .unwrap_or(0)
        })
        .collect();
    if let Some(width) = width {
        // The widest gives way, until all but the last fit into three quarters of the room.
        let room = width.saturating_mul(3) / 4;
        while let Some((_, fixed)) = widths.split_last()
            && fixed.iter().map(|width| width + 2).sum::<usize>() > room
            && let Some(widest) = fixed.iter().copied().max().filter(|widest| *widest > 4)
            && let Some(at) = widths.iter().position(|width| *width == widest)
            && let Some(widest) = widths.get_mut(at)
        {
            *widest -= 1;
        }
    }
    let line = |row: &Vec<String>| {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            if column + 1 == columns {
                line.push_str(cell);
            } else {
                line.push_str(&fit(cell, widths.get(column).copied().unwrap_or(0)));
                line.push_str("  ");
            }
        }
        cut(line.trim_end(), width).into_owned()
    };
    rows.iter().map(line).collect()
}

/// A number of things: `1 run`, `2 runs`.
pub(crate) fn count(number: u64, what: &str) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = write!(
        text,
        "{number} {what}{}",
        if number == 1 { "" } else { "s" }
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_drive_a_terminal_is_shown_and_not_obeyed() {
        assert_eq!(
            clean("a\u{1b}[31mb\0\u{202e}c"),
            "a\\u{1b}[31mb\\u{0}\\u{202e}c"
        );
        assert_eq!(clean("żółw 龜 🐢"), "żółw 龜 🐢");
        assert_eq!(one_line("a\r\n  b\tc"), "a  b\\tc");
    }

    #[test]
    fn text_is_cut_where_it_is_wide_and_not_where_it_is_long() {
        assert_eq!(cut("龜龜龜", Some(5)), "龜龜…");
        assert_eq!(cut("abc", Some(3)), "abc");
        assert_eq!(cut("abc", Some(1)), "a");
        assert_eq!(cut("abc", Some(0)), "");
        assert_eq!(fit("龜龜", 3), "龜…");
    }

    #[test]
    fn a_table_keeps_to_any_width() {
        let row = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
        let rows = [
            row(["id", "a workflow of a long name", "x"]),
            row(["order-17-of-many", "w", "waits for `payment`"]),
        ];
        for width in 0..60 {
            for line in table(&rows, Some(width)) {
                assert!(measure_text_width(&line) <= width, "{width}: {line}");
            }
        }
        assert_eq!(
            table(&rows, None),
            [
                "id                a workflow of a long name  x",
                "order-17-of-many  w                          waits for `payment`"
            ]
        );
    }
}
