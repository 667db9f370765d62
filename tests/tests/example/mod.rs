//! Examples as processes.
#![allow(dead_code, reason = "each crash test uses a part of it")]

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Builds an example in the profile and target directory of this test, and says where it is.
pub(crate) fn binary(name: &'static str) -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let dir = BUILT.get_or_init(|| {
        let test = std::env::current_exe().unwrap();
        let profile = test.ancestors().nth(2).unwrap();
        let mut cargo = Command::new(env!("CARGO"));
        cargo
            .args([
                "build",
                "--quiet",
                "--package",
                "workflow-examples",
                "--examples",
            ])
            .arg("--target-dir")
            .arg(profile.parent().unwrap())
            .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
        if profile.ends_with("release") {
            cargo.arg("--release");
        }
        assert!(
            cargo.status().unwrap().success(),
            "the examples do not build"
        );
        profile.join("examples")
    });
    dir.join(name)
        .with_extension(std::env::consts::EXE_EXTENSION)
}

/// An example that runs, with its store in a directory. What it prints is appended to a file there, which
/// outlives it. Killed with SIGKILL when dropped.
pub(crate) struct Process {
    child: Child,
    stdin: Option<ChildStdin>,
    printed: PathBuf,
    /// How long the file was before.
    from: usize,
}

impl Process {
    pub(crate) fn start(example: &'static str, dir: &Path, words: &[&str]) -> Self {
        let printed = dir.join("printed");
        let file = OpenOptions::new().create(true).append(true).open(&printed);
        let from = fs::read(&printed).unwrap().len();
        let mut child = Command::new(binary(example))
            .args(words)
            .env("DATA", dir.join("runs.redb"))
            .stdin(Stdio::piped())
            .stdout(file.unwrap())
            .stderr(File::create(dir.join("errors")).unwrap())
            .spawn()
            .unwrap();
        Self {
            stdin: child.stdin.take(),
            child,
            printed,
            from,
        }
    }

    /// What it printed so far.
    pub(crate) fn printed(&self) -> String {
        let printed = fs::read_to_string(&self.printed).unwrap();
        printed[self.from..].to_owned()
    }

    /// Types a line; false when nobody reads it any more.
    pub(crate) fn types(&mut self, line: &str) -> bool {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(format!("{line}\n").as_bytes()).is_ok()
    }

    /// Types keys without ending the line.
    pub(crate) fn keys(&mut self, keys: &str) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits until it has printed this.
    pub(crate) fn prints(&mut self, text: &str) {
        let began = Instant::now();
        while !self.printed().contains(text) {
            let waited = began.elapsed() < Duration::from_secs(30);
            assert!(waited, "no `{text}` in\n{}", self.printed());
            let ended = self.child.try_wait().unwrap();
            assert!(
                ended.is_none() || self.printed().contains(text),
                "it ended without `{text}`\n{}",
                self.printed()
            );
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    pub(crate) fn kill(&mut self) {
        assert_eq!(self.child.try_wait().unwrap(), None, "it ended by itself");
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Waits until it ends by itself, and gives what it printed.
    pub(crate) fn finish(mut self) -> String {
        let status = self.child.wait().unwrap();
        let printed = self.printed();
        assert!(status.success(), "{status}\n{printed}");
        printed
    }
}

impl Process {
    /// Waits until it ends by itself, and gives its exit code and what it printed.
    pub(crate) fn ended(mut self) -> (Option<i32>, String) {
        let status = self.child.wait().unwrap();
        (status.code(), self.printed())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether a process died of SIGKILL.
pub(crate) fn was_killed(status: ExitStatus) -> bool {
    use std::os::unix::process::ExitStatusExt;
    status.signal() == Some(9)
}

/// Random moments that can be had again: the seed is printed, and taken from `CRASH_SEED`.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn seeded() -> Self {
        use std::hash::{BuildHasher, RandomState};
        let given = std::env::var("CRASH_SEED").ok();
        let seed = given.map_or_else(
            || RandomState::new().hash_one(0),
            |seed| seed.parse().unwrap(),
        );
        println!("CRASH_SEED={seed}");
        Self(seed | 1)
    }

    /// Xorshift.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}
