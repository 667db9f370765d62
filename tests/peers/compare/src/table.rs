//! Figures, and tables of them as Markdown.

/// The middle one; none of none.
pub fn median(of: &[f64]) -> Option<f64> {
    let mut sorted = of.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len().saturating_sub(1) / 2).copied()
}

/// With about three digits that count, and commas.
pub fn figure(value: f64) -> String {
    match value.abs() {
        a if a >= 1_000.0 => grouped(value),
        a if a >= 100.0 => format!("{value:.0}"),
        a if a >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

fn grouped(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut grouped = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) && !grouped.ends_with('-') {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// A figure, or a dash where there is none.
pub fn maybe(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), figure)
}

/// Prints a table's head: the title, and the columns after the engine's name.
pub fn head(title: &str, columns: &[&str]) {
    println!("\n### {title}\n");
    println!("| engine | {} |", columns.join(" | "));
    println!("| --- |{}", " ---: |".repeat(columns.len()));
}

/// Prints a row.
pub fn row(name: &str, cells: &[String]) {
    println!("| {name} | {} |", cells.join(" | "));
}

/// Prints the row of an engine that did not do it.
pub fn failed(name: &str, why: &str, columns: usize) {
    println!("| {name} | failed: {why} |{}", " |".repeat(columns - 1));
}
