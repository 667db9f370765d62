//! The rest of the language, cut off everywhere: each workflow comes out the same.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use workflow::testing::{Broken, crash_everywhere};
use workflow::{
    Channel, Failure, FailureKind, attempt, checkpoint, current_step, fragment, join_all, random,
    recv, rollback, send, settle, sleep, step, version, workflow,
};

/// What was done, by the keys that name it.
#[derive(Debug, Clone, Default)]
struct World(Arc<Mutex<BTreeMap<String, BTreeSet<String>>>>);

impl World {
    fn has(&self, what: &str) {
        let key = current_step().idempotency_key();
        let mut all = self.0.lock().unwrap();
        all.entry(what.to_owned()).or_default().insert(key);
    }

    fn count(&self) -> BTreeMap<String, usize> {
        let all = self.0.lock().unwrap();
        let counts = all.iter();
        counts
            .map(|(what, keys)| (what.clone(), keys.len()))
            .collect()
    }
}

#[step]
async fn act(world: &World, what: &str) -> u32 {
    tokio::time::sleep(Duration::from_millis(1)).await;
    world.has(what);
    7
}

#[step(retries = 1)]
async fn fails(world: &World) -> Result<u32, String> {
    world.has("failed");
    Err("no".to_owned())
}

#[step(blocking)]
fn blocks(world: World) -> u32 {
    world.has("blocked");
    3
}

#[step(at_most_once)]
async fn once(world: &World) -> u32 {
    world.has("once");
    1
}

#[step]
async fn keeps(world: &World, n: u32) -> Result<u32, workflow::PutError> {
    world.has("kept");
    current_step().put("kept/n", &n)?;
    Ok(n)
}

async fn unact(_seven: u32, world: World) {
    world.has("undone");
}

#[fragment]
async fn shared(world: &World) -> Result<u32, Failure> {
    sleep!(nap, "1h").await;
    act(world, "shared").await
}

#[workflow]
async fn blocks_of_all_kinds(items: Vec<u32>, #[state] world: World) -> Result<u32, Failure> {
    let way = version!(way, 3).await;
    let tried = attempt!(tried, {
        act(&world, "tried").await?;
        fails(&world).await?
    })
    .await;
    assert_eq!(tried.unwrap_err().kind(), FailureKind::Exhausted);
    let dice: u32 = random!(dice);
    let mut total = way + dice % 6;
    #[key(item)]
    'items: for item in &items {
        #[step(name = "weigh")]
        let weight = act(&world, "weighed").await?;
        total += weight + item;
    }
    total += blocks(world.clone()).await?;
    total += shared(&world).await?;
    total += keeps(&world, total).await?;
    let all = join_all!(
        all,
        limit = 2,
        key = item,
        for item in items.clone() {
            #[step(name = "each")]
            let each = act(&world, "each").await?;
            each + item
        }
    )
    .await?;
    Ok(total + all.iter().sum::<u32>())
}

#[tokio::test]
async fn blocks_loops_fragments_and_threads() -> Result<(), Broken> {
    let crashes = crash_everywhere(blocks_of_all_kinds(vec![4, 2, 9]))
        .fresh(World::default)
        .effect("done", World::count)
        .await?;
    crashes.assert_all_sites();
    Ok(())
}

#[workflow]
async fn goes_back(#[state] world: World) -> Result<u32, Failure> {
    checkpoint!(begun);
    #[step(name = "first", undo(unact))]
    act(&world, "first").await?;
    settle!(kept);
    checkpoint!(again);
    #[step(name = "second", undo(unact))]
    act(&world, "second").await?;
    rollback!(back, to = again).await;
    #[step(name = "third", undo(unact))]
    act(&world, "third").await?;
    fails(&world).await
}

#[tokio::test]
async fn rollbacks_within_and_at_the_end() -> Result<(), Broken> {
    let crashes = crash_everywhere(goes_back())
        .fresh(World::default)
        .effect("done", World::count)
        .await?;
    crashes.assert_all_sites();
    Ok(())
}

static NEWS: Channel<u32> = Channel::new("news");

#[workflow]
async fn child(n: u32, #[state] world: World) -> Result<u32, Failure> {
    let news = recv!(news, NEWS, timeout = "1d").await?;
    act(&world, "child").await?;
    Ok(n + news.unwrap_or(0))
}

#[workflow]
async fn parent(#[state] world: World) -> Result<u32, Failure> {
    #[step(name = "left")]
    let left = child(1).detach().await?;
    send!(tell, &left, &NEWS, 5).await?;
    #[step(name = "waited")]
    let waited = child(2).await?;
    act(&world, "parent").await?;
    Ok(waited)
}

#[tokio::test]
async fn children_that_are_waited_for_and_left_behind() -> Result<(), Broken> {
    let crashes = crash_everywhere(parent())
        .workflow(child)
        .fresh(World::default)
        .effect("done", World::count)
        .await?;
    crashes.assert_all_sites();
    Ok(())
}

#[workflow]
async fn only_once(#[state] world: World) -> Result<u32, Failure> {
    once(&world).await
}

#[workflow]
async fn only_once_and_dealt_with(#[state] world: World) -> Result<u32, Failure> {
    match once(&world).await {
        Ok(n) => Ok(n),
        // Whether it was done is asked of whom it was done to.
        Err(failure) if failure.kind() == FailureKind::Interrupted => {
            #[step(name = "ask")]
            let found = once_or_now(&world).await?;
            Ok(found)
        }
        Err(failure) => Err(failure),
    }
}

#[step]
async fn once_or_now(world: &World) -> u32 {
    let done = world.0.lock().unwrap().contains_key("once");
    if !done {
        world.has("once");
    }
    1
}

#[tokio::test]
async fn at_most_once_is_another_outcome_unless_it_is_dealt_with() -> Result<(), Broken> {
    let broken = crash_everywhere(only_once())
        .fresh(World::default)
        .await
        .unwrap_err();
    let text = broken.to_string();
    assert!(text.contains("failed at `once` (interrupted)"), "{text}");
    assert_eq!(broken.location(), Some("once"));
    crash_everywhere(only_once_and_dealt_with())
        .fresh(World::default)
        .effect("done", World::count)
        .await
        .map(drop)
}
