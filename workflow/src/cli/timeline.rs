//! `workflow timeline`: what a run did when. On a terminal each location is a bar, and what lies in a branch stands in the lane of that
//! branch; elsewhere each is a line.

use std::time::Duration;

use console::{Style, measure_text_width};
use serde::Serialize;
use workflow::Timestamp;

use crate::arguments;
use crate::backend::Backend;
use crate::fail::Fail;
use crate::out::Out;
use crate::spans::{Span, Spans, State};
use crate::text::{cut, fit, one_line, table};
use crate::tree::said;
use crate::when;

/// A chart that is narrower says nothing.
const NARROWEST: usize = 12;
/// What stands between names and bars.
const GAP: usize = 2;

#[derive(Serialize)]
struct Line<'a> {
    id: &'a str,
    workflow: &'a str,
    began: Timestamp,
    last: Timestamp,
    spans: Vec<Shown>,
}

#[derive(Serialize)]
struct Shown {
    location: String,
    #[serde(skip_serializing_if = "str::is_empty")]
    kind: &'static str,
    #[serde(skip_serializing_if = "str::is_empty")]
    state: &'static str,
    began: Timestamp,
    /// Absent while it goes on.
    #[serde(skip_serializing_if = "Option::is_none")]
    ended: Option<Timestamp>,
}

pub(crate) async fn timeline(
    asked: &arguments::Timeline,
    backend: &Backend,
    out: &mut Out,
) -> Result<(), Fail> {
    let history = backend.export(&asked.run).await?;
    let spans = Spans::of(&history);
    let shown = spans.walk(asked.depth);
    if out.is_json() {
        return out.value(&Line {
            id: history.id().as_str(),
            workflow: history.workflow(),
            began: spans.began,
            last: spans.last,
            spans: shown.into_iter().map(as_json).collect(),
        });
    }
    let whole = when::span(spans.last.since(spans.began));
    let head = format!(
        "{} {}: {whole} from {}",
        history.workflow(),
        one_line(history.id().as_str()),
        when::instant(spans.began)
    );
    out.line(&cut(&head, out.width()))?;
    let lines = match out
        .width()
        .and_then(|width| Chart::of(&spans, &shown, width))
    {
        Some(chart) => chart.lines(&shown, out.is_styled()),
        None => plain(&spans, &shown, out.width()),
    };
    for line in lines {
        out.line(&line)?;
    }
    Ok(())
}

fn as_json(span: &Span) -> Shown {
    Shown {
        location: span.location.to_string(),
        kind: span.kind,
        state: span.state.word(),
        began: span.began,
        ended: (!span.goes_on).then_some(span.last),
    }
}

/// A line for each location, with when it began.
fn plain(spans: &Spans, shown: &[&Span], width: Option<usize>) -> Vec<String> {
    let row = |span: &&Span| {
        let began = when::span(span.began.since(spans.began));
        let name = format!(
            "{:indent$}{}",
            "",
            one_line(&span.name),
            indent = 2 * span.depth
        );
        vec![format!("+{began}"), name, said(span)]
    };
    let rows: Vec<_> = shown.iter().map(row).collect();
    table(&rows, width)
}

/// Where bars are drawn.
struct Chart {
    names: usize,
    columns: usize,
    began: Timestamp,
    whole: Duration,
}

impl Chart {
    /// Absent where there is no room for one.
    fn of(spans: &Spans, shown: &[&Span], width: usize) -> Option<Self> {
        let name = |span: &&Span| 2 * span.depth + measure_text_width(&one_line(&span.name));
        let names = shown.iter().map(name).max().unwrap_or(0).min(width * 2 / 5);
        let columns = width.checked_sub(names + GAP)?;
        (columns >= NARROWEST && names > 0).then(|| Self {
            names,
            columns,
            began: spans.began,
            whole: spans.last.since(spans.began),
        })
    }

    fn lines(&self, shown: &[&Span], is_styled: bool) -> Vec<String> {
        let mut lines = vec![self.scale()];
        lines.extend(shown.iter().map(|span| self.line(span, is_styled)));
        lines
    }

    /// The beginning, the middle and the end, as far as there is room for them.
    fn scale(&self) -> String {
        let [middle, end] = [self.whole / 2, self.whole].map(when::span);
        let (half, rest) = (self.columns / 2, self.columns - self.columns / 2);
        let middle = if middle.len() + end.len() < rest {
            middle
        } else {
            String::new()
        };
        let end_at = rest.saturating_sub(middle.len());
        let names = " ".repeat(self.names + GAP);
        let scale = format!("{}{middle}{end:>end_at$}", fit("0s", half));
        names + &cut(&scale, Some(self.columns))
    }

    fn line(&self, span: &Span, is_styled: bool) -> String {
        let name = format!(
            "{:indent$}{}",
            "",
            one_line(&span.name),
            indent = 2 * span.depth
        );
        let from = self.column(span.began);
        let to = if span.goes_on {
            self.columns - 1
        } else {
            self.column(span.last).max(from)
        };
        let (sign, style) = match span.state {
            _ if span.is_scope() => ('─', Style::new().dim()),
            State::Failed => ('×', Style::new().red()),
            State::Retrying => ('▒', Style::new().yellow()),
            State::Undone => ('▒', Style::new().magenta()),
            _ if matches!(span.kind, "sleep" | "recv" | "child") => ('░', Style::new().cyan()),
            _ => ('█', Style::new().green()),
        };
        let mut bar: String = std::iter::repeat_n(sign, to - from + 1).collect();
        if span.goes_on {
            bar.pop();
            bar.push('>');
        }
        let bar = if is_styled {
            style.apply_to(bar).to_string()
        } else {
            bar
        };
        format!(
            "{}{}{}{bar}",
            fit(&name, self.names),
            " ".repeat(GAP),
            " ".repeat(from)
        )
    }

    /// In which column an instant is.
    fn column(&self, at: Timestamp) -> usize {
        let (into, whole) = (at.since(self.began).as_millis(), self.whole.as_millis());
        let last = self.columns - 1;
        if whole == 0 {
            return 0;
        }
        let column = into.saturating_mul(last as u128) / whole;
        usize::try_from(column).unwrap_or(last).min(last)
    }
}

#[cfg(test)]
mod tests {
    use workflow::History;

    use super::*;

    /// Two branches side by side: one step that took long, and a wait that goes on; and a step that failed before.
    fn history() -> History {
        let json = r#"{"format": 1, "id": "order-17", "records": [
            {"seq": 1, "at": 0, "code": "0000000000000001", "body": {"begun": {"workflow": "order", "input": {"json": {}},
                "input_hash": "0000000000000000", "seed": "00000000000000000000000000000000", "generation": 0}}},
            {"seq": 2, "at": 2000, "code": "0000000000000001", "location": ["charge"], "body": {"ended": {"kind": "step",
                "outcome": {"failed": {"kind": "exhausted", "attempts": 4, "message": "declined"}}, "attempts": 4,
                "started_at": 1000}}},
            {"seq": 3, "at": 2000, "code": "0000000000000001", "location": ["both"], "body": {"opened": {"join": ["a", "b"]}}},
            {"seq": 4, "at": 2000, "code": "0000000000000001", "location": ["both", {"branch": "b"}, "nap"],
                "body": {"waiting": {"sleep": {"until": 90000}}}},
            {"seq": 5, "at": 10000, "code": "0000000000000001", "location": ["both", {"branch": "a"}, "pack"], "body":
                {"ended": {"kind": "step", "outcome": {"ok": {"json": 1}}, "attempts": 1, "started_at": 5000}}}
        ]}"#;
        History::from_json(json).unwrap()
    }

    fn chart(width: usize) -> Option<Vec<String>> {
        let history = history();
        let spans = Spans::of(&history);
        let shown = spans.walk(None);
        let chart = Chart::of(&spans, &shown, width)?;
        Some(chart.lines(&shown, false))
    }

    #[test]
    fn each_branch_has_a_lane_and_each_location_a_bar() {
        assert_eq!(
            chart(40).unwrap(),
            [
                "          0s             5.000s  10.000s",
                "charge      ××××",
                "both           ────────────────────────>",
                "  a                     ────────────────",
                "    pack                ████████████████",
                "  b            ────────────────────────>",
                "    nap        ░░░░░░░░░░░░░░░░░░░░░░░░>",
            ]
        );
    }

    #[test]
    fn a_chart_keeps_to_any_width_or_gives_way_to_lines() {
        for width in 0..200 {
            for line in chart(width).unwrap_or_default() {
                assert!(measure_text_width(&line) <= width, "{width}: {line}");
            }
        }
        assert!(chart(10).is_none());
        let (history, width) = (history(), None);
        let spans = Spans::of(&history);
        assert_eq!(
            plain(&spans, &spans.walk(None), width),
            [
                "+1.000s  charge    step failed after 4 attempts 1.000s declined (exhausted after 4 attempts)",
                "+2.000s  both      join 8.000s",
                "+5.000s    a       branch 5.000s",
                "+5.000s      pack  step done 5.000s",
                "+2.000s    b       branch",
                "+2.000s      nap   sleep waiting until 1970-01-01T00:01:30.000Z",
            ]
        );
    }
}
