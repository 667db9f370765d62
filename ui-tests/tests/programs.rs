//! Programs that must not compile, with what the compiler says of each, and programs that must.
//!
//! `TRYBUILD=overwrite cargo test -p workflow-ui-tests` writes the `.stderr` files anew; `.. -- programs trybuild=some_file` runs
//! those whose path contains `some_file`.

/// One set for all: its programs are checked in one call of cargo.
#[test]
fn programs_compile_or_are_refused_in_our_words() {
    let programs = trybuild::TestCases::new();
    programs.pass("pass/*.rs");
    programs.compile_fail("fail/*/*.rs");
}
