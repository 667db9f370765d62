#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| workflow_tests::fuzz::history(bytes));
