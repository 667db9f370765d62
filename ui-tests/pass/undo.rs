//! Undos: paths, closures, steps, what is unknown, patterns, a step that gives nothing.

use workflow::{Failure, attempt, checkpoint, join, settle, step, workflow};

#[derive(Clone)]
struct Pay;

impl Pay {
    async fn refund(&self, amount: u32) -> Result<(), std::io::Error> {
        drop(amount);
        Ok(())
    }
}

#[step]
async fn reserve(order: u32) -> Result<u32, std::io::Error> {
    Ok(order)
}

#[step]
async fn pair(order: u32) -> (u32, String) {
    (order, String::new())
}

#[step]
async fn nothing(order: u32) {
    drop(order);
}

async fn plain(order: u32) -> u32 {
    order
}

mod undos {
    pub(crate) async fn release(order: u32, pay: super::Pay) -> Result<(), std::io::Error> {
        pay.refund(order).await
    }
}

#[step]
async fn as_step(order: u32) -> Result<(), std::io::Error> {
    drop(order);
    Ok(())
}

async fn maybe(order: Option<u32>) {
    drop(order);
}

async fn generic<T>(value: T) {
    drop(value);
}

#[workflow]
async fn checkout(order: u32) -> Result<u32, Failure> {
    checkpoint!(begun);
    #[step(undo(undos::release))]
    let held = reserve(order).await?;
    #[step(name = "closure", undo(|held: u32, pay: Pay| async move { pay.refund(held).await }))]
    reserve(order).await?;
    #[step(name = "maybe", undo(maybe), retries = 2)]
    reserve(order).await?;
    #[step(name = "step", undo(as_step))]
    reserve(order).await?;
    #[step(name = "generic", undo(generic::<u32>))]
    reserve(order).await?;
    #[step(undo(|(order, name): (u32, String)| async move { drop((order, name)) }))]
    pair(order).await?;
    #[step(undo(|(): ()| async {}))]
    nothing(order).await?;
    #[step(undo(generic::<u32>))]
    plain(order).await?;
    // Names of the undo's own, that are the workflow's, too.
    #[step(name = "shadowed", undo(|order: u32| async move { drop(order) }))]
    reserve(order).await?;
    join!(
        both,
        a = {
            #[step(name = "a", undo(maybe))]
            reserve(order).await?
        },
        b = {
            #[step(name = "b", undo(maybe))]
            reserve(order).await?
        }
    )
    .await?;
    let tried = attempt!(tried, {
        #[step(name = "inner", undo(maybe))]
        reserve(order).await?
    })
    .await;
    'each: for n in 0..held {
        #[step(name = "each", undo(maybe))]
        reserve(n).await?;
    }
    settle!(paid);
    tried
}

#[workflow]
async fn another_way(order: u32) -> Result<u32, Failure> {
    checkpoint!(begun);
    let first = workflow::attempt!(first, {
        checkpoint!(inner);
        #[step(undo(maybe))]
        let reserved = reserve(order).await?;
        workflow::rollback!(undo_inner, to = inner).await;
        reserved
    })
    .await;
    if first.is_err() {
        workflow::rollback!(back, to = begun).await;
    }
    Ok(order)
}

fn main() {}
