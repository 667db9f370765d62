//! `workflow lock`: the tests of the package in this directory, told what to do with its lock.
//!
//! Only the package's own build knows its sources, so it is `workflow::lock!()` in a test that writes. This says so to cargo.

use std::env;
use std::ffi::OsString;
use std::process::{Command, ExitCode};

const USAGE: &str = "\
usage: workflow lock [--check] [--accept PATH]... [-- ARGUMENTS OF CARGO TEST]
  writes workflow.lock of the package in this directory, through the test that says `workflow::lock!()`
  --check         compares instead, and fails when the lock is not what would be written
  --accept PATH   accepts edits at this site, under it, or in this workflow, and no others: checkout/settle, refund
  --help          this
after `--`, say which test it is, so that only that one runs: workflow lock -- --test lock";

/// What is to be done.
#[derive(Debug, PartialEq, Eq)]
enum Asked {
    Help,
    /// `cargo test` with these arguments, and this in `WORKFLOW_LOCK`.
    Test {
        said: String,
        arguments: Vec<String>,
    },
}

impl Asked {
    /// # Errors
    /// What cannot be understood.
    fn read(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let (mut check, mut accepted, mut arguments) = (false, Vec::new(), Vec::new());
        while let Some(word) = words.next() {
            match word.as_str() {
                "--help" | "-h" => return Ok(Self::Help),
                "--check" => check = true,
                "--accept" => {
                    let path = words.next().filter(|path| !path.starts_with('-'));
                    accepted.push(path.ok_or("`--accept` needs a path: checkout/settle")?);
                }
                "--" => arguments.extend(words.by_ref()),
                _ => return Err(format!("`{word}` is not understood")),
            }
        }
        let said = match (check, accepted.as_slice()) {
            (true, []) => "check".to_owned(),
            (true, _) => return Err("`--check` accepts nothing: leave one of the two".to_owned()),
            (false, []) => "write".to_owned(),
            (false, accepted) => format!("write:{}", accepted.join(",")),
        };
        Ok(Self::Test { said, arguments })
    }
}

pub(crate) fn run(words: impl Iterator<Item = String>) -> ExitCode {
    let (said, arguments) = match Asked::read(words) {
        Ok(Asked::Test { said, arguments }) => (said, arguments),
        Ok(Asked::Help) => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        Err(wrong) => {
            eprintln!("{wrong}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let cargo = env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let mut test = Command::new(cargo);
    test.arg("test").args(arguments).env("WORKFLOW_LOCK", said);
    match test.status() {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("cargo cannot be run: {error}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &[&str]) -> Result<Asked, String> {
        Asked::read(words.iter().map(|word| (*word).to_owned()))
    }

    fn test(said: &str, arguments: &[&str]) -> Asked {
        Asked::Test {
            said: said.to_owned(),
            arguments: arguments.iter().map(|word| (*word).to_owned()).collect(),
        }
    }

    #[test]
    fn what_is_asked_of_the_lock_is_told_to_its_test() {
        assert_eq!(read(&[]), Ok(test("write", &[])));
        assert_eq!(read(&["--check"]), Ok(test("check", &[])));
        let accepted = [
            "--accept",
            "checkout/mail",
            "--accept",
            "refund",
            "--",
            "-p",
            "shop",
        ];
        assert_eq!(
            read(&accepted),
            Ok(test("write:checkout/mail,refund", &["-p", "shop"]))
        );
        assert_eq!(read(&["--check", "--help"]), Ok(Asked::Help));
    }

    #[test]
    fn what_cannot_be_meant_is_refused_with_the_way_out() {
        for words in [
            &["--accept"][..],
            &["--accept", "--check"],
            &["--check", "--accept", "refund"],
            &["write"],
        ] {
            let wrong = read(words).expect_err("it is not understood");
            assert!(wrong.contains('`'), "{wrong}");
        }
    }
}
