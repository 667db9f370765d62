//! `workflow::guide::errors`: each error, with the program that causes it. The page is written from the programs:
//! `ERRORS=write cargo test -p workflow-ui-tests --test page`.

use std::collections::BTreeSet;
use std::fmt::{self, Write};
use std::{env, fs};

use workflow_ui_tests::{Program, Said, programs};

const PAGE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../workflow/src/guide/errors.md"
);

/// The folders, in the order of the page: what each is called there, and what it is about.
const GROUPS: &[(&str, &str, &str)] = &[
    (
        "item",
        "Functions",
        "What `#[workflow]`, `#[step]` and `#[fragment]` may stand on.",
    ),
    ("options", "Options", "What stands in the attributes."),
    (
        "names",
        "Names",
        "Every durable operation has a name, read from the source, and every name is used once in its scope.",
    ),
    (
        "places",
        "Places",
        "Where something durable may be done, and what may leave a branch, a step or an `attempt!`.",
    ),
    (
        "macros",
        "Macros",
        "What stands in `sleep!`, `join!`, `recv!` and the others.",
    ),
    (
        "undo",
        "Undo",
        "What takes a step back, and where it stands.",
    ),
    (
        "guided",
        "Guided flows",
        "What stands in a `#[guided]` block, and the graph of its stages. [`guide::guided`](crate::guide::guided) teaches them.",
    ),
    (
        "schedules",
        "Schedules",
        "What stands in `cron!`, with feature `schedules`. [`guide::schedules`](crate::guide::schedules) tells what it says.",
    ),
    (
        "replay",
        "Replay",
        "What differs on replay. [`guide::replay`](crate::guide::replay) says what to do instead.",
    ),
    (
        "types",
        "Types",
        "What has to be recorded, sent, awaited or passed on: the compiler tells, and the library adds what to do.",
    ),
    (
        "lock",
        "The lock",
        "An edit that live runs would not survive: lines with `-` became those with `+`, in the program that is locked. [`guide::lock`](crate::guide::lock) says which edits they survive.",
    ),
];

const HEAD: &str = "\
Every error, with a program that causes it and the ways out.

Look for the words of yours, or go by what it is about. Each program is a test in the repository, under `ui-tests`, and this page is
written from them. Where it says `help:`, it says what to write instead; all errors of a function are told together.
";

fn page(programs: &[Program]) -> Result<String, fmt::Error> {
    let mut page = HEAD.to_owned();
    for (folder, title, about) in GROUPS {
        let of_group = || programs.iter().filter(|program| program.group == *folder);
        write!(page, "\n**{title}.** {about}\n\n")?;
        let mut listed = BTreeSet::new();
        for program in of_group() {
            for said in &program.errors {
                if listed.insert(said.text()) {
                    writeln!(page, "- [{}](#{})", plain(said.text()), anchor(program))?;
                }
            }
        }
    }
    for (folder, title, _) in GROUPS {
        write!(page, "\n# {title}\n")?;
        for program in programs.iter().filter(|program| program.group == *folder) {
            entry(&mut page, program)?;
        }
    }
    Ok(page)
}

fn entry(page: &mut String, program: &Program) -> fmt::Result {
    let about = program.about.split(" (").next().unwrap_or_default();
    write!(page, "\n<a id=\"{}\"></a>\n## ", anchor(program))?;
    let code = program.code.trim_end_matches("fn main() {}").trim();
    write!(
        page,
        "{}\n\n```text\n{code}\n```\n\n```text\n",
        plain(about.trim_end_matches('.'))
    )?;
    let said: Vec<_> = program.errors.iter().map(Said::in_short).collect();
    page.push_str(said.join("\n").trim_end());
    page.push_str("\n```\n");
    Ok(())
}

fn anchor(program: &Program) -> String {
    format!("{}-{}", program.group, program.name)
}

/// A line as it stands in Markdown: what is code in it is marked, and the rest is no markup.
fn plain(line: &str) -> String {
    let escaped = |text: &str| {
        text.replace('<', "\\<")
            .replace('[', "\\[")
            .replace('_', "\\_")
            .replace('*', "\\*")
    };
    let parts = line
        .split('`')
        .enumerate()
        .map(|(index, part)| match index % 2 {
            0 => escaped(part),
            _ => format!("`{part}`"),
        });
    parts.collect()
}

#[test]
fn the_page_shows_every_program_as_it_is() {
    let programs = programs().expect("the repository is whole");
    for program in &programs {
        let known = GROUPS.iter().any(|(folder, ..)| *folder == program.group);
        assert!(known, "the page has no part for `{}`", program.group);
    }
    let wanted = page(&programs).expect("a text takes all that is written to it");
    if env::var_os("ERRORS").is_some_and(|what| what == "write") {
        fs::write(PAGE, wanted).expect("the repository can be written");
        return;
    }
    let found = fs::read_to_string(PAGE).unwrap_or_default();
    let differing = wanted
        .lines()
        .zip(found.lines())
        .find(|(wanted, found)| wanted != found);
    assert!(
        wanted == found,
        "the page is out of date; write it with `ERRORS=write cargo test -p workflow-ui-tests --test page`: {differing:?}"
    );
}
