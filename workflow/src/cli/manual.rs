//! What is said of the command line itself, and of what it cannot do.

use std::path::Path;

use clap::CommandFactory;
use clap_complete::Shell;
use clap_mangen::Man;

use crate::arguments::Arguments;
use crate::fail::Fail;
use crate::out::Out;

const PREFLIGHT: &str = "\
a preflight replays live runs against code, and this program has no code of yours. Ask in your own:

    let report = Engine::builder().workflow(checkout).state(stock)
        .store(RedbStore::open(\"orders.redb\")?)
        .preflight().await?;
    println!(\"{report}\");
    report.exit_code()

Run that before the new program is let at the store; it drives nothing and writes nothing. The guide's page `deploying` tells more";

/// Says how it is done, and fails: a pipeline that asks here must not take that for a yes.
pub(crate) fn preflight() -> Result<(), Fail> {
    Err(Fail::Refused(PREFLIGHT.to_owned()))
}

pub(crate) fn completions(shell: Shell, out: &mut Out) -> Result<(), Fail> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "workflow", &mut script);
    out.bytes(&script)
}

pub(crate) fn man(dir: Option<&Path>, out: &mut Out) -> Result<(), Fail> {
    let mut command = Arguments::command();
    command.build();
    let Some(dir) = dir else {
        let mut page = Vec::new();
        Man::new(command).render(&mut page)?;
        return out.bytes(&page);
    };
    let written =
        std::fs::create_dir_all(dir).and_then(|()| clap_mangen::generate_to(command, dir));
    written.map_err(|error| Fail::Refused(format!("{}: {error}", dir.display())))
}
