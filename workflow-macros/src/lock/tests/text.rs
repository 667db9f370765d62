//! The text of a lock: what it looks like, and what is said of one that cannot be read.

use super::{SHOP, lock_of};
use crate::corpus::{Dice, tries};
use crate::lock::text::Lock;

#[test]
fn the_lock_of_a_package_is_readable_and_says_each_thing_in_a_line() {
    let printed = lock_of(SHOP).print();
    let expected = "\
version 1
source src

workflow checkout
  input order: Order
  checkpoint begun
  step reserve undo -> Hold
  choice
    arm
      call refuse
      leaves
    arm
  race settle
    branch paid
      recv payment on PAYMENT -> u64
    branch expired
      sleep window
  loop items
    step ship -> ()
    sleep pause
  choice
    arm
      call thank
    arm
      call apologise
  loop watch carry seen
    call poll
  attempt bonus
    call grant
  fragment notify

fragment notify
  step mail -> ()

type Hold
  until: u64

type Item
  sku: String
  count: u32

type Order
  id: String
  items: Vec<Item>
";
    assert_eq!(
        printed
            .split_once("version 1")
            .map(|(_, rest)| format!("version 1{rest}")),
        Some(expected.to_owned()),
        "{printed}"
    );
}

#[test]
fn a_lock_that_cannot_be_read_says_which_line_and_why() {
    for (text, line, why) in [
        ("", 1, "it is empty"),
        ("workflow x\n", 1, "it does not begin with `version 1`"),
        (
            "version 2\n",
            1,
            "it was written by a later version of `workflow`",
        ),
        ("version 1\nworkflow\n", 2, "a name is missing"),
        (
            "version 1\nworkflow x\n   step a\n",
            3,
            "two spaces indent by a level",
        ),
        (
            "version 1\nworkflow x\n    step a\n",
            3,
            "two spaces indent by a level",
        ),
        (
            "version 1\nworkflow x\n\tstep a\n",
            3,
            "two spaces indent by a level",
        ),
        (
            "version 1\nworkflow x\n  stop a\n",
            3,
            "`stop` is no kind of site",
        ),
        ("version 1\nworkflow x\n  step\n", 3, "a name is missing"),
        (
            "version 1\nworkflow x\n  step a of\n",
            3,
            "nothing follows `of`",
        ),
        (
            "version 1\nworkflow x\n  step a like b\n",
            3,
            "`like` is not said of a site",
        ),
        (
            "version 1\nworkflow x\n  version a latest b\n",
            3,
            "`latest` is a number",
        ),
        (
            "version 1\nworkflow x\n  step a cfg(b\n",
            3,
            "a `)` is missing after `cfg(`",
        ),
        (
            "version 1\nworkflow x\n  step a\n    step b\n",
            4,
            "under a `step` stand only `branch`es",
        ),
        (
            "version 1\nworkflow x\n  choice\n    step b\n",
            4,
            "under a `choice` stand only `arm`s",
        ),
        (
            "version 1\nworkflow x\nworkflow x\n",
            3,
            "`x` has a section already, in line 2",
        ),
        (
            "version 1\n<<<<<<< ours\n",
            2,
            "a merge was not finished here",
        ),
        ("version 1\ntype A\n  id\n", 3, "a member is `name: Type`"),
        (
            "version 1\nsites\n",
            2,
            "a section begins with `workflow`, `fragment`, `guided` or `type`",
        ),
    ] {
        let wrong = Lock::parse(text).expect_err(text);
        assert_eq!((wrong.line, wrong.why.as_str()), (line, why), "{text:?}");
    }
}

/// A lock after a bad merge, a bad editor, or a bad day: read, or told of with a line that is in it. What is read is written as
/// it will be read again.
#[test]
fn random_locks_are_read_or_told_of_with_a_line() {
    let whole = lock_of(SHOP).print();
    let lines: Vec<&str> = whole.lines().collect();
    let (mut read, mut told) = (0, 0);
    for seed in 0..tries(4_000) {
        let dice = &mut Dice::new(seed);
        let mut text = Vec::new();
        for line in &lines {
            match dice.below(60) {
                0 => {}
                1 => text.extend([(*line).to_owned(), (*line).to_owned()]),
                2 => text.push(lines[dice.below(lines.len())].to_owned()),
                3 => text.push(format!("  {line}")),
                4 => text.push(line.trim_start().to_owned()),
                5 => {
                    let mut words: Vec<&str> = line.split(' ').collect();
                    words.swap(dice.below(line.split(' ').count()), 0);
                    text.push(words.join(" "));
                }
                6 => text.push(line.chars().take(dice.below(line.len())).collect()),
                7 => text.push(line.replace(' ', ["\t", "\u{a0}", "", "  "][dice.below(4)])),
                _ => text.push((*line).to_owned()),
            }
        }
        let text = text.join(["\n", "\r\n"][dice.below(2)]);
        match Lock::parse(&text) {
            Ok(lock) => {
                read += 1;
                let printed = lock.print();
                let again = Lock::parse(&printed);
                let again =
                    again.unwrap_or_else(|error| panic!("seed {seed}: {error:?}\n{printed}"));
                assert_eq!(again.print(), printed, "seed {seed}");
            }
            Err(error) => {
                told += 1;
                let lines = text.lines().count();
                assert!(
                    (1..=lines + 1).contains(&error.line),
                    "seed {seed}: {error:?}"
                );
                assert!(!error.why.is_empty(), "seed {seed}");
            }
        }
    }
    assert!(read > 100 && told > 100, "{read} read, {told} told of");
}
