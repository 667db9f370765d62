//! What a `#[carry]` loop records is locked with its types, as far as the text tells them.

use super::{lock_of, told};
use crate::lock::text::Lock;

/// A package whose workflow carries `seen`, made by this statement.
fn carrying(statement: &str) -> String {
    format!(
        r"
        #[derive(Serialize, Deserialize)]
        struct Cursor {{ page: u32 }}
        #[derive(Serialize, Deserialize)]
        enum State {{ Idle, At(u32) }}
        impl Cursor {{
            const FIRST: u32 = 1;
            fn new(page: u32) -> Self {{ Self {{ page }} }}
            fn read(text: &str) -> Result<Self, Error> {{ parse(text) }}
            fn maybe() -> Option<Self> {{ None }}
        }}
        fn start() -> Cursor {{ Cursor::new(1) }}
        #[step]
        async fn first() -> Result<Cursor, Error> {{ start() }}
        #[workflow]
        async fn drain(mut given: Cursor, many: u64) -> Result<(), Failure> {{
            {statement}
            #[carry(seen)]
            'watch: loop {{
                poll(&seen).await?;
                if seen.page > 10 {{ break; }}
            }}
            Ok(())
        }}
        "
    )
}

/// The line of the loop.
fn line(statement: &str) -> String {
    let printed = lock_of(&carrying(statement)).print();
    let mut lines = printed.lines();
    let line = lines.find(|line| line.starts_with("  loop watch"));
    line.expect("the loop is locked").trim().to_owned()
}

#[test]
fn the_type_of_a_carried_local_is_read_where_the_text_tells_it() {
    for (statement, ty) in [
        ("let mut seen: Vec<u32> = Vec::new();", "Vec<u32>"),
        ("let mut seen: u64; seen = 0;", "u64"),
        ("let mut seen = 0_u32;", "u32"),
        ("let mut seen = -1.5f64;", "f64"),
        ("let mut seen = false;", "bool"),
        ("let mut seen = order.count() as u16;", "u16"),
        ("let mut seen = u32::MAX;", "u32"),
        ("let mut seen = String::new();", "String"),
        ("let mut seen = \"none\".to_owned();", "String"),
        ("let mut seen = format!(\"{many}\");", "String"),
        (
            "let mut seen = Vec::<Cursor>::with_capacity(9);",
            "Vec<Cursor>",
        ),
        (
            "let mut seen = std::collections::BTreeMap::<String, u32>::new();",
            "BTreeMap<String, u32>",
        ),
        ("let mut seen = vec![0_u8; 4];", "Vec<u8>"),
        (
            "let mut seen = vec![Cursor::new(1), start()];",
            "Vec<Cursor>",
        ),
        ("let mut seen = None::<Cursor>;", "Option<Cursor>"),
        ("let mut seen = Some(0_u32);", "Option<u32>"),
        ("let mut seen = (0_u32, String::new());", "(u32, String)"),
        ("let mut seen = Cursor { page: 1 };", "Cursor"),
        ("let mut seen = crate::Cursor { page: 1 };", "Cursor"),
        ("let mut seen = State::Idle;", "State"),
        ("let mut seen = State::At(1);", "State"),
        ("let mut seen = Cursor::default();", "Cursor"),
        ("let mut seen = Cursor::new(1);", "Cursor"),
        ("let mut seen = Cursor::read(\"1\")?;", "Cursor"),
        ("let mut seen = Cursor::maybe();", "Option<Cursor>"),
        ("let mut seen = Box::new(start());", "Cursor"),
        ("let mut seen = first().await?;", "Cursor"),
        (
            "#[step(name = \"again\")] let mut seen = first().await?;",
            "Cursor",
        ),
        ("let mut seen = many;", "u64"),
        ("let mut seen = given.clone();", "Cursor"),
        ("let (mut seen, other): (u8, bool) = both();", "u8"),
        ("let (mut seen, other) = (1_i8, true);", "i8"),
        (
            "let seen: String = many.to_string(); let mut seen = seen;",
            "String",
        ),
        // An inner one is over.
        ("let mut seen = 0_u32; { let seen = 0_u64; }", "u32"),
    ] {
        assert_eq!(
            line(statement),
            format!("loop watch carry seen -> {ty}"),
            "{statement}"
        );
    }
}

#[test]
fn a_type_that_only_the_compiler_knows_is_not_guessed() {
    for statement in [
        "let mut seen = 0;",
        "let mut seen = Vec::new().into();",
        "let mut seen: Vec<_> = all();",
        "let mut seen = None;",
        "let mut seen = given.page;",
        "let mut seen = Cursor::FIRST;",
        "let mut seen = first().await;",
        "let mut seen = unknown();",
        "let mut seen = Foreign::new();",
        "let mut seen = Foreign::Variant;",
        "let mut seen = if many > 1 { 1 } else { 2 };",
        // Which of two is meant depends on the build.
        "#[cfg(feature = \"wide\")] let mut seen = 0_u64; #[cfg(not(feature = \"wide\"))] let mut seen = 0_u32;",
    ] {
        assert_eq!(line(statement), "loop watch carry seen", "{statement}");
    }
}

#[test]
fn a_carried_local_of_another_type_is_told_at_its_place_in_the_list() {
    for (before, after, why) in [
        (
            "let mut seen = 0_u32;",
            "let mut seen = 0_u16;",
            "`u32` became `u16`",
        ),
        (
            "let mut seen = 0_u32;",
            "let mut seen = String::new();",
            "`u32` became `String`",
        ),
        (
            "let mut seen: u32 = 0;",
            "let mut seen = State::Idle;",
            "`u32` became `State`",
        ),
        (
            "let mut seen = Cursor::new(1);",
            "let mut seen = vec![Cursor::new(1)];",
            "`Cursor` became `Vec<Cursor>`",
        ),
    ] {
        let told = told(&carrying(before), &carrying(after));
        let [only] = told.as_slice() else {
            panic!("{told:?}")
        };
        let expected = format!(
            "watch: what `watch` carried as `seen` cannot be read any more: {why} (workflow.lock:"
        );
        assert!(only.starts_with(&expected), "{only}");
    }
    // In a type that is made of others, too.
    let before = carrying("let mut seen = start();");
    let after = before.replace(
        "struct Cursor { page: u32 }",
        "struct Cursor { page: String }",
    );
    let told = told(&before, &after).join("\n");
    assert!(told.contains("carried as `seen` cannot be read any more: the field `page` of `Cursor`: `u32` became `String`"), "{told}");
}

#[test]
fn a_carried_local_that_still_reads_what_was_recorded_raises_nothing() {
    for (before, after) in [
        ("let mut seen = 0_u32;", "let mut seen: u64 = 0;"),
        ("let mut seen = 0_u32;", "let mut seen = Some(0_u32);"),
        (
            "let mut seen: Vec<u32> = Vec::new();",
            "let mut seen = VecDeque::<u32>::new();",
        ),
        (
            "let mut seen: Vec<u32> = Vec::new();",
            "let mut seen = Vec::from(all);",
        ),
        (
            "let mut seen = first().await?;",
            "let mut seen: Cursor = first().await?;",
        ),
        (
            "let mut seen = Cursor { page: 2 };",
            "let mut seen: Box<crate::Cursor> = start().into();",
        ),
        // Where one of the two cannot be read nothing is known.
        ("let mut seen = 0_u32;", "let mut seen = many();"),
        ("let mut seen = many();", "let mut seen = 0_u32;"),
    ] {
        let none: [&str; 0] = [];
        assert_eq!(
            told(&carrying(before), &carrying(after)),
            none,
            "{before} {after}"
        );
    }
}

#[test]
fn several_locals_are_carried_as_a_tuple_in_which_one_may_be_unknown() {
    let two = |statements: &str| {
        carrying(statements).replace("#[carry(seen)]", "#[carry(seen, pair, total)]")
    };
    let before =
        two("let mut seen = 0; let mut pair = (0_u8, String::new()); let mut total = 0_u32;");
    let printed = lock_of(&before).print();
    let line = "  loop watch carry seen,pair,total -> (_, (u8, String), u32)\n";
    assert!(printed.contains(line), "{printed}");
    let after = two("let mut seen = 0; let mut pair = (0_u8, 1_u32); let mut total = 0_u8;");
    let told = told(&before, &after);
    let [pair, total] = told.as_slice() else {
        panic!("{told:?}")
    };
    assert!(
        pair.contains("carried as `pair`") && pair.contains("`String` became `u32`"),
        "{pair}"
    );
    assert!(total.contains("carried as `total`"), "{total}");
    // The order of the list is recorded.
    let other = before.replace("carry(seen, pair, total)", "carry(pair, seen, total)");
    let told = super::told(&before, &other).join("\n");
    assert!(
        told.starts_with(
            "watch: `watch` carried `seen, pair, total` and now carries `pair, seen, total`"
        ),
        "{told}"
    );

    let short = printed.replace("(_, (u8, String), u32)", "(_, u32)");
    let wrong = Lock::parse(&short).expect_err("a type is missing");
    assert_eq!(
        wrong.why,
        "there is not one type for each local that is carried"
    );
    // As it was written before there were types.
    let old = Lock::parse(&printed.replace(" -> (_, (u8, String), u32)", "")).expect("it is read");
    assert!(old.print().contains("loop watch carry seen,pair,total\n"));
}

#[test]
fn the_generics_of_a_fragment_are_no_types() {
    let fragment = |of: &str| {
        format!(
            "#[fragment] async fn drain<{of}: Durable>(mut seen: {of}) {{ let got: {of} = poll(&seen).await?; #[carry(seen)] 'watch: loop {{ poll_again(&seen).await?; }} }}"
        )
    };
    let printed = lock_of(&fragment("T")).print();
    assert!(
        printed.contains("  call poll\n  loop watch carry seen\n"),
        "{printed}"
    );
    assert_eq!(told(&fragment("T"), &fragment("U")), [] as [String; 0]);
}
