//! A checkpoint stands before an undo, in its block or in one around it. (RVT-RB-02, RVT-FIX-74)

use workflow::{Failure, checkpoint, step, workflow};

#[step]
async fn reserve(order: u32) -> Result<u32, std::io::Error> {
    Ok(order)
}

async fn release(order: u32) {
    drop(order);
}

#[workflow]
async fn nowhere(order: u32) -> Result<(), Failure> {
    #[step(undo(release))]
    reserve(order).await?;
    Ok(())
}

#[workflow]
async fn in_an_if(order: u32) -> Result<(), Failure> {
    if order > 3 {
        checkpoint!(begun);
    }
    #[step(undo(release))]
    reserve(order).await?;
    Ok(())
}

#[workflow]
async fn in_an_arm(order: u32) -> Result<(), Failure> {
    match order {
        3 => checkpoint!(begun),
        _ => {}
    }
    #[step(undo(release))]
    reserve(order).await?;
    Ok(())
}

#[workflow]
async fn in_another_branch(order: u32) -> Result<(), Failure> {
    workflow::join!(
        both,
        a = {
            checkpoint!(begun);
            order
        },
        b = {
            #[step(undo(release))]
            reserve(order).await?
        }
    )
    .await?;
    Ok(())
}

#[workflow]
async fn after_it(order: u32) -> Result<(), Failure> {
    #[step(undo(release))]
    reserve(order).await?;
    checkpoint!(begun);
    Ok(())
}

fn main() {}
