//! A drawing in the language of Graphviz.

use std::fmt::Write;

use super::drawing::{Class, Drawing, Node, Way};
use crate::replay::Kind;

const HEAD: &str = "    node [shape=box, style=\"rounded,filled\", fontname=\"sans-serif\"];
    edge [fontname=\"sans-serif\", fontsize=11];
";

/// The text of a drawing.
pub(super) fn print(drawing: &Drawing) -> String {
    let mut text = format!("digraph {} {{\n{HEAD}", quoted(drawing.name));
    nodes(drawing, None, 1, &mut text);
    for edge in &drawing.edges {
        let label = edge
            .label
            .as_deref()
            .map(|label| format!("label={}", quoted(label)));
        let look = match edge.way {
            Way::On | Way::Leaves => None,
            // It goes up, and puts nothing below anything.
            Way::Back => Some("constraint=false"),
            Way::Fails => Some("style=dashed, color=\"#b91c1c\""),
            Way::Message => Some("style=dashed, color=\"#d97706\""),
            Way::Undoes => Some("style=dashed, color=\"#6d28d9\", constraint=false"),
            Way::Stood => Some("style=dotted, color=\"#d1d5db\""),
        };
        let looks: Vec<String> = label
            .into_iter()
            .chain(look.map(ToOwned::to_owned))
            .collect();
        let looks = if looks.is_empty() {
            String::new()
        } else {
            format!(" [{}]", looks.join(", "))
        };
        let _ = writeln!(text, "    n{} -> n{}{looks};", edge.from, edge.to);
    }
    text.push_str("}\n");
    text
}

fn nodes(drawing: &Drawing, group: Option<usize>, depth: usize, text: &mut String) {
    let pad = "    ".repeat(depth);
    for (number, node) in drawing.in_group(group) {
        let lines: Vec<&str> = Drawing::text(node).collect();
        let _ = writeln!(
            text,
            "{pad}n{number} [label={}{}];",
            quoted(&lines.join("\n")),
            look(node)
        );
    }
    for (number, within) in drawing.groups_in(group) {
        let _ = writeln!(
            text,
            "{pad}subgraph cluster_{number} {{\n{pad}    label={};",
            quoted(&within.label)
        );
        nodes(drawing, Some(number), depth + 1, text);
        let _ = writeln!(text, "{pad}}}");
    }
}

/// What a node looks like, beside what all do.
fn look(node: &Node) -> String {
    let shape = match node.class {
        Class::Start | Class::End => ", shape=oval",
        Class::Choice => ", shape=diamond",
        Class::Channel => ", shape=cylinder",
        Class::After(_) => ", shape=circle",
        Class::Site(kind) => match kind {
            Kind::Join | Kind::Race | Kind::JoinAll | Kind::Loop | Kind::Attempt => {
                ", shape=hexagon"
            }
            Kind::Recv => ", shape=parallelogram",
            Kind::Send | Kind::Reply => ", shape=trapezium",
            Kind::Checkpoint | Kind::Settle | Kind::Rollback => ", shape=cds",
            Kind::Call | Kind::Child | Kind::Fragment => ", peripheries=2",
            _ => "",
        },
    };
    let [fill, stroke, text] = node.look.colours();
    let more = match node.look {
        look if look.is_dashed() => ", style=\"filled,dashed\"",
        look if look.is_bold() => ", penwidth=3",
        _ => "",
    };
    format!("{shape}, fillcolor=\"{fill}\", color=\"{stroke}\", fontcolor=\"{text}\"{more}")
}

/// A text as Graphviz reads it: in quotes a backslash begins a word of its own.
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for char in text.chars() {
        match char {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            // It reads the entities of HTML.
            '&' => out.push_str("&amp;"),
            char if char.is_control() => out.push(' '),
            char => out.push(char),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_graphviz_would_read_as_its_own_is_escaped() {
        assert_eq!(quoted("a \"b\" \\N"), r#""a \"b\" \\N""#);
        assert_eq!(quoted("two\nlines"), r#""two\nlines""#);
        assert_eq!(quoted("end-of <graph>"), r#""end-of <graph>""#);
        assert_eq!(quoted("&lt;"), r#""&amp;lt;""#);
    }
}
