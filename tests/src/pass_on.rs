//! What a store does as the one below it, for those that do one thing otherwise.

/// In an `impl Store`: these methods do what the store in this field does.
///
/// Each is named, so that one that is new to the trait is thought of wherever a store stands over another. A store that is
/// slow to `load` leaves `first` out: its default loads.
#[macro_export]
macro_rules! pass_on {
    ($below:tt:) => {};
    ($below:tt: $method:ident $($more:ident)*) => {
        $crate::pass_on!(@ $below $method);
        $crate::pass_on!($below: $($more)*);
    };
    (@ $below:tt identity) => {
        fn identity(&self) -> workflow::store::Identity {
            self.$below.identity()
        }
    };
    (@ $below:tt allocate) => {
        fn allocate(&self) -> workflow::replay::RunKey {
            self.$below.allocate()
        }
    };
    (@ $below:tt append) => {
        $crate::pass_on!(@ $below append(append: workflow::store::Append) -> workflow::store::Appended);
    };
    (@ $below:tt cancel) => {
        $crate::pass_on!(@ $below cancel(
            run: workflow::replay::RunKey,
            at: workflow::Timestamp
        ) -> workflow::store::Appended);
    };
    (@ $below:tt rewrite) => {
        $crate::pass_on!(@ $below rewrite(
            rewrites: Vec<workflow::store::Rewrite>
        ) -> workflow::store::Appended);
    };
    (@ $below:tt delete) => {
        $crate::pass_on!(@ $below delete(
            deletions: Vec<workflow::store::Deletion>
        ) -> Vec<workflow::store::Deleted>);
    };
    (@ $below:tt put) => {
        $crate::pass_on!(@ $below put(
            values: Vec<(String, Option<workflow::Payload>)>
        ) -> ());
    };
    (@ $below:tt row) => {
        $crate::pass_on!(@ $below row(
            run: workflow::replay::RunKey
        ) -> Option<workflow::store::RunRow>);
    };
    (@ $below:tt load) => {
        $crate::pass_on!(@ $below load(
            run: workflow::replay::RunKey
        ) -> Option<workflow::store::Loaded>);
    };
    (@ $below:tt first) => {
        $crate::pass_on!(@ $below first(
            run: workflow::replay::RunKey
        ) -> Option<workflow::Record>);
    };
    (@ $below:tt due) => {
        $crate::pass_on!(@ $below due(
            after: Option<(workflow::Timestamp, workflow::replay::RunKey)>,
            until: workflow::Timestamp,
            limit: usize
        ) -> Vec<(workflow::Timestamp, workflow::replay::RunKey)>);
    };
    (@ $below:tt active) => {
        $crate::pass_on!(@ $below active(
            after: Option<workflow::replay::RunKey>,
            limit: usize
        ) -> Vec<workflow::replay::RunKey>);
    };
    (@ $below:tt inbox) => {
        $crate::pass_on!(@ $below inbox(
            run: workflow::replay::RunKey,
            after: u64,
            limit: usize
        ) -> Vec<workflow::replay::Message>);
    };
    (@ $below:tt dead_letters) => {
        $crate::pass_on!(@ $below dead_letters(
            run: workflow::replay::RunKey,
            after: u64,
            limit: usize
        ) -> Vec<workflow::store::DeadLetter>);
    };
    (@ $below:tt answer) => {
        $crate::pass_on!(@ $below answer(request: u128) -> Option<workflow::store::Answer>);
    };
    (@ $below:tt value) => {
        fn value<'a>(
            &'a self,
            key: &'a str,
        ) -> workflow::store::BoxFuture<
            'a,
            Result<Option<workflow::Payload>, workflow::store::StoreError>,
        > {
            self.$below.value(key)
        }
    };
    (@ $below:tt values) => {
        fn values<'a>(
            &'a self,
            prefix: &'a str,
            after: Option<&'a str>,
            limit: usize,
        ) -> workflow::store::BoxFuture<
            'a,
            Result<Vec<(String, workflow::Payload)>, workflow::store::StoreError>,
        > {
            self.$below.values(prefix, after, limit)
        }
    };
    (@ $below:tt close) => {
        $crate::pass_on!(@ $below close() -> ());
    };
    (@ $below:tt find) => {
        fn find<'a>(
            &'a self,
            id: &'a workflow::RunId,
        ) -> workflow::store::BoxFuture<
            'a,
            Result<Option<workflow::store::RunRow>, workflow::store::StoreError>,
        > {
            self.$below.find(id)
        }
    };
    (@ $below:tt list) => {
        fn list<'a>(
            &'a self,
            filter: &'a workflow::store::RunFilter,
        ) -> workflow::store::BoxFuture<
            'a,
            Result<workflow::store::Page, workflow::store::StoreError>,
        > {
            self.$below.list(filter)
        }
    };
    (@ $below:tt deliver) => {
        fn deliver<'a>(
            &'a self,
            to: &'a workflow::RunId,
            message: workflow::replay::NewMessage,
            at: workflow::Timestamp,
            keep_until: workflow::Timestamp,
        ) -> workflow::store::BoxFuture<
            'a,
            Result<workflow::store::Delivery, workflow::store::StoreError>,
        > {
            self.$below.deliver(to, message, at, keep_until)
        }
    };
    (@ $below:tt $method:ident($($arg:ident: $type:ty),*) -> $answer:ty) => {
        fn $method(
            &self,
            $($arg: $type),*
        ) -> workflow::store::BoxFuture<'_, Result<$answer, workflow::store::StoreError>> {
            self.$below.$method($($arg),*)
        }
    };
}
