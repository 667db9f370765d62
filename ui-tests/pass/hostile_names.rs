//! The user's names are the user's.

#![allow(non_camel_case_types, non_snake_case, non_upper_case_globals, dead_code)]

use workflow::{join, join_all, race, sleep, step, workflow};

struct Site;
struct Failure;
struct Vec;
struct Option;
struct String;
enum Result {}
fn Ok() {}
fn Err() {}
fn Some() {}
fn None() {}
fn Box() {}
mod core {}
mod std {}
const cx: u32 = 1;
const body: u32 = 1;
const step_: u32 = 1;
const __x: u32 = 1;
const slot: u32 = 1;
struct done;

#[step]
async fn reserve(order: u32) -> u32 {
    order
}

#[workflow]
async fn checkout(order: u32) -> ::std::result::Result<u32, workflow::Failure> {
    let held = reserve(order).await?;
    sleep!(nap, "1s").await;
    #[step(name = "more")]
    let more = { held + cx }?;
    let (a, b) = join!(both, a = reserve(1).await?, b = reserve(2).await?).await?;
    let won = race!(first, a = reserve(1).await?, b = reserve(2).await?).await?;
    let all = join_all!(every, for n in [1, 2] { reserve(n).await? }).await?;
    let mut left = 2;
    'again: while left > 0 {
        left -= reserve(1).await?;
    }
    ::std::result::Result::Ok(more + a + b + won.value + all[0])
}

fn main() {}

mod more {
    use serde::{Deserialize, Serialize};
    use workflow::{attempt, recv, removed, send, step, version, workflow};

    struct Channel;
    struct Request;
    struct RunId;
    const value: u32 = 1;
    const held_0: u32 = 1;
    const items: u32 = 1;
    const tried: u32 = 1;
    static NEWS: workflow::Channel<u32> = workflow::Channel::new("news");
    static ASK: workflow::Channel<u32, u32> = workflow::Channel::new("ask");
    fn channel() {}
    fn hold() {}

    #[derive(Serialize, Deserialize)]
    struct Recorded(u32);

    #[step]
    async fn reserve(order: u32) -> u32 {
        order
    }

    #[workflow]
    async fn listener(order: u32) -> ::std::result::Result<u32, workflow::Failure> {
        removed!(r#match, kind = "step");
        let mut total = Recorded(version!(cx, 2).await);
        let limit = order;
        #[carry(total)]
        'state: for n in [1, 2] {
            total.0 += n + recv!(run, [NEWS]).await? + limit;
            let more = attempt!(attempt, { reserve(value + items).await? + tried }).await?;
            total.0 += more + held_0;
        }
        let asked = recv!(asked, ASK).await?;
        asked.reply(1).await?;
        send!(send, "a", NEWS, total.0).await?;
        ::std::result::Result::Ok(total.0)
    }
}
