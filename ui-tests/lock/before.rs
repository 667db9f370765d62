//! A shop, as its runs are live.

use serde::{Deserialize, Serialize};
use workflow::guided::Stage;
use workflow::{
    Channel, Failure, attempt, checkpoint, current_step, fragment, guided, now, race, recv,
    removed, sleep, step, uuid, version, workflow,
};

pub static PAID: Channel<u32> = Channel::new("paid");
pub static GO: Channel<bool> = Channel::new("go");

#[derive(Clone, Serialize, Deserialize)]
pub struct Order {
    pub items: Vec<String>,
}

#[derive(Serialize, Deserialize)]
pub struct Hold {
    pub shelf: u32,
}

/// Stands for everything that is done to the world.
fn did(what: &str) {
    println!("{} did {what}", current_step().run_id());
}

#[step]
async fn reserve(order: &Order) -> Result<Hold, String> {
    did("reserve");
    Ok(Hold {
        shelf: order.items.len() as u32,
    })
}

async fn release(_: Hold) -> Result<(), String> {
    Ok(())
}

#[step]
async fn pack(item: &str) {
    did(&format!("pack {item}"));
}

#[step]
async fn ship(item: &str) {
    did(&format!("ship {item}"));
}

#[step]
async fn poll(seen: u32) -> u32 {
    did("poll");
    seen + 2
}

#[step]
async fn gift() {
    did("gift");
}

#[step]
async fn mail(hold: &Hold) {
    did(&format!("mail of shelf {}", hold.shelf));
}

#[step]
async fn archive() {
    did("archive");
}

#[fragment]
async fn close(hold: &Hold) -> Result<(), Failure> {
    mail(hold).await?;
    archive().await?;
    Ok(())
}

#[workflow]
pub async fn checkout(order: Order) -> Result<u32, Failure> {
    checkpoint!(begun);
    removed!(weigh, kind = "step");
    let _key = uuid!(key);
    #[step(undo(release))]
    let hold = reserve(&order).await?;
    let won = race!(
        settle,
        paid = recv!(payment, PAID).await?,
        late = {
            sleep!(window, "15d").await;
            0
        }
    )
    .await?;
    'items: for item in &order.items {
        pack(item).await?;
        ship(item).await?;
    }
    let mut seen = 0_u32;
    #[carry(seen)]
    'watch: loop {
        seen = poll(seen).await?;
        if seen >= 4 {
            break;
        }
    }
    let _ = attempt!(bonus, {
        gift().await?;
    })
    .await;
    if version!(dated, 2).await >= 2 {
        now!(today).await;
    }
    recv!(go, GO).await?;
    close(&hold).await?;
    Ok(won.value)
}

#[workflow]
pub async fn refund(order: Order) -> Result<(), Failure> {
    #[step(name = "reserve_back")]
    reserve(&order).await?;
    Ok(())
}

/// What a new customer is asked for.
#[derive(Clone, Serialize, Deserialize)]
pub struct Customer {
    pub name: String,
}

#[guided(id = "welcome", version = 2)]
impl Customer {
    #[stage(start, to = [give])]
    fn name() {}

    #[stage(to = [done])]
    async fn give(_: Stage<Self>) -> Result<(), Failure> {
        gift().await?;
        Ok(())
    }

    #[stage(terminal)]
    fn done() {}
}
