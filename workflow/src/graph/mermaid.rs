//! A drawing in the language of Mermaid: what GitHub, GitLab and rustdoc themes draw in a page of Markdown.

use std::fmt::Write;

use super::drawing::{Class, Drawing, Way};
use super::look::Look;
use crate::replay::Kind;

/// The text of a drawing.
pub(super) fn print(drawing: &Drawing) -> String {
    let mut text = String::from("flowchart TD\n");
    nodes(drawing, None, 1, &mut text);
    for edge in &drawing.edges {
        let arrow = match edge.way {
            Way::On | Way::Back | Way::Leaves => "-->",
            Way::Fails | Way::Message | Way::Undoes | Way::Stood => "-.->",
        };
        let label = edge
            .label
            .as_deref()
            .map(|label| format!("|\"{}\"|", escaped(label)));
        let _ = writeln!(
            text,
            "    n{} {arrow}{} n{}",
            edge.from,
            label.unwrap_or_default(),
            edge.to
        );
    }
    for look in Look::ALL {
        // Only what is there, so that a small workflow gives a small text.
        if drawing.nodes.iter().any(|node| node.look == look) {
            let [fill, stroke, color] = look.colours();
            let _ = write!(
                text,
                "    classDef {} fill:{fill},stroke:{stroke},color:{color}",
                look.word()
            );
            if look.is_dashed() {
                text.push_str(",stroke-dasharray:3 3");
            }
            if look.is_bold() {
                text.push_str(",stroke-width:3px");
            }
            text.push('\n');
        }
    }
    text
}

fn nodes(drawing: &Drawing, group: Option<usize>, depth: usize, text: &mut String) {
    let pad = "    ".repeat(depth);
    for (number, node) in drawing.in_group(group) {
        let (open, close) = shape(node.class);
        let lines: Vec<String> = Drawing::text(node).map(escaped).collect();
        // An empty label would be the node's id.
        let label = if lines.is_empty() {
            " ".to_owned()
        } else {
            lines.join("<br/>")
        };
        let look = node.look.word();
        let _ = writeln!(text, "{pad}n{number}{open}\"{label}\"{close}:::{look}");
    }
    for (number, within) in drawing.groups_in(group) {
        let _ = writeln!(
            text,
            "{pad}subgraph g{number}[\"{}\"]",
            escaped(&within.label)
        );
        nodes(drawing, Some(number), depth + 1, text);
        let _ = writeln!(text, "{pad}end");
    }
}

fn shape(class: Class) -> (&'static str, &'static str) {
    match class {
        Class::Start | Class::End => ("([", "])"),
        Class::Choice => ("{", "}"),
        Class::Channel => ("[(", ")]"),
        Class::After(_) => ("((", "))"),
        Class::Site(kind) => match kind {
            Kind::Join | Kind::Race | Kind::JoinAll | Kind::Loop | Kind::Attempt => ("{{", "}}"),
            Kind::Sleep => ("(", ")"),
            Kind::Recv => ("[/", "/]"),
            Kind::Send | Kind::Reply => ("[\\", "\\]"),
            Kind::Checkpoint | Kind::Settle | Kind::Rollback => (">", "]"),
            Kind::Call | Kind::Child | Kind::Fragment => ("[[", "]]"),
            _ => ("[", "]"),
        },
    }
}

/// A text within a quoted label. What Mermaid or its Markdown would read as its own is said by entities, which it writes `#35;`.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for (at, char) in text.char_indices() {
        let is_word = |other: Option<char>| other.is_some_and(char::is_alphanumeric);
        let inner = is_word(text[..at].chars().next_back())
            && is_word(text[at + char.len_utf8()..].chars().next());
        match char {
            '_' if inner => out.push('_'),
            '"' | '#' | '&' | '<' | '>' | '`' | '*' | '_' | '\\' | '~' => {
                let _ = write!(out, "#{};", u32::from(char));
            }
            char if char.is_control() => out.push(' '),
            char => out.push(char),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_mermaid_would_read_as_its_own_is_escaped() {
        assert_eq!(
            escaped("a \"b\" <c> #d; `e`"),
            "a #34;b#34; #60;c#62; #35;d; #96;e#96;"
        );
        assert_eq!(escaped("cool_off"), "cool_off");
        assert_eq!(escaped("_both_"), "#95;both#95;");
        assert_eq!(escaped("two\nlines"), "two lines");
        assert_eq!(escaped("end-of graph"), "end-of graph");
    }
}
