//! What some live run does not survive is told once, where it stands.

use super::{Edits, SHOP, edited, lock_of, told};
use crate::diagnostics::Place;
use crate::lock::compare;
use crate::lock::text::Lock;
use crate::lock::types::Tables;

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
            "a key on a loop's items",
            &[(
                "'items: for item in &order.items {",
                "#[key(item.sku)] 'items: for item in &order.items {",
            )],
            &["items: what `items` goes through is known by a key now"],
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
            "an input renamed",
            &[("order: Order,", "cart: Order,")],
            &["cart: `cart` stands where the input `order` was locked"],
        ),
        (
            "an input renamed that may be missing",
            &[("order: Order,", "cart: Option<Order>,")],
            &["cart: `cart` stands where the input `order` was locked"],
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
    // A higher number is a version of its own, for what asks for it.
    let higher = same.replace("version!(v, 2)", "version!(v, 3)");
    assert_eq!(told(&before, &higher), told_of);
    let asked = higher.replace(
        "check_more(&order).await?;",
        "if v >= 3 { check_more(&order).await?; }",
    );
    assert_eq!(told(&before, &asked), [] as [String; 0]);
    let lower = before.replace("version!(v, 2)", "version!(v, 1)");
    let told_of = told(&before, &lower);
    assert!(
        told_of[0].starts_with("v: `v` went back to 1, and live runs may have recorded 2"),
        "{told_of:?}"
    );
}

#[test]
fn a_key_and_a_detached_child_are_told_in_both_directions() {
    let keyed = SHOP.replace("'items: for", "#[key(item.sku)] 'items: for");
    let told_of = told(&keyed, SHOP).join("\n");
    assert!(
        told_of.starts_with("items: what `items` goes through is known by a number now"),
        "{told_of}"
    );
    let child =
        format!("{SHOP}\n#[workflow] async fn thank(sum: u64) -> Result<u32, Failure> {{ Ok(1) }}");
    let detached = child.replace("thank(sum).await?", "thank(sum).detach().await?");
    let told_of = told(&detached, &child).join("\n");
    assert!(
        told_of.contains(
            "thank: what `thank` recorded cannot be read any more: `detached` became `u32`"
        ),
        "{told_of}"
    );
    assert_eq!(told(&child, &detached), [] as [String; 0]);
}

#[test]
fn an_arm_that_older_runs_take_lets_nothing_in() {
    for gate in [
        "if version!(v, 2).await < 2 { check(&order).await?; }",
        "if version!(v, 2).await == 1 { check(&order).await?; }",
        "if version!(v, 2).await >= 1 { check(&order).await?; }",
        "if version!(v, 2).await >= 2 { log(1); } else { check(&order).await?; }",
        "let v = version!(v, 2).await; if v >= 2 || order.is_large() { check(&order).await?; }",
        "let is_new = version!(v, 2).await >= 2; if !is_new { check(&order).await?; }",
        "match version!(v, 2).await { 2 => {} _ => { check(&order).await?; } }",
        "match version!(v, 2).await { n if n >= 2 => {} _ => { check(&order).await?; } }",
        "if version!(v, 2).await >= 2 { return Ok(0); } check(&order).await?;",
    ] {
        let after = SHOP.replace(
            "    let won = race!(",
            &format!("{gate}\n let won = race!("),
        );
        let told = told(SHOP, &after).join("\n");
        assert!(
            told.starts_with("check: `check` is new and stands before `settle`"),
            "{gate}: {told}"
        );
    }
    // Of a version that grew, all numbers are old that it had.
    let before = SHOP.replace(
        "    let won = race!(",
        "let v = version!(v, 3).await; if v == 3 { audit(&order).await?; }\n let won = race!(",
    );
    let grown = before.replace("version!(v, 3)", "version!(v, 4)");
    for (arm, is_told) in [
        ("v >= 4", false),
        ("v != 1", true),
        ("v == 2", true),
        ("v > 3", false),
    ] {
        let after = grown.replace(
            " let won",
            &format!("if {arm} {{ check(&order).await?; }}\n let won"),
        );
        let told = told(&before, &after);
        assert_eq!(!told.is_empty(), is_told, "{arm}: {told:?}");
    }
}

#[test]
fn a_name_that_was_declared_removed_is_not_given_again() {
    let removed = SHOP.replace(
        "apologise(&order).await?;",
        "removed!(apologise, kind = \"step\");",
    );
    let told_of = told(&removed, SHOP).join("\n");
    assert!(
        told_of.starts_with("apologise: `apologise` was declared removed and stands here again"),
        "{told_of}"
    );
    // The line may go when no run needs it.
    let gone = removed.replace("removed!(apologise, kind = \"step\");", "");
    assert_eq!(told(&removed, &gone), [] as [String; 0]);
}

#[test]
fn what_leaves_no_record_cannot_be_declared_removed() {
    let after = SHOP.replace("checkpoint!(begun);", "begun(&order).await?;");
    let told_of = told(SHOP, &after).join("\n");
    assert!(
        told_of
            .starts_with("begun: `begun` is a `call`, and a `checkpoint` of this name is locked"),
        "{told_of}"
    );
}

#[test]
fn a_value_that_is_made_from_its_name_keeps_it() {
    let before = SHOP.replace(
        "let mut seen = 0;",
        "let key = uuid!(key);\nlet mut seen = 0;",
    );
    let told_of = told(&before, &before.replace("uuid!(key)", "uuid!(id)")).join("\n");
    assert!(
        told_of.starts_with("id: `id` stands where `key` was locked: it is made from its name"),
        "{told_of}"
    );
    let moved = SHOP.replace(
        "        ship(item).await?;",
        "        let key = uuid!(key); ship(item).await?;",
    );
    let told_of = told(&before, &moved).join("\n");
    assert!(
        told_of.starts_with("items[]/key: `items[]/key` stands where `key` was locked"),
        "{told_of}"
    );
    // It may go, and another may come elsewhere.
    assert_eq!(told(&before, SHOP), [] as [String; 0]);
    let other = SHOP.replace(
        "    let won = race!(",
        "let id = random!(id);\n    let won = race!(",
    );
    assert_eq!(told(&before, &other), [] as [String; 0]);
}

#[test]
fn the_ways_out_can_be_written_as_they_are_said() {
    let step = |name: &str| format!("#[step(name = \"{name}\")] apologise(&order).await?;");
    for (name, written) in [
        ("say-sorry", "\"say-sorry\""),
        ("type", "r#type"),
        ("sorry", "sorry"),
    ] {
        let before = SHOP.replace("apologise(&order).await?;", &step(name));
        let gone = before.replace(&step(name), "");
        let (locked, found) = (lock_of(&before), lock_of(&gone));
        let locked = Lock::parse(&locked.print()).unwrap();
        let tables = Tables {
            locked: &locked.types,
            found: &found.types,
        };
        let place = Place::from(proc_macro2::Span::call_site());
        let told = compare::compare(&locked.sections[0], &found.sections[0], place, &tables);
        let text = told.into_iter().next().unwrap().text.into_string();
        let way_out = format!("removed!({written}, kind = \"step\");");
        assert!(text.contains(&way_out), "{text}");
        assert_eq!(
            self::told(&before, &before.replace(&step(name), &way_out)),
            [] as [String; 0]
        );
    }
}
