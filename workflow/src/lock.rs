//! What `lock!` does with the lock that the sources would have.

use std::path::Path;
use std::{env, fs};

/// Compares the lock at `path` with the text that the sources give, or writes it, as the environment says.
///
/// # Panics
/// When it is to be compared and differs, cannot be written, or the environment says something that is not known: as a
/// test does.
#[doc(hidden)]
pub fn lock(path: &str, text: &str) {
    let said = env::var("WORKFLOW_LOCK").unwrap_or_default();
    if let Err(why) = act(&said, Path::new(path), text) {
        panic!("{why}");
    }
}

fn act(said: &str, path: &Path, text: &str) -> Result<(), String> {
    // Git may have ended its lines in another way.
    let before = fs::read_to_string(path).ok();
    let before = before.map(|before| before.replace("\r\n", "\n"));
    let shown = path.display();
    let differences = before.as_deref().map(|before| differences(before, text));
    match (said.split(':').next().unwrap_or_default(), differences) {
        ("write", Some(differences)) if differences.is_empty() => Ok(()),
        ("write", _) => {
            write(path, text).map_err(|error| format!("{shown} cannot be written: {error}"))
        }
        ("check", None) => Err(format!(
            "{shown} is not there\nhelp: write it with `WORKFLOW_LOCK=write cargo test`, and commit it"
        )),
        ("check", Some(differences)) if !differences.is_empty() => Err(format!(
            "{shown} is not what this code would write:\n{differences}help: write it with `WORKFLOW_LOCK=write cargo test`, look at it, and commit it"
        )),
        ("", Some(differences)) if !differences.is_empty() => {
            let _ = std::io::Write::write_all(
                &mut std::io::stderr(),
                format!("{shown} does not say all that this code does:\n{differences}").as_bytes(),
            );
            Ok(())
        }
        ("check" | "", _) => Ok(()),
        _ => Err(format!(
            "WORKFLOW_LOCK={said} says nothing\nhelp: `write`, `write:checkout/mail,refund`, `check`, or leave it unset"
        )),
    }
}

/// Whole, or as it was: an interrupted build leaves no half of it.
fn write(path: &Path, text: &str) -> std::io::Result<()> {
    let beside = path.with_extension(format!("lock.{}", std::process::id()));
    fs::write(&beside, text)?;
    fs::rename(&beside, path)
}

/// The lines that only one of two texts has, in their order.
fn differences(before: &str, after: &str) -> String {
    if before == after {
        return String::new();
    }
    let (before, after): (Vec<_>, Vec<_>) = (before.lines().collect(), after.lines().collect());
    // What both begin and end with is not looked at: what follows takes as much as the rest of the one times that of the other.
    let same = |(old, new): &(&&str, &&str)| old == new;
    let head = before.iter().zip(&after).take_while(same).count();
    let most = before.len().min(after.len()) - head;
    let tails = before.iter().rev().zip(after.iter().rev()).take(most);
    let tail = tails.take_while(same).count();
    let (before, after) = (
        &before[head..before.len() - tail],
        &after[head..after.len() - tail],
    );
    // How many lines, from each pair on, both have in the same order: these stay.
    let mut common = vec![vec![0_u32; after.len() + 1]; before.len() + 1];
    for (at, line) in before.iter().enumerate().rev() {
        for (to, other) in after.iter().enumerate().rev() {
            common[at][to] = if line == other {
                common[at + 1][to + 1] + 1
            } else {
                common[at + 1][to].max(common[at][to + 1])
            };
        }
    }
    let mut lines = Vec::new();
    let (mut at, mut to) = (0, 0);
    while at < before.len() || to < after.len() {
        let (old, new) = (before.get(at), after.get(to));
        match (old, new) {
            (Some(old), Some(new)) if old == new => (at, to) = (at + 1, to + 1),
            (Some(old), _) if new.is_none() || common[at + 1][to] >= common[at][to + 1] => {
                lines.push(format!("  {:>4} - {old}\n", head + at + 1));
                at += 1;
            }
            (_, Some(new)) => {
                lines.push(format!("  {:>4} + {new}\n", head + to + 1));
                to += 1;
            }
            _ => {}
        }
    }
    lines.concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(name: &str) -> std::path::PathBuf {
        let dir = env::temp_dir().join(format!("workflow-lock-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).expect("a directory can be made");
        dir.join("workflow.lock")
    }

    #[test]
    fn it_is_written_only_when_asked() {
        let path = at("asked");
        act("", &path, "version 1\n").unwrap();
        assert!(!path.exists(), "nobody asked");
        let missing = act("check", &path, "version 1\n").unwrap_err();
        assert!(missing.contains("is not there\nhelp: "), "{missing}");
        act("write", &path, "version 1\n").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "version 1\n");
        act("", &path, "version 1\nworkflow a\n").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "version 1\n");
        act("write:a", &path, "version 1\nworkflow a\n").unwrap();
        assert_eq!(
            fs::read_to_string(&path).unwrap(),
            "version 1\nworkflow a\n"
        );
    }

    #[test]
    fn the_ends_of_lines_say_nothing() {
        let path = at("ends");
        fs::write(&path, "version 1\r\nworkflow a\r\n").unwrap();
        act("check", &path, "version 1\nworkflow a\n").unwrap();
    }

    #[test]
    fn what_differs_is_shown_by_lines() {
        let path = at("differs");
        fs::write(&path, "version 1\n\nworkflow a\n  step one\n  step two\n").unwrap();
        let wrong = act(
            "check",
            &path,
            "version 1\n\nworkflow a\n  step one\n  step more\n  step two\n",
        );
        let wrong = wrong.unwrap_err();
        assert!(wrong.contains("\n     5 +   step more\nhelp: "), "{wrong}");
        let (one, two) = ("a\nb\nc\nd\ne\n", "a\nc\nx\nd\ne\n");
        assert_eq!(differences(one, two), "     2 - b\n     3 + x\n");
        assert_eq!(differences("a\na\n", "a\n"), "     2 - a\n");
        assert_eq!(differences("", "a\n"), "     1 + a\n");
        let unknown = act("wirte", &path, "").unwrap_err();
        assert!(
            unknown.starts_with("WORKFLOW_LOCK=wirte says nothing\nhelp: "),
            "{unknown}"
        );
    }
}
