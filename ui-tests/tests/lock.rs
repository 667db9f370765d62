//! The lock: a shop runs live and is locked, and its code is edited, one edit at a time.
//!
//! `lock/before.rs` is the shop, `lock/workflow.lock` what is locked of it. An edit is a file of lines: those with `-` are
//! replaced by those with `+` that follow. `lock/refused` does not compile, with what the compiler says of each beside it;
//! `lock/survives` does, and the runs that were live before it end under it.
//!
//! `LOCK=overwrite cargo test -p workflow-ui-tests --test lock` writes what is expected anew.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::{env, fs};

/// A workspace with a package for each edit.
struct Packages {
    dir: PathBuf,
}

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("lock")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Leaves a file as it is that says this already: cargo looks at the time.
fn write(path: &Path, text: &str) {
    if fs::read_to_string(path).is_ok_and(|before| before == text) {
        return;
    }
    fs::create_dir_all(path.parent().expect("it has a directory")).expect("it can be made");
    fs::write(path, text).expect("the file can be written");
}

/// The edits of a directory by name.
fn edits(of: &str) -> BTreeMap<String, String> {
    let mut edits = BTreeMap::new();
    for entry in fs::read_dir(fixtures().join(of)).expect("the repository is whole") {
        let path = entry.expect("the entry is readable").path();
        if path.extension().is_some_and(|kind| kind == "edit") {
            let name = path.file_stem().expect("it has a name").to_string_lossy();
            edits.insert(name.into_owned(), read(&path));
        }
    }
    edits
}

/// The shop after an edit.
fn edited(edit: &str) -> String {
    let mut text = read(&fixtures().join("before.rs"));
    let mut lines = edit.lines().peekable();
    while lines.peek().is_some() {
        let mut taken = |mark: char| {
            let mut part: Vec<&str> = Vec::new();
            while let Some(line) = lines.next_if(|line| line.starts_with(mark)) {
                part.push(&line[1..]);
            }
            part.join("\n")
        };
        let (from, to) = (taken('-'), taken('+'));
        assert!(!from.is_empty(), "an edit begins with what it replaces");
        assert!(text.contains(&from), "not in the shop:\n{from}");
        text = text.replacen(&from, &to, 1);
    }
    text
}

impl Packages {
    fn new(name: &str) -> Self {
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join("lock")
            .join(name);
        let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        write(
            &dir.join("Cargo.toml"),
            "[workspace]\nresolver = \"3\"\nmembers = [\"*\"]\nexclude = [\"target\"]\n[profile.dev]\ndebug = 0\n",
        );
        // The versions that the repository builds with.
        if !dir.join("Cargo.lock").exists() {
            write(
                &dir.join("Cargo.lock"),
                &read(&repository.join("Cargo.lock")),
            );
        }
        Self { dir }
    }

    /// A package of that name with the shop in it; `lock` is what is locked.
    fn add(&self, name: &str, shop: &str, lock: Option<&str>) {
        let dir = self.dir.join(name);
        let library = Path::new(env!("CARGO_MANIFEST_DIR")).join("../workflow");
        let library = library.canonicalize().expect("the repository is whole");
        let library = library.display();
        let manifest = format!(
            "[package]\nname = \"{name}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\
             [lib]\nname = \"shop\"\ndoctest = false\n\
             [dependencies]\n\
             serde = {{ version = \"1\", features = [\"derive\"] }}\n\
             tokio = {{ version = \"1\", features = [\"rt\", \"time\", \"macros\"] }}\n\
             workflow = {{ path = \"{library}\", features = [\"engine\", \"redb\"] }}\n"
        );
        write(&dir.join("Cargo.toml"), &manifest);
        write(&dir.join("src/lib.rs"), shop);
        write(&dir.join("src/main.rs"), &read(&fixtures().join("main.rs")));
        write(
            &dir.join("tests/lock.rs"),
            "#[test]\nfn live_runs_survive_this_code() {\n    workflow::lock!();\n}\n",
        );
        match lock {
            Some(lock) => write(&dir.join("workflow.lock"), lock),
            None => drop(fs::remove_file(dir.join("workflow.lock"))),
        }
    }

    fn cargo(&self, words: &[&str], lock: &str) -> Output {
        let mut cargo = Command::new(env!("CARGO"));
        cargo
            .args(words)
            .current_dir(&self.dir)
            .env("CARGO_TARGET_DIR", self.dir.join("../target"))
            .env("CARGO_TERM_COLOR", "never")
            .env_remove("RUSTFLAGS")
            .env_remove("WORKFLOW_LOCK");
        if !lock.is_empty() {
            cargo.env("WORKFLOW_LOCK", lock);
        }
        cargo.output().expect("cargo runs")
    }

    /// What the compiler says of each package.
    fn errors(&self, words: &[&str]) -> BTreeMap<String, String> {
        let mut words = words.to_vec();
        words.extend(["--keep-going", "--message-format=json"]);
        let output = self.cargo(&words, "");
        // By the file that is compiled: several are at a time, in any order.
        let mut said: BTreeMap<String, BTreeMap<String, Vec<String>>> = BTreeMap::new();
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            let Ok(message) = serde_json::from_str::<serde_json::Value>(line) else {
                continue;
            };
            let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
            let rendered = text(&message["message"]["rendered"]);
            let is_summary = ["error: aborting due to", "error: could not compile"]
                .iter()
                .any(|summary| rendered.starts_with(summary));
            if message["message"]["level"] != "error" || is_summary {
                continue;
            }
            let manifest = text(&message["manifest_path"]);
            let name = Path::new(&manifest).parent().and_then(Path::file_name);
            let name = name.unwrap_or_default().to_string_lossy().into_owned();
            let rendered = rendered.replace(&format!("{name}/"), "");
            let file = text(&message["target"]["src_path"]);
            let said = said.entry(name).or_default().entry(file).or_default();
            // A file may be compiled by itself and for its tests.
            if !said.contains(&rendered) {
                said.push(rendered);
            }
        }
        let said: BTreeMap<String, String> = said
            .into_iter()
            .map(|(name, files)| (name, files.into_values().flatten().collect()))
            .collect();
        assert!(
            !said.is_empty() || output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        said
    }
}

fn stdout(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let wrong = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{wrong}");
    said
}

/// Compares with what is expected, or writes it anew.
fn expect(path: &Path, text: &str) {
    if env::var("LOCK").is_ok_and(|said| said == "overwrite") {
        return write(path, text);
    }
    let expected = fs::read_to_string(path).unwrap_or_default();
    assert_eq!(text, expected, "{} is not what was said", path.display());
}

/// What is locked of the shop.
fn locked() -> String {
    read(&fixtures().join("workflow.lock"))
}

/// Steps of one story, because each builds on the one before, and cargo builds one at a time.
#[test]
fn edits_under_live_runs_do_not_compile_until_the_runs_survive_them() {
    the_lock_is_written_when_asked_and_compared_when_it_is_there();
    an_edit_that_live_runs_do_not_survive_is_refused_where_it_stands();
    the_runs_that_were_live_end_under_each_way_out();
}

fn the_lock_is_written_when_asked_and_compared_when_it_is_there() {
    let packages = Packages::new("written");
    // What a test that failed left there.
    drop(fs::remove_dir_all(packages.dir.join("shop")));
    packages.add("shop", &edited(""), None);
    let test = ["test", "-q", "--test", "lock", "--", "--nocapture"];
    // Nobody asked: nothing is written.
    stdout(&packages.cargo(&test, ""));
    let lock = packages.dir.join("shop/workflow.lock");
    assert!(!lock.exists());
    let missing = packages.cargo(&test, "check");
    assert!(!missing.status.success());
    stdout(&packages.cargo(&test, "write"));
    expect(&fixtures().join("workflow.lock"), &read(&lock));
    stdout(&packages.cargo(&test, "check"));

    // What is compatible passes, and is missing in the lock until it is written.
    let appended = edits("survives").remove("appended_and_rewritten");
    packages.add(
        "shop",
        &edited(&appended.expect("the edit is there")),
        Some(&locked()),
    );
    let passed = packages.cargo(&test, "");
    stdout(&passed);
    let said = String::from_utf8_lossy(&passed.stderr).into_owned()
        + &String::from_utf8_lossy(&passed.stdout);
    assert!(said.contains("+   step thank of archive"), "{said}");
    let differs = packages.cargo(&test, "check");
    assert!(!differs.status.success());
    stdout(&packages.cargo(&test, "write"));
    assert!(read(&lock).contains("step thank of archive"));

    // Only what is named is accepted.
    let everything = edits("refused").remove("everything_at_once");
    packages.add(
        "shop",
        &edited(&everything.expect("the edit is there")),
        Some(&locked()),
    );
    let one = packages.cargo(&test, "write:checkout/archive,close");
    assert!(!one.status.success(), "the iteration was edited, too");
    assert_eq!(read(&lock), locked());
    stdout(&packages.cargo(&test, "write:checkout/archive,checkout/items,close"));
    assert!(read(&lock).contains("step letter"));

    // A lock that cannot be read is told with its line.
    packages.add(
        "shop",
        &edited(""),
        Some(&locked().replace("loop items", "lopp items")),
    );
    let unreadable = packages.errors(&["check"]);
    expect(
        &fixtures().join("refused/unreadable.stderr"),
        &unreadable["shop"],
    );

    // So are two of one name, in two programs of the package: which one is meant cannot be told.
    packages.add("shop", &edited(""), Some(&locked()));
    let other = packages.dir.join("shop/src/bin/other.rs");
    write(
        &other,
        "#[workflow::workflow]\npub async fn refund() -> Result<(), workflow::Failure> {\n    Ok(())\n}\n\nfn main() {}\n",
    );
    let twice = packages.errors(&["check", "--tests"]);
    expect(
        &fixtures().join("refused/two_programs.stderr"),
        &twice["shop"].replace(&format!("{}/", packages.dir.display()), ""),
    );
    fs::remove_file(other).expect("it was there");

    // So are sources that are not there.
    packages.add("shop", &edited(""), Some(&locked()));
    write(
        &packages.dir.join("shop/tests/lock.rs"),
        "#[test]\nfn live_runs_survive_this_code() {\n    workflow::lock!(\"nowhere\");\n}\n",
    );
    let nowhere = packages.errors(&["check", "--tests"]);
    expect(
        &fixtures().join("refused/no_such_sources.stderr"),
        &nowhere["shop"].replace(&packages.dir.display().to_string(), ""),
    );
}

fn an_edit_that_live_runs_do_not_survive_is_refused_where_it_stands() {
    let packages = Packages::new("refused");
    let edits = edits("refused");
    for (name, edit) in &edits {
        packages.add(name, &edited(edit), Some(&locked()));
    }
    let said = packages.errors(&["check", "--workspace", "--lib", "--tests"]);
    for name in edits.keys() {
        let said = said.get(name).unwrap_or_else(|| panic!("{name} compiles"));
        let way_out = ["help: ", "give_one_another_name"];
        assert!(way_out.iter().any(|way| said.contains(way)), "{said}");
        expect(&fixtures().join(format!("refused/{name}.stderr")), said);
    }
}

fn the_runs_that_were_live_end_under_each_way_out() {
    let packages = Packages::new("survives");
    let edits = edits("survives");
    packages.add("before", &edited(""), Some(&locked()));
    for (name, edit) in &edits {
        packages.add(name, &edited(edit), Some(&locked()));
    }
    let dir = tempfile::tempdir().expect("a directory can be made");
    let store = dir.path().join("store.redb");
    stdout(&packages.cargo(&["build", "--workspace", "--bins"], ""));
    let run = |package: &str, act: &str, store: &Path| {
        let program = packages.dir.join("../target/debug").join(package);
        let output = Command::new(program).arg(act).arg(store).output();
        stdout(&output.expect("the program runs"))
    };
    let before = run("before", "start", &store);
    for name in edits.keys() {
        let copy = dir.path().join(name);
        fs::copy(&store, &copy).expect("the store can be copied");
        let after = run(name, "finish", &copy);
        for ended in ["early ended with 8", "late ended with 7"] {
            assert!(after.contains(ended), "{name}:\n{after}");
        }
        // What was done before is not done again.
        let again = before
            .lines()
            .find(|line| after.lines().any(|other| other == *line));
        assert_eq!(again, None, "{name}:\n{before}{after}");
    }
}
