//! Rounds, medians, and the Markdown that is printed.

/// The median.
pub(crate) fn median(figures: &[f64]) -> f64 {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

/// What so large a part of these, in order, is no larger than.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "an index"
)]
pub(crate) fn quantile(sorted: &[f64], part: f64) -> f64 {
    let at = (sorted.len().saturating_sub(1) as f64 * part) as usize;
    sorted.get(at).copied().unwrap_or(f64::NAN)
}

/// One row: what each round gave.
pub(crate) struct Row<'a> {
    name: String,
    run: Box<dyn FnMut() -> f64 + 'a>,
    got: Vec<f64>,
}

/// Rows that are measured in turn, so that a drift of the machine hits all alike, and compared with the first.
pub(crate) struct Table<'a> {
    title: &'static str,
    unit: &'static str,
    rows: Vec<Row<'a>>,
}

impl<'a> Table<'a> {
    /// A table of figures in `unit`.
    pub(crate) fn new(title: &'static str, unit: &'static str) -> Self {
        let rows = Vec::new();
        Self { title, unit, rows }
    }

    /// Adds a row; each call of `run` is one round and gives its figure.
    pub(crate) fn row(mut self, name: impl Into<String>, run: impl FnMut() -> f64 + 'a) -> Self {
        self.rows.push(Row {
            name: name.into(),
            run: Box::new(run),
            got: Vec::new(),
        });
        self
    }

    /// Runs and prints: the median of the rounds, the best and the worst, the median of each round's ratio to the first.
    pub(crate) fn measure(mut self, rounds: usize) {
        for _ in 0..rounds {
            for row in &mut self.rows {
                let figure = (row.run)();
                row.got.push(figure);
            }
        }
        println!("\n### {}\n", self.title);
        println!("| | {} | best | worst | to the first row |", self.unit);
        println!("| --- | ---: | ---: | ---: | ---: |");
        let Some(first) = self.rows.first() else {
            return;
        };
        for row in &self.rows {
            let ratios: Vec<f64> = row.got.iter().zip(&first.got).map(|(a, b)| a / b).collect();
            let best = row.got.iter().copied().fold(f64::INFINITY, f64::min);
            let worst = row.got.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            println!(
                "| {} | {:.2} | {best:.2} | {worst:.2} | {:.2}x |",
                row.name,
                median(&row.got),
                median(&ratios),
            );
        }
    }
}
