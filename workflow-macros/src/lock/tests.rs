//! Edits of a package, one at a time: those that live runs survive raise nothing, the others are told where and why.

use super::sources::Sources;
use super::text::Lock;
use super::types::Tables;
use super::{compare, of_sources};
use crate::diagnostics::{Errors, Place};

fn lock_of(text: &str) -> Lock {
    let mut errors = Errors::default();
    let lock = of_sources(&Sources::of(text), &["src".to_owned()], &mut errors);
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

#[test]
fn an_edit_that_every_live_run_survives_raises_nothing() {
    let compatible: &[(&str, Edits<'_>)] = &[
        ("nothing at all", &[]),
        (
            "other spaces and lines",
            &[(
                "let hold = reserve(&stock, &order).await?;",
                "let hold =\n\n    reserve(\n&stock,\n &order ).await ? ;",
            )],
        ),
        (
            "a comment",
            &[(
                "checkpoint!(begun);",
                "// from here on\ncheckpoint!(begun); /* all is undone */",
            )],
        ),
        ("another local", &[("let hold =", "let held =")]),
        (
            "code that is not durable",
            &[(
                "let mut seen = 0;",
                "let total: usize = order.items.len(); log(total);\nlet mut seen = 0;",
            )],
        ),
        (
            "options of a step",
            &[(
                "#[step(undo(release))]",
                "#[step(undo(release), retries = 9, timeout = \"1m\")]",
            )],
        ),
        (
            "options of a definition",
            &[(
                "#[step]\nasync fn ship",
                "#[step(retries = 1, backoff(fixed, wait = \"1s\"))]\nasync fn ship",
            )],
        ),
        ("another undo", &[("undo(release)", "undo(release_now)")]),
        (
            "an undo more",
            &[
                ("let hold", "let hold"),
                (
                    "        thank(sum).await?;",
                    "    checkpoint!(thanking);\n #[step(undo(unthank))] thank(sum).await?;",
                ),
            ],
        ),
        (
            "arguments of a step",
            &[("apologise(&order)", "apologise(&order, &hold)")],
        ),
        (
            "a step defined as a function in place",
            &[(
                "thank(sum).await?;",
                "#[step(name = \"thank\")] smtp.send(sum).await?;",
            )],
        ),
        (
            "a step in place moved into a function",
            &[("grant(&order).await?;", "bonus::grant(&order).await?;")],
        ),
        (
            "another path to the same",
            &[("refuse(&order)", "crate::stock::refuse(&order)")],
        ),
        (
            "a step renamed and its site not",
            &[(
                "apologise(&order).await?;",
                "#[step(name = \"apologise\")] say_sorry(&order).await?;",
            )],
        ),
        (
            "into a block",
            &[
                (
                    "let hold = reserve(&stock, &order).await?;",
                    "let hold = { reserve(&stock, &order).await? };",
                ),
                (
                    "    #[step(undo(release))]\n",
                    "    #[step(name = \"reserve\", undo(release))]\n",
                ),
            ],
        ),
        (
            "into an if",
            &[(
                "notify(&order).await?;",
                "if seen > 0 { notify(&order).await?; }",
            )],
        ),
        (
            "into a match",
            &[(
                "notify(&order).await?;",
                "match seen { 0 => {} _ => { notify(&order).await?; } }",
            )],
        ),
        (
            "an if into a match",
            &[(
                "if order.items.is_empty() {\n        refuse(&order).await?;\n        return Ok(0);\n    }",
                "match order.items.len() { 0 => { refuse(&order).await?; return Ok(0); } _ => {} }",
            )],
        ),
        (
            "arms exchanged",
            &[
                (
                    "        Outcome::Paid(sum) => {\n            thank(sum).await?;\n        }\n",
                    "",
                ),
                (
                    "            apologise(&order).await?;\n        }\n",
                    "            apologise(&order).await?;\n        }\n        Outcome::Paid(sum) => { thank(sum).await?; }\n",
                ),
            ],
        ),
        (
            "an arm more",
            &[(
                "Outcome::Expired => {\n            apologise",
                "Outcome::Expired if seen == 3 => {}\n Outcome::Expired => {\n            apologise",
            )],
        ),
        (
            "branches exchanged",
            &[
                (
                    "        paid = Outcome::Paid(recv!(payment, PAYMENT).await?),\n",
                    "",
                ),
                (
                    "            Outcome::Expired\n        }\n    )",
                    "            Outcome::Expired\n        },\n paid = Outcome::Paid(recv!(payment, PAYMENT).await?)\n    )",
                ),
            ],
        ),
        (
            "another channel beside",
            &[(
                "recv!(payment, PAYMENT)",
                "recv!(payment, [PAYMENT, VOUCHER])",
            )],
        ),
        (
            "a timeout",
            &[(
                "recv!(payment, PAYMENT)",
                "recv!(payment, PAYMENT, timeout = \"1h\")",
            )],
        ),
        ("another duration", &[("\"15m\"", "\"30m\"")]),
        ("a duration by expression", &[("\"15m\"", "WINDOW")]),
        (
            "a sleep until",
            &[(
                "sleep!(window, \"15m\")",
                "sleep!(window, until = order.until)",
            )],
        ),
        (
            "a loop of another kind",
            &[(
                "'items: for item in &order.items {",
                "let mut items = order.items.iter(); 'items: while let Some(item) = items.next() {",
            )],
        ),
        (
            "a key on a loop's items",
            &[(
                "'items: for item in &order.items {",
                "#[key(item.sku)] 'items: for item in &order.items {",
            )],
        ),
        (
            "a loop that carries",
            &[(
                "'items: for item in &order.items {",
                "let mut done = 0; #[carry(done)] 'items: for item in &order.items {",
            )],
        ),
        (
            "how often it is kept",
            &[("#[carry(seen)]", "#[carry(seen, every = 5, keep = 9)]")],
        ),
        (
            "a new site at the end",
            &[(
                "    Ok(seen)\n",
                "    archive(&order).await?;\n    Ok(seen)\n",
            )],
        ),
        (
            "a new loop at the end",
            &[(
                "    Ok(seen)\n",
                "    'more: for item in &order.items { archive(item).await?; }\n    Ok(seen)\n",
            )],
        ),
        (
            "a new race at the end",
            &[(
                "    Ok(seen)\n",
                "    race!(last, a = one().await?, b = { sleep!(l, \"1s\").await; }).await?;\n    Ok(seen)\n",
            )],
        ),
        (
            "a new site where the run then ends",
            &[(
                "        refuse(&order).await?;\n        return Ok(0);",
                "        refuse(&order).await?;\n        archive(&order).await?;\n        return Ok(0);",
            )],
        ),
        (
            "a new arm that ends the run",
            &[(
                "    let won = race!(",
                "    if order.items.len() > 99 { escalate(&order).await?; return Ok(0); }\n    let won = race!(",
            )],
        ),
        (
            "a value that is derived",
            &[(
                "let mut seen = 0;",
                "let key = uuid!(key);\nlet mut seen = 0;",
            )],
        ),
        (
            "a checkpoint",
            &[(
                "let won = race!(",
                "checkpoint!(settling);\nlet won = race!(",
            )],
        ),
        (
            "a version",
            &[(
                "let won = race!(",
                "let new = version!(new, 2).await;\nlet won = race!(",
            )],
        ),
        (
            "a new site under a new version",
            &[(
                "    let won = race!(",
                "    if version!(checked, 2).await >= 2 { check(&order).await?; }\n    let won = race!(",
            )],
        ),
        (
            "a new site under a new version's binding",
            &[(
                "    let won = race!(",
                "    let checked = version!(checked, 2).await >= 2;\n    if checked && seen_before() { check(&order).await?; }\n    let won = race!(",
            )],
        ),
        (
            "a new site in a loop under a new version",
            &[(
                "        sleep!(pause, \"1s\").await;",
                "        sleep!(pause, \"1s\").await;\n        match version!(tracked, 2).await { 1 => {} _ => { track(item).await?; } }",
            )],
        ),
        (
            "another way under a new version",
            &[(
                "    let won = race!(",
                "    let way = version!(way, 2).await;\n    if way == 1 { old_check(&order).await?; } else { new_check(&order).await?; }\n    let won = race!(",
            )],
        ),
        (
            "a site declared removed",
            &[(
                "        apologise(&order).await?;\n",
                "        removed!(apologise, kind = \"step\");\n",
            )],
        ),
        (
            "a loop declared removed",
            &[(
                "    'items: for item in &order.items {\n        ship(item).await?;\n        sleep!(pause, \"1s\").await;\n    }\n",
                "    removed!(items, kind = \"loop\");\n",
            )],
        ),
        (
            "a field more that may be missing",
            &[(
                "struct Hold { until: u64 }",
                "struct Hold { until: u64, note: Option<String> }",
            )],
        ),
        (
            "a field more with a default",
            &[(
                "sku: String, count",
                "sku: String, #[serde(default)] gift: bool, count",
            )],
        ),
        (
            "a field renamed in the code only",
            &[(
                "struct Hold { until: u64 }",
                "struct Hold { #[serde(rename = \"until\")] deadline: u64 }",
            )],
        ),
        (
            "a field renamed with an alias",
            &[(
                "struct Hold { until: u64 }",
                "struct Hold { #[serde(alias = \"until\")] deadline: u64 }",
            )],
        ),
        (
            "a field boxed",
            &[("items: Vec<Item> }", "items: Box<Vec<Item>> }")],
        ),
        ("a wider number", &[("count: u32 }", "count: u64 }")]),
        (
            "a type renamed",
            &[
                ("struct Hold {", "struct Held {"),
                ("Result<Hold, StockError>", "Result<Held, StockError>"),
            ],
        ),
        (
            "another error",
            &[("Result<Hold, StockError>", "Result<Hold, anyhow::Error>")],
        ),
        (
            "a result alias",
            &[("Result<Hold, StockError>", "anyhow::Result<Hold>")],
        ),
        (
            "a state more",
            &[(
                "#[state] stock: Stock)",
                "#[state] stock: Stock, #[state] smtp: Smtp)",
            )],
        ),
        (
            "an input more that may be missing",
            &[("order: Order,", "order: Order, note: Option<String>,")],
        ),
        (
            "a type moved to a module",
            &[("order: Order,", "order: crate::orders::Order,")],
        ),
        (
            "a function moved to a module",
            &[(
                "#[step]\nasync fn mail",
                "mod smtp { #[step]\npub async fn helper() -> u8 { 1 } }\n#[step]\nasync fn mail",
            )],
        ),
    ];
    assert!(compatible.len() >= 40);
    for (what, edits) in compatible {
        assert_eq!(told(SHOP, &edited(edits)), [] as [String; 0], "{what}");
    }
}

#[test]
fn an_edit_that_some_live_run_does_not_survive_is_told_once_and_quotes_the_lock() {
    let breaking: &[(&str, Edits<'_>, &[&str])] = &[
        (
            "a step gone",
            &[("        apologise(&order).await?;\n", "")],
            &["apologise: `apologise` is locked and gone"],
        ),
        (
            "a step renamed",
            &[("apologise(&order)", "say_sorry(&order)")],
            &["apologise: `say_sorry` stands where `apologise` was locked"],
        ),
        (
            "a loop renamed",
            &[("'items:", "'parcels:")],
            &["items: `parcels` stands where `items` was locked"],
        ),
        (
            "a sleep renamed",
            &[("sleep!(window", "sleep!(grace")],
            &["settle/expired/window: `grace` stands where `window` was locked"],
        ),
        (
            "two steps exchanged",
            &[(
                "        ship(item).await?;\n        sleep!(pause, \"1s\").await;",
                "        sleep!(pause, \"1s\").await;\n        ship(item).await?;",
            )],
            &["items[]/pause: `pause` was locked after `ship`"],
        ),
        (
            "arms put one after the other",
            &[(
                "    match won.value {\n        Outcome::Paid(sum) => {\n            thank(sum).await?;\n        }\n        Outcome::Expired => {\n            apologise(&order).await?;\n        }\n    }\n",
                "    thank(1).await?;\n    apologise(&order).await?;\n",
            )],
            &["apologise: `apologise` was locked in another arm than `thank`"],
        ),
        (
            "two steps put into arms",
            &[(
                "ship(item).await?;\n        sleep!(pause, \"1s\").await;",
                "if item.count > 1 { ship(item).await?; } else { sleep!(pause, \"1s\").await; }",
            )],
            &["items[]/pause: `pause` was locked after `ship`"],
        ),
        (
            "a site before",
            &[(
                "    let won = race!(",
                "    check(&order).await?;\n    let won = race!(",
            )],
            &["check: `check` is new and stands before `settle`"],
        ),
        (
            "a site in an if before",
            &[(
                "    let won = race!(",
                "    if order.items.len() > 3 { check(&order).await?; }\n    let won = race!(",
            )],
            &["check: `check` is new and stands before `settle`"],
        ),
        (
            "a site under an old choice",
            &[(
                "    let won = race!(",
                "    let v = seen_before();\n    if v >= 2 { check(&order).await?; }\n    let won = race!(",
            )],
            &["check: `check` is new and stands before `settle`"],
        ),
        (
            "a site that the run does not end after any more",
            &[(
                "        return Ok(0);\n",
                "        archive(&order).await?;\n",
            )],
            &["archive: `archive` is new and stands before `settle`"],
        ),
        (
            "a site at an iteration's end",
            &[(
                "        sleep!(pause, \"1s\").await;",
                "        sleep!(pause, \"1s\").await;\n        track(item).await?;",
            )],
            &["items[]/track: `track` is new, at the end of the iteration"],
        ),
        (
            "a site at a branch's end",
            &[(
                "            Outcome::Expired\n        }",
                "            let late = tell(&order).await?;\n            Outcome::Expired\n        }",
            )],
            &["settle/expired/tell: `tell` is new, at the end of the branch"],
        ),
        (
            "a site at a block's end",
            &[(
                "        grant(&order).await?;\n",
                "        grant(&order).await?;\n        tell(&order).await?;\n",
            )],
            &["bonus/tell: `tell` is new, at the end of the block"],
        ),
        (
            "a site at a fragment's end",
            &[(
                "    mail(order).await?;\n",
                "    mail(order).await?;\n    text(order).await?;\n",
            )],
            &["text: `text` is new, at the end of the fragment"],
        ),
        (
            "another kind",
            &[("sleep!(pause, \"1s\")", "pause(item)")],
            &["items[]/pause: `pause` is a `call` and was locked as a `sleep`"],
        ),
        (
            "a loop that is a step",
            &[(
                "    'items: for item in &order.items {\n        ship(item).await?;\n        sleep!(pause, \"1s\").await;\n    }\n",
                "    items(&order).await?;\n",
            )],
            &["items: `items` is a `call` and was locked as a `loop`"],
        ),
        (
            "into an attempt",
            &[(
                "    notify(&order).await?;",
                "    let told = attempt!(tell, { notify(&order).await?; }).await;",
            )],
            &["tell/notify: `notify` was locked in the body and stands in `tell`"],
        ),
        (
            "out of an attempt",
            &[(
                "    let tried = attempt!(bonus, {\n        grant(&order).await?;\n        1\n    }).await;",
                "    grant(&order).await?;",
            )],
            &["grant: `grant` was locked in `bonus` and stands in the body"],
        ),
        (
            "into the loop",
            &[
                (
                    "        ship(item).await?;\n        sleep",
                    "        ship(item).await?;\n        thank(1).await?;\n        sleep",
                ),
                ("            thank(sum).await?;\n", ""),
            ],
            &["items[]/thank: `thank` was locked in the body and stands in `items[]`"],
        ),
        (
            "a branch gone",
            &[(
                "        paid = Outcome::Paid(recv!(payment, PAYMENT).await?),\n",
                "",
            )],
            &["settle/paid: `settle` has no branch `paid` any more"],
        ),
        (
            "a branch more",
            &[(
                "        expired = {",
                "        cancelled = { recv!(cancel, CANCEL).await?; Outcome::Expired },\n        expired = {",
            )],
            &["settle/cancelled: `settle` has a new branch `cancelled`"],
        ),
        (
            "the undo gone",
            &[("    #[step(undo(release))]\n", "")],
            &["reserve: the undo of `reserve` is gone"],
        ),
        (
            "the list carried",
            &[("#[carry(seen)]", "#[carry(seen, order)]")],
            &["watch: `watch` carried `seen` and now carries `seen, order`"],
        ),
        (
            "nothing carried",
            &[("    #[carry(seen)]\n", "")],
            &["watch: `watch` carried `seen` and carries nothing now"],
        ),
        (
            "what a step gives",
            &[("Result<Hold, StockError>", "Result<String, StockError>")],
            &["reserve: what `reserve` recorded cannot be read any more: `Hold` became `String`"],
        ),
        (
            "a field of what a step gives",
            &[("until: u64", "until: String")],
            &[
                "reserve: what `reserve` recorded cannot be read any more: the field `until` of `Hold`: `u64` became `String`",
            ],
        ),
        (
            "a field more of what a step gives",
            &[("until: u64", "until: u64, note: String")],
            &[
                "reserve: what `reserve` recorded cannot be read any more: `Hold` has a new field `note`",
            ],
        ),
        (
            "what a channel carries",
            &[("Channel<u64>", "Channel<Order>")],
            &[
                "settle/paid/payment: what `payment` recorded cannot be read any more: `u64` became `Order`",
            ],
        ),
        (
            "the input",
            &[("order: Order,", "order: u32,")],
            &["order: the recorded input `order` cannot be read any more: `Order` became `u32`"],
        ),
        (
            "a type in the input",
            &[("count: u32", "count: bool")],
            &[
                "order: the recorded input `order` cannot be read any more: the field `items` of `Order`: the field `count` of `Item`: `u32` became `bool`",
            ],
        ),
        (
            "an input more",
            &[("order: Order,", "order: Order, note: String,")],
            &["note: `note` is a new input"],
        ),
        (
            "removed as something else",
            &[(
                "        apologise(&order).await?;\n",
                "        removed!(apologise, kind = \"sleep\");\n",
            )],
            &["apologise: `apologise` was locked as a `call` and is declared removed as a `sleep`"],
        ),
    ];
    for (what, edits, expected) in breaking {
        let told = told(SHOP, &edited(edits));
        let fits = told.len() == expected.len()
            && told
                .iter()
                .zip(*expected)
                .all(|(told, expected)| told.starts_with(expected));
        assert!(fits, "{what}: {told:#?}");
        assert!(
            told.iter().all(|told| told.contains("(workflow.lock:")),
            "{told:?}"
        );
    }
}

#[test]
fn a_site_under_a_version_that_is_locked_already_is_new_to_the_runs_that_got_it() {
    let before = SHOP.replace(
        "let won = race!(",
        "let v = version!(v, 2).await;\nif v >= 2 { check(&order).await?; }\nlet won = race!(",
    );
    let same = before.replace(
        "check(&order).await?;",
        "check(&order).await?; check_more(&order).await?;",
    );
    let told_of = told(&before, &same);
    assert!(
        told_of[0].starts_with("check_more: `check_more` is new and stands before `settle`"),
        "{told_of:?}"
    );
    // A higher number is a version of its own.
    let higher = same.replace("version!(v, 2)", "version!(v, 3)");
    assert_eq!(told(&before, &higher), [] as [String; 0]);
    let lower = before.replace("version!(v, 2)", "version!(v, 1)");
    let told_of = told(&before, &lower);
    assert!(
        told_of[0].starts_with("v: `v` went back to 1, and live runs may have recorded 2"),
        "{told_of:?}"
    );
}

#[test]
fn a_site_taken_out_of_an_if_that_stood_alone_raises_nothing() {
    let after = SHOP.replace(
        "match won.value {",
        "let won = won.value; if is_late { archive(&order).await?; }\n    match won {",
    );
    let out = after.replace(
        "if is_late { archive(&order).await?; }",
        "archive(&order).await?;",
    );
    assert_ne!(after, out);
    assert_eq!(told(&after, &out), [] as [String; 0]);
}

#[test]
fn a_site_under_a_condition_is_not_gone_where_the_condition_is_another() {
    let before = SHOP.replace(
        "            apologise(&order).await?;",
        "            #[cfg(feature = \"sorry\")] apologise(&order).await?;",
    );
    let without = before.replace(
        "            #[cfg(feature = \"sorry\")] apologise(&order).await?;\n",
        "",
    );
    assert_eq!(told(&before, &without), [] as [String; 0]);
    // Two of one name, each under its own condition, are each compared with its own.
    let twins = SHOP.replace("            apologise(&order).await?;", "            #[cfg(feature = \"sorry\")] apologise(&order).await?;\n #[cfg(not(feature = \"sorry\"))] sleep!(apologise, \"1s\").await;");
    assert_eq!(told(&twins, &twins), [] as [String; 0]);
}

#[test]
fn a_lock_that_cannot_be_read_says_which_line_and_why() {
    for (text, line, why) in [
        ("", 1, "it is empty"),
        ("workflow x\n", 1, "it does not begin with `version 1`"),
        (
            "version 2\n",
            1,
            "it was written by a later version of `workflow`",
        ),
        ("version 1\nworkflow\n", 2, "a name is missing"),
        (
            "version 1\nworkflow x\n   step a\n",
            3,
            "two spaces indent by a level",
        ),
        (
            "version 1\nworkflow x\n    step a\n",
            3,
            "two spaces indent by a level",
        ),
        (
            "version 1\nworkflow x\n\tstep a\n",
            3,
            "two spaces indent by a level",
        ),
        (
            "version 1\nworkflow x\n  stop a\n",
            3,
            "`stop` is no kind of site",
        ),
        ("version 1\nworkflow x\n  step\n", 3, "a name is missing"),
        (
            "version 1\nworkflow x\n  step a of\n",
            3,
            "nothing follows `of`",
        ),
        (
            "version 1\nworkflow x\n  step a like b\n",
            3,
            "`like` is not said of a site",
        ),
        (
            "version 1\nworkflow x\n  version a latest b\n",
            3,
            "`latest` is a number",
        ),
        (
            "version 1\nworkflow x\n  step a cfg(b\n",
            3,
            "a `)` is missing after `cfg(`",
        ),
        (
            "version 1\nworkflow x\n  step a\n    step b\n",
            4,
            "under a `step` stand only `branch`es",
        ),
        (
            "version 1\nworkflow x\n  choice\n    step b\n",
            4,
            "under a `choice` stand only `arm`s",
        ),
        (
            "version 1\nworkflow x\nworkflow x\n",
            3,
            "`x` has a section already, in line 2",
        ),
        (
            "version 1\n<<<<<<< ours\n",
            2,
            "a merge was not finished here",
        ),
        ("version 1\ntype A\n  id\n", 3, "a member is `name: Type`"),
        (
            "version 1\nsites\n",
            2,
            "a section begins with `workflow`, `fragment`, `guided` or `type`",
        ),
    ] {
        let wrong = Lock::parse(text).expect_err(text);
        assert_eq!((wrong.line, wrong.why.as_str()), (line, why), "{text:?}");
    }
}

#[test]
fn the_lock_of_a_package_is_readable_and_says_each_thing_in_a_line() {
    let printed = lock_of(SHOP).print();
    let expected = "\
version 1
source src

workflow checkout
  input order: Order
  checkpoint begun
  step reserve undo -> Hold
  choice
    arm
      call refuse
      leaves
    arm
  race settle
    branch paid
      recv payment on PAYMENT -> u64
    branch expired
      sleep window
  loop items
    call ship -> ()
    sleep pause
  choice
    arm
      call thank
    arm
      call apologise
  loop watch carry seen
    call poll
  attempt bonus
    call grant
  call notify

fragment notify
  call mail -> ()

type Hold
  until: u64

type Item
  sku: String
  count: u32

type Order
  id: String
  items: Vec<Item>
";
    assert_eq!(
        printed
            .split_once("version 1")
            .map(|(_, rest)| format!("version 1{rest}")),
        Some(expected.to_owned()),
        "{printed}"
    );
}

const FLOW: &str = r#"
#[derive(Serialize, Deserialize)]
struct Project { name: String, made: Option<u32> }
#[guided(id = "project", version = 2)]
impl Project {
    #[stage(start, to = [make if Self::is_named, done])]
    fn details() {}
    #[stage(name = "create", to = [done])]
    async fn make(stage: Stage<Self>) -> Result<(), Failure> {
        reserve(stage.state()).await?;
        publish(stage.state()).await
    }
    #[stage(terminal)]
    fn done() {}
    fn is_named(&self) -> bool { true }
}
"#;

/// What is told of the flow after an edit.
fn flow_told(edits: Edits<'_>) -> Vec<String> {
    let edited = edits.iter().fold(FLOW.to_owned(), |text, (from, to)| {
        assert!(text.contains(from), "{from}");
        text.replace(from, to)
    });
    told(FLOW, &edited)
}

#[test]
fn a_flow_is_locked_by_its_stages_its_data_and_the_code_of_its_stages() {
    let printed = lock_of(FLOW).print();
    let expected = "fragment project/make\n  call reserve\n  call publish\n\n\
                    guided project\n  input data: Project\n  version data latest 2\n  stage details\n  stage create\n  stage done\n\n\
                    type Project\n  name: String\n  made?: Option<u32>\n";
    assert!(printed.ends_with(expected), "{printed}");
}

#[test]
fn guides_survive_what_is_not_in_their_positions() {
    let none: [&str; 0] = [];
    for edits in [
        &[("[make if Self::is_named, done]", "[make]")][..],
        &[("made: Option<u32>", "made: Option<u32>, more: Option<u32>")],
        &[("version = 2", "version = 3"), ("\"create\"", "\"other\"")],
        &[
            ("version = 2", "version = 3"),
            ("name: String", "name: u32"),
        ],
    ] {
        assert_eq!(flow_told(edits), none, "{edits:?}");
    }
}

#[test]
fn guides_do_not_survive_a_stage_that_is_gone_or_data_of_another_type() {
    let first = |edits| flow_told(edits).join("\n");
    let gone = first(&[("\"create\"", "\"other\"")]);
    assert!(
        gone.starts_with("create: stage `other` stands where `create` was locked"),
        "{gone}"
    );
    let gone = first(&[
        ("#[stage(name = \"create\", to = [done])]", "#[fragment]"),
        ("[make if Self::is_named, done]", "[done]"),
    ]);
    assert!(
        gone.contains("create: stage `create` is locked and gone"),
        "{gone}"
    );
    let retyped = first(&[("name: String", "name: u32")]);
    assert!(
        retyped.starts_with("data: the data of guides under way"),
        "{retyped}"
    );
    let back = first(&[("version = 2", "version = 1")]);
    assert!(
        back.starts_with("data: the flow went back to version 1"),
        "{back}"
    );
    let body = first(&[("reserve(stage.state()).await?;", "")]);
    assert!(body.starts_with("reserve: "), "{body}");
}
