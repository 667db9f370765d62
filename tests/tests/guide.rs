//! The guide is a book: no page is forgotten, and what it says of programs and figures is what they are.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path))
        .unwrap_or_else(|error| panic!("{path}: {error}"))
        .replace("\r\n", "\n")
}

fn page(name: &str) -> String {
    read(&format!("workflow/src/guide/{name}.md"))
}

/// What stands between `before` and `after`, wherever that is.
fn all_between<'text>(text: &'text str, before: &str, after: &str) -> Vec<&'text str> {
    text.split(before)
        .skip(1)
        .filter_map(|rest| rest.split_once(after))
        .map(|(between, _)| between)
        .collect()
}

#[test]
fn every_page_is_in_the_book_and_in_the_api_docs_in_one_order() {
    let summary = read("workflow/src/guide/SUMMARY.md");
    let modules = read("workflow/src/guide/mod.rs");
    let book = all_between(&summary, "](", ".md)");
    let table = all_between(&modules, "| [`", "`] |");
    assert_eq!(book, table, "SUMMARY.md, and the table of mod.rs");
    let includes = all_between(&modules, "include_str!(\"", ".md\")");
    assert_eq!(book, includes, "SUMMARY.md, and the modules of mod.rs");
    let files: BTreeSet<String> = fs::read_dir(root().join("workflow/src/guide"))
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().into_string().ok())
        .filter_map(|name| name.strip_suffix(".md").map(str::to_owned))
        .filter(|name| name != "SUMMARY")
        .collect();
    let book: BTreeSet<String> = book.into_iter().map(str::to_owned).collect();
    assert_eq!(book, files, "SUMMARY.md, and the files beside it");
}

#[test]
fn the_tutorial_ends_with_the_program_of_its_example() {
    let page = page("tutorial");
    let program = all_between(&page, "```rust,ignore\n", "```");
    let [program] = program[..] else {
        panic!("the tutorial has one whole program, not {}", program.len());
    };
    let mut program = program.to_owned();
    for edit in all_between(&page, "```diff\n", "```") {
        let side = |sign| -> String {
            let kept = edit.lines().filter(|line| line.starts_with([' ', sign]));
            kept.flat_map(|line| [&line[1..], "\n"]).collect()
        };
        let (old, new) = (side('-'), side('+'));
        assert_eq!(
            program.matches(&old).count(),
            1,
            "where is this edited?\n{old}"
        );
        program = program.replace(&old, &new);
    }
    let example = read("examples/tutorial.rs");
    assert!(
        example.ends_with(&format!("\n\n{program}")),
        "examples/tutorial.rs is not\n{program}"
    );
}

/// What `limits` says, and the code that says so.
const LIMITS: &[(&str, &str, &str)] = &[
    ("1 MiB each", "engine/builder.rs", "payload_limit: 1 << 20,"),
    (
        "| 1 MiB | `Api::body_limit`",
        "http/api.rs",
        "const BODY: usize = 1 << 20;",
    ),
    (
        "1 to 512 bytes",
        "replay/id.rs",
        "pub const MAX: usize = 512;",
    ),
    (
        "1 to 512 visible ASCII",
        "http/asked.rs",
        "const LONGEST_KEY: usize = 512;",
    ),
    (
        "of a `join!` | 12",
        "context/join.rs",
        "    [12: 0 A 1 B 2 C 3 D 4 E 5 F 6 G 7 H 8 I 9 J 10 K 11 L]\n}",
    ),
    (
        "exported | 256",
        "replay/history.rs",
        "const DEEPEST: usize = 256;",
    ),
    (
        "the first and 3 retries",
        "context/step/options.rs",
        "const RETRIES: u32 = 3;",
    ),
    (
        "200 ms, then twice as long each time, 30 s at most",
        "replay/retry.rs",
        "Self::exponential(Duration::from_millis(200), 2.0, Duration::from_secs(30))",
    ),
    (
        "the time of an attempt | 30 s",
        "context/step/options.rs",
        "const TIMEOUT: Duration = Duration::from_secs(30);",
    ),
    (
        "| 4, and 30 s;",
        "context/undo.rs",
        "const ATTEMPTS: u32 = 4;",
    ),
    (
        "| 4, and 30 s;",
        "context/undo.rs",
        "const TIMEOUT: Duration = Duration::from_secs(30);",
    ),
    (
        "`and_undo()` | 30 s",
        "engine/cancel.rs",
        "const GRACE: Duration = Duration::from_secs(30);",
    ),
    (
        "after 20 iterations",
        "context/looping.rs",
        "const EVERY: u64 = 20;",
    ),
    (
        "its last 20 iterations",
        "context/looping.rs",
        "keep: EVERY,",
    ),
    (
        "within 10 s",
        "clock.rs",
        "fn longest_wait(&self) -> Duration {\n        Duration::from_secs(10)",
    ),
    (
        "at once | 10,000",
        "engine/builder.rs",
        "in_memory: 10_000,",
    ),
    (
        "further away than 1 s",
        "engine/builder.rs",
        "linger: Duration::from_secs(1),",
    ),
    (
        "commit | 128",
        "engine/builder.rs",
        "const DOOR: usize = 128;",
    ),
    (
        "those of the next minute",
        "engine/scheduler.rs",
        "const STRETCH: u32 = 6;",
    ),
    ("| 4 MiB |", "store/redb/mod.rs", "cache: 4 << 20,"),
    (
        "| 32,768 batches",
        "store/redb/mod.rs",
        "fold_entries: 32 << 10,",
    ),
    ("or 16 MiB", "store/redb/mod.rs", "fold_bytes: 16 << 20,"),
    (
        "falls behind | 256",
        "engine/board.rs",
        "const KEPT: usize = 256;",
    ),
    (
        "From 10,000 records on",
        "engine/builder.rs",
        "long_history: 10_000,",
    ),
    (
        "| 7 days |",
        "engine/builder.rs",
        "keep_messages: Duration::from_secs(7 * 86_400),",
    ),
    (
        "each tenth of the shortest time",
        "engine/retention.rs",
        "(shortest / 10)",
    ),
    (
        "at least every 15 minutes",
        "engine/retention.rs",
        "Duration::from_secs(900)",
    ),
    ("cut to 64 MiB", "store/redb/log/mod.rs", "64 << 20"),
    (
        "again 12 times",
        "engine/retry.rs",
        "const STORAGE_ATTEMPTS: u32 = 12;",
    ),
    (
        "left for 30 s",
        "engine/retry.rs",
        "const STORAGE_PAUSE: Duration = Duration::from_secs(30);",
    ),
    (
        "died twice in a row",
        "engine/quarantine.rs",
        "const SUSPECT: u32 = 2;",
    ),
    (
        "more than ten times",
        "engine/quarantine.rs",
        "const HOPELESS: u32 = 10;",
    ),
    (
        "| 100 if nothing is said",
        "http/runs.rs",
        "const PAGE: usize = 100;",
    ),
    (
        "1,000 at most",
        "http/runs.rs",
        "const LARGEST_PAGE: usize = 1_000;",
    ),
    (
        "`wait` | 60 s",
        "http/api.rs",
        "const PATIENCE: Duration = Duration::from_secs(60);",
    ),
    (
        "every 15 s",
        "http/events.rs",
        "const QUIET: Duration = Duration::from_secs(15);",
    ),
    (
        "last 64 commands",
        "guided/position.rs",
        "const KEYS: usize = 64;",
    ),
    (
        "last 500 operations",
        "guided/operations.rs",
        "const SHOWN: usize = 500;",
    ),
    (
        "last 100 lines",
        "operation/step.rs",
        "const LINES: usize = 100;",
    ),
];

#[test]
fn the_page_of_limits_has_the_numbers_of_the_code() {
    let page = page("limits");
    let mut wrong = Vec::new();
    for (said, file, code) in LIMITS {
        if !page.contains(said) {
            wrong.push(format!("limits.md does not say `{said}` any more"));
        }
        if !read(&format!("workflow/src/{file}")).contains(code) {
            wrong.push(format!(
                "{file} has no `{code}`: what should limits.md say for `{said}`?"
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The README's figures come from the benchmark, the others from the gates of `.ci/cost`.
#[test]
fn the_page_of_performance_has_the_figures_of_the_readme_and_the_gates() {
    let (page, readme, gates) = (page("performance"), read("README.md"), read(".ci/cost"));
    let figure = |line: &str, column: usize| -> String {
        let cell = line.split('|').nth(column).unwrap_or_default();
        cell.trim().to_owned()
    };
    let row = |text: &str, name: &str, nth: usize| -> String {
        let mut lines = text
            .lines()
            .filter(|line| line.starts_with(&format!("| {name}")));
        let found = lines.nth(nth);
        found
            .unwrap_or_else(|| panic!("no row `{name}`"))
            .to_owned()
    };
    for name in [
        "append + fdatasync of 128 B",
        "redb alone",
        "a step |",
        "a step, relaxed",
    ] {
        assert_eq!(
            figure(&row(&page, name, 0), 2),
            figure(&row(&readme, name, 0), 2),
            "{name}"
        );
    }
    for (nth, name) in ["64 runs at once", "512 runs at once"]
        .into_iter()
        .enumerate()
    {
        let ours = row(&page, name, 0);
        assert_eq!(
            figure(&ours, 2),
            figure(&row(&readme, "a raw log", nth), 2),
            "{name}"
        );
        assert_eq!(
            figure(&ours, 3),
            figure(&row(&readme, "steps |", nth), 2),
            "{name}"
        );
    }
    let told = ["10000 steps", "100000 steps"].map(|name| figure(&row(&readme, name, 0), 2));
    let [short, long] = &told;
    assert!(
        page.contains(&format!(
            "{short} us each of 10,000 steps, {long} of 100,000"
        )),
        "replay: {told:?}"
    );
    let sleeping = ["390 B in the store", "0.9 ms", "8.2 ms"];
    for said in sleeping {
        assert!(page.contains(said) && readme.contains(said), "{said}");
    }
    for (name, gates_of) in [
        (
            "instructions",
            [
                "'instructions, when it is recorded'",
                "'instructions, when it is replayed'",
            ],
        ),
        (
            "allocations",
            [
                "'allocations, when it is recorded'",
                "'allocations, when it is replayed'",
            ],
        ),
        ("bytes written", ["'bytes written to the files", ""]),
    ] {
        for (column, gate) in gates_of
            .into_iter()
            .enumerate()
            .filter(|(_, gate)| !gate.is_empty())
        {
            let gate = gates
                .lines()
                .find(|line| line.starts_with(&format!("gate {gate}")));
            let limit = gate
                .and_then(|line| line.split(' ').next_back())
                .unwrap_or_default();
            assert_eq!(
                figure(&row(&page, name, 0), column + 2).replace(',', ""),
                limit,
                "{name}"
            );
        }
    }
}
