//! The command line: `cargo run --bin workflow --features cli -- list --store orders.redb`, or `workflow ..` where it is installed.
//!
//! It stands on floor 4 and sees what users see. The guide's page `cli` says what it does.

mod arguments;
mod backend;
mod bars;
mod control;
mod doctor;
mod exchange;
mod fail;
mod file;
mod history;
mod list;
mod lock;
mod manual;
mod out;
mod schedules;
mod service;
mod show;
mod shown;
mod spans;
mod tail;
mod text;
mod timeline;
mod tree;
mod upkeep;
mod ways;
mod when;

use std::process::ExitCode;

use clap::Parser;

use arguments::{Arguments, Command};
use backend::Backend;
use fail::Fail;
use out::Out;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let mut out = Out::new(arguments.json, arguments.width);
    let done = run(arguments, &mut out).and_then(|()| out.end());
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(fail) => out.fail(&fail),
    }
}

fn run(arguments: Arguments, out: &mut Out) -> Result<(), Fail> {
    let Arguments { at, command, .. } = arguments;
    match command {
        Command::Lock(asked) => return lock::run(&asked),
        Command::Import(asked) => return exchange::import(&asked, out),
        Command::Preflight { .. } => return manual::preflight(),
        Command::Completions { shell } => return manual::completions(shell, out),
        Command::Man { dir } => return manual::man(dir.as_deref(), out),
        _ => {}
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Fail::refused(format!("no thread could be started: {error}")))?;
    runtime.block_on(async {
        let backend = Backend::open(&at).await?;
        let done = obey(command, &backend, out).await;
        // Also after a failure: what was done is folded, and the file is one again.
        let closed = backend.close().await;
        done.and(closed)
    })
}

async fn obey(command: Command, backend: &Backend, out: &mut Out) -> Result<(), Fail> {
    match command {
        Command::List(asked) => list::list(&asked, backend, out).await,
        Command::Show { run } => show::show(&run, backend, out).await,
        Command::History(asked) => history::history(&asked, backend, out).await,
        Command::Graph(asked) => tree::graph(&asked, backend, out).await,
        Command::Timeline(asked) => timeline::timeline(&asked, backend, out).await,
        Command::Tail(asked) => tail::tail(&asked, backend, out).await,
        Command::Send(asked) => control::send(&asked, backend, out).await,
        Command::Cancel { run, undo } => control::cancel(&run, undo, backend, out).await,
        Command::Recover { run } => control::recover(&run, backend, out).await,
        Command::Resume { run } => control::resume(&run, backend, out).await,
        Command::SkipUndo(asked) => control::skip_undo(&asked, backend, out).await,
        Command::Rewind(asked) => control::rewind(&asked, backend, out).await,
        Command::Fork(asked) => control::fork(&asked, backend, out).await,
        Command::Export(asked) => exchange::export(&asked, backend, out).await,
        Command::Schedules { what } => schedules::schedules(what.as_ref(), backend, out).await,
        Command::Backup { to } => upkeep::backup(&to, backend, out).await,
        Command::Compact => upkeep::compact(backend, out),
        Command::Gc(asked) => upkeep::gc(&asked, backend, out).await,
        Command::Doctor => doctor::doctor(backend, out).await,
        // Those that need no store were obeyed before.
        _ => Ok(()),
    }
}
