//! What due, active and list show.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::scene::{Dice, Owner, at, done, id, loaded, row, step};
use super::{Harness, block_on};
use crate::replay::{Location, RunKey, RunState, Timestamp};
use crate::store::{Appended, Post, RunCount, RunFilter, RunRow, Store};

/// Whether it is folded or not, also when the history has grown since, and when its beginning is deleted.
pub fn the_first_record_is_that_of_the_history<H: Harness>() {
    let (mut place, store) = H::fresh();
    let first = |run| block_on(store.first(run)).unwrap();
    assert_eq!(first(store.allocate()), None);
    let mut owners = [Owner::start(&store, "a"), Owner::start(&store, "b")];
    for turn in 0..4 {
        for owner in &mut owners {
            let begun = loaded(&store, owner.run).history.into_iter().next();
            assert!(begun.is_some());
            assert_eq!(first(owner.run), begun);
            let name = format!("step-{turn}-{}", "x".repeat(turn * 100));
            owner.write(&store, vec![step(&name)], RunState::Running);
            assert_eq!(first(owner.run), begun);
        }
        if turn == 1 {
            place.rest(&store);
        }
    }
    let [mut rewritten, _] = owners;
    let mut append = rewritten.batch(vec![step("last")], RunState::Running);
    append.deletes = vec![Location::root()];
    assert_eq!(done(&store, append), Appended::Applied);
    for _ in 0..2 {
        let history = loaded(&store, rewritten.run).history;
        assert_eq!(history.len(), 1);
        assert_eq!(first(rewritten.run), history.into_iter().next());
        place.rest(&store);
    }
}

/// RVT-ALARM-01.
pub fn wake_times_are_set_moved_and_cleared<H: Harness>() {
    for rested in [false, true] {
        let (mut place, store) = H::fresh();
        let mut owner = Owner::start(&store, "a");
        let mut rest = || {
            if rested {
                place.rest(&store);
            }
        };
        for wake_at in [
            Some(500),
            Some(900),
            Some(-4),
            None,
            Some(i64::MAX),
            Some(i64::MIN),
        ] {
            owner.sleep(&store, wake_at);
            rest();
            assert_eq!(row(&store, owner.run).wake_at, wake_at.map(at));
            assert_eq!(super::next_due(&store).unwrap(), wake_at.map(at));
            let due = super::due(&store, Timestamp::MAX, 9).unwrap();
            assert_eq!(
                due,
                wake_at.map(|_| owner.run).into_iter().collect::<Vec<_>>()
            );
        }
    }
}

/// Nobody is woken by a run that was stored to begin later, before it is its time.
pub fn a_run_that_is_to_begin_later_waits_for_its_time<H: Harness>() {
    for rested in [false, true] {
        let (mut place, store) = H::fresh();
        let (mut owner, mut append) = Owner::create(&*store, "a");
        let new = append.create.as_mut().expect("it creates a run");
        (new.not_before, new.priority) = (Some(at(900)), -7);
        let mut child = new.clone();
        child.id = id("child");
        append.patch.state = None;
        append.posts = vec![Post::Run {
            run: store.allocate(),
            new: child,
            records: append.records.clone(),
        }];
        assert_eq!(done(&store, append), Appended::Applied);
        if rested {
            place.rest(&store);
        }
        let rows = block_on(store.list(&RunFilter::default())).unwrap().rows;
        assert_eq!(rows.len(), 2);
        for row in &rows {
            assert_eq!((row.state, row.wake_at), (RunState::Waiting, Some(at(900))));
            assert_eq!((row.not_before, row.priority), (Some(at(900)), -7));
            assert!(!row.has_begun());
        }
        let due = |until| block_on(store.due(None, at(until), 9)).unwrap();
        assert_eq!(due(899), []);
        assert_eq!(due(900).len(), 2);
        assert_eq!(block_on(store.active(None, 9)).unwrap(), []);
        // What it was started with stays in its row.
        owner.write(&store, vec![step("one")], RunState::Running);
        if rested {
            place.rest(&store);
        }
        let begun = row(&store, owner.run);
        assert!(begun.has_begun());
        assert_eq!((begun.not_before, begun.priority), (Some(at(900)), -7));
    }
}

/// RVT-ALARM-02: at the instant counts as past; the earliest first; no more than asked for.
pub fn due_gives_the_past_ones_only<H: Harness>() {
    let (mut place, store) = H::fresh();
    let mut owners = Vec::new();
    for (turn, wake_at) in [500, 100, 300, 200, 400].into_iter().enumerate() {
        let mut owner = Owner::start(&store, &format!("run-{turn}"));
        owner.sleep(&store, Some(wake_at));
        owners.push((wake_at, owner.run));
        if turn == 2 {
            place.rest(&store);
        }
    }
    owners.sort_unstable();
    let due = |now, limit| super::due(&store, at(now), limit).unwrap();
    let expected = |count: usize| {
        owners
            .iter()
            .take(count)
            .map(|(_, run)| *run)
            .collect::<Vec<_>>()
    };
    assert_eq!(due(99, 9), []);
    assert_eq!(due(100, 9), expected(1));
    assert_eq!(due(300, 9), expected(3));
    assert_eq!(due(9_000, 2), expected(2));
    assert_eq!(due(9_000, 0), []);
    assert_eq!(due(9_000, usize::MAX), expected(5));
}

/// Rule 9.
pub fn active_is_exactly_the_active_rows<H: Harness>() {
    let states = [
        RunState::Pending,
        RunState::Running,
        RunState::Waiting,
        RunState::RollingBack,
        RunState::Parked,
        RunState::Completed,
        RunState::Failed,
        RunState::Cancelled,
    ];
    let (mut place, store) = H::fresh();
    let mut active = Vec::new();
    for (turn, state) in states.into_iter().chain(states).enumerate() {
        if turn == states.len() {
            place.rest(&store);
        }
        let mut owner = Owner::start(&store, &format!("run-{turn}"));
        owner.write(&store, Vec::new(), state);
        if state.is_active() {
            active.push(owner.run);
        }
    }
    assert_eq!(block_on(store.active(None, usize::MAX)).unwrap(), active);
    let mut paged = Vec::new();
    while let Some(run) = block_on(store.active(paged.last().copied(), 1))
        .unwrap()
        .pop()
    {
        paged.push(run);
    }
    assert_eq!(paged, active);
    assert_eq!(
        block_on(store.active(Some(RunKey(u64::MAX)), 9)).unwrap(),
        []
    );
}

/// Listing by state and by workflow, page by page; a run created meanwhile disturbs nothing.
pub fn a_listing_pages_through_what_fits<H: Harness>() {
    let (mut place, store) = H::fresh();
    let mut all = Vec::new();
    for turn in 0..23 {
        let (mut owner, mut create) = Owner::create(&*store, &format!("run-{turn}"));
        let workflow = if turn % 3 == 0 { "mail" } else { "checkout" };
        if let Some(new) = &mut create.create {
            workflow.clone_into(&mut new.workflow);
        }
        assert_eq!(done(&store, create), Appended::Applied);
        let state = if turn % 2 == 0 {
            RunState::Waiting
        } else {
            RunState::Parked
        };
        owner.write(&store, Vec::new(), state);
        all.push((owner.run, workflow, state));
        if turn == 11 {
            place.rest(&store);
        }
    }
    for workflow in [None, Some("mail"), Some("checkout"), Some("none")] {
        for state in [
            None,
            Some(RunState::Waiting),
            Some(RunState::Parked),
            Some(RunState::Running),
        ] {
            for limit in [1, 4, 100] {
                let fits = |(_, of, is): &&(RunKey, &str, RunState)| {
                    workflow.is_none_or(|workflow| workflow == *of)
                        && state.is_none_or(|state| state == *is)
                };
                let expected: Vec<_> = all.iter().filter(fits).map(|(run, ..)| *run).collect();
                let filter = RunFilter {
                    workflow: workflow.map(str::to_owned),
                    states: state.into_iter().collect(),
                    limit,
                    ..RunFilter::default()
                };
                assert_eq!(pages(&store, filter), expected);
            }
        }
    }
}

/// By several states, parts of ids and times, and both ways; page by page, and in pages that end early because enough was looked at.
/// Some of it rests, some does not, and some has changed since it came to rest.
pub fn a_listing_takes_what_fits_in_either_order<H: Harness>() {
    let (mut place, store) = H::fresh();
    let mut owners = Vec::new();
    for turn in 0_i64..40 {
        let name = format!("{}-{turn}", if turn % 3 == 0 { "mail" } else { "order" });
        let (owner, mut create) = Owner::create(&*store, &name);
        create.patch.at = at(turn * 100);
        assert_eq!(done(&store, create), Appended::Applied);
        owners.push(owner);
        if turn == 25 {
            place.rest(&store);
        }
    }
    for (turn, owner) in (0_i64..).zip(&mut owners) {
        let state = match turn % 5 {
            0 => RunState::Parked,
            1 => RunState::Failed,
            2 => RunState::Waiting,
            3 => RunState::Completed,
            _ => RunState::Running,
        };
        let mut append = owner.batch(Vec::new(), state);
        append.patch.at = at(5_000 + turn * 100);
        assert_eq!(done(&store, append), Appended::Applied);
        if turn == 19 {
            place.rest(&store);
        }
    }
    let rows = block_on(store.list(&RunFilter::default())).unwrap().rows;
    assert_eq!(rows.len(), 40);
    let all = RunFilter::default;
    let filters = [
        all(),
        RunFilter {
            states: vec![RunState::Failed, RunState::Parked],
            ..all()
        },
        RunFilter {
            states: vec![RunState::Waiting, RunState::Parked],
            ..all()
        },
        RunFilter {
            id_prefix: Some("mail-1".to_owned()),
            ..all()
        },
        RunFilter {
            id_contains: Some("er-3".to_owned()),
            states: vec![RunState::Running],
            ..all()
        },
        RunFilter {
            created_from: Some(at(700)),
            created_until: Some(at(2_300)),
            ..all()
        },
        RunFilter {
            changed_from: Some(at(7_700)),
            ..all()
        },
    ];
    for filter in filters {
        for newest_first in [false, true] {
            let mut expected: Vec<_> = rows.iter().filter(|row| row.fits(&filter)).collect();
            assert!(!expected.is_empty(), "{filter:?}");
            if newest_first {
                expected.reverse();
            }
            let expected: Vec<_> = expected.iter().map(|row| row.key).collect();
            for (limit, look_at) in [(1, usize::MAX), (3, usize::MAX), (100, 1), (2, 1)] {
                let filter = RunFilter {
                    newest_first,
                    limit,
                    look_at,
                    ..filter.clone()
                };
                let mut from = filter.clone();
                let mut listed = Vec::new();
                loop {
                    let page = block_on(store.list(&from)).unwrap();
                    assert!(page.rows.len() <= limit);
                    listed.extend(page.rows.iter().map(|row| row.key));
                    let Some(next) = page.next else { break };
                    assert_ne!(from.after, Some(next), "it goes on");
                    from.after = Some(next);
                }
                assert_eq!(listed, expected, "{filter:?}");
            }
        }
    }
}

/// How many runs there are is what the rows say, whenever it is asked for first.
pub(super) fn check_census(store: &Arc<impl Store>, rows: &[RunRow]) {
    let mut expected: BTreeMap<(String, &str), u64> = BTreeMap::new();
    for row in rows {
        let of = (row.workflow.clone(), row.state.word());
        *expected.entry(of).or_default() += 1;
    }
    let census = block_on(store.census()).unwrap();
    let counts = census.counts.into_iter();
    let counts: BTreeMap<_, _> = counts
        .map(|count| ((count.workflow, count.state.word()), count.runs))
        .collect();
    assert_eq!(counts, expected);
}

/// A census that knows commits by number has another one after each of them, and only then.
pub fn a_census_tells_that_something_was_committed<H: Harness>() {
    let (mut place, store) = H::fresh();
    let census = || block_on(store.census()).unwrap();
    assert_eq!(census().counts, []);
    let mut owner = Owner::start(&store, "a");
    let before = census();
    assert_eq!(
        before.counts,
        [RunCount {
            workflow: "checkout".to_owned(),
            state: RunState::Running,
            runs: 1,
        }]
    );
    place.rest(&store);
    assert_eq!(census(), before);
    owner.write(&store, vec![step("one")], RunState::Running);
    let after = census();
    assert_eq!(after.counts, before.counts);
    if before.commit.is_some() {
        assert!(after.commit > before.commit);
    }
    let ended = owner.batch(Vec::new(), RunState::Completed);
    assert_eq!(done(&store, ended), Appended::Applied);
    assert_eq!(
        census()
            .counts
            .iter()
            .map(|count| count.state)
            .collect::<Vec<_>>(),
        [RunState::Completed]
    );
}

fn pages(store: &Arc<impl Store>, mut filter: RunFilter) -> Vec<RunKey> {
    let mut listed = Vec::new();
    loop {
        let page = block_on(store.list(&filter)).unwrap();
        assert!(page.rows.len() <= filter.limit);
        listed.extend(page.rows.iter().map(|row| row.key));
        match page.next {
            Some(next) => {
                assert_eq!(
                    Some(next),
                    listed.last().copied(),
                    "a page that is followed by another is not empty"
                );
                filter.after = Some(next);
            }
            None => return listed,
        }
    }
}

/// Rule 9, under operations at random, with rests and crashes between: what the indexes say is what the rows say, and the
/// rows are what was written.
pub fn indexes_are_exact_under_random_operations<H: Harness>() {
    let mut dice = Dice::new(7);
    let (mut place, mut store) = H::fresh();
    let mut owners: Vec<Owner> = Vec::new();
    let mut model = BTreeMap::<RunKey, RunRow>::new();
    for turn in 0..400 {
        let pick = usize::try_from(dice.below(owners.len() as u64 + 1)).unwrap_or(0);
        let run = match owners.get_mut(pick) {
            None => {
                let owner = Owner::start(&store, &format!("run-{turn}"));
                let run = owner.run;
                owners.push(owner);
                run
            }
            Some(owner) => {
                let known = model
                    .get_mut(&owner.run)
                    .expect("every run is in the model");
                if dice.below(8) == 0 {
                    let answer = block_on(store.cancel(owner.run, at(turn))).unwrap();
                    assert_eq!(answer == Appended::Final, known.state.is_final());
                } else {
                    random_batch(&store, owner, known, &mut dice);
                }
                owner.run
            }
        };
        model.insert(run, row(&store, run));
        match dice.below(40) {
            0 => place.rest(&store),
            1 => store = place.crash(&store),
            _ => {}
        }
        check(&store, &model, &mut dice);
    }
}

fn random_batch(store: &Arc<impl Store>, owner: &mut Owner, known: &RunRow, dice: &mut Dice) {
    let states = [
        RunState::Running,
        RunState::Waiting,
        RunState::Waiting,
        RunState::Parked,
        RunState::Completed,
    ];
    let state = usize::try_from(dice.below(20))
        .ok()
        .and_then(|side| states.get(side))
        .copied();
    let mut append = owner.batch(Vec::new(), RunState::Running);
    append.patch.state = state;
    append.patch.wake_at = match dice.below(3) {
        0 => None,
        1 => Some(None),
        _ => Some(Some(at(i64::try_from(dice.below(50)).unwrap_or(0) - 25))),
    };
    let wake_at = append.patch.wake_at;
    let answer = done(store, append);
    if known.state.is_final() {
        assert_eq!(answer, Appended::Final);
        return;
    }
    assert_eq!(answer, Appended::Applied);
    let row = row(store, owner.run);
    assert_eq!(row.state, state.unwrap_or(known.state));
    let expected = if row.state.is_final() {
        None
    } else {
        wake_at.unwrap_or(known.wake_at)
    };
    assert_eq!(row.wake_at, expected);
}

fn check(store: &Arc<impl Store>, model: &BTreeMap<RunKey, RunRow>, dice: &mut Dice) {
    let rows = block_on(store.list(&RunFilter {
        limit: usize::MAX,
        ..RunFilter::default()
    }))
    .unwrap()
    .rows;
    assert!(rows.iter().eq(model.values()));
    if dice.below(3) > 0 {
        check_census(store, &rows);
    }
    let due: BTreeSet<_> = rows
        .iter()
        .filter_map(|row| Some((row.wake_at?, row.key)))
        .collect();
    assert_eq!(
        super::next_due(store).unwrap(),
        due.first().map(|(at, _)| *at)
    );
    let now = at(i64::try_from(dice.below(60)).unwrap_or(0) - 30);
    let limit = usize::try_from(dice.below(12)).unwrap_or(0);
    let expected: Vec<_> = due
        .iter()
        .take_while(|(at, _)| *at <= now)
        .take(limit)
        .map(|(_, run)| *run)
        .collect();
    assert_eq!(super::due(store, now, limit).unwrap(), expected);
    let active: Vec<_> = rows
        .iter()
        .filter(|row| row.state.is_active())
        .map(|row| row.key)
        .collect();
    assert_eq!(block_on(store.active(None, usize::MAX)).unwrap(), active);
    for row in &rows {
        assert_eq!(block_on(store.find(&row.id)).unwrap().as_ref(), Some(row));
        assert_eq!(loaded(store, row.key).row, *row);
    }
}
