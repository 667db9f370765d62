//! The tests of this package are programs that must, or must not, compile.
//!
//! Here is what reads them, and what the compiler says of them: for the tests that look at all of them.

use std::path::Path;
use std::{fs, io};

/// A program that does not compile.
#[derive(Debug)]
pub struct Program {
    /// The folder it is in.
    pub group: String,
    /// Its file's name, without `.rs`.
    pub name: String,
    /// What it is about: what its first lines say.
    pub about: String,
    /// The program, without those.
    pub code: String,
    /// What the compiler says, error by error.
    pub errors: Vec<Said>,
}

/// One error, with all that the compiler says of it.
#[derive(Debug)]
pub struct Said(String);

/// All programs under `fail`, and all edits under `lock/refused`, by folder and name.
///
/// # Errors
/// When one cannot be read, or has no `.stderr` beside it.
pub fn programs() -> io::Result<Vec<Program>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("fail");
    let mut programs = Vec::new();
    for group in fs::read_dir(root)? {
        for file in fs::read_dir(group?.path())? {
            let path = file?.path();
            if path.extension().is_some_and(|kind| kind == "rs") {
                programs.push(Program::read(&path)?);
            }
        }
    }
    for file in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("lock/refused"))? {
        let path = file?.path();
        if path.extension().is_some_and(|kind| kind == "stderr") {
            programs.push(Program::of_edit(&path)?);
        }
    }
    programs.sort_by(|a, b| (&a.group, &a.name).cmp(&(&b.group, &b.name)));
    Ok(programs)
}

impl Program {
    fn read(path: &Path) -> io::Result<Self> {
        let of = |part: Option<&std::ffi::OsStr>| {
            part.unwrap_or_default().to_string_lossy().into_owned()
        };
        let source = fs::read_to_string(path)?;
        let (about, code): (Vec<&str>, Vec<&str>) =
            source.lines().partition(|line| line.starts_with("//!"));
        let about: Vec<_> = about
            .iter()
            .map(|line| line.trim_start_matches("//!").trim())
            .collect();
        let said = fs::read_to_string(path.with_extension("stderr"))?;
        Ok(Self {
            group: of(path.parent().and_then(Path::file_name)),
            name: of(path.file_stem()),
            about: about.join(" "),
            code: code.join("\n").trim().to_owned(),
            errors: errors(&said),
        })
    }
}

impl Program {
    /// An edit of a program that is locked. One that is not of its code is told in words.
    fn of_edit(said: &Path) -> io::Result<Self> {
        let edit = fs::read_to_string(said.with_extension("edit"));
        let edit = edit.or_else(|_| fs::read_to_string(said.with_extension("txt")))?;
        let name = said.file_stem().unwrap_or_default().to_string_lossy();
        let mut about = name.replace('_', " ");
        if let Some(first) = about.get_mut(..1) {
            first.make_ascii_uppercase();
        }
        about.push('.');
        Ok(Self {
            group: "lock".to_owned(),
            name: name.into_owned(),
            about,
            code: edit.trim().to_owned(),
            errors: errors(&fs::read_to_string(said)?),
        })
    }
}

fn errors(said: &str) -> Vec<Said> {
    let mut blocks: Vec<String> = Vec::new();
    let mut is_error = false;
    for line in said.lines() {
        if line.starts_with("error") || line.starts_with("warning") {
            is_error = line.starts_with("error");
            if is_error {
                blocks.push(String::new());
            }
        }
        if is_error && let Some(block) = blocks.last_mut() {
            *block += line;
            block.push('\n');
        }
    }
    blocks.into_iter().map(Said).collect()
}

impl Said {
    /// Its first line.
    pub fn first_line(&self) -> &str {
        self.0.lines().next().unwrap_or_default()
    }

    /// Its first line, without `error[E0277]:` before it, and without the place that it may name.
    pub fn text(&self) -> &str {
        let line = self.first_line();
        let text = line.split_once(": ").map_or(line, |(_, text)| text);
        text.split("; first at $DIR").next().unwrap_or(text)
    }

    /// Whether it says what to do.
    pub fn has_way_out(&self) -> bool {
        self.0.lines().any(is_way_out)
    }

    /// All of it.
    pub fn whole(&self) -> &str {
        &self.0
    }

    /// What a reader needs of it: what is wrong, where, why, and the ways out. What the compiler tells of the library's
    /// insides is left out.
    pub fn in_short(&self) -> String {
        let mut out = String::new();
        let mut is_kept = true;
        let mut lines = self.0.lines().peekable();
        while let Some(line) = lines.next() {
            let is_noted = line.trim_start().starts_with("= ");
            if line.starts_with("help: ") {
                is_kept = is_way_out(line);
            } else if line.starts_with("note: ") {
                // What it tells of the program is kept, and of the library not.
                is_kept = lines
                    .peek()
                    .is_some_and(|place| place.contains("--> fail/"))
                    && !NO_NOTE.iter().any(|start| line[6..].starts_with(start));
            } else if is_noted {
                is_kept = line.contains("= note: ")
                    && !["this error originates", "required for `"]
                        .iter()
                        .any(|inside| line.contains(inside));
            }
            let is_place = ["-->", ":::"]
                .iter()
                .any(|arrow| line.trim_start().starts_with(arrow));
            if is_kept && !is_place && !line.is_empty() {
                out += line.split("; first at $DIR").next().unwrap_or(line);
                out.push('\n');
            }
        }
        // An empty margin at the end is what is left of what stood below.
        while let Some(shorter) = out.trim_end().strip_suffix('|') {
            if !shorter.ends_with("\n ") && !shorter.trim_end_matches(' ').ends_with('\n') {
                break;
            }
            out = format!("{}\n", shorter.trim_end());
        }
        out
    }
}

/// A line that says what to do: `help: ..`, by us or by the compiler.
fn is_way_out(line: &str) -> bool {
    let line = line.trim_start();
    let line = line.strip_prefix("= note: ").unwrap_or(line);
    let line = line.strip_prefix("= ").unwrap_or(line);
    let Some(help) = line.strip_prefix("help: ") else {
        return false;
    };
    !NO_HELP.iter().any(|start| help.starts_with(start))
}

/// What it notes of a program that nobody asks for.
const NO_NOTE: &[&str] = &[
    "the lint level is defined here",
    "erroneous constant encountered",
    "the above error was encountered",
    "function defined here",
];

/// What the compiler calls help and is none: what it knows about types, and what would hide the mistake.
const NO_HELP: &[&str] = &[
    "the trait ",
    "the following other types implement",
    "the return type of this call is",
    "the type constructed contains",
    "within ",
    "an identifier with the same name is defined here",
    "use `let _ = ...`",
    "remove the `.await`",
    "alternatively, consider making",
];
