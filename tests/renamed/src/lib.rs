//! The library under another name, in the edition before, with every lint on.

#![forbid(unsafe_code)]
#![deny(warnings, missing_docs, missing_debug_implementations)]
#![deny(unreachable_pub, unused_qualifications, single_use_lifetimes)]
#![deny(rust_2018_idioms, unused, let_underscore_drop, unused_lifetimes)]
#![deny(clippy::all, clippy::pedantic, clippy::nursery)]

use std::fmt::Error;

use wf::guided::{Problems, Stage, Undone};
use wf::{
    attempt, fragment, guided, join, join_all, race, recv, removed, send, sleep, step, version,
    workflow, Channel, Failure, Request, RunId,
};

/// What comes.
pub static NEWS: Channel<u64> = Channel::new("news");
/// What is asked.
pub static ASK: Channel<u64, u64> = Channel::new("ask");

/// Holds.
#[step(retries = 2)]
pub async fn reserve(order: &str, n: u64) -> Result<u64, Error> {
    if order.is_empty() {
        return Err(Error);
    }
    Ok(n + 1)
}

/// Waits.
#[fragment]
pub async fn settle(total: &mut u64, n: u64) -> Result<(), Failure> {
    sleep!(nap, "10ms").await;
    *total += reserve("settle", n).await?;
    Ok(())
}

/// Looks.
#[fragment]
pub async fn peek(n: u64) -> Result<u64, Failure> {
    reserve("peek", n).await
}

/// What a person is asked for.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
pub struct Form {
    /// How many.
    pub number: u64,
}

#[guided(id = "form")]
impl Form {
    /// How many?
    #[stage(start, to = [hold if Self::is_many, done])]
    fn number() {}

    #[check(number)]
    fn is_a_number(&self, problems: &mut Problems) {
        problems.when(self.number == 0, "number", "at least one");
    }

    #[stage(to = [done], timeout = "5s")]
    async fn hold(mut stage: Stage<Self>) -> Result<(), Failure> {
        let held = reserve("form", stage.state().number).await?;
        stage.edit(move |form| form.number = held).await
    }

    #[undo(hold)]
    async fn release(undone: Undone<Self>) -> Result<(), Error> {
        std::future::ready(undone.finished).await;
        Ok(())
    }

    #[stage(terminal)]
    fn done() {}

    #[exit_guard]
    const fn may_leave(&self) -> bool {
        !self.is_many()
    }

    const fn is_many(&self) -> bool {
        self.number > 1
    }
}

/// Uses all of the language.
#[workflow]
pub async fn checkout(order: String, items: Vec<u64>) -> Result<u64, Failure> {
    let mut total = reserve(&order, 1).await?;
    'items: for item in &items {
        total += reserve(&order, *item).await?;
    }
    settle(&mut total, 1).await?;
    #[step(name = "settled_again")]
    settle(&mut total, 2).await?;
    let seen = peek(1).await?;
    #[step(name = "again")]
    let again = peek(1).await?;
    #[step(name = "doubled")]
    let doubled = { total * 2 }?;
    let (a, b) = join!(both, a = reserve(&order, 1).await?, b = 2).await?;
    let won = race!(
        first,
        a = reserve(&order, 1).await?,
        b = { reserve(&order, 2).await? }
    )
    .await?;
    let all = join_all!(
        every,
        limit = 2,
        for item in items {
            reserve(&order, item).await?
        }
    )
    .await?;
    Ok(total + seen + again + doubled + a + b + won.value + all.iter().sum::<u64>())
}

/// Whatever comes.
#[fragment]
pub async fn next(channel: &Channel<u64>) -> Result<u64, Failure> {
    recv!(next, channel).await
}

/// Is told, and asked.
#[workflow]
pub async fn listener(until: u64) -> Result<u64, Failure> {
    removed!(old, kind = "step");
    let mut total = match version!(shape, 2).await {
        1 => 0,
        _ => recv!(first, [NEWS], timeout = "1h").await?.unwrap_or(0),
    };
    let several = recv!(several, &NEWS, exactly = 2).await?;
    total += several.iter().sum::<u64>();
    total += next(&NEWS).await?;
    let tried = attempt!(tried, { reserve("", 1).await? }).await;
    if tried.is_err() {
        total += 1;
    }
    #[carry(total, every = 5)]
    'up: while total < until {
        if total == 3 {
            continue 'up;
        }
        total += reserve("up", 0).await?;
    }
    let asked: Request<u64, u64> = recv!(asked, ASK).await?;
    let answer = *asked.value() + total;
    #[step(name = "answered")]
    asked.reply(answer).await?;
    Ok(total)
}

/// Starts another, tells it, and waits for it.
#[workflow]
pub async fn teller(to: RunId) -> Result<u64, Failure> {
    'all: for n in 0..4_u64 {
        send!(tell, &to, NEWS, n).await?;
    }
    #[step(name = "child")]
    let total = checkout(String::from("o"), vec![]).await?;
    let left = checkout(String::from("o"), vec![]).detach().await?;
    drop(left);
    Ok(total)
}

#[cfg(test)]
mod tests {
    use wf::guided::Moved;

    use super::*;

    #[tokio::test]
    async fn a_workflow_runs_under_another_name_of_the_library() {
        let engine = wf::Engine::builder()
            .workflow(checkout)
            .store(wf::MemoryStore::new())
            .build()
            .await
            .expect("a memory store opens");
        let total = engine.run("a", checkout("o".to_owned(), vec![1, 2])).await;
        // 2 + 2 + 3 + 2 + 3, 2 + 2, 24, 2 + 2, 2 or 3, 2 + 3.
        let total = total.expect("no step fails");
        assert!(total == 51 || total == 52, "{total}");
    }

    #[tokio::test]
    async fn messages_children_and_carried_loops_work_under_another_name_of_the_library() {
        let engine = wf::Engine::builder()
            .workflow(checkout)
            .workflow(listener)
            .workflow(teller)
            .store(wf::MemoryStore::new())
            .build()
            .await
            .expect("a memory store opens");
        let run = engine.start("a", listener(20)).await.expect("it is new");
        let total = engine.run("b", teller(run.id().clone())).await;
        assert!(total.is_ok(), "{total:?}");
        let answer = run.request(&ASK, &5).await.expect("it answers");
        assert_eq!(answer, 25);
        assert_eq!(run.result().await.expect("it ends"), 20);
    }

    #[tokio::test]
    async fn a_guided_flow_works_under_another_name_of_the_library() {
        let builder = wf::Engine::builder().guide::<Form>();
        let engine = builder.store(wf::MemoryStore::new()).build().await;
        let engine = engine.expect("a memory store opens");
        let guide = engine.guide::<Form>("a").start(Form { number: 2 }).await;
        let guide = guide.expect("it is new");
        assert_eq!(guide.next().await, Ok(Moved::To(FormStage::Hold)));
        assert_eq!(guide.view().state.number, 3);
        assert_eq!(guide.next().await, Ok(Moved::To(FormStage::Done)));
        assert_eq!(guide.next().await, Ok(Moved::Finished));
    }

    // UA-07: what is in a fragment is told apart by the site of its call.
    #[test]
    fn a_fragment_called_twice_has_a_site_for_each_call() {
        let paths: Vec<_> = checkout::SITES.iter().map(|site| site.path).collect();
        assert!(
            paths.contains(&"peek") && paths.contains(&"again"),
            "{paths:?}"
        );
    }
}
