//! What the lock says of an edit is what the replay of a live run finds.

use workflow::testing::replay;
use workflow::{Channel, Failure, History, fragment, join_all, recv, sleep, step, workflow};
use workflow_tests::{World, pass};

static NUMBERS: Channel<u32> = Channel::new("numbers");

#[step]
async fn one() -> u32 {
    1
}

#[workflow]
async fn child() -> u32 {
    9
}

/// Every version of a workflow of this name, each in a module.
macro_rules! versions {
    ($($name:ident { $($body:tt)* })*) => {
        $(mod $name {
            use super::*;

            #[workflow(name = "flow")]
            pub(super) async fn flow() -> Result<u32, Failure> {
                $($body)*
                sleep!(rest, "1d").await;
                Ok(1)
            }
        })*
    };
}

versions! {
    looped { 'items: for item in [1_u32, 2] { one().await?; let _ = item; } }
    keyed { #[key(item)] 'items: for item in [1_u32, 2] { one().await?; } }
    joined { join_all!(items, for item in [1_u32, 2] { one().await? + item }).await?; }
    joined_by_key { join_all!(items, key = item, for item in [1_u32, 2] { one().await? + item }).await?; }
    awaited { let _ = child().await?; }
    detached { let _ = child().detach().await?; }
    stepped { let _ = one().await?; }
    in_a_fragment { let _ = fragmented::one().await?; }
    taken { let _ = recv!(number, NUMBERS).await?; }
    taken_in_time { let _ = recv!(number, NUMBERS, timeout = "1h").await?; }
    taken_several { let _ = recv!(number, NUMBERS, count = 3).await?; }
    carried { let mut total = 0_u32; #[carry(total)] 'watch: loop { total += one().await?; if total > 2 { break; } } }
    carried_wider { let mut total = 0_u64; #[carry(total)] 'watch: loop { total += u64::from(one().await?); if total > 2 { break; } } }
    carried_as_text { let mut total = String::new(); #[carry(total)] 'watch: loop { total.push('x'); one().await?; if total.len() > 2 { break; } } }
}

mod fragmented {
    use super::*;

    #[step]
    async fn inner() -> u32 {
        1
    }

    #[fragment]
    pub async fn one() -> Result<u32, Failure> {
        inner().await
    }
}

/// The history of a run that waits at `rest`.
macro_rules! history {
    ($version:ident) => {{
        let world = World::new();
        let builder = world.engine().workflow(child).workflow($version::flow);
        let engine = builder.build().await.unwrap();
        let run = engine.start("r", $version::flow()).await.unwrap();
        run.send(&NUMBERS, &7).await.unwrap();
        pass(1_000).await;
        let history: History = run.export().await.unwrap();
        history
    }};
}

/// Whether a run of the one code is replayed by the other to where it waits; else the first line of what is told.
macro_rules! goes_on {
    ($before:ident => $after:ident) => {{
        let history = history!($before);
        assert!(
            replay($before::flow, &history).unwrap().waits_at("rest"),
            "unedited"
        );
        match replay($after::flow, &history) {
            Ok(replayed) => Ok(replayed.waits_at("rest")),
            Err(error) => Err(error.to_string().lines().next().unwrap().to_owned()),
        }
    }};
}

#[tokio::test(start_paused = true)]
async fn what_the_lock_refuses_does_not_replay() {
    for (told, part) in [
        (goes_on!(looped => keyed), "`items[0]/one`"),
        (goes_on!(keyed => looped), "`items[\"1\"]/one`"),
        (goes_on!(joined => joined_by_key), "`items[0]/one`"),
        (goes_on!(detached => awaited), "does not decode into `u32`"),
        (goes_on!(stepped => in_a_fragment), "`one`"),
        (goes_on!(carried => carried_as_text), "does not decode"),
    ] {
        let told = told.unwrap_err();
        assert!(told.contains(part), "{told}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_the_lock_lets_through_replays() {
    assert_eq!(goes_on!(awaited => detached), Ok(true));
    assert_eq!(goes_on!(taken => taken_in_time), Ok(true));
    assert_eq!(goes_on!(taken => taken_several), Ok(true));
    assert_eq!(goes_on!(taken_several => taken), Ok(true));
    assert_eq!(goes_on!(carried => carried_wider), Ok(true));
}
