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

use super::ast::{Branch, Carried, How, Node, Program, Wants};
use super::sites::{names, site};
use super::world::{Law, Leaf, World};

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

/// The workflow that programs have for children: it waits, receives, works, and fails by its argument.
#[derive(Debug)]
pub struct Offspring {}

impl Offspring {
    /// Calls it.
    pub fn call(arg: u64) -> Call<Self> {
        p::call(p::Input::new().with(&p::Parameter::<u64>::new("arg"), &arg))
    }
}

impl Workflow for Offspring {
    const NAME: &'static str = "offspring";
    const SITES: &'static [Site] = &[];
    type Mark = p::Fallible;
    type Returns = Result<u64, Failure>;

    fn states() -> Vec<p::StateType> {
        Vec::new()
    }

    fn run(args: p::Args) -> Result<p::Body, p::ArgError> {
        let arg = p::Parameter::<u64>::new("arg").read(&args)?;
        let via = {
            use p::lookup::*;
            (&&&&&p::tag::<Result<u64, Failure>>()).via()
        };
        Ok(p::body::<Self>(args, via, move |cx| {
            p::fut(async move {
                let nap = Duration::from_millis(arg % 9);
                p::sleep(&cx, site("nap", Kind::Sleep), nap).await;
                let options = p::StepOptions::new().retries(0);
                let body = || p::fut(async move { brought_up(arg).map_err(Oops) });
                let step = p::in_place(&cx, site("work", Kind::Step), options, &body);
                use p::lookup::*;
                let via = (&&&&&step.tag()).via();
                step.run(via).await
            })
        }))
    }
}

/// What a child comes to.
pub(super) fn brought_up(arg: u64) -> Result<u64, String> {
    if arg.is_multiple_of(4) {
        Err(format!("{arg} fails"))
    } else {
        Ok(hash(&arg))
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
        Node::Recv(name, wants) => recv(drive, cx, name, *wants, &here, arg).await?,
        Node::Serve(name) => serve(drive, cx, name, at, arg).await?,
        Node::Send { name, channel, own } => {
            world.issued(&here, arg, Leaf::Send);
            let to = if *own { "run" } else { "elsewhere" };
            let site = site(name, Kind::Send);
            let sent = p::send(cx, site, to, super::post::channel(channel), arg).await;
            world.observed(&here, &shown(&sent, "null"), Leaf::Send);
            sent?;
            0
        }
        Node::Child {
            name,
            detached,
            caught,
        } => {
            world.issued(&here, arg, Leaf::Child);
            let call = Offspring::call(arg);
            let site = site(name, Kind::Call);
            let done = if *detached {
                let id = p::Durable::run(call.detach(), cx, site).await;
                world.observed(&here, &shown(&id, "null"), Leaf::Child);
                id.map(|id| hash(id.as_str()))
            } else {
                let done = p::Durable::run(call, cx, site).await;
                let value = done.as_ref().map_or(String::new(), ToString::to_string);
                world.observed(&here, &shown(&done, &value), Leaf::Child);
                done
            };
            caught_or(*caught, done)?
        }
        Node::Carry {
            name,
            carried,
            body,
        } => {
            world.issued(&here, arg, Leaf::Scope);
            let all = Around {
                site: site(name, Kind::Loop),
                carried: *carried,
                body,
            };
            carry(drive, cx, all, &here, arg).await?
        }
        Node::Attempt(name, body) => {
            world.issued(&here, arg, Leaf::Scope);
            let attempt = p::enter_attempt(cx, site(name, Kind::Attempt)).await;
            let done = block(drive, attempt.scope(), body, &here, arg).await;
            drop(attempt);
            caught_or(true, done)?
        }
        Node::Version {
            name,
            latest,
            old,
            new,
        } => {
            let version = p::version(cx, site(name, Kind::Version), *latest).await;
            world.chose(&here, version);
            let taken = if version < 2 { old } else { new };
            block(drive, cx, taken, at, hash(&(arg, version))).await?
        }
        Node::Removed(name, kind) => {
            p::removed(cx, site(name, Kind::Removed), *kind);
            world.removed(&here);
            return Ok(None);
        }
    };
    Ok(Some(value))
}

/// What an operation gave, as its record shows it.
fn shown<T>(done: &Result<T, Failure>, value: &str) -> String {
    match done {
        Ok(_) => value.to_owned(),
        Err(failure) => failure.to_string(),
    }
}

async fn recv(
    drive: &Drive,
    cx: &p::Cx,
    name: &'static str,
    wants: Wants,
    here: &Location,
    arg: u64,
) -> Result<u64, Failure> {
    let leaf = Leaf::Recv(wants);
    drive.world.issued(here, arg, leaf);
    let place = site(name, Kind::Recv);
    let within = wants.within.map(Duration::from_millis);
    let channels: Vec<_> = wants
        .from
        .iter()
        .map(|name| p::channel(super::post::channel(name)))
        .collect();
    let given = match (wants.count, within) {
        (1, None) => vec![p::recv(cx, place, &channels).await?],
        (1, Some(within)) => {
            let given = p::recv_within(cx, place, &channels, within).await?;
            given.into_iter().collect()
        }
        (count, within) => p::recv_many(cx, place, &channels, within, count, wants.exactly).await?,
    };
    let (least, most) = (wants.least(), wants.count as usize);
    if given.len() > most || (within.is_none() && given.len() < least) {
        let what = format!("`{here}` wants {wants:?}, and is given {given:?}");
        drive.world.broke(Law::Message, what);
    }
    drive.world.observed(here, &format!("{given:?}"), leaf);
    Ok(hash(&given))
}

async fn serve(
    drive: &Drive,
    cx: &p::Cx,
    name: &'static str,
    at: &Location,
    arg: u64,
) -> Result<u64, Failure> {
    let world = &drive.world;
    let leaf = Leaf::Recv(super::post::REQUEST);
    let here = at.site(name);
    world.issued(&here, arg, leaf);
    let request = p::recv(cx, site(name, Kind::Recv), &[p::channel(&super::post::ASK)]).await?;
    let asked = *request.value();
    world.observed(&here, &format!("[{asked}]"), leaf);
    let name = super::post::reply_to(name);
    let here = at.site(name);
    world.issued(&here, asked, Leaf::Send);
    let done = p::Durable::run(request.reply(hash(&asked)), cx, site(name, Kind::Reply)).await;
    world.observed(&here, &shown(&done, "null"), Leaf::Send);
    done?;
    Ok(asked)
}

struct Around<'a> {
    site: &'static Site,
    carried: Carried,
    body: &'a [Node],
}

/// As the macro expands a `for` or a `while` that carries.
async fn carry(
    drive: &Drive,
    cx: &p::Cx,
    around: Around<'_>,
    here: &Location,
    arg: u64,
) -> Result<u64, Failure> {
    let Around {
        site,
        carried,
        body,
    } = around;
    let world = &drive.world;
    let owned = carried.locals.iter().map(|&name| name.to_owned()).collect();
    world.entered_as(here, Opened::Carry(owned));
    let entered = p::enter_carry(cx, site, carried.locals).await;
    let mut entered = entered.every(carried.every);
    if let Some(keep) = carried.keep {
        entered = entered.keep(keep);
    }
    let crossed = |next: u64, locals: &[u64]| {
        if let Some(ended) = next.checked_sub(1) {
            let json = serde_json::to_string(locals).unwrap_or_default();
            world.observed(&here.iteration(ended), &json, Leaf::Boundary);
        }
    };
    let mut locals = vec![arg; carried.locals.len()];
    locals = entered.resume(locals).await;
    let first = entered.skipped() as u64;
    crossed(first, &locals);
    let mut index = first;
    while carried.whilst || index < carried.times {
        locals = entered.top(locals).await;
        if index > first {
            crossed(index, &locals);
        }
        let inner = entered.iteration();
        if index >= carried.times {
            break;
        }
        let value = block(drive, &inner, body, &here.iteration(index), hash(&locals)).await?;
        locals[0] = value;
        if let Some(count) = locals.get_mut(1) {
            *count += 1;
        }
        if carried.breaks && value.is_multiple_of(4) {
            break;
        }
        index += 1;
    }
    entered.finish();
    Ok(hash(&locals))
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
            (&&&&&p::tag::<Result<u64, Oops>>()).via(),
            Box::new(move || p::fut(async move { world.body(here, arg, how).await.map_err(Oops) })),
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
