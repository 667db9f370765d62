//! Every error says what to do, at the user's own words; and every one of ours is shown by a program.

use std::collections::BTreeSet;
use std::path::Path;
use std::{fs, io};

use workflow_ui_tests::{Said, programs};

/// What the compiler words, where the library has no say: the program, how the error begins, and why it is good enough.
const THE_COMPILERS: &[(&str, &str, &str)] = &[
    // Where the name itself says what to do.
    (
        "names/workflow_twice",
        "the name `two_workflows_of_this_crate_",
        "the name says that one of them needs another",
    ),
    (
        "names/workflow_twice_in_a_crate",
        "the name `two_workflows_of_this_crate_",
        "the name says that one of them needs another",
    ),
    (
        "lock/workflow_named_twice",
        "the name `two_workflows_of_this_crate_",
        "the name says that one of them needs another",
    ),
    // Of the user's own types, which it tells at the user's own tokens.
    (
        "macros/sleep_type",
        "mismatched types",
        "it names `Duration`, and what was found; a trait in its place would not let `into()` and `parse()` be inferred",
    ),
    (
        "types/channels_of_two_types",
        "mismatched types",
        "it names both messages' types, at the second channel",
    ),
    (
        "types/no_channel",
        "mismatched types",
        "it names `Channel`, and what was found; a trait that asks for a channel tells of it twice",
    ),
    (
        "types/race_of_two_types",
        "mismatched types",
        "it names both branches' types, at the second branch",
    ),
    (
        "types/send_value",
        "mismatched types",
        "it names the channel's type, and what was found",
    ),
    (
        "types/request_answered_twice",
        "mismatched types",
        "it names the answer's type, and what was found",
    ),
    (
        "schedules/not_a_call",
        "mismatched types",
        "it names `Call`, and what was found",
    ),
    (
        "types/wrong_arguments",
        "mismatched types",
        "it names the parameter's type, and what was found",
    ),
    (
        "types/attempt_foreign_error",
        "`?` couldn't convert",
        "it says which `From<..> for Failure` is missing; `From` is not ours, so no message can stand on it",
    ),
    (
        "types/no_from_failure",
        "`?` couldn't convert",
        "it says at the type what to implement: `From<Failure>`",
    ),
    (
        "types/odd_error_in_branch",
        "`?` couldn't convert",
        "it shows the type that is no error; `From` is not ours, so no message can stand on it",
    ),
    (
        "types/question_without_result",
        "the `?` operator can only be used",
        "it says at the function what to return",
    ),
    (
        "types/request_answered_twice",
        "use of moved value",
        "it shows where the request was answered first, and that `reply` takes it",
    ),
    // `Fn` and `Send` are not ours, so no message can stand on them. What is changed by `=` is told by the macros, with a way out;
    // whether a method changes what it is called on only the compiler knows, and it underlines the variable.
    (
        "types/mutation_by_method",
        "expected a closure that implements the `Fn` trait",
        "it names the variable",
    ),
    (
        "types/carry_forgotten_by_method",
        "cannot borrow `seen` as mutable",
        "it shows the list that lacks the variable",
    ),
    (
        "types/not_send",
        "future cannot be sent between threads safely",
        "it names the variable and the `.await`",
    ),
    (
        "types/not_send_step",
        "future cannot be sent between threads safely",
        "it names the variable and the `.await`",
    ),
    (
        "types/unrecordable_branch",
        "future cannot be sent between threads safely",
        "it names the variable and the `.await`",
    ),
    // Of names.
    (
        "names/macro_not_imported",
        "cannot find macro `sleep`",
        "what is missing is an import, which the compiler offers where it knows of one",
    ),
    (
        "names/step_not_imported",
        "cannot find attribute `step`",
        "what is missing is an import, as everywhere",
    ),
    (
        "names/workflow_twice",
        "",
        "one function is there twice, and the compiler tells so of each thing that is made of it",
    ),
    (
        "types/carry_unknown",
        "cannot find value `cursor`",
        "what is missing is a variable, as everywhere; one that a macro binds the macros would miss",
    ),
    (
        "types/context_out_of_reach",
        "cannot find value `__workflow_cx`",
        "nobody writes this: it shows that nobody can",
    ),
    // Of hooks and conditions of a flow: the function's type is told where it stands, and what it should be.
    (
        "guided/hook_types",
        "mismatched types",
        "it names the type that is asked for, and what was found",
    ),
    (
        "guided/hook_types",
        "no function or associated item named `gone`",
        "what is missing is a function, as everywhere",
    ),
    (
        "guided/hook_types",
        "expected `impl Future<Output = Option<()>>`",
        "it names the type that is asked for, and what was found",
    ),
    // Of what is no Rust, before the macro is asked.
    (
        "guided/asking_types",
        "mismatched types",
        "both types are told, and a check or guard that is awaited is typed as one that is not",
    ),
    (
        "guided/item",
        "expected type, found",
        "it follows what is written, and ours has a way out",
    ),
    (
        "item/unreadable_body",
        "expected expression",
        "it follows what is written, and ours has a way out",
    ),
];

#[test]
fn there_are_programs_for_all_that_goes_wrong() {
    let programs = programs().expect("the repository is whole");
    assert!(programs.len() >= 120, "{}", programs.len());
    for program in &programs {
        let (group, name) = (&program.group, &program.name);
        assert!(!program.errors.is_empty(), "{group}/{name} has no error");
        let is_sentence = program.about.split(" (").next().unwrap_or_default();
        assert!(
            is_sentence.ends_with(['.', '?']),
            "{group}/{name} begins with what it is about"
        );
    }
}

#[test]
fn every_error_says_what_to_do() {
    let mut without = Vec::new();
    let mut needed = BTreeSet::new();
    for program in programs().expect("the repository is whole") {
        let path = format!("{}/{}", program.group, program.name);
        for said in program.errors.iter().filter(|said| !said.has_way_out()) {
            let excused = THE_COMPILERS
                .iter()
                .position(|(of, start, _)| *of == path && said.text().starts_with(start));
            match excused {
                Some(index) => drop(needed.insert(index)),
                None => without.push(format!("{path}: {}", said.whole())),
            }
        }
    }
    assert!(without.is_empty(), "no way out in:\n{}", without.join("\n"));
    for (index, (path, start, _)) in THE_COMPILERS.iter().enumerate() {
        assert!(needed.contains(&index), "{path}: `{start}` needs no excuse");
    }
}

/// What a trait says when it is not there, and what a value says that is dropped: the messages of the library's own.
fn attributes(folder: &Path, found: &mut Vec<(String, String)>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            attributes(&path, found)?;
        } else if path.extension().is_some_and(|kind| kind == "rs") {
            let text = fs::read_to_string(&path)?;
            for (start, end) in [
                ("#[diagnostic::on_unimplemented(", ")]\n"),
                ("#[must_use = \"", "\"]\n"),
            ] {
                for rest in text.split(start).skip(1) {
                    let inside = rest.split(end).next().unwrap_or_default();
                    found.push((path.display().to_string(), inside.to_owned()));
                }
            }
        }
    }
    Ok(())
}

/// Reasons why one of them is shown by no program.
const SHOWN_NOWHERE: &[(&str, &str)] = &[
    (
        "futures do nothing unless polled",
        "the compiler's own words, on what only expansions hold",
    ),
    (
        "an undo gives `()`",
        "the compiler tells of the function as a whole first",
    ),
    (
        "is not a channel that clients may send on",
        "it is shown where feature `axum` is on, which the programs leave out",
    ),
    ("help: end it with `.build()`", "a builder is everyday Rust"),
    ("help: end it with `.over(&history)`", "as with a builder"),
    (
        "help: add it to a flow with `.stage(..)`",
        "as with a builder",
    ),
    (
        "help: give it to `.describe(workflow, shape)`",
        "as with a builder",
    ),
    (
        "help: end it with `.into_router()`, and nest that",
        "as with a builder",
    ),
    ("help: open it with `.open()`", "as with a builder"),
    ("a preflight that is not awaited", "as with a step"),
    ("an operation that is not awaited", "as with a step"),
    ("a flow that is not awaited", "as with a step"),
    ("an edit that is not awaited", "as with a step"),
    ("a command that is not awaited", "as with a step"),
    ("a cancellation that is not awaited", "as with a step"),
    ("a fragment that was only called", "as with a step"),
    ("a start that is not awaited", "as with a step"),
    ("only that runs the workflow", "as with a step"),
    ("help: ask it for something: ", "a handle is everyday Rust"),
    (
        "help: give it to the engine's builder: `.schedule(..)`",
        "as with a builder",
    ),
];

#[test]
fn every_message_of_the_library_has_a_way_out_and_a_program() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../workflow/src");
    let mut found = Vec::new();
    attributes(&source, &mut found).expect("the repository is whole");
    assert!(found.len() > 20, "{found:?}");
    let all: String = programs()
        .expect("the repository is whole")
        .iter()
        .flat_map(|program| &program.errors)
        .map(Said::whole)
        .collect();
    for (path, inside) in found {
        if SHOWN_NOWHERE.iter().any(|(part, _)| inside.contains(part)) {
            continue;
        }
        assert!(inside.contains("help: "), "{path}: {inside}");
        // The line that the compiler prints of it, with anything for `{Self}`.
        let line = inside
            .split("message = \"")
            .nth(1)
            .map_or(&*inside, |rest| rest.split("\",\n").next().unwrap_or(rest));
        let shown = all.lines().any(|said| {
            let mut said = said;
            line.split(['{', '}'])
                .step_by(2)
                .all(|part| match said.find(part) {
                    Some(at) => {
                        said = &said[at + part.len()..];
                        true
                    }
                    None => false,
                })
        });
        assert!(shown, "{path}: `{line}` is shown by no program");
    }
}
