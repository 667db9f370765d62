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
