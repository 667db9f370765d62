//! The laws of storage, as tests for any [`Store`].
//!
//! Write a [`Harness`] and name it: `workflow::conformance!(MyHarness)` makes a `#[test]` of every law. They use threads
//! and need no runtime.

#![expect(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    reason = "a law that does not hold panics"
)]

mod appends;
mod crashes;
mod crowds;
mod deletes;
mod messages;
mod posts;
mod reads;
mod rewrites;
mod scene;

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use super::{Store, StoreError};
use crate::replay::{RunKey, Timestamp};

pub use appends::*;
pub use crashes::*;
pub use crowds::*;
pub use deletes::*;
pub use messages::*;
pub use posts::*;
pub use reads::*;
pub use rewrites::*;

/// How the laws get at stores of a kind.
pub trait Harness: Send + Sized + 'static {
    /// The kind.
    type Store: Store;

    /// A place of its own for one store, and that store, new.
    fn fresh() -> (Self, Arc<Self::Store>);

    /// The same store after it was closed: `closed` was, and may be kept or dropped.
    fn reopen(&mut self, closed: Arc<Self::Store>) -> Arc<Self::Store>;

    /// The same store after its process was killed, or the power cut, at this instant. `crashed` may go on being used: as a
    /// stale owner would, without being seen by the new one.
    fn crash(&mut self, crashed: &Arc<Self::Store>) -> Arc<Self::Store>;

    /// Gives the store time to do what it does when idle, if it does anything.
    fn rest(&mut self, store: &Arc<Self::Store>) {
        let _ = store;
    }
}

/// The runs that are due, in order.
fn due(store: &Arc<impl Store>, until: Timestamp, limit: usize) -> Result<Vec<RunKey>, StoreError> {
    let due = block_on(store.due(None, until, limit))?;
    Ok(due.into_iter().map(|(_, run)| run).collect())
}

/// The earliest wake time of all runs.
fn next_due(store: &Arc<impl Store>) -> Result<Option<Timestamp>, StoreError> {
    let due = block_on(store.due(None, Timestamp::MAX, 1))?;
    Ok(due.first().map(|(at, _)| *at))
}

/// Runs a future on this thread.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(done) => return done,
            Poll::Pending => thread::park(),
        }
    }
}

/// Makes a test of every law of storage, for the store of a [`Harness`](crate::store::conformance::Harness).
#[macro_export]
macro_rules! conformance {
    ($harness:ty) => {
        $crate::conformance! { @laws $harness;
            an_append_is_seen_by_every_read
            the_first_record_is_that_of_the_history
            the_last_write_of_a_row_wins
            what_does_not_exist_is_not_found
            an_id_is_given_to_one_run
            a_stale_owner_cannot_append
            a_final_run_takes_nothing_more
            a_repeated_append_is_not_written_twice
            an_append_that_does_not_follow_is_a_conflict
            what_is_refused_leaves_no_trace
            a_final_state_clears_wake_time_and_waits
            cancel_wins_against_a_later_completion
            cancel_loses_against_an_earlier_completion
            of_cancel_and_completion_at_once_one_wins
            a_delete_takes_a_scope_and_what_is_under_it
            a_delete_leaves_what_its_own_batch_writes
            hostile_keys_delete_only_themselves
            records_are_listed_in_the_order_of_their_numbers
            wake_times_are_set_moved_and_cleared
            a_run_that_is_to_begin_later_waits_for_its_time
            due_gives_the_past_ones_only
            active_is_exactly_the_active_rows
            a_listing_pages_through_what_fits
            a_listing_takes_what_fits_in_either_order
            a_census_tells_that_something_was_committed
            indexes_are_exact_under_random_operations
            a_completed_run_reads_the_same_after_reopening
            numbers_are_never_given_twice
            a_closed_store_refuses_everything
            a_crash_keeps_every_acknowledged_append
            a_crash_after_every_append_of_random_ones_loses_nothing
            a_crash_loses_no_wake_time
            a_crash_at_a_prune_leaves_no_orphans
            a_thousand_appends_at_once_are_all_kept
            appends_of_one_run_keep_their_order
            a_dropped_append_strands_nobody
            an_abandoned_append_strands_nobody
            a_reader_sees_only_whole_batches
            an_inbox_is_in_the_order_of_arrival
            a_delivery_does_not_disturb_the_owner
            a_second_message_with_the_same_key_is_not_delivered
            a_message_makes_a_run_that_waits_for_it_due
            a_run_that_begins_to_wait_for_what_is_there_is_due
            a_message_is_taken_once
            what_is_given_back_has_its_old_place
            what_cannot_be_read_is_a_dead_letter
            a_final_run_takes_no_messages
            a_message_that_comes_before_its_run_is_kept
            a_message_long_kept_is_there_when_its_run_begins
            a_message_for_nobody_lapses
            inboxes_are_exact_under_random_operations
            posts_are_written_with_their_batch
            a_refused_batch_posts_nothing
            a_repeated_batch_posts_once
            what_cannot_be_delivered_is_the_senders_dead_letter
            a_run_that_exists_is_not_started_again
            the_first_answer_to_a_request_stays
            values_are_written_with_their_batch_and_the_last_one_stays
            of_a_value_the_last_word_stays_whoever_had_it
            values_are_listed_by_prefix_in_the_order_of_their_keys
            a_parent_is_told_of_the_end_of_its_child
            who_does_not_wait_for_a_child_is_not_told
            many_senders_at_once_are_all_heard
            a_rewrite_takes_single_records_out_of_a_run_that_has_ended
            a_run_goes_on_after_a_rewrite
            the_owner_of_a_rewritten_run_is_refused
            rewrites_are_written_together_or_not_at_all
            a_rewrite_gives_messages_back_and_posts
            an_owner_that_lets_go_says_so_until_the_next_batch
            of_a_deleted_run_nothing_is_left
            an_id_that_was_deleted_may_be_given_again
            only_what_has_ended_is_deleted
            a_child_stays_as_long_as_its_parent
            deletions_are_exact_under_random_operations
        }
    };
    (@laws $harness:ty; $($law:ident)+) => {
        $(
            #[test]
            fn $law() {
                $crate::store::conformance::$law::<$harness>();
            }
        )+
    };
}
