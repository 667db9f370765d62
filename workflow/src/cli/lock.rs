//! `workflow lock`: the tests of the package in this directory, told what to do with its lock.
//!
//! Only the package's own build knows its sources, so it is `workflow::lock!()` in a test that writes. This says so to cargo.

use std::env;
use std::ffi::OsString;
use std::process::Command;

use crate::arguments::Lock;
use crate::fail::Fail;

/// What `WORKFLOW_LOCK` says to the test.
fn said(asked: &Lock) -> String {
    match &*asked.accept {
        _ if asked.check => "check".to_owned(),
        [] => "write".to_owned(),
        accepted => format!("write:{}", accepted.join(",")),
    }
}

pub(crate) fn run(asked: &Lock) -> Result<(), Fail> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let mut test = Command::new(cargo);
    test.arg("test")
        .args(&asked.test)
        .env("WORKFLOW_LOCK", said(asked));
    match test.status() {
        Ok(status) if status.success() => Ok(()),
        // The test has said what is wrong.
        Ok(_) => Err(Fail::Found),
        Err(error) => Err(Fail::Refused(format!("cargo cannot be run: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::arguments::{Arguments, Command};

    fn read(words: &[&str]) -> Result<(String, Vec<String>), String> {
        let words = ["workflow", "lock"].iter().chain(words);
        match Arguments::try_parse_from(words) {
            Ok(Arguments {
                command: Command::Lock(asked),
                ..
            }) => Ok((said(&asked), asked.test)),
            Ok(other) => panic!("{other:?}"),
            Err(wrong) => Err(wrong.to_string()),
        }
    }

    fn test(said: &str, arguments: &[&str]) -> (String, Vec<String>) {
        let arguments = arguments.iter().map(ToString::to_string).collect();
        (said.to_owned(), arguments)
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
            assert!(
                wrong.contains("Usage:") || wrong.contains("--help"),
                "{wrong}"
            );
        }
    }
}
