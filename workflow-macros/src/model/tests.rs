//! What a function means: its sites with their paths, and what is wrong with it.

use proc_macro2::TokenStream;
use quote::quote;

use super::{check_workflow, walk};
use crate::diagnostics::Errors;
use crate::syntax::{Body, Function};

/// The sites of a workflow, as `path Kind`, and the first lines of what is wrong with it, each in source order.
fn read(text: &str) -> (Vec<String>, Vec<String>) {
    let tokens: TokenStream = text.parse().expect("the source is Rust");
    let mut function: Function = syn::parse2(tokens).expect("the source is a function");
    let mut errors = Errors::default();
    let model = check_workflow(&mut function, &mut errors).expect("the signature can be used");
    let Body::Block(mut block) = function.body else {
        panic!("the body can be parsed");
    };
    let walked = walk(
        &mut block,
        &function.sig,
        model.given(),
        walk::Undos::Own,
        &quote!(workflow),
        &mut errors,
    );
    let sites = walked.sites.iter();
    let sites = sites.map(|site| format!("{} {:?}", site.path, site.kind));
    let said = errors.finish();
    let said = said.iter().map(|report| report.text().lines().next());
    (
        sites.collect(),
        said.map(|line| line.unwrap_or_default().to_owned())
            .collect(),
    )
}

/// The sites of a body in which nothing is wrong.
fn sites(body: &str) -> Vec<String> {
    let (sites, said) = read(&format!("async fn f() {{ {body} }}"));
    assert_eq!(said, [] as [&str; 0], "{body}");
    sites
}

/// What is wrong with a body.
fn wrong(body: &str) -> Vec<String> {
    read(&format!("async fn f() {{ {body} }}")).1
}

#[test]
fn every_kind_of_site_is_found_in_source_order() {
    let body = r#"
        let held = reserve(1).await?;
        #[step(name = "mail")] smtp.send(&held).await?;
        sleep!(window, "15m").await;
        let at = now!(at).await;
        let key = uuid!(key);
        let dice = random!(dice);
        join!(both, a = first().await?, b = 2).await?;
        race!(settle, paid = pay().await?, expired = { sleep!(late, "1s").await; }).await?;
        join_all!(every, for item in items { ship(item).await? }).await?;
        'items: for item in items { ship(item).await?; }
    "#;
    assert_eq!(
        sites(body),
        [
            "reserve Call",
            "mail Step",
            "window Sleep",
            "at Now",
            "key Derived",
            "dice Derived",
            "both Join",
            "both/a/first Call",
            "settle Race",
            "settle/paid/pay Call",
            "settle/expired/late Sleep",
            "every JoinAll",
            "every[]/ship Call",
            "items Loop",
            "items[]/ship Call",
        ]
    );
}

#[test]
fn a_name_is_what_is_called_whatever_stands_around_it() {
    for (expression, name) in [
        ("stock::reserve(1).await", "reserve"),
        ("stock.held(1).reserve(2).await", "reserve"),
        ("Stock::<u8>::reserve(1).await", "reserve"),
        ("reserve::<u8>(1).await", "reserve"),
        ("<Bank as Gateway>::reserve(1).await", "reserve"),
        ("(reserve(1)).await", "reserve"),
        ("r#reserve(1).await", "reserve"),
        ("reserve(1).await?.len()", "reserve"),
        ("Some(reserve(1).await?)", "reserve"),
        ("total += reserve(1).await?", "reserve"),
        ("if reserve(1).await? > 2 {}", "reserve"),
    ] {
        assert_eq!(sites(&format!("{expression};")), [format!("{name} Call")]);
    }
}

#[test]
fn blocks_and_arms_open_no_scope_and_iterations_and_branches_do() {
    let body = "
        { one().await?; }
        if true { two().await?; } else { three().await?; }
        match n { 0 => four().await?, _ => five().await? }
        'outer: loop { one().await?; 'inner: while six().await? { one().await?; } break; }
        join!(both, a = one().await?, b = { one().await? }).await?;
    ";
    assert_eq!(
        sites(body),
        [
            "one Call",
            "two Call",
            "three Call",
            "four Call",
            "five Call",
            "outer Loop",
            "outer[]/one Call",
            "outer[]/inner Loop",
            "outer[]/inner[]/six Call",
            "outer[]/inner[]/one Call",
            "both Join",
            "both/a/one Call",
            "both/b/one Call",
        ]
    );
}

#[test]
fn what_stands_in_a_step_or_an_item_is_no_site() {
    let body = r#"
        #[step(name = "all")] let n = { let a = get(1).await?; for x in a { put(x).await?; } Ok(1) }?;
        async fn helper() { other().await; }
        let values: Vec<u32> = list.iter().map(|n| n + 1).collect();
        for value in values { plain(value); }
    "#;
    assert_eq!(sites(body), ["all Step"]);
}

#[test]
fn a_name_is_used_once_in_a_scope_and_exclusive_arms_are_one_scope() {
    for body in [
        "reserve(1).await?; reserve(2).await?;",
        "if true { reserve(1).await?; } else { reserve(2).await?; }",
        "match n { 0 => a::reserve(1).await?, _ => b.reserve(2).await? }",
        r#"reserve(1).await?; sleep!(reserve, "1s").await;"#,
        "'reserve: loop { break; one().await?; } reserve(1).await?;",
        "#[cfg(a)] reserve(1).await?; reserve(2).await?;",
        "#[cfg(a)] reserve(1).await?; #[cfg(b)] reserve(2).await?; #[cfg(b)] reserve(3).await?;",
    ] {
        let said = wrong(body);
        assert_eq!(said.len(), 1, "{body}: {said:?}");
        assert!(
            said[0].starts_with("the name `reserve` is used twice"),
            "{said:?}"
        );
    }
    assert_eq!(
        sites("#[cfg(a)] reserve(1).await?; #[cfg(not(a))] reserve(2).await?;"),
        ["reserve Call", "reserve Call"]
    );
}

#[test]
fn all_that_is_wrong_is_told_together_and_in_source_order() {
    let body = r#"
        let started = std::time::SystemTime::now();
        for item in items { ship(item).await?; }
        let map: HashMap<u8, u8> = list.collect();
        sleep!(nap, "15 minutes").await;
        ship(1).await?;
        #[step(retires = 2)] get(1).await?;
        join!(both, a = { return 1; }, a = 2).await?;
        list.map(|x| async move { ship(x).await });
        uuid!(key).await;
    "#;
    let starts = [
        "`std::time::SystemTime::now` is another time",
        "a `for` that does something durable needs a label",
        "a `HashMap` has another order",
        "`15 minutes` is not a duration",
        "`retires` is not an option",
        "two branches of `both` are named `a`",
        "`return` cannot leave the branch",
        "nothing durable can be done in an `async` block",
        "`uuid!` is not awaited: it is derived, and there at once",
    ];
    let said = wrong(body);
    assert_eq!(said.len(), starts.len(), "{said:#?}");
    for (said, start) in said.iter().zip(starts) {
        assert!(said.starts_with(start), "{said}");
    }
}

#[test]
fn a_progress_is_one_value_and_no_site() {
    assert_eq!(
        sites("progress!(1); 'items: for n in list { progress!(n); progress!(count(n).await?); }"),
        ["items Loop", "items[]/count Call"]
    );
    let said = wrong("progress!(1).await;");
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].contains("it is done at once"), "{said:?}");
}

#[test]
fn a_mistake_costs_no_site() {
    let body = r#"
        let started = Instant::now();
        for item in items { ship(item).await?; }
        ("a" + 1).await;
        println!("{}", seen(1).await?);
        ship(1).await?;
        ship(2).await?;
        join!(both, first().await?).await?;
    "#;
    let (sites, said) = read(&format!("async fn f() {{ {body} }}"));
    assert_eq!(said.len(), 6, "{said:#?}");
    let called: Vec<_> = sites.iter().filter(|site| site.ends_with("Call")).collect();
    assert_eq!(called.len(), 6, "{sites:#?}");
}

#[test]
fn a_state_is_read_in_what_is_durable_only() {
    let read = |body: &str| {
        read(&format!(
            "async fn f(order: u32, #[state] stock: Stock) {{ {body} }}"
        ))
    };
    for fine in [
        "reserve(&stock, order).await?;",
        "stock.reserve(order).await?;",
        "#[step(name = \"n\")] let n = { stock.len() }?;",
        "let stock = order; let n = stock + 1;",
        "other.stock(1); Self { stock: 1 };",
    ] {
        assert_eq!(read(fine).1, [] as [&str; 0], "{fine}");
    }
    for refused in [
        "let n = stock.len();",
        "if stock.is_open() { reserve(order).await?; }",
        "println!(\"{}\", stock.len());",
        "{ let stock = 1; } let n = stock;",
    ] {
        assert_eq!(read(refused).1.len(), 1, "{refused}");
    }
}

#[test]
fn a_variable_from_outside_is_not_assigned_to_in_a_step_or_branch() {
    for refused in [
        "join!(both, a = { total += 1; }, b = 2).await?;",
        "race!(first, a = { total.sum = one().await?; }, b = 2).await?;",
        "join_all!(every, for n in list { *total += n; }).await?;",
        "#[step(name = \"s\")] { total[0] = 1; }?;",
        "join!(both, a = { let f = || { total = 1; }; f() }, b = 2).await?;",
        "join!(outer, a = { let mut t = 0; join!(inner, b = { t += 1; }).await? }, b = 2).await?;",
    ] {
        let said = wrong(refused);
        assert_eq!(said.len(), 1, "{refused}: {said:?}");
        assert!(said[0].contains("cannot change `t"), "{said:?}");
    }
    for fine in [
        "total += 1; 'items: for n in list { total += count(n).await?; }",
        "join!(both, a = { let mut total = 0; total += 1; total }, b = 2).await?;",
        "join_all!(every, for mut n in list { n += 1; n }).await?;",
        "#[step(name = \"s\")] { for mut n in list { n += 1; } if let Some(mut m) = x { m = 2; } }?;",
        "join!(both, a = { get(1).total = 3; }, b = 2).await?;",
        "#[step] total = get(1).await?;",
    ] {
        assert_eq!(wrong(fine), [] as [&str; 0], "{fine}");
    }
}
