//! What every live run survives raises nothing.

use super::{Edits, SHOP, edited, told};

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
                "    let way = version!(way, 2).await;\n    if way == 1 { log(&order); } else { new_check(&order).await?; }\n    let won = race!(",
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
fn a_version_lets_in_what_only_newer_runs_come_to() {
    for gate in [
        "if version!(v, 2).await >= 2 { check(&order).await?; }",
        "if version!(v, 2).await == 2 { check(&order).await?; }",
        "if 1 < version!(v, 2).await { check(&order).await?; }",
        "if version!(v, 2).await < 2 { log(1); } else { check(&order).await?; }",
        "let v = version!(v, 2).await; if v != 1 && order.is_large() { check(&order).await?; }",
        "let is_old = version!(v, 2).await == 1; if !is_old { check(&order).await?; }",
        "let new: bool = version!(v, 2).await > 1; match new { true => { check(&order).await?; } false => {} }",
        "match version!(v, 3).await { 1 => {} 2 | 3 => { check(&order).await?; } _ => { check_all(&order).await?; } }",
        "match version!(v, 2).await { 0..=1 => {} _ => { check(&order).await?; } }",
        "match version!(v, 2).await { n if n < 2 => {} 1 => {} _ => { check(&order).await?; } }",
        // What is not understood is believed.
        "if is_new(version!(v, 2).await) { check(&order).await?; }",
        "if matches!(version!(v, 2).await, 2..) { check(&order).await?; }",
        // Who got 1 is gone before.
        "if version!(v, 2).await < 2 { return Ok(0); } check(&order).await?;",
    ] {
        let after = SHOP.replace(
            "    let won = race!(",
            &format!("{gate}\n let won = race!("),
        );
        let told = told(SHOP, &after);
        if gate.contains("return Ok(0)") {
            // What they went on to is another matter.
            assert!(
                told.iter().all(|told| !told.starts_with("check")),
                "{gate}: {told:?}"
            );
            continue;
        }
        assert_eq!(told, [] as [String; 0], "{gate}");
    }
    for gate in [
        "if version!(tracked, 2).await < 2 { continue; }\n track(item).await?;",
        "if version!(tracked, 2).await < 2 { continue 'items; }\n track(item).await?;",
        "match version!(tracked, 2).await { 1 => continue, _ => {} }\n track(item).await?;",
    ] {
        let pause = "sleep!(pause, \"1s\").await;";
        let after = SHOP.replace(pause, &format!("{pause} {gate}"));
        assert_eq!(told(SHOP, &after), [] as [String; 0], "{gate}");
    }
}

#[test]
fn what_leaves_the_iteration_by_its_label_is_followed_by_nothing() {
    let before = SHOP.replace(
        "        ship(item).await?;\n",
        "        if item.count == 0 { void(item).await?; break 'items; }\n ship(item).await?;\n",
    );
    let after = before.replace(
        "void(item).await?;",
        "void(item).await?; archive(item).await?;",
    );
    let told_of = told(&before, &after).join("\n");
    // Only that it is the end of an iteration.
    assert!(
        told_of.contains("`archive` is new, at the end of the iteration")
            && !told_of.contains("stands before"),
        "{told_of}"
    );
}
