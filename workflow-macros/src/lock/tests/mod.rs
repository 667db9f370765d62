//! Edits of a package, one at a time: those that live runs survive raise nothing, the others are told where and why.

mod breaking;
mod carried;
mod compatible;
mod guided;
mod package;
mod text;

use super::compare;
use super::sources::Sources;
use super::text::Lock;
use super::types::Tables;
use super::whole::of_sources;
use crate::diagnostics::{Errors, Place};

fn lock_of(text: &str) -> Lock {
    lock_of_each(&[("src/lib.rs", text)])
}

/// The lock of a package of these files.
fn lock_of_each(files: &[(&str, &str)]) -> Lock {
    let mut errors = Errors::default();
    let sources = Sources::of_each(files);
    let lock = of_sources(&sources, &["src".to_owned()], &mut errors);
    let wrong = errors.finish();
    assert!(wrong.is_empty(), "{wrong:?}");
    lock
}

/// What is told of `after` where `before` is locked: `path: first line`.
fn told(before: &str, after: &str) -> Vec<String> {
    // Through its text, as it is on disk.
    let printed = lock_of(before).print();
    let locked = Lock::parse(&printed).unwrap_or_else(|wrong| panic!("{wrong:?} in\n{printed}"));
    assert_eq!(locked.print(), printed, "what was read prints the same");
    let found = lock_of(after);
    let tables = Tables {
        locked: &locked.types,
        found: &found.types,
    };
    let mut told = Vec::new();
    for section in &locked.sections {
        if section.item == super::Item::Guided {
            let mut flows = Sources::of(after).guided();
            flows.retain(|flow| flow.id == section.name);
            for flow in &flows {
                for (path, _, text) in super::guided::compare(section, flow, &tables) {
                    let text = text.into_string();
                    let first = text.lines().next().unwrap_or_default().to_owned();
                    told.push(format!("{path}: {first}"));
                }
            }
            continue;
        }
        let Some(now) = found.section(section.item, &section.name) else {
            continue;
        };
        let name = Place::from(proc_macro2::Span::call_site());
        for found in compare::compare(section, now, name, &tables) {
            let text = found.text.into_string();
            let first = text.lines().next().unwrap_or_default().to_owned();
            assert!(text.contains("\nhelp: "), "{text}");
            told.push(format!("{}: {first}", found.path));
        }
    }
    told
}

/// What is edited: from, to.
type Edits<'a> = &'a [(&'a str, &'a str)];

const SHOP: &str = r#"
#[derive(Serialize, Deserialize)]
struct Order { id: String, items: Vec<Item> }
#[derive(Serialize, Deserialize)]
struct Item { sku: String, count: u32 }
#[derive(Serialize, Deserialize)]
enum Outcome { Paid(u64), Expired }
#[derive(Serialize, Deserialize)]
struct Hold { until: u64 }
static PAYMENT: Channel<u64> = Channel::new("payment");
#[step]
async fn reserve(stock: &Stock, order: &Order) -> Result<Hold, StockError> { stock.hold(order).await }
#[step]
async fn ship(item: &Item) -> Result<(), StockError> { carrier(item).await }
#[fragment]
async fn notify(order: &Order) -> Result<(), Failure> {
    mail(order).await?;
    Ok(())
}
#[step]
async fn mail(order: &Order) -> Result<(), MailError> { smtp(order).await }
#[workflow]
async fn checkout(order: Order, #[state] stock: Stock) -> Result<u64, Failure> {
    checkpoint!(begun);
    #[step(undo(release))]
    let hold = reserve(&stock, &order).await?;
    if order.items.is_empty() {
        refuse(&order).await?;
        return Ok(0);
    }
    let won = race!(
        settle,
        paid = Outcome::Paid(recv!(payment, PAYMENT).await?),
        expired = {
            sleep!(window, "15m").await;
            Outcome::Expired
        }
    )
    .await?;
    'items: for item in &order.items {
        ship(item).await?;
        sleep!(pause, "1s").await;
    }
    match won.value {
        Outcome::Paid(sum) => {
            thank(sum).await?;
        }
        Outcome::Expired => {
            apologise(&order).await?;
        }
    }
    let mut seen = 0;
    #[carry(seen)]
    'watch: loop {
        seen += poll(seen).await?;
        if seen > 10 { break; }
    }
    let tried = attempt!(bonus, {
        grant(&order).await?;
        1
    }).await;
    notify(&order).await?;
    Ok(seen)
}
"#;

/// Every edit of [`SHOP`], each by what it replaces.
fn edited(edits: Edits<'_>) -> String {
    let mut text = SHOP.to_owned();
    for (from, to) in edits {
        assert!(text.contains(from), "{from}");
        text = text.replacen(from, to, 1);
    }
    text
}
