//! Examples as processes.
#![allow(dead_code, reason = "each crash test uses a part of it")]

use std::path::PathBuf;
use std::process::{Command, ExitStatus};
use std::sync::OnceLock;

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
