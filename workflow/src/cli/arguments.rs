//! What may be said on the command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;

use crate::when::Since;

/// Exit codes, for the end of every help.
const CODES: &str = "\
Exit codes:
  0  it was done
  1  it was refused, or there is no such run; `doctor` found something wrong
  2  the command line cannot be read
  3  the store could not be opened, or the service not reached

With --json, errors are one line of JSON on standard error.";

/// Looks at the runs of a workflow store, and operates them.
#[derive(Debug, Parser)]
#[command(name = "workflow", version, after_help = CODES, max_term_width = 100)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) at: At,
    /// Writes JSON, in the shapes that the guide's page `cli` describes
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Writes text for so many columns, instead of as many as the terminal has
    #[arg(long, global = true, value_name = "COLUMNS")]
    pub(crate) width: Option<usize>,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Where the runs are.
#[derive(Debug, Args)]
pub(crate) struct At {
    /// The store's file; no other process may have it open
    #[arg(
        long,
        global = true,
        env = "WORKFLOW_STORE",
        value_name = "FILE",
        help_heading = "Where the runs are"
    )]
    pub(crate) store: Option<PathBuf>,
    /// The address of a running service's API, instead of a file: `http://localhost:3000/api`
    #[arg(
        long,
        global = true,
        env = "WORKFLOW_URL",
        value_name = "URL",
        help_heading = "Where the runs are"
    )]
    pub(crate) url: Option<String>,
    /// What the service knows you by, sent as a bearer token
    #[arg(
        long,
        global = true,
        env = "WORKFLOW_TOKEN",
        hide_env_values = true,
        value_name = "TOKEN",
        help_heading = "Where the runs are"
    )]
    pub(crate) token: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Lists runs, in the order in which they were started
    List(List),
    /// Shows one run: what it is doing, its input, its result
    Show {
        /// Its id
        run: String,
    },
    /// Shows the records of a run
    History(History),
    /// Shows what a run did as a tree of its locations
    Graph(Graph),
    /// Shows what a run did when, with a lane for each branch
    Timeline(Timeline),
    /// Follows a run of a service: each record as it comes, until the run has ended
    Tail(Tail),
    /// Sends a message to a run, or to one that is started later
    Send(Send),
    /// Cancels a run
    Cancel {
        /// Its id
        run: String,
        /// Undoes first what it did
        #[arg(long)]
        undo: bool,
    },
    /// Retries a run that failed
    Recover {
        /// Its id
        run: String,
    },
    /// Has a parked run tried again
    Resume {
        /// Its id
        run: String,
    },
    /// Goes on rolling back a parked run without an undo that keeps failing
    SkipUndo(SkipUndo),
    /// Takes a run back to a location: what is recorded there and after it is done again
    Rewind(Rewind),
    /// Starts a new run from a copy of another's history
    Fork(Fork),
    /// Lists what the calendar starts, and operates it
    Schedules {
        #[command(subcommand)]
        what: Option<Schedules>,
    },
    /// Writes the history of a run as JSON, for a replay test
    Export(Export),
    /// Checks an exported history and puts it beside the replay tests
    Import(Import),
    /// Copies the store into a new file
    Backup {
        /// The file, which must not exist
        #[arg(value_name = "FILE")]
        to: PathBuf,
    },
    /// Makes the store's file as small as what it holds
    Compact,
    /// Deletes runs that ended long ago, with their children; a service those that its retention keeps no longer
    Gc(Gc),
    /// Reads everything in the store, and says what is wrong, what is parked, and the ways out
    Doctor,
    /// Says how to ask whether live runs go on with new code
    Preflight {
        /// Nothing that is said here is of use
        #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
        _said: Vec<String>,
    },
    /// Writes `workflow.lock` of the package in this directory, or compares it
    Lock(Lock),
    /// Writes a completion script: `workflow completions bash > /etc/bash_completion.d/workflow`
    Completions {
        /// For this shell
        shell: Shell,
    },
    /// Writes the manual page: `workflow man | man -l -`
    Man {
        /// Writes one for each command into this directory
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Schedules {
    /// Starts nothing by itself from now on, also after a restart
    Pause {
        /// The schedule's name
        schedule: String,
        /// Why; it is shown
        #[arg(long, default_value = "", hide_default_value = true)]
        reason: String,
    },
    /// Goes on; what came due meanwhile is not started
    Resume {
        /// The schedule's name
        schedule: String,
    },
    /// Starts a run now, in a service that runs
    Trigger {
        /// The schedule's name
        schedule: String,
    },
    /// Starts a run for each firing of a time that has passed, unless it has one, in a service that runs
    Backfill {
        /// The schedule's name
        schedule: String,
        /// From here on: 2026-11-30, 2026-11-30T16:00:00Z, or so long ago: 2h, 3d
        #[arg(long, value_name = "WHEN")]
        from: Since,
        /// Before this
        #[arg(long, value_name = "WHEN")]
        to: Since,
    },
}

#[derive(Debug, Args)]
pub(crate) struct List {
    /// Only runs of this workflow
    #[arg(long, value_name = "NAME")]
    pub(crate) workflow: Option<String>,
    /// Only runs in this state
    #[arg(long, value_parser = [
        "pending", "running", "waiting", "rolling_back", "parked", "completed", "failed", "cancelled",
    ])]
    pub(crate) state: Option<String>,
    /// Only runs that have changed since: 2026-11-30, 2026-11-30T16:00:00Z, or so long ago: 2h, 3d
    #[arg(long, value_name = "WHEN")]
    pub(crate) since: Option<Since>,
    /// At most so many
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) limit: u32,
    /// All of them
    #[arg(long, conflicts_with = "limit")]
    pub(crate) all: bool,
    /// Goes on after the page before, whose end said this
    #[arg(long, value_name = "CURSOR")]
    pub(crate) after: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct History {
    /// The run's id
    pub(crate) run: String,
    /// Only records after the one of this number
    #[arg(long, default_value_t = 0, value_name = "NUMBER")]
    pub(crate) after: u64,
    /// At most so many
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) limit: Option<u32>,
    /// Only records at this location, and under it
    #[arg(long, value_name = "LOCATION")]
    pub(crate) at: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Graph {
    /// The run's id
    pub(crate) run: String,
    /// No deeper than this
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) depth: Option<u32>,
}

#[derive(Debug, Args)]
pub(crate) struct Timeline {
    /// The run's id
    pub(crate) run: String,
    /// No deeper than this
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) depth: Option<u32>,
}

#[derive(Debug, Args)]
pub(crate) struct Tail {
    /// The run's id
    pub(crate) run: String,
    /// Only records after the one of this number
    #[arg(long, default_value_t = 0, value_name = "NUMBER")]
    pub(crate) after: u64,
}

#[derive(Debug, Args)]
pub(crate) struct Gc {
    /// Those that ended before: 2026-11-30, 2026-11-30T16:00:00Z, or so long ago: 12h, 30d
    #[arg(long, value_name = "WHEN")]
    pub(crate) older_than: Option<Since>,
    /// Only those that ended so; may be said more than once
    #[arg(long, value_parser = ["completed", "failed", "cancelled"])]
    pub(crate) state: Vec<String>,
    /// Only those of this workflow, with their children
    #[arg(long, value_name = "NAME")]
    pub(crate) workflow: Option<String>,
    /// Counts them, and deletes nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Send {
    /// The run's id
    pub(crate) run: String,
    /// The channel's name
    pub(crate) channel: String,
    /// The message, as JSON; `-` reads it from standard input
    #[arg(value_name = "JSON", allow_hyphen_values = true)]
    pub(crate) value: String,
    /// Delivers it once, however often it is sent with this key
    #[arg(long)]
    pub(crate) key: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct SkipUndo {
    /// The run's id
    pub(crate) run: String,
    /// The number of the entry, which the run's parking names
    pub(crate) entry: u64,
    /// Why; it is recorded
    #[arg(long)]
    pub(crate) reason: String,
}

#[derive(Debug, Args)]
pub(crate) struct Rewind {
    /// The run's id
    pub(crate) run: String,
    /// To where: items[3]/ship; the run's beginning when it is left out
    #[arg(default_value = "")]
    pub(crate) location: String,
    /// Says what would be done, and does nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Fork {
    /// The run's id
    pub(crate) run: String,
    /// The id of the new run
    pub(crate) new: String,
    /// Goes on from this location, instead of where the run is
    #[arg(long, value_name = "LOCATION")]
    pub(crate) at: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Export {
    /// The run's id
    pub(crate) run: String,
    /// Writes it into this file, which must not exist, instead of to standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Writes over a file that exists
    #[arg(long, requires = "output")]
    pub(crate) force: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Import {
    /// The exported history; `-` reads it from standard input
    pub(crate) history: PathBuf,
    /// The directory of the histories that are replayed
    #[arg(long, value_name = "DIR", default_value = "tests/histories")]
    pub(crate) into: PathBuf,
    /// Writes over a file that exists
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Lock {
    /// Compares instead, and fails when the lock is not what would be written
    #[arg(long, conflicts_with = "accept")]
    pub(crate) check: bool,
    /// Accepts edits at this site, under it, or in this workflow, and no others: checkout/settle, refund
    #[arg(long, value_name = "PATH")]
    pub(crate) accept: Vec<String>,
    /// Arguments of `cargo test` that say which test it is: -- --test lock
    #[arg(last = true, value_name = "ARGUMENTS")]
    pub(crate) test: Vec<String>,
}
