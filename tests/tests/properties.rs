//! Random programs, killed at any instant, keep to the laws of replay.

use workflow_tests::program::{Broken, Features, Life, Plan, Program, cases, check};

/// Lives a program's life, and says what happened when a law was broken.
fn lives(program: &Program, seed: u64, plan: Plan) -> Result<String, (Broken, String)> {
    let mut life = Life::new(program, seed, seed.is_multiple_of(2));
    match life.live(plan) {
        Ok(verdict) => Ok(verdict.answer),
        Err(broken) => Err((broken, life.world().told())),
    }
}

// UA-21
#[test]
fn a_random_program_that_is_killed_at_random_keeps_every_law() {
    for features in &Features::ALL {
        check(features, cases(2_400) / 6, 3, |program, seed| {
            lives(program, seed, Plan::Often).map(|_| ())
        });
    }
}
