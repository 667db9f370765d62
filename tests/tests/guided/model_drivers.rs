//! Random commands of several drivers at the same time, against the model of one that obeys them one after the other: with revisions
//! that are not the newest, with keys that were given before, and with a kill after every commit.

use std::collections::BTreeMap;
use std::iter;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use workflow::guided::{Guide, Refused, Status};
use workflow::replay::{Body, RunId};
use workflow::store::Store as _;
use workflow_tests::{Fault, FaultStore, World, pass};

use super::model::{
    Came, Given, Model, Numbers, Press, agree, ended, is_cut_off, model_flow, obey, press,
    some_press,
};
use super::{Form, engine, trace};

/// A press of one of the drivers.
#[derive(Debug, Clone)]
struct Planned {
    driver: usize,
    what: Press,
    /// It is given so long after the others. Effects take ten milliseconds, so it is known what has ended by then.
    after: u64,
    /// It is decided on the revision that is seen then, or on one before: so many.
    behind: Option<u64>,
    key: Option<String>,
}

/// Presses that are given at about the same time.
type Round = Vec<Planned>;

const DRIVERS: usize = 3;

fn script(seed: u64, rounds: usize) -> Vec<Round> {
    let mut numbers = Numbers::new(seed);
    let mut given: Vec<(Press, String)> = Vec::new();
    let mut script = Vec::new();
    for _ in 0..rounds {
        let mut round = Vec::new();
        for driver in 0..DRIVERS {
            let mut what = some_press(&mut numbers);
            if driver > 0 && numbers.below(4) == 0 {
                // A button that is pressed twice.
                what = round.last().map_or(what, |it: &Planned| it.what);
            }
            let key = match numbers.below(6) {
                0 | 1 => {
                    let key = format!("key-{}", given.len());
                    given.push((what, key.clone()));
                    Some(key)
                }
                2 if !given.is_empty() => {
                    let back = numbers.below(3.min(given.len() as u64) + 1).max(1);
                    let (before, key) = &given[given.len() - usize::try_from(back).unwrap()];
                    if numbers.below(4) > 0 {
                        what = *before;
                    }
                    Some(key.clone())
                }
                _ => None,
            };
            round.push(Planned {
                driver,
                what,
                after: [0, 0, 3, 16][usize::try_from(numbers.below(4)).unwrap()],
                behind: (numbers.below(3) == 0).then(|| numbers.below(2)),
                key,
            });
        }
        script.push(round);
    }
    script
}

/// What came of a press, and when it was given: nothing, when it was not.
type Answer = Option<Result<Came, Refused>>;

/// Gives the presses of a round. Gives them in the order in which they were given, with the answers.
async fn give(drivers: &[Guide<Form>], round: &Round) -> Vec<(u64, Given, Answer)> {
    let order = Arc::new(Mutex::new(Vec::new()));
    let pressing: Vec<_> = round
        .iter()
        .enumerate()
        .map(|(index, planned)| {
            let (guide, planned) = (drivers[planned.driver].clone(), planned.clone());
            let order = Arc::clone(&order);
            tokio::spawn(async move {
                if planned.after > 0 {
                    pass(planned.after).await;
                }
                let view = guide.view();
                if planned.what == Press::Rollback && view.status == Status::Completed {
                    // That takes the guide up again, which is no command at its desk.
                    return None;
                }
                let given = Given {
                    what: planned.what,
                    at: planned
                        .behind
                        .map(|behind| view.revision - behind.min(view.revision)),
                    key: planned.key,
                };
                order
                    .lock()
                    .unwrap()
                    .push((index, planned.after, given.clone()));
                let came =
                    tokio::time::timeout(Duration::from_secs(1), press(&guide, &given)).await;
                came.ok()
            })
        })
        .collect();
    let mut answers = Vec::new();
    for pressing in pressing {
        answers.push(pressing.await.unwrap());
    }
    let order = std::mem::take(&mut *order.lock().unwrap());
    let order = order.into_iter();
    order
        .map(|(index, after, given)| (after, given, answers[index].take()))
        .collect()
}

/// What the model says of a round.
#[derive(Debug)]
struct Played {
    /// As it was after each thing that happened.
    stands: Vec<Model>,
    /// What each press gives, and which of them shows it. Nothing of one that a guide at its end is asked: it is refused.
    answers: Vec<Option<(Result<Came, Refused>, usize)>>,
}

/// Plays a round in the model.
fn play(model: &Model, given: &[(u64, Given, Answer)]) -> Played {
    let mut model = model.clone();
    model.says.clear();
    let mut stands = vec![model.clone()];
    let mut answers = vec![None; given.len()];
    // Who waits for what is under way, and when that ends.
    let mut under_way: Option<(usize, u64)> = None;
    for (index, (now, given, _)) in given.iter().enumerate() {
        if let Some((waits, _)) = under_way.take_if(|(_, ends)| *ends < *now) {
            let came = model.settle();
            stands.push(model.clone());
            answers[waits] = Some((came, stands.len() - 1));
        }
        if model.status == Status::Completed {
            continue;
        }
        let since = model.since(given);
        let came = model.press(given);
        stands.push(model.clone());
        let shown = stands
            .iter()
            .position(|it| since.is_some_and(|since| it.revision >= since));
        match came.transpose() {
            // That a key was obeyed is known since it was.
            Some(came) => answers[index] = Some((came, shown.unwrap_or(stands.len() - 1))),
            None => under_way = Some((index, now + model.millis)),
        }
    }
    if let Some((waits, _)) = under_way {
        let came = model.settle();
        stands.push(model.clone());
        answers[waits] = Some((came, stands.len() - 1));
    }
    Played { stands, answers }
}

/// Whether what was answered is what the model says, if that says anything.
fn fits(answer: &Result<Came, Refused>, expected: Option<&(Result<Came, Refused>, usize)>) -> bool {
    match expected {
        Some((expected, _)) => agree(answer, expected),
        // A guide at its end may have known the key.
        None => matches!(answer, Err(_) | Ok(Came::End | Came::Edited(_))),
    }
}

/// Presses as a round does, and compares with the model.
async fn obeyed(drivers: &[Guide<Form>], model: &mut Model, round: &Round, at: &str) {
    if model.status == Status::Completed {
        assert!(obey(&drivers[0], model, Press::Rollback).await);
    }
    let told = trace().count();
    let given = give(drivers, round).await;
    let played = play(model, &given);
    for (index, (_, _, answer)) in given.iter().enumerate() {
        let expected = played.answers[index].as_ref();
        let answer = answer
            .as_ref()
            .unwrap_or_else(|| panic!("{at}: {given:#?}"));
        assert!(
            fits(answer, expected),
            "{at}: press {index} gives {answer:?}, not {expected:?}\n{model:?}\n{given:#?}"
        );
    }
    let newest = played.stands.last().unwrap();
    assert_eq!(
        trace().since(told),
        newest.says,
        "{at}: {model:?}\n{given:#?}"
    );
    let views = drivers.iter().map(Guide::view);
    for view in views {
        assert!(
            newest.shows(&view),
            "{at}: {model:?}\n{given:#?}\n{newest:?}\n{view:#?}"
        );
    }
    *model = newest.clone();
}

async fn open(engine: &workflow::Engine) -> Vec<Guide<Form>> {
    let flow = model_flow();
    let guide = engine.guided(&flow, "g").open_or_start(Form::default);
    let guide = guide.await.unwrap();
    let other = engine.guided(&flow, "g").open().await.unwrap().unwrap();
    vec![guide.clone(), guide, other]
}

// GDE-CON-01 GDE-CON-05 GDE-CON-08
#[tokio::test(start_paused = true)]
async fn random_commands_of_several_drivers_are_obeyed_one_after_the_other() {
    let flow = model_flow();
    for seed in 0..60 {
        let engine = engine(&World::new(), &flow).await;
        let (drivers, mut model) = (open(&engine).await, Model::new());
        for (number, round) in script(seed, 25).iter().enumerate() {
            let at = format!("seed {seed}, round {number}");
            obeyed(&drivers, &mut model, round, &at).await;
        }
    }
}

/// The undos that are still to be made, in order, as they are heard of.
async fn owed(world: &World) -> Vec<String> {
    let row = world.store.find(&RunId::new("g").unwrap()).await.unwrap();
    let Some(row) = row else {
        return Vec::new();
    };
    let history = world.store.load(row.key).await.unwrap().unwrap().history;
    let mut owed = BTreeMap::new();
    for record in history {
        match record.body {
            Body::Armed {
                number, location, ..
            } => {
                let name = if location.to_string().ends_with("two") {
                    "undo b two"
                } else {
                    "undo b one"
                };
                owed.insert(number, name.to_owned());
            }
            Body::Undone {
                undoes,
                outcome: Ok(()),
                ..
            } => {
                owed.remove(&undoes);
            }
            _ => {}
        }
    }
    owed.into_values().rev().collect()
}

/// What was shown to whoever pressed: it lasts.
fn was_shown(answer: &Answer) -> bool {
    matches!(
        answer,
        Some(Ok(_) | Err(Refused::Invalid(_) | Refused::Failed(_)))
    )
}

// GDE-CRX-03 GDE-PER-05
#[tokio::test(start_paused = true)]
async fn a_kill_after_any_commit_of_several_drivers_leaves_what_was_shown_and_no_more_than_was_asked()
 {
    let flow = model_flow();
    let (mut cuts, mut interrupted, mut rolling, mut again) = (0, 0, 0, 0);
    for seed in 100..108 {
        let script = script(seed, 7);
        let mut whole = false;
        let mut cut = 1;
        while !whole {
            let at = format!("seed {seed}, cut {cut}");
            let world = World::new();
            let faults = iter::repeat_n(Fault::None, cut);
            let faults = faults.chain(iter::repeat_n(Fault::Before, 10_000));
            let store = FaultStore::over(&world.store, faults);
            let builder = world.engine().shared_store(Arc::new(store.clone()));
            trace().take();
            let first = builder.guided(&flow).build().await.unwrap();
            let opening = tokio::time::timeout(Duration::from_secs(1), open_if_it_can(&first));
            let drivers = opening.await.ok().flatten();
            let (mut model, mut done) = (Model::new(), 0);
            // The round that was cut off.
            let mut last = (vec![model.clone()], Vec::new());
            if let Some(drivers) = &drivers {
                while done < script.len() {
                    if model.status == Status::Completed
                        && !obey(&drivers[0], &mut model, Press::Rollback).await
                    {
                        let mut after = model.clone();
                        after.press(&Press::Rollback.into()).unwrap();
                        last = (vec![model.clone(), after], Vec::new());
                        break;
                    }
                    let heard = trace().count();
                    let given = give(drivers, &script[done]).await;
                    let played = play(&model, &given);
                    let mut least = 0;
                    let (mut lasts, mut open) = (true, Vec::new());
                    for ((_, given, answer), expected) in given.iter().zip(&played.answers) {
                        if was_shown(answer) {
                            let came = answer.as_ref().unwrap();
                            assert!(
                                fits(came, expected.as_ref()),
                                "{at}: {came:?}, not {expected:?}"
                            );
                            least = least.max(expected.as_ref().map_or(0, |(_, shown)| *shown));
                        }
                        if matches!(
                            answer,
                            None | Some(Err(Refused::Store(_) | Refused::Stopped(_)))
                        ) {
                            lasts = false;
                            open.push(given.clone());
                        }
                    }
                    let newest = played.stands.last().unwrap();
                    // What only follows from what was written may be shown, and the next command is the one that is lost.
                    lasts &= drivers[0].view().durable && newest.shows(&drivers[0].view());
                    if !lasts {
                        last = (played.stands[least..].to_vec(), open);
                        break;
                    }
                    assert_eq!(trace().since(heard), newest.says, "{at}");
                    model = newest.clone();
                    last = (vec![model.clone()], Vec::new());
                    done += 1;
                }
            }
            whole = done == script.len();
            drop((drivers, first));
            tokio::task::yield_now().await;
            let world = world.crash();
            let (recorded, owed) = (ended(&world).await, owed(&world).await);

            let engine = engine(&world, &flow).await;
            let drivers = open(&engine).await;
            super::rested(&drivers[0]).await;
            let view = drivers[0].view();
            let said = trace().take().into_iter();
            let (undone, had): (Vec<_>, Vec<_>) = said.partition(|it| it.starts_with("undo"));
            assert!(!had.iter().any(|it| recorded.contains(it)), "{at}: {had:?}");
            let (stands, open) = last;
            let found = stands
                .iter()
                .rev()
                .find_map(|it| it.taken_up(&view, &recorded));
            let found = found.unwrap_or_else(|| panic!("{at}: {stands:#?}\n{view:#?}"));
            // What is owed is undone when that was begun, and not before.
            let owed = if view.status == Status::Idle {
                owed
            } else {
                Vec::new()
            };
            rolling += usize::from(!owed.is_empty());
            assert_eq!(undone, owed, "{at}");
            model = found;
            if is_cut_off(&view) {
                interrupted += 1;
                assert!(obey(&drivers[0], &mut model, Press::Retry).await);
            }
            // Whoever got no answer asks again; with a key, it is obeyed once.
            for given in open.into_iter().filter(|given| given.key.is_some()) {
                if model.status == Status::Completed {
                    break;
                }
                again += 1;
                assert!(obey(&drivers[1], &mut model, given).await);
            }
            for (number, round) in script.iter().enumerate().skip(done + 1) {
                let at = format!("{at}, round {number}");
                obeyed(&drivers, &mut model, round, &at).await;
            }
            cut += 1;
            cuts += 1;
        }
    }
    assert!(
        cuts > 100 && interrupted > 5 && rolling > 0 && again > 10,
        "{cuts} {interrupted} {rolling} {again}"
    );
}

async fn open_if_it_can(engine: &workflow::Engine) -> Option<Vec<Guide<Form>>> {
    let flow = model_flow();
    let guide = engine
        .guided(&flow, "g")
        .start(Form::default())
        .await
        .ok()?;
    let other = engine.guided(&flow, "g").open().await.ok()??;
    Some(vec![guide.clone(), guide, other])
}
