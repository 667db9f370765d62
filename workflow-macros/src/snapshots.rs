//! The expansion of each feature, as committed under `tests/snapshots`. `UPDATE=1 cargo test` writes them anew.

use std::path::PathBuf;
use std::{env, fs};

use proc_macro2::TokenStream;

type Expand = fn(TokenStream, TokenStream) -> TokenStream;

const FEATURES: &[(&str, Expand, &str, &str)] = &[
    (
        "workflow",
        super::expand_workflow,
        "crate = workflow",
        "async fn checkout(order: u32, #[state] stock: Stock) -> Result<u32, Failure> { let held = reserve(&stock, order).await?; Ok(held) }",
    ),
    (
        "step",
        super::expand_step,
        "crate = workflow, retries = 3, timeout = \"10s\"",
        "async fn reserve(stock: &Stock, order: u32) -> Result<u32, StockError> { stock.hold(order).await }",
    ),
    (
        "blocking_step",
        super::expand_step,
        "crate = workflow, blocking",
        "fn hash(text: String) -> usize { text.len() }",
    ),
    (
        "fragment",
        super::expand_fragment,
        "crate = workflow",
        "async fn settle(total: &mut u32, n: u32) -> Result<(), Failure> { *total += count(n).await?; Ok(()) }",
    ),
    (
        "step_in_place",
        super::expand_workflow,
        "crate = workflow",
        "async fn checkout(order: u32) -> Result<u32, Failure> { #[step(name = \"other\", retries = 2)] let n = get(order).await?; Ok(n) }",
    ),
    (
        "undo",
        super::expand_workflow,
        "crate = workflow",
        "async fn checkout(order: u32) -> Result<(), Failure> { checkpoint!(begun); #[step(undo(release))] reserve(order).await?; settle!(paid); #[step(name = \"other\", undo(|held: Option<u32>, pay: Pay| async move { pay.refund(held).await }))] pay(order).await?; Ok(()) }",
    ),
    (
        "loops",
        super::expand_workflow,
        "crate = workflow",
        "async fn checkout(orders: Vec<u32>) { #[key(order)] 'orders: for order in &orders { sleep!(nap, \"1s\").await; } 'again: while more() { sleep!(nap, \"1s\").await; } }",
    ),
    (
        "branches",
        super::expand_workflow,
        "crate = workflow",
        "async fn checkout(orders: Vec<u32>) -> Result<u32, Failure> { let (a, b) = join!(both, a = count(1).await?, b = { 2 }).await?; join_all!(every, limit = 2, for order in orders { count(order).await? }).await?; Ok(a + b) }",
    ),
    (
        "messages",
        super::expand_workflow,
        "crate = workflow",
        "async fn checkout(order: RunId) -> Result<u32, Failure> { let paid = recv!(paid, PAYMENT).await?; let more = recv!(more, [CASH, CARD], timeout = \"15m\", count = 3).await?; let ask = recv!(ask, ASK, timeout = wait).await?; send!(tell, order, &PAYMENT, paid).await?; Ok(paid) }",
    ),
    (
        "attempt",
        super::expand_workflow,
        "crate = workflow",
        "async fn checkout(order: u32) -> Result<u32, Failure> { let mut held = 0; let tried = attempt!(book, { held = reserve(order).await?; held }).await; Ok(tried.unwrap_or(held)) }",
    ),
    (
        "versions",
        super::expand_workflow,
        "crate = workflow",
        "async fn checkout(order: u32) -> u32 { let version = version!(prices, 2).await; removed!(old, kind = \"step\"); #[cfg(x)] removed!(older, kind = \"loop\"); version }",
    ),
    (
        "carry",
        super::expand_workflow,
        "crate = workflow",
        "async fn checkout(items: Vec<u32>, limit: u32) -> Result<u32, Failure> { let mut total = 0; #[carry(total, every = 5, keep = 2)] 'items: for item in &items { total += count(*item).await?; if total > limit { break 'items; } } Ok(total) }",
    ),
    (
        "children",
        super::expand_workflow,
        "crate = workflow",
        "async fn order(item: String) -> Result<u32, Failure> { #[step(name = \"left\")] let id = parcel(item.clone()).detach().await?; parcel(item).await }",
    ),
    (
        "guided",
        super::expand_guided,
        "id = \"project\", version = 2, crate = workflow",
        "impl Project { #[doc = \" What is it called?\"] #[stage(start, title = \"Details\", to = [done if Self::is_made, create])] fn details() {} #[check(details)] fn is_named(&self, problems: &mut Problems) { problems.when(self.name.is_empty(), \"name\", \"a project needs a name\"); } #[stage(name = \"make\", skippable, when = |project| !project.name.is_empty(), to = [done], timeout = \"30s\", on_interrupt = rerun)] async fn create(stage: Stage<Self>) -> Result<(), Failure> { make(stage.state().name.clone()).await?; Ok(()) } #[undo(create)] async fn unmake(undone: Undone<Self>) -> Result<(), MakeError> { unmake(undone.state.name).await } #[stage(terminal)] fn done() {} #[exit_guard] fn may_leave(&self) -> bool { !self.is_made() } fn is_made(&self) -> bool { self.made } }",
    ),
    (
        "guides",
        super::expand_fragment,
        "crate = workflow, of = \"project\", body",
        "async fn create(flow: Flow<Bank>) -> Result<(), Failure> { let bank = guide!(bank, Bank::default()).await?; guide!(again, bank, flow = flow).await?; #[step(undo(unmake))] make(1).await?; Ok(()) }",
    ),
    (
        "asking",
        super::expand_guided,
        "id = \"project\", nests(Bank), hooks_timeout = \"10s\", reopen, crate = workflow",
        "impl Project { #[stage(start, to = [done if Self::is_free, create])] fn details() {} #[check(details)] async fn is_right(stage: Stage<Self>) -> Result<Problems, Failure> { Ok(Problems::default()) } #[guard] async fn is_free(stage: Stage<Self>) -> Result<bool, Failure> { Ok(true) } #[stage(retries = 2, to = done)] async fn create(stage: Stage<Self>) -> Result<(), Failure> { #[step(undo(unmake))] make(1).await?; Ok(()) } #[stage(terminal)] fn done() {} }",
    ),
    (
        "refused",
        super::expand_workflow,
        "crate = workflow",
        "async fn checkout() { sleep!().await; }",
    ),
];

#[test]
fn each_feature_expands_as_committed() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots");
    let update = env::var_os("UPDATE").is_some();
    let mut differing = Vec::new();
    for (name, expand, args, item) in FEATURES {
        let parse = |text: &str| text.parse::<TokenStream>().expect("the input is Rust");
        let expanded = expand(parse(args), parse(item));
        let file = syn::parse2(expanded).expect("the expansion is Rust");
        let text = prettyplease::unparse(&file);
        let path = folder.join(format!("{name}.rs"));
        if update {
            fs::create_dir_all(&folder).expect("the repository can be written");
            fs::write(&path, text).expect("the repository can be written");
        } else if fs::read_to_string(&path).ok().as_deref() != Some(&text) {
            differing.push(format!("{name}:\n{text}"));
        }
    }
    assert!(differing.is_empty(), "{}", differing.join("\n"));
}
