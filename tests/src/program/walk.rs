//! A program's code: what `#[workflow]` would have made of it, over the real futures.

#![allow(
    clippy::needless_borrow,
    reason = "method lookup is written as the macros write it"
)]

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use workflow::__private as p;
use workflow::replay::{Opened, Segment};
use workflow::{Backoff, Call, Failure, Kind, Location, Site, Workflow};

use super::ast::{Branch, How, Node, Program};
use super::sites::{names, site};
use super::world::{Leaf, World};

/// A workflow that runs the program which the engine has for a state.
#[derive(Debug)]
pub struct Interpreted {}

/// A program, and who watches it run.
#[derive(Debug, Clone)]
pub struct Interpreter {
    /// The program.
    pub program: Program,
    /// Who watches.
    pub world: Arc<World>,
}

/// What one drive of the code has in memory.
struct Drive {
    world: Arc<World>,
    /// What the branches share.
    shared: Mutex<Vec<u64>>,
}

/// How a body fails.
#[derive(Debug, thiserror::Error, serde::Serialize, serde::Deserialize)]
#[error("{0}")]
struct Oops(String);

impl Interpreted {
    /// Calls it.
    pub fn call() -> Call<Self> {
        p::call(p::Input::new())
    }
}

impl Workflow for Interpreted {
    const NAME: &'static str = "interpreted";
    const SITES: &'static [Site] = &[];
    type Mark = p::Fallible;
    type Returns = Result<u64, Failure>;

    fn states() -> Vec<p::StateType> {
        vec![p::state_type::<Interpreter>("interpreter")]
    }

    fn run(args: p::Args) -> Result<p::Body, p::ArgError> {
        let Interpreter { program, world } = args.state("interpreter")?;
        world.engine_drives();
        let drive = Drive {
            world,
            shared: Mutex::default(),
        };
        let via = {
            use p::lookup::*;
            (&&&&&p::tag::<Result<u64, Failure>>()).via()
        };
        Ok(p::body::<Self>(args, via, move |cx| {
            p::fut(async move { block(&drive, &cx, &program.0, &Location::root(), 7).await })
        }))
    }
}

/// Runs a block. Its value depends on everything it computed; `seed` is what its surroundings computed before.
fn block<'a>(
    drive: &'a Drive,
    cx: &'a p::Cx,
    nodes: &'a [Node],
    at: &'a Location,
    seed: u64,
) -> p::BoxFut<'a, Result<u64, Failure>> {
    p::fut(async move {
        let mut values = vec![seed];
        for node in nodes {
            if let Some(value) = statement(drive, cx, node, at, &values).await? {
                values.push(value);
            }
        }
        Ok(hash(&values))
    })
}

async fn statement(
    drive: &Drive,
    cx: &p::Cx,
    node: &Node,
    at: &Location,
    values: &[u64],
) -> Result<Option<u64>, Failure> {
    // What the user's code computed to come here.
    let arg = hash(&(&*drive.shared(), values));
    let world = &drive.world;
    let here = at.site(node.name().unwrap_or_default());
    let value = match node {
        Node::Push => {
            drive.shared().extend(values.last());
            return Ok(None);
        }
        Node::If { then, other } => {
            let taken = if arg & 1 == 0 { then } else { other };
            block(drive, cx, taken, at, arg).await?
        }
        Node::Step { name, how, caught } => {
            let done = step(drive, cx, name, *how, &here, arg).await;
            caught_or(*caught, done)?
        }
        Node::Now(name) => {
            world.issued(&here, arg, Leaf::Now);
            let now = p::now(cx, site(name, Kind::Now)).await.as_millis();
            world.observed(&here, &now.to_string(), Leaf::Now);
            hash(&now)
        }
        Node::Uuid(name) => hash(p::uuid(cx, site(name, Kind::Derived)).as_bytes()),
        Node::Sleep(name, millis) => {
            let leaf = Leaf::Sleep(*millis);
            world.issued(&here, arg, leaf);
            p::sleep(cx, site(name, Kind::Sleep), Duration::from_millis(*millis)).await;
            world.observed(&here, "null", leaf);
            0
        }
        Node::Join {
            name,
            branches,
            caught,
        } => {
            world.issued(&here, arg, Leaf::Beside);
            caught_or(*caught, join(drive, cx, name, branches, &here, arg).await)?
        }
        Node::Race {
            name,
            branches,
            caught,
        } => {
            world.issued(&here, arg, Leaf::Beside);
            caught_or(*caught, race(drive, cx, name, branches, &here, arg).await)?
        }
        Node::JoinAll {
            name,
            items,
            limit,
            keyed,
            body,
            caught,
        } => {
            world.issued(&here, arg, Leaf::Beside);
            let all = All {
                site: site(name, Kind::JoinAll),
                items: *items,
                limit: *limit,
                keyed: *keyed,
                body,
            };
            caught_or(*caught, join_all(drive, cx, all, &here, arg).await)?
        }
        Node::For {
            name,
            times,
            keyed,
            body,
        } => {
            world.issued(&here, arg, Leaf::Scope);
            let mut total = arg;
            let mut iterations = p::enter_loop(cx, site(name, Kind::Loop)).await;
            for index in 0..*times {
                let (inner, scope) = if *keyed {
                    let key = format!("k{}", index % 2);
                    let segment = Segment::Key {
                        key: &key,
                        occurrence: u32::try_from(index / 2).unwrap_or_default(),
                    };
                    (iterations.keyed(&key), here.child(segment))
                } else {
                    (iterations.iteration(), here.iteration(index))
                };
                total = block(drive, &inner, body, &scope, total).await?;
            }
            total
        }
        Node::Fragment { name, body, caught } => {
            world.issued(&here, arg, Leaf::Scope);
            let place = &here;
            let fragment = p::fragment(move |cx: p::Cx| {
                p::fut(async move { block(drive, &cx, body, place, arg).await })
            });
            let done = p::Durable::run(fragment, cx, site(name, Kind::Call)).await;
            caught_or(*caught, done)?
        }
    };
    Ok(Some(value))
}

/// With the `?` left off, a failure is data.
fn caught_or(caught: bool, done: Result<u64, Failure>) -> Result<u64, Failure> {
    match done {
        Err(failure) if caught => Ok(hash(&failure.to_string())),
        done => done,
    }
}

async fn step(
    drive: &Drive,
    cx: &p::Cx,
    name: &'static str,
    how: How,
    here: &Location,
    arg: u64,
) -> Result<u64, Failure> {
    let world = &drive.world;
    let leaf = Leaf::Step(how);
    world.issued(here, arg, leaf);
    let options = p::StepOptions::new()
        .no_timeout()
        .backoff(Backoff::fixed(Duration::from_millis(4)));
    let options = match how {
        How::FailsFirst(times) => options.retries(times),
        How::Exhausts(attempts) => options.retries(attempts - 1),
        How::TimesOut => options.timeout(Duration::from_millis(6)),
        How::Fails | How::EphemeralFails => options.retries(0),
        How::AtMostOnce => options.at_most_once(true),
        How::Succeeds | How::AtOnce | How::Ephemeral => options,
    };
    let options = if how.rides() {
        options.ephemeral(true)
    } else {
        options
    };
    let place = site(name, Kind::Step);
    let done = if arg & 2 == 0 {
        use p::lookup::*;
        let body = || p::fut(async { world.body(here, arg, how).await.map_err(Oops) });
        let step = p::in_place(cx, place, options, &body);
        let via = (&&&&&step.tag()).via();
        step.run(via).await
    } else {
        use p::lookup::*;
        let step: workflow::Step<'_, Result<u64, Oops>> = p::step(
            options,
            Box::new(move || p::fut(async move { world.body(here, arg, how).await.map_err(Oops) })),
            (&&&&&p::tag::<Result<u64, Oops>>()).via(),
        );
        p::Durable::run(step, cx, place).await
    };
    let shown = match &done {
        Ok(value) => value.to_string(),
        Err(failure) => failure.to_string(),
    };
    world.observed(here, &shown, leaf);
    done
}

async fn join(
    drive: &Drive,
    cx: &p::Cx,
    name: &'static str,
    branches: &[Branch],
    here: &Location,
    arg: u64,
) -> Result<u64, Failure> {
    let declared: Vec<_> = branches.iter().map(|branch| branch.name).collect();
    let owned = declared.iter().map(|&name| name.to_owned()).collect();
    drive.world.entered_as(here, Opened::Join(owned));
    let mut join = p::enter_join(cx, site(name, Kind::Join), &declared);
    let scopes: Vec<_> = declared.iter().map(|name| join.branch(name)).collect();
    let places: Vec<_> = declared.iter().map(|name| here.branch(name)).collect();
    let (scopes, places) = (&scopes, &places);
    let arm = |index: usize| {
        p::arm(move || {
            p::fut(async move {
                let body = &branches[index].body;
                let value = block(drive, &scopes[index], body, &places[index], arg).await?;
                Ok::<_, p::Thrown>(value)
            })
        })
    };
    match branches.len() {
        1 => join.join((arm(0),)).await.map(|values| hash(&values)),
        2 => join
            .join((arm(0), arm(1)))
            .await
            .map(|values| hash(&values)),
        3 => join
            .join((arm(0), arm(1), arm(2)))
            .await
            .map(|values| hash(&values)),
        _ => join
            .join((arm(0), arm(1), arm(2), arm(3)))
            .await
            .map(|values| hash(&values)),
    }
}

async fn race(
    drive: &Drive,
    cx: &p::Cx,
    name: &'static str,
    branches: &[Branch],
    here: &Location,
    arg: u64,
) -> Result<u64, Failure> {
    let declared = names(branches.iter().map(|branch| branch.name).collect());
    let owned = declared.iter().map(|&name| name.to_owned()).collect();
    drive.world.entered_as(here, Opened::Race(owned));
    let mut race = p::enter_race(cx, site(name, Kind::Race), declared);
    let scopes: Vec<_> = declared.iter().map(|name| race.branch(name)).collect();
    let places: Vec<_> = declared.iter().map(|name| here.branch(name)).collect();
    let (scopes, places) = (&scopes, &places);
    let arm = |index: usize| {
        p::arm(move || {
            p::fut(async move {
                let body = &branches[index].body;
                let value = block(drive, &scopes[index], body, &places[index], arg).await?;
                Ok::<_, p::Thrown>(value)
            })
        })
    };
    let won = match branches.len() {
        1 => race.race([arm(0)]).await,
        2 => race.race([arm(0), arm(1)]).await,
        3 => race.race([arm(0), arm(1), arm(2)]).await,
        _ => race.race([arm(0), arm(1), arm(2), arm(3)]).await,
    }?;
    for (name, place) in declared.iter().zip(places) {
        if *name != won.branch {
            drive.world.lost(place);
        }
    }
    Ok(hash(&(won.branch, won.value)))
}

struct All<'a> {
    site: &'static Site,
    items: u64,
    limit: Option<usize>,
    keyed: bool,
    body: &'a [Node],
}

async fn join_all(
    drive: &Drive,
    cx: &p::Cx,
    all: All<'_>,
    here: &Location,
    arg: u64,
) -> Result<u64, Failure> {
    let key = |item: &u64| format!("k{item}");
    let All { body, keyed, .. } = all;
    drive.world.entered_as(here, Opened::JoinAll(all.items));
    let mut items = p::enter_all(cx, all.site, all.limit, 0..all.items);
    if keyed {
        items.keyed(|item| p::key(&key(item)));
    }
    let mut arms = Vec::new();
    for slot in items.slots() {
        arms.push(p::item(move || {
            p::fut(async move {
                let (cx, item) = slot.open();
                let place = if keyed {
                    here.child(Segment::Key {
                        key: &key(&item),
                        occurrence: 0,
                    })
                } else {
                    here.iteration(item)
                };
                let seed = hash(&(arg, item));
                let value = block(drive, &cx, body, &place, seed).await?;
                Ok::<_, p::Thrown>((item, value))
            })
        }));
    }
    let values = items.run(arms).await?;
    let order: Vec<_> = values.iter().map(|(item, _)| *item).collect();
    assert_eq!(
        order,
        (0..all.items).collect::<Vec<_>>(),
        "results come in input order, each its own"
    );
    Ok(hash(&values))
}

impl Drive {
    fn shared(&self) -> std::sync::MutexGuard<'_, Vec<u64>> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Drive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Drive").finish_non_exhaustive()
    }
}

/// A number that everything in `value` had a part in.
pub(super) fn hash(value: &(impl Hash + ?Sized)) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    // Whole in JSON, also for readers that know only doubles.
    hasher.finish() >> 11
}
