//! The code changes under a live run: the run diverges with everything as it was, or it goes on and is right.

use std::cell::RefCell;
use std::collections::BTreeMap;

use workflow_tests::program::{
    Broken, Cut, Edit, Features, Life, Program, Random, cases, check, edited,
};

/// Records a history, cuts it anywhere, edits the program once, and goes on. Whether it did, and after which edit.
fn edited_once(program: &Program, seed: u64) -> Result<Option<(Edit, bool)>, (Broken, String)> {
    let mut random = Random::new(seed ^ 0xed17);
    let mut life = Life::new(program, seed, seed.is_multiple_of(2));
    let told = |life: &Life, edit: &str| {
        let (code, told) = (&life.interpreter.program, life.world().told());
        format!("{edit}, now\n{code}\n{told}")
    };
    life.drive(Cut::At(random.below(40)));
    life.world()
        .verdict()
        .map_err(|broken| (broken, told(&life, "before any edit")))?;
    life.crash();
    let history = life.history();
    if history.len() < 2 || history.last().is_some_and(|last| last.body.is_fact()) {
        return Ok(None);
    }
    let (edit, program) = edited(program, &mut random);
    let went = life
        .deploy(&program)
        .and_then(|verdict| life.go_on(verdict))
        .map_err(|broken| (broken, told(&life, &format!("{edit:?}"))))?;
    Ok(Some((edit, went)))
}

#[test]
fn an_edit_leaves_the_run_as_it_was_or_lets_it_go_on_with_no_effect_in_the_past() {
    let counts = RefCell::new(BTreeMap::new());
    for features in &Features::ALL {
        check(features, cases(3_000) / 6, 3, |program, seed| {
            if let Some(counted) = edited_once(program, seed)? {
                *counts.borrow_mut().entry(counted).or_insert(0) += 1;
            }
            Ok(())
        });
    }
    // Both happen, or nothing was tried.
    let counts = counts.into_inner();
    if cases(3_000) < 3_000 {
        return;
    }
    for edit in [
        Edit::Insert,
        Edit::Append,
        Edit::Delete,
        Edit::Swap,
        Edit::Rename,
        Edit::AddGate,
        Edit::Remove,
        Edit::Carry,
    ] {
        for went_on in [true, false] {
            assert!(
                counts.contains_key(&(edit, went_on)),
                "{edit:?} {went_on}: {counts:?}"
            );
        }
    }
}
