//! A test program that starts itself as the process that is killed.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

/// Runs the test `the_process` of this program with these variables, which tell it from the test that nobody started, and kills it when
/// it says for the so-manieth time that it has `entered` something. `each` sees all that it prints. True when it came to say that it
/// is `done`.
///
/// # Panics
/// When the program cannot be started or killed.
pub fn until_killed(
    entered: u32,
    variables: &[(&str, &OsStr)],
    mut each: impl FnMut(&str),
) -> bool {
    let this = std::env::current_exe().expect("this program has a path");
    let mut process = Command::new(this)
        .args(["--exact", "the_process", "--nocapture"])
        .envs(variables.iter().copied())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("this program starts once more");
    let output = process.stdout.take().expect("it is piped");
    let (mut left, mut done) = (entered, false);
    for line in BufReader::new(output).lines().map_while(Result::ok) {
        each(&line);
        done |= line.contains("done");
        if line.contains("entered") {
            left = left.saturating_sub(1);
            if left == 0 {
                process.kill().expect("the process can be killed");
            }
        }
    }
    process.wait().expect("the process ends");
    done
}
