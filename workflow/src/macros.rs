//! The macros of a workflow's body.
//!
//! `#[workflow]` keeps the user's call and prepends an `@site` arm. Each of these evaluates to the operation's output: the
//! await is inside.

/// Waits, durably: `sleep!(name, "15m").await`, `sleep!(name, until = time).await`.
///
/// The deadline is recorded on first arrival, and a replay keeps it whatever the code says then. A deadline that has
/// passed ends at once. The run costs no memory while it waits.
#[macro_export]
macro_rules! sleep {
    (@site $cx:ident $site:expr; until = $until:expr) => {
        $crate::__private::sleep_until($cx, $site, $until).await
    };
    (@site $cx:ident $site:expr; $duration:expr) => {
        $crate::__private::sleep($cx, $site, $duration).await
    };
    (@unread $($report:tt)*) => {
        $($report)*
    };
    ($($outside:tt)*) => {
        $crate::__private::outside!("sleep")
    };
}

/// Goes through a guided flow, and gives the data that the person gave: `guide!(billing, Billing::for_repo(&repo)).await?`.
///
/// The second argument is the data that it begins with. Its type says which flow it is, when `#[guided]` describes that; a flow that was
/// built at run time is named: `guide!(billing, Bank::default(), flow = &flow).await?`.
///
/// In the code of a stage it is gone through in place, as part of the guide that the stage is of, whose flow declares it: `nests(Billing)` in
/// `#[guided]`, or [`FlowBuilder::nests`](crate::guided::FlowBuilder::nests). In a workflow it is a child run, whose id is the
/// parent's and the name, and which is driven by whoever opens a guide of that id: the workflow waits, in no memory, until the person
/// has come to the end.
///
/// When the person gives it up, and not what it is in, it ends with a failure of kind [`Cancelled`](crate::FailureKind::Cancelled).
#[cfg(feature = "engine")]
#[macro_export]
macro_rules! guide {
    (@site $cx:ident $site:expr; $initial:expr, flow = $flow:expr) => {
        $crate::__private::guide_through($cx, $site, &$flow, $initial).await
    };
    (@site $cx:ident $site:expr; $initial:expr) => {
        $crate::__private::guide($cx, $site, $initial).await
    };
    (@unread $($report:tt)*) => {
        $($report)*
    };
    ($($outside:tt)*) => {
        $crate::__private::outside!("guide")
    };
}

/// A cron expression, read when the program is compiled: `cron!("30 2 * * MON-FRI")` is a [`Cron`](crate::Cron).
///
/// Five fields: minute, hour, day of the month, month, day of the week. Six have the seconds before them. In each, `*` is all, and
/// `a-b`, `a,b`, `*/n`, `a-b/n` are several. Months and days of the week have names: `JAN`, `MON`. `L` is the month's last day, `MON#2` its
/// second Monday, `FRIL` its last Friday. When both days are said, either is enough, unless one of the two begins with `*`.
///
/// ```
/// use workflow::{Cron, cron};
///
/// const NIGHTLY: Cron = cron!("30 2 * * *");
/// assert_eq!(NIGHTLY.as_str(), "30 2 * * *");
/// ```
///
/// ```compile_fail
/// workflow::cron!("30 25 * * *"); // there is no such hour
/// ```
#[cfg(feature = "schedules")]
#[macro_export]
macro_rules! cron {
    ($($expression:tt)*) => {
        $crate::__private::read_cron!(($crate) $($expression)*)
    };
}

/// The instant of first arrival, recorded: `now!(name).await`.
#[macro_export]
macro_rules! now {
    (@site $cx:ident $site:expr;) => {
        $crate::__private::now($cx, $site).await
    };
    (@unread $($report:tt)*) => {
        $($report)*
    };
    ($($outside:tt)*) => {
        $crate::__private::outside!("now")
    };
}

/// A UUID derived from the run's seed: `uuid!(name)`. The same on every replay, without a record.
#[macro_export]
macro_rules! uuid {
    (@site $cx:ident $site:expr;) => {
        $crate::__private::uuid($cx, $site)
    };
    (@unread $($report:tt)*) => {
        $($report)*
    };
    ($($outside:tt)*) => {
        $crate::__private::outside!("uuid")
    };
}

/// A random value derived from the run's seed: `random!(name)`. The same on every replay, without a record.
#[macro_export]
macro_rules! random {
    (@site $cx:ident $site:expr;) => {
        $crate::__private::random($cx, $site)
    };
    (@unread $($report:tt)*) => {
        $($report)*
    };
    ($($outside:tt)*) => {
        $crate::__private::outside!("random")
    };
}

/// Runs branches side by side and waits for all: `join!(name, a = expr, b = expr).await?`.
///
/// Gives their values as a tuple, or a failure with those of the branches that failed. A branch that fails does not stop
/// the others.
#[macro_export]
macro_rules! join {
    (@site $cx:ident $site:expr; $($branch:ident $name:literal),+; $($arm:expr),+ $(,)?) => {{
        let mut __workflow_join = $crate::__private::enter_join($cx, $site, &[$($name),+]);
        $(let $branch = &__workflow_join.branch($name);)+
        let __workflow_joined = __workflow_join.join(($($arm,)+)).await;
        __workflow_joined
    }};
    (@unread $($report:tt)*) => {
        $($report)*
    };
    ($($outside:tt)*) => {
        $crate::__private::outside!("join")
    };
}

/// Runs branches side by side until one succeeds: `race!(name, a = expr, b = expr).await?`.
///
/// Gives what [won](crate::Won). The others are dropped at once, which is their cancellation. Fails when all have failed.
#[macro_export]
macro_rules! race {
    (@site $cx:ident $site:expr; $($branch:ident $name:literal),+; $($arm:expr),+ $(,)?) => {{
        let mut __workflow_race = $crate::__private::enter_race($cx, $site, &[$($name),+]);
        $(let $branch = &__workflow_race.branch($name);)+
        let __workflow_won = __workflow_race.race([$($arm),+]).await;
        __workflow_won
    }};
    (@unread $($report:tt)*) => {
        $($report)*
    };
    ($($outside:tt)*) => {
        $crate::__private::outside!("race")
    };
}

/// Runs a branch per item: `join_all!(name, limit = 8, key = item.id, for item in items { expr }).await?`.
///
/// Gives their values in input order, or a failure with those of the branches that failed.
#[macro_export]
macro_rules! join_all {
    (@site $cx:ident $site:expr; limit = $limit:expr, items = $items:expr, key = [$($key:expr)?], $slot:ident => $arm:expr $(,)?) => {
        // A `match`, so that what the items borrow lives as long as in a `for`.
        match $crate::__private::enter_all($cx, $site, $limit, $items) {
            #[allow(unused_mut)]
            mut __workflow_items => {
                $(
                    #[allow(unused_variables)]
                    __workflow_items.keyed($key);
                )?
                let mut __workflow_arms = $crate::__private::Vec::new();
                for $slot in __workflow_items.slots() {
                    __workflow_arms.push($arm);
                }
                let __workflow_joined = __workflow_items.run(__workflow_arms).await;
                __workflow_joined
            }
        }
    };
    (@unread $($report:tt)*) => {
        $($report)*
    };
    ($($outside:tt)*) => {
        $crate::__private::outside!("join_all")
    };
}

/// Takes messages from the run's inbox: `recv!(name, CHANNEL).await?`.
///
/// | form | gives |
/// |---|---|
/// | `recv!(name, CHANNEL)` | the next message, whenever it comes |
/// | `recv!(name, [A, B])` | the next of several channels of one type |
/// | `recv!(name, CHANNEL, timeout = "15m")` | an `Option`: none when the deadline passes first; `"0s"` only looks |
/// | `recv!(name, CHANNEL, count = 10)` | a `Vec` of what is there, one at least and ten at most |
/// | `recv!(name, CHANNEL, exactly = 10)` | a `Vec` of ten; with `timeout`, of what is there at the deadline |
///
/// Messages come in the order in which they arrived, over all the channels. Taking a message and recording it is one
/// transaction. The deadline is recorded on first arrival; a message that arrived by then is taken also when it is seen late. A
/// message that does not decode goes to the run's dead letters, and the wait goes on. The run costs no memory while it waits.
#[macro_export]
macro_rules! recv {
    (@site $cx:ident $site:expr; one $channels:expr) => {
        $crate::__private::recv($cx, $site, $channels).await
    };
    (@site $cx:ident $site:expr; within $timeout:expr, $channels:expr) => {
        $crate::__private::recv_within($cx, $site, $channels, $timeout).await
    };
    (@site $cx:ident $site:expr; many $timeout:expr, $count:expr, $exactly:literal, $channels:expr) => {
        $crate::__private::recv_many($cx, $site, $channels, $timeout, $count, $exactly).await
    };
    (@unread $($report:tt)*) => {
        $($report)*
    };
    ($($outside:tt)*) => {
        $crate::__private::outside!("recv")
    };
}

/// Sends a message to a run: `send!(name, run, CHANNEL, value).await?`.
///
/// `run` is a [`RunId`](crate::RunId), a string or a handle. The message is in that run's inbox in the transaction that records it
/// here: it is sent once. For an id that no run has yet it is kept. Fails when the value cannot be encoded.
#[macro_export]
macro_rules! send {
    (@site $cx:ident $site:expr; $to:expr, $channel:expr, $value:expr) => {
        $crate::__private::send($cx, $site, $to, $channel, $value).await
    };
    (@unread $($report:tt)*) => {
        $($report)*
    };
    ($($outside:tt)*) => {
        $crate::__private::outside!("send")
    };
}

/// A block at whose edge failures stop: `attempt!(name, { .. }).await`.
///
/// Gives the block's value, or the [`Failure`](crate::Failure) that a `?` in it met. It catches nothing else: an error that is not
/// a failure of something durable does not pass its `?`. The block runs again on replay, over its records, so it may change locals.
#[macro_export]
macro_rules! attempt {
    (@site $cx:ident $site:expr; $inner:ident, $block:expr) => {
        match $crate::__private::enter_attempt($cx, $site).await {
            __workflow_attempt => {
                let $inner = __workflow_attempt.scope();
                let __workflow_tried = $block.await;
                __workflow_tried
            }
        }
    };
    (@unread $($report:tt)*) => {
        $($report)*
    };
    ($($outside:tt)*) => {
        $crate::__private::outside!("attempt")
    };
}

/// Asks for the version of the code that this run goes on with: `version!(name, 2).await`.
///
/// A run that has passed here under older code gets 1, any other gets the number given, which is the newest. What it got it keeps.
/// A run on a version that the code no longer knows is parked until code is deployed that does.
#[macro_export]
macro_rules! version {
    (@site $cx:ident $site:expr; $latest:expr) => {
        $crate::__private::version($cx, $site, const { $crate::__private::latest($latest) }).await
    };
    (@unread $($report:tt)*) => {
        $($report)*
    };
    ($($outside:tt)*) => {
        $crate::__private::outside!("version")
    };
}

/// Says that this scope had a site which is gone: `removed!(name, kind = "step");`.
///
/// What is recorded of it, and of everything under it, is passed over and deleted. It may stand anywhere in the scope. When no
/// run needs it any more the line may go; a site of that name must not come back while one does.
///
/// A name that is no word of Rust, as an option may give one, stands in quotes: `removed!("greet-again", kind = "step")`.
///
/// If it had an undo, runs in which it was done still need that when they fail: `removed!(hotel, kind = "step", undo = cancel);`
/// takes what `#[step(undo(..))]` took.
#[macro_export]
macro_rules! removed {
    (@site) => {};
    (@unread $($report:tt)*) => {
        $($report)*
    };
    ($($outside:tt)*) => {
        $crate::__private::outside!("removed")
    };
}

/// Begins the region in which failing means rolling back: `checkpoint!(name);`.
///
/// It holds to the end of its block and in everything nested in it. A step in it may have an `undo`:
/// `#[step(undo(refund))] charge(&order).await?`. When the workflow returns an error, what was done since is undone, newest first.
/// [What that promises, and what not](crate::guide::undo).
#[macro_export]
macro_rules! checkpoint {
    (@site $cx:ident $site:expr;) => {
        $crate::__private::checkpoint($cx, $site)
    };
    (@unread $($report:tt)*) => {
        $($report)*
    };
    ($($outside:tt)*) => {
        $crate::__private::outside!("checkpoint")
    };
}

/// Makes what was done so far final: `settle!(name);`. It is not undone any more, whatever fails later.
#[macro_export]
macro_rules! settle {
    (@site $cx:ident $site:expr;) => {
        $crate::__private::settle($cx, $site)
    };
    (@unread $($report:tt)*) => {
        $($report)*
    };
    ($($outside:tt)*) => {
        $crate::__private::outside!("settle")
    };
}

/// Undoes what was done since a checkpoint, newest first, and goes on: `rollback!(name, to = begun).await;`.
///
/// `to` is the name of a [`checkpoint!`] that stands before it, in this block or in one around it. For sagas that try another way:
/// try A, undo A, try B. An undo that keeps failing parks the run, as at the end.
#[macro_export]
macro_rules! rollback {
    (@site $cx:ident $site:expr; $of:ident, $checkpoint:literal) => {
        $crate::__private::rollback($cx, $site, $of, $checkpoint).await
    };
    (@unread $($report:tt)*) => {
        $($report)*
    };
    ($($outside:tt)*) => {
        $crate::__private::outside!("rollback")
    };
}

/// Publishes how far the run has come: `progress!(value)`. Whoever asks with [`RunHandle::progress`](crate::RunHandle::progress) gets
/// the newest value.
///
/// The value is anything serde can write as JSON. It is no part of the history: nothing is recorded, no commit is forced, and a replay
/// publishes nothing. It is seen at once in this process, and is stored with the next commit. It is stored as plain JSON,
/// whatever the engine's codec: put no secret into it. A value that cannot be written is passed over, with a warning in the log.
#[macro_export]
macro_rules! progress {
    (@site $cx:ident; $value:expr) => {
        $crate::__private::progress($cx, &$value)
    };
    (@unread $($report:tt)*) => {
        $($report)*
    };
    ($($outside:tt)*) => {
        $crate::__private::outside!("progress")
    };
}
