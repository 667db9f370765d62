//! The outline of a body as the graph reads it: the lines of the lock, without types, one space a level. Beside what the lock compares it
//! tells how control jumps.

use std::fmt::Write;

use super::text::print_site;
use super::tree::{self, Unseen};
use crate::model::{Jump, Part, Walked};

/// The outline of a body.
pub(crate) fn outline(walked: &Walked) -> String {
    let mut text = String::new();
    print(walked, &walked.outline, 0, &mut text);
    text
}

fn print(walked: &Walked, parts: &[Part], depth: usize, text: &mut String) {
    let pad = |depth: usize| " ".repeat(depth);
    for part in parts {
        let _ = write!(text, "{}", pad(depth));
        match part {
            Part::Leaves(jump) => {
                let (word, label) = match jump {
                    Jump::Return => ("return", None),
                    Jump::Continue(label) => ("continue", label.as_ref()),
                    Jump::Break(label) => ("break", label.as_ref()),
                };
                let _ = write!(text, "leaves {word}");
                if let Some(label) = label {
                    let _ = write!(text, " {label}");
                }
                text.push('\n');
            }
            Part::Choice { gates, arms, .. } => {
                let _ = write!(text, "choice");
                if !gates.is_empty() {
                    let _ = write!(text, " by {}", gates.join(", "));
                }
                text.push('\n');
                for arm in arms {
                    let _ = writeln!(text, "{}arm", pad(depth + 1));
                    print(walked, arm, depth + 2, text);
                }
            }
            Part::Site { index, bodies } => {
                let mut site = tree::site(walked, *index, &[], &Unseen, &mut Vec::new());
                // How members are known is nothing that is drawn.
                site.is_keyed = false;
                print_site(&site, text);
                if walked.sites[*index].details.is_endless {
                    text.push_str(" endless");
                }
                text.push('\n');
                for body in bodies {
                    let Some(branch) = &body.branch else {
                        print(walked, &body.parts, depth + 1, text);
                        continue;
                    };
                    let _ = writeln!(text, "{}branch {branch}", pad(depth + 1));
                    print(walked, &body.parts, depth + 2, text);
                }
            }
        }
    }
}
