//! Odd inputs, whole and broken: none makes the macros panic, and each gives Rust, or says what is wrong.

use proc_macro2::{Group, Span, TokenStream, TokenTree};

const ITEMS: &[&str] = &[
    "",
    ";",
    "fn",
    "struct Order;",
    "async fn f()",
    "async fn f();",
    "fn f() {}",
    "async fn f(self) {}",
    "async fn f(&mut self, mut self: Box<Self>) {}",
    "pub(in crate::a) async unsafe extern \"C\" fn r#type<'a, T: Copy, const N: usize>(_: [T; N], (a, b): (u8, u8), ..) -> impl Fn(&str) -> &'a str where T: 'a { loop {} }",
    "async fn f(#[state] #[state(x)] a: &'static str, ref b: u8, c @ 1..=2: u8) -> ! { a }",
    "async fn f(a: impl Iterator<Item = &u8>, b: &mut dyn Fn(&u8)) -> Box<dyn Error + '_> { a }",
    "async fn f(a: u8, a: u8) -> Option<Result<(), &str>> { }",
    "async fn f() { let }",
    "async fn f() { a. }",
    "async fn f() { sleep! }",
    "async fn f() { sleep!().await; sleep!{}; sleep![,]; now!(1, 2).await; uuid!(a::b).await; random!(\"x\"); }",
    "async fn f() { join!(a, b, c).await; join!(a, = 1).await; join!(a, b = ).await; race!(a, b = c = d).await; race!(r#loop, r#for = 1).await }",
    "async fn f() { join_all!(a).await; join_all!(a, limit = 0, limit = 1, key = 2, key = 3, for (a, b) in c {}, for x in y {}).await; }",
    "async fn f() { #[step] {}; #[step] let x; #[step] ; #[step()] 1?; #[step = 1] x.await; #[step(a b)] y().await?.z; #[step(name = 1, retries = -1, backoff, timeout, retry_if(1))] q()?; }",
    "async fn f() { #[step(name = \"\")] a(); #[step(name = \"9 x\")] { Ok(1?)? }?; #[step] async move { b().await }; #[step(blocking, infallible, crate = 1)] vec![1]; }",
    "async fn f() { #[key] for a in b { c().await; } #[key(a, b)] loop { d().await } #[key(a)] let x = 1; #[nondeterministic] y(); #[nondeterministic(reason = 1, b)] z() }",
    "async fn f() { 'a: loop { break 'b; continue 'a; return; } 'a: { break 'a; } break; continue 'x; return return; loop { loop { a().await } } while let Some(x) = y.await {} }",
    "async fn f() { x.await.await; (|| async { async move { a().await }.await }).await; {}.await; [a].await; a[0].await; (a, b).await; if a.await {}; match a { b if c().await => d().await }.await; }",
    "async fn f() { tokio::select! { a = b => c } println!(\"{}\", a().await?); vec![sleep!(x, \"1s\").await; 3]; matches!(a, B(..)); m!(.await); m!(a => b.await); m!{ #[step] x.await } }",
    "async fn f() { let a: HashMap = b; ::std::collections::HashMap::<A, B>::new; <HashMap>::default(); let f = |a: HashMap<u8>| a; let HashMap { a, .. } = b; HashMap { a }; }",
    "async fn f() { a = b = c; *a += 1; (a, b) = c; [a, ..] = b; Foo { a, .. } = c; _ = d; #[step] a = b().await?; #[step] a += b().await; #[step] (a, b) = c().await?; join!(x, y = { a = b = c; }).await; }",
    "async fn f() { fn g() { sleep!(a, \"1s\"); } impl A { async fn h(&self) { now!(b).await; } } trait B { fn c() { join!(d); } } macro_rules! m { () => { sleep!(a).await } } mod n { use super::*; } }",
    "async fn f() { unsafe { a().await }; const { 1 }; loop {}; let Some(x) = a().await else { b().await }; if let A = b().await && let C = d().await { } x as u8; &raw const y; 'é: loop { z().await } été().await; }",
    "async fn f() -> Result<(), E> { #[cfg(a)] a().await; #[cfg(b)] a().await; #[cfg_attr(a, step)] b(); match x { #[cfg(c)] y => d().await, #[step] z => e } }",
    "async fn f() { recv!().await; recv!(a).await; recv!(a, []).await; recv!(a, b = c).await; recv!(a, B, C).await; recv!(a, &mut B, timeout, count = , exactly = 1).await; recv!(loop, B).await; recv!(a, [[B], [C]], x::y = 1).await; recv!(a, { B }).await }",
    "async fn f() { send!().await; send!(a).await; send!(a, b).await; send!(a, b, C).await; send!(a, b, C, d, e).await; send!(a, b = c, &&C, { d }).await; send!(a, ..).await; recv!(b, send!(c, d, E, f).await?).await }",
    "async fn f() { attempt!().await; attempt!(a).await; attempt!(a, b).await; attempt!(a, {}, {}).await; attempt!(a, async {}).await; attempt!(a, unsafe {}).await; attempt!(a, 'x: {}).await; attempt!(a, { Ok() }).await; attempt!(b, { Ok(1, 2) }).await; attempt!(c, { Ok::<_, E>(1) }).await; attempt!(d, { return }).await; attempt!(e, { break; continue 'y; ; }).await; attempt!(f, { #![x] let a; }).await }",
    "async fn f() { version!().await; version!(a).await; version!(a, -1).await; version!(a, 0x0).await; version!(a, 99999999999999999999999999999999999999999999999).await; version!(a, 1.5).await; version!(a, b, c).await; version!(a, version!(b, 2).await).await; removed!(); removed!(a); removed!(b, kind); removed!(c, kind = \"\"); removed!(d, kind = b\"step\"); removed!(e, kind = \"step\", kind = \"step\"); removed!(f, \"step\"); let x = removed!(g, kind = \"step\"); removed!(h, kind = \"step\") + 1; }",
    "async fn f() { #[carry] loop { a().await } #[carry()] 'b: loop { a().await } #[carry(,)] 'c: loop { a().await } #[carry(x, x, every, every = 1, every = 2, keep)] 'd: for (a, x) in b() { c().await } #[carry(every)] 'e: while let Some(x) = y.await {} #[carry = x] 'g: loop { a().await } #[carry(x)] #[carry(y)] 'h: loop { a().await } #[carry(x)] 'i: loop { x = 1; y += 1; (x, y) = z().await; *y = 2; y[0].w = 3; } #[carry(x)] { a().await } #[carry(x)] let q = 'j: loop { break 'j a().await }; }",
    "async fn f(mut y: u8) { let mut z = 1; #[carry(x)] 'a: loop { y = b().await; attempt!(t, { z = 1; join!(u, v = { y = 2 }).await }).await; #[carry(y)] 'b: loop { z += 1; y += 1; x += 1; (|| z = 3)(); #[step(name = \"s\")] { y = 1; }; c().await } } }",
    "async fn f() { a().reply(1).await; #[step(name = \"b\")] a.reply(1).await; #[step(name = \"c\")] a.id(1).detach().await?; #[step(name = \"d\", retries = 1)] a.reply(b().await).await; #[step] a.reply(1).await; #[step(name = \"e\")] a.reply(sleep!(x, \"1s\").await).await }",
    "#![inner] async fn f() {}",
    "#[workflow] #[step] #[fragment] #[doc = \"x\"] async fn f() { #![allow(unused)] a().await }",
];

const ARGS: &[&str] = &[
    "",
    ",",
    "=",
    "name",
    "name = ",
    "name = \"\"",
    "name = \"a b\", name = \"c\"",
    "crate = ",
    "crate = a::b, crate",
    "retries = 99999999999, timeout = \"1\", backoff(), jitter",
    "backoff(fixed, wait = 1, wait = \"1s\", factor), backoff(exponential, factor = 0, jitter = -1, max), retry_if, retry_if(), retry_if(|a| b), retry_if(|a: A| b)",
    "blocking = false, infallible = 1, ephemeral(1), at_most_once, ephemeral = true, timeout = \"none\", retry_on_timeout",
    "undo = x, (a), \"b\", 'c', #[d]",
];

type Expand = fn(TokenStream, TokenStream) -> TokenStream;

const EXPANDERS: &[(&str, Expand)] = &[
    ("workflow", crate::expand_workflow),
    ("step", crate::expand_step),
    ("fragment", crate::expand_fragment),
];

fn each(args: &TokenStream, item: &TokenStream) {
    for (name, expand) in EXPANDERS {
        let expanded = expand(args.clone(), item.clone());
        assert!(
            !expanded.is_empty(),
            "`#[{name}({args})]` on `{item}` gives nothing"
        );
        let reported = expanded.to_string().contains("compile_error");
        let is_rust = syn::parse2::<syn::File>(expanded).is_ok();
        assert!(
            reported || is_rust,
            "`#[{name}({args})]` on `{item}` is broken without a word"
        );
    }
}

fn tokens(text: &str) -> TokenStream {
    text.parse()
        .unwrap_or_else(|error| panic!("`{text}` is no tokens: {error}"))
}

/// The same with one token, or one group, left out: for each of them.
fn with_one_left_out(tokens: &TokenStream) -> Vec<TokenStream> {
    let trees: Vec<TokenTree> = tokens.clone().into_iter().collect();
    let with = |at: usize, instead: Option<TokenTree>| -> TokenStream {
        let (before, after) = (&trees[..at], &trees[at + 1..]);
        before
            .iter()
            .chain(&instead)
            .chain(after)
            .cloned()
            .collect()
    };
    let mut all = Vec::new();
    for (at, tree) in trees.iter().enumerate() {
        all.push(with(at, None));
        if let TokenTree::Group(group) = tree {
            all.extend(with_one_left_out(&group.stream()).into_iter().map(|inner| {
                let group = Group::new(group.delimiter(), inner);
                with(at, Some(group.into()))
            }));
        }
    }
    all
}

#[test]
fn no_item_makes_the_macros_panic() {
    for item in ITEMS {
        each(&TokenStream::new(), &tokens(item));
    }
}

#[test]
fn no_arguments_make_the_macros_panic() {
    for args in ARGS {
        for item in [
            "async fn f(a: u8) -> Result<(), E> { b(a).await }",
            "fn f()",
            "struct S;",
        ] {
            each(&tokens(args), &tokens(item));
        }
    }
}

#[test]
fn no_item_with_a_hole_in_it_makes_the_macros_panic() {
    for item in ITEMS {
        for broken in with_one_left_out(&tokens(item)) {
            each(&TokenStream::new(), &broken);
        }
    }
}

#[test]
fn no_arguments_with_a_hole_in_them_make_the_macros_panic() {
    let item = tokens("async fn f(a: u8) -> Result<(), E> { b(a).await }");
    for args in ARGS {
        for broken in with_one_left_out(&tokens(args)) {
            each(&broken, &item);
        }
    }
}

/// Random numbers that are the same each time.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap_or_default() % limit.max(1)
    }
}

/// How many random inputs are tried: `FUZZ=1000000 cargo test -p workflow-macros --release random` tries that many.
pub(crate) fn tries(usual: u64) -> u64 {
    let asked = std::env::var("FUZZ").ok();
    asked.and_then(|asked| asked.parse().ok()).unwrap_or(usual)
}

/// All trees in these tokens, also those in groups.
fn trees(tokens: TokenStream, into: &mut Vec<TokenTree>) {
    for tree in tokens {
        if let TokenTree::Group(group) = &tree {
            trees(group.stream(), into);
        }
        into.push(tree);
    }
}

/// The same with something left out, doubled, exchanged for, or joined by one of `others`, at some places.
fn grafted(tokens: TokenStream, others: &[TokenTree], dice: &mut Dice) -> TokenStream {
    let mut all = Vec::new();
    for tree in tokens {
        let other = || others.first().cloned();
        match dice.below(40) {
            0 => {}
            1 => all.extend([tree.clone(), tree]),
            2 => all.extend(others.get(dice.below(others.len())).cloned().or_else(other)),
            3 => {
                all.extend(others.get(dice.below(others.len())).cloned());
                all.push(tree);
            }
            _ => match tree {
                TokenTree::Group(group) => {
                    let inner = grafted(group.stream(), others, dice);
                    all.push(Group::new(group.delimiter(), inner).into());
                }
                tree => all.push(tree),
            },
        }
    }
    all.into_iter().collect()
}

#[test]
fn random_items_of_the_parts_of_others_do_not_make_the_macros_panic() {
    let mut parts = Vec::new();
    for text in ITEMS.iter().chain(ARGS) {
        trees(tokens(text), &mut parts);
    }
    for seed in 0..tries(4_000) {
        let dice = &mut Dice::new(seed);
        let item = grafted(tokens(ITEMS[dice.below(ITEMS.len())]), &parts, dice);
        let args = grafted(tokens(ARGS[dice.below(ARGS.len())]), &parts, dice);
        let expanded = std::panic::catch_unwind(|| each(&args, &item));
        assert!(expanded.is_ok(), "seed {seed}: `#[..({args})]` on `{item}`");
    }
}

/// A workflow that is being typed, as an editor hands it on: its groups are closed, and all else may be unfinished.
const UNFINISHED: &[&str] = &[
    // Expressions.
    "async fn checkout(stock: Stock) -> Result<u32, Failure> { let held = reserve(1).await?; stock. }",
    "async fn checkout(stock: Stock) -> Result<u32, Failure> { let held = stock.; reserve(held).await }",
    "async fn checkout(stock: Stock) { stock.left.map(|n| n. ) }",
    "async fn checkout(stock: Stock) { let held = }",
    "async fn checkout(stock: Stock) { let held }",
    "async fn checkout(stock: Stock) { let held = reserve( }",
    "async fn checkout(stock: Stock) { reserve(1).aw }",
    "async fn checkout(stock: Stock) { reserve(1). await ? . }",
    "async fn checkout(stock: Stock) { if stock.left > }",
    "async fn checkout(stock: Stock) { match stock.left { 1 => } }",
    "async fn checkout(stock: Stock) { stock.left + ; }",
    "async fn checkout(stock: Stock) { let Stock { left, .. = stock; }",
    "async fn checkout(stock: Stock) { 'items: for item in }",
    "async fn checkout(stock: Stock) { 'items: for item in stock.items { ship(item. } }",
    "async fn checkout(stock: Stock) { stock::<; }",
    // Macros.
    "async fn checkout(stock: Stock) { sleep! }",
    "async fn checkout(stock: Stock) { sleep!() }",
    "async fn checkout(stock: Stock) { sleep!(nap, ).await; }",
    "async fn checkout(stock: Stock) { sleep!(nap, stock. ).await; }",
    "async fn checkout(stock: Stock) { join!(both, a = stock. , b = 2).await; }",
    "async fn checkout(stock: Stock) { join!(both, a = ).await; }",
    "async fn checkout(stock: Stock) { recv!(paid, ).await; send!(tell, stock. ).await; }",
    "async fn checkout(stock: Stock) { attempt!(book, { stock. }).await; }",
    "async fn checkout(stock: Stock) { println!(\"{}\", stock. ); }",
    // Attributes.
    "async fn checkout(stock: Stock) { #[step( )] }",
    "async fn checkout(stock: Stock) { #[step(ret)] stock.hold(1).await; }",
    "async fn checkout(stock: Stock) { #[step(retries = )] stock.hold(1).await; }",
    "async fn checkout(stock: Stock) { #[step(name = \"held\", )] stock. }",
    "async fn checkout(stock: Stock) { #[step] let held = stock. }",
    "async fn checkout(stock: Stock) { #[carry(] 'all: loop { } }",
    "async fn checkout(stock: Stock) { #[key(item.)] 'all: for item in items { } }",
    "async fn checkout(#[st] stock: Stock) { stock.left }",
    // Signatures.
    "async fn checkout",
    "async fn checkout(",
    "async fn checkout(stock: Stock)",
    "async fn checkout(stock: Stock) ->",
    "async fn checkout(stock: Stock) -> Result<u32, ",
    "async fn checkout(stock: ) { stock. }",
    "async fn checkout(stock) { stock. }",
    "async fn checkout(stock: Stock, #[state] ) { stock. }",
    "async fn checkout(stock: &Stock) { stock. }",
    "fn checkout(stock: Stock) { stock. }",
    "pub fn checkout(stock: Stock);",
    "pub(crate) async fn checkout<T>(stock: Stock) where T: { stock. }",
];

/// Tokens of an unfinished text: what it leaves open is closed, as an editor does.
fn unfinished(text: &str) -> TokenStream {
    let mut open = Vec::new();
    let mut closed = String::new();
    for char in text.chars() {
        match char {
            '(' => open.push(')'),
            '[' => open.push(']'),
            '{' => open.push('}'),
            ')' | ']' | '}' => {
                // What is missing between this and its opening is put in.
                while let Some(end) = open.pop() {
                    if end == char {
                        break;
                    }
                    closed.push(end);
                }
            }
            _ => {}
        }
        closed.push(char);
    }
    closed.extend(open.into_iter().rev());
    tokens(&closed)
}

/// Every word in it, with where it stands.
fn words(tokens: TokenStream, into: &mut Vec<(String, usize, usize)>) {
    for tree in tokens {
        match tree {
            TokenTree::Ident(word) => {
                let at = word.span().start();
                into.push((word.to_string(), at.line, at.column));
            }
            TokenTree::Group(group) => words(group.stream(), into),
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
}

/// The same tokens, none of which tells where it stands, as in an editor.
fn nowhere(tokens: TokenStream) -> TokenStream {
    crate::expand::respan(tokens, Span::call_site())
}

/// The item is there whatever is wrong in it, and so is what the user has typed, at its place: editors go on completing, and
/// the rest of the file still knows the name.
#[test]
fn what_is_being_typed_is_there_for_editors() {
    for text in UNFINISHED {
        let item = unfinished(text);
        for (name, expand) in EXPANDERS {
            let expanded = expand(TokenStream::new(), item.clone());
            let printed = expanded.to_string();
            assert!(
                printed.contains("fn checkout"),
                "`#[{name}]` on `{text}` takes the function: {printed}"
            );
            let is_workflow = *name == "workflow";
            assert!(
                !is_workflow || printed.contains("struct checkout"),
                "`#[{name}]` on `{text}` takes the type: {printed}"
            );
            let (mut typed, mut kept) = (Vec::new(), Vec::new());
            words(item.clone(), &mut typed);
            words(expanded, &mut kept);
            // What stands in a macro that cannot be read is left to the editor's own reading of the file.
            let in_macro = text.contains("!(");
            for word in typed
                .iter()
                .filter(|(word, ..)| word == "stock" && !in_macro)
            {
                assert!(
                    kept.contains(word),
                    "`#[{name}]` on `{text}` loses {word:?}: {printed}"
                );
            }
        }
    }
}

/// Where a token stands is not known in an editor. Nothing but the lines that sites name depends on it.
#[test]
fn nothing_depends_on_where_tokens_stand() {
    let reports = |text: &str| text.matches("compile_error").count();
    for text in ITEMS.iter().chain(UNFINISHED) {
        let item = unfinished(text);
        for (name, expand) in EXPANDERS {
            let known = expand(TokenStream::new(), item.clone()).to_string();
            let unknown = expand(TokenStream::new(), nowhere(item.clone())).to_string();
            assert_eq!(
                reports(&known),
                reports(&unknown),
                "`#[{name}]` on `{text}`: {unknown}"
            );
        }
    }
}
