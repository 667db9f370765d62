//! What else there is in a package: conditions, other names, functions that share one.

use super::{SHOP, lock_of, lock_of_each, told};
use crate::diagnostics::Place;
use crate::lock::compare;
use crate::lock::sources::Sources;
use crate::lock::text::Lock;
use crate::lock::types::Tables;

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
fn what_a_call_is_is_told_by_its_definition() {
    let before = SHOP.replace("async fn thank", "async fn never");
    for (from, to, kinds) in [
        (
            "#[step]\nasync fn ship",
            "#[fragment]\nasync fn ship",
            "`fragment` and was locked as a `step`",
        ),
        (
            "#[step]\nasync fn ship",
            "#[workflow]\nasync fn ship",
            "`child` and was locked as a `step`",
        ),
        (
            "#[fragment]\nasync fn notify",
            "#[step]\nasync fn notify",
            "`step` and was locked as a `fragment`",
        ),
    ] {
        let after = before.replace(from, to);
        assert_ne!(before, after);
        let told = told(&before, &after).join("\n");
        assert!(told.contains(kinds), "{told}");
    }
    // What other packages define may be anything.
    let foreign = SHOP.replace("#[fragment]\nasync fn notify", "async fn other");
    assert_eq!(told(&foreign, SHOP), [] as [String; 0]);
}

/// A fragment of this name that calls these.
fn fragment(name: &str, calls: &[&str]) -> String {
    let calls: Vec<_> = calls
        .iter()
        .map(|call| format!("{call}().await?;"))
        .collect();
    let calls = calls.join(" ");
    format!("#[fragment] async fn {name}() -> Result<(), Failure> {{ {calls} Ok(()) }}")
}

/// In which section each fragment of these files is locked.
fn locked_as(lock: &Lock, files: &[(&str, &str)]) -> Vec<(String, Option<String>)> {
    let sources = Sources::of_each(files);
    let found = sources.durable();
    let sections = found.iter().map(|found| {
        let section = lock.section_of(found, &found.name(), &sources);
        (
            found.full_name.clone(),
            section.map(|section| section.name.clone()),
        )
    });
    sections.collect()
}

#[test]
fn fragments_of_one_name_are_locked_each_by_its_own() {
    let (one, other) = (
        fragment("notify", &["mail"]),
        fragment("notify", &["call", "letter"]),
    );
    let both = [
        ("src/orders.rs", one.as_str()),
        ("src/returns/mod.rs", other.as_str()),
    ];
    let lock = lock_of_each(&both);
    let printed = lock.print();
    assert!(
        printed.contains("fragment crate::orders::notify\n  call mail\n"),
        "{printed}"
    );
    assert!(
        printed.contains("fragment crate::returns::notify\n  call call\n  call letter\n"),
        "{printed}"
    );
    let own = |name: &str, section: &str| (name.to_owned(), Some(section.to_owned()));
    let (orders, returns) = ("crate::orders::notify", "crate::returns::notify");
    assert_eq!(
        locked_as(&lock, &both),
        [own(orders, orders), own(returns, returns)]
    );
    // The other one goes: what is left is still known.
    assert_eq!(locked_as(&lock, &both[..1]), [own(orders, orders)]);
    // In one file, too, and as methods.
    let methods = format!("mod a {{ {one} }} impl Desk {{ {other} }}");
    let lock = lock_of(&methods);
    let names: Vec<_> = lock
        .sections
        .iter()
        .map(|section| section.name.as_str())
        .collect();
    assert_eq!(names, ["crate::Desk::notify", "crate::a::notify"]);
}

#[test]
fn a_fragment_that_was_the_only_one_of_its_name_keeps_its_section() {
    let (one, other) = (
        fragment("notify", &["mail"]),
        fragment("notify", &["call", "letter"]),
    );
    let lock = lock_of_each(&[("src/orders.rs", &one)]);
    let moved = [("src/shop/orders.rs", one.as_str())];
    let is_locked = |name: &str| (name.to_owned(), Some("notify".to_owned()));
    let is_new = |name: &str| (name.to_owned(), None);
    assert_eq!(
        locked_as(&lock, &moved),
        [is_locked("crate::shop::orders::notify")]
    );
    // Of several, one moves to another module.
    let lock_of_two = lock_of_each(&[("src/a.rs", &other), ("src/orders.rs", &one)]);
    let moved = [
        ("src/b.rs", other.as_str()),
        ("src/orders.rs", one.as_str()),
    ];
    let sections = locked_as(&lock_of_two, &moved);
    assert_eq!(sections[0].1.as_deref(), Some("crate::a::notify"));
    assert_eq!(sections[1].1.as_deref(), Some("crate::orders::notify"));
    // Another one comes: the section is that of the one that fits it, wherever it stands.
    let two = [
        ("src/a.rs", other.as_str()),
        ("src/orders.rs", one.as_str()),
    ];
    assert_eq!(
        locked_as(&lock, &two),
        [
            is_new("crate::a::notify"),
            is_locked("crate::orders::notify")
        ]
    );
}

#[test]
fn a_workflow_that_shares_its_name_is_not_the_one_that_is_locked() {
    let now = "#[workflow] async fn pay() -> Result<(), Failure> { charge().await?; Ok(()) }";
    let before = "#[workflow(name = \"pay\", shared_name)] async fn old() -> Result<(), Failure> { bill().await?; Ok(()) }";
    let files = [("src/before.rs", before), ("src/lib.rs", now)];
    let lock = lock_of_each(&files);
    assert!(
        lock.print().ends_with("workflow pay\n  call charge\n"),
        "{}",
        lock.print()
    );
    let sections = locked_as(&lock, &files);
    assert_eq!(sections[0].1, None);
    assert_eq!(sections[1].1.as_deref(), Some("pay"));
}

#[test]
fn a_renamed_import_is_what_it_renames() {
    let before = "
        use stock::{reserve as hold, Hold as Held};
        #[derive(Deserialize)] struct Hold { shelf: u32 }
        #[derive(Deserialize)] struct Order { id: u32 }
        use self::Order as Input;
        #[step] async fn reserve() -> Result<Hold, Error> { find() }
        #[workflow] async fn pay(order: Input) -> Result<(), Failure> { let held: Held = hold().await?; Ok(()) }
        #[workflow] async fn other() -> Result<(), Failure> { hold().await?; Ok(()) }
    ";
    let printed = lock_of(before).print();
    assert!(
        printed.contains("workflow other\n  step hold of reserve -> Hold\n")
            || printed.contains("workflow other\n  step hold -> Hold\n"),
        "{printed}"
    );
    let after = before
        .replace("shelf: u32", "shelf: String")
        .replace("id: u32", "id: bool");
    let told = told(before, &after).join("\n");
    assert_eq!(told.matches("cannot be read any more").count(), 3, "{told}");
    // To spell it out changes nothing.
    let plain = before
        .replace("order: Input", "order: Order")
        .replace("held: Held", "held: Hold");
    assert_eq!(super::told(before, &plain), [] as [String; 0]);
}

#[test]
fn what_is_compiled_for_tests_only_says_nothing() {
    let plain = "#[derive(Deserialize)] struct Hold { shelf: u32 }
        #[step] async fn reserve() -> Result<Hold, Error> { find() }
        #[workflow] async fn pay() -> Result<(), Failure> { reserve().await?; Ok(()) }";
    let doubled = format!(
        "{plain} #[cfg(test)] #[step] async fn reserve() -> Result<u32, Error> {{ one() }}
        #[cfg(all(test, feature = \"x\"))] #[derive(Deserialize)] struct Hold {{ row: u32 }}
        #[cfg(test)] #[workflow] async fn pay() -> Result<(), Failure> {{ Ok(()) }}"
    );
    assert_eq!(lock_of(plain).print(), lock_of(&doubled).print());
}

#[test]
fn a_condition_on_a_locked_site_is_told_where_it_is_not_met() {
    let under = |before: &str, after: &str| {
        let (before, after) = (lock_of(before), lock_of(after));
        let locked = Lock::parse(&before.print()).expect("it is read");
        let tables = Tables {
            locked: &locked.types,
            found: &after.types,
        };
        let name = Place::from(proc_macro2::Span::call_site());
        let breaks = compare::compare(&locked.sections[0], &after.sections[0], name, &tables);
        breaks
            .into_iter()
            .map(|told| (told.path, told.under))
            .collect::<Vec<_>>()
    };
    let mail = "            apologise(&order).await?;";
    let with = |text: &str| SHOP.replace(mail, text);
    let told = under(
        SHOP,
        &with("#[cfg(feature = \"sorry\")] apologise(&order).await?;"),
    );
    assert_eq!(
        told,
        [(
            "apologise".to_owned(),
            Some("not(any(all(feature=\"sorry\")))".to_owned())
        )]
    );
    let told = under(
        SHOP,
        &with(
            "#[cfg(feature = \"sorry\")] apologise(&order).await?; #[cfg(not(feature = \"sorry\"))] removed!(apologise, kind = \"step\");",
        ),
    );
    assert_eq!(
        told[0].1.as_deref(),
        Some("not(any(all(feature=\"sorry\"), all(not(feature=\"sorry\"))))")
    );
    // Locked with the condition, it is what it was.
    let both = with("#[cfg(feature = \"sorry\")] apologise(&order).await?;");
    assert_eq!(under(&both, &both), []);
    assert_eq!(under(&both, SHOP), []);
}

#[test]
fn attributes_are_known_under_other_names_and_conditions() {
    let plain = "use workflow::{workflow, step};
        #[derive(Deserialize)] struct Hold { shelf: u32 }
        #[step] async fn reserve() -> Result<Hold, Error> { find() }
        #[workflow(name = \"pay\")] async fn run() -> Result<(), Failure> { reserve().await?; Ok(()) }";
    let renamed = plain
        .replace("{workflow, step}", "{workflow as durable, step as effect}")
        .replace("#[step]", "#[effect]")
        .replace("#[workflow(", "#[durable(");
    assert_eq!(lock_of(plain).print(), lock_of(&renamed).print());
    let conditional = plain
        .replace(
            "#[derive(Deserialize)]",
            "#[cfg_attr(feature = \"live\", derive(Deserialize))]",
        )
        .replace(
            "#[workflow(name = \"pay\")]",
            "#[cfg_attr(feature = \"live\", workflow(name = \"pay\"))]",
        );
    assert_eq!(lock_of(plain).print(), lock_of(&conditional).print());
}

#[test]
fn a_function_in_a_function_or_a_comment_is_not_taken_for_another() {
    let text = "/* fn pay() */\n#[workflow]\nasync fn pay() {}\nfn test() {\n    #[workflow]\n    async fn refund() {}\n}\n#[workflow]\nasync fn refund() {}\n#[workflow]\nasync fn ship() {}\n";
    let found = Sources::of(text).durable();
    let found: Vec<_> = found
        .iter()
        .map(|found| (found.name(), found.is_alone))
        .collect();
    let expected = [("pay", false), ("refund", false), ("ship", true)];
    assert_eq!(
        found,
        expected.map(|(name, alone)| (name.to_owned(), alone))
    );
}

#[test]
fn what_is_given_another_name_is_what_it_was() {
    let text = SHOP.replace(
        "    notify(&order).await?;",
        "    #[step(name = \"told\")] notify(&order).await?;\n #[step(name = \"rung\")] desk.notify(&order).await?;\n #[step(name = \"shipped\")] ship(&order).await?;",
    );
    let printed = lock_of(&text).print();
    let lines = "  fragment told of notify\n  call rung of notify\n  step shipped of ship -> ()\n";
    assert!(printed.contains(lines), "{printed}");
}

#[test]
fn what_a_generic_step_gives_each_call_decides() {
    let text = |of: &str| {
        format!(
            "#[step] async fn get<{of}: Durable>(key: &str) -> Result<{of}, Error> {{ read(key) }}
            impl<{of}> Cache<{of}> {{ #[step] async fn find(&self) -> Result<Vec<{of}>, Error> {{ read(key) }} }}
            impl Cursor {{ #[step] async fn first() -> Result<Self, Error> {{ start() }} }}
            #[workflow] async fn pay() -> Result<(), Failure> {{
                let hold: Hold = get(1).await?; cache.find().await?; Cursor::first().await?; Ok(()) }}"
        )
    };
    let printed = lock_of(&text("T")).print();
    let lines = "workflow pay\n  step get -> Hold\n  step find\n  step first -> Cursor\n";
    assert!(printed.ends_with(lines), "{printed}");
    assert_eq!(told(&text("T"), &text("Value")), [] as [String; 0]);
}
