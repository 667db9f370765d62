//! The table of everything the macros refuse: what is wrong, and what to do instead.
//!
//! `{0}`, `{1}`, .. stand for the user's own words.

/// One thing that can be wrong.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Message {
    /// What is wrong, with the reason where it is not plain.
    what: &'static str,
    /// What to write instead.
    help: &'static str,
}

/// A message with the user's words put in.
#[derive(Debug)]
pub(crate) struct Text(String);

impl Message {
    /// Whether it is that one.
    pub(crate) fn is(self, other: Self) -> bool {
        self.what == other.what
    }

    /// What is wrong, without the user's words at its beginning.
    #[cfg(test)]
    pub(crate) fn plainly(self) -> &'static str {
        self.what.trim_start_matches("`{0}` ")
    }

    /// With `words` for `{0}`, `{1}` and so on.
    pub(crate) fn with(self, words: &[&str]) -> Text {
        let message = format!("{}\nhelp: {}", self.what, self.help);
        let mut text = String::new();
        let mut rest = message.as_str();
        // The words are put in once: what looks like a place for one in a word of the user's is not.
        while let Some(at) = rest.find('{') {
            text += &rest[..at];
            rest = &rest[at..];
            let place = rest.strip_prefix('{').and_then(|rest| rest.split_once('}'));
            let place = place.and_then(|(index, after)| Some((index.parse().ok()?, after)));
            let Some((index, after)): Option<(usize, _)> = place else {
                text.push('{');
                rest = &rest[1..];
                continue;
            };
            let word = words.get(index);
            debug_assert!(word.is_some(), "a word is missing in: {message}");
            text += word.copied().unwrap_or_default();
            rest = after;
        }
        Text(text + rest)
    }
}

impl Text {
    /// With another way out.
    pub(crate) fn or(mut self, help: &str) -> Self {
        self.0 += "\nhelp: ";
        self.0 += help;
        self
    }

    pub(crate) fn into_string(self) -> String {
        self.0
    }
}

impl From<Message> for Text {
    fn from(message: Message) -> Self {
        message.with(&[])
    }
}

macro_rules! messages {
    ($($(#[$doc:meta])* $name:ident: $what:literal, $help:literal;)*) => {
        $($(#[$doc])* pub(crate) const $name: Message = Message { what: $what, help: $help };)*

        #[cfg(test)]
        const ALL: &[(&str, Message)] = &[$((stringify!($name), $name)),*];
    };
}

messages! {
    // ---- the item ------------------------------------------------------------------------------------------------
    NOT_A_FUNCTION: "`#[{0}]` goes on an `async fn`, and this is none",
        "put it on the function itself, or remove it";
    NOT_ASYNC: "a `#[{0}]` function must be `async`: it waits for what it does",
        "write `async fn {1}`";
    QUALIFIED: "a `#[{0}]` function cannot be `{1}`: what calls it is the library, and that is ordinary Rust",
        "remove `{1}`";
    NO_BODY: "a `#[{0}]` function needs a body",
        "write one; only a `#[step]` may be declared in a trait without";
    PANICKED: "the macro itself failed: {0}", "this is a bug in `workflow`: please report it with the function it stands on";
    UNREADABLE_SIGNATURE: "the function cannot be read: {0}", "correct it; nothing was checked in it";
    UNREADABLE_BODY: "the body cannot be read: {0}", "correct it; nothing else was checked in this function";

    WORKFLOW_GENERIC: "a workflow has no generic parameters: its recorded input must have one type",
        "name the types, or move the generic part into a `#[fragment]` or a `#[step]`";
    WORKFLOW_SELF: "a workflow is a function of its own, not a method: `self` cannot be recorded",
        "take what `self` holds as a parameter, or as a `#[state]` parameter if it is not part of the input";
    WORKFLOW_PATTERN: "a parameter of a workflow is a plain name: its input is stored under that name",
        "name it, and take it apart in the body: `let {0} = input;`";
    WORKFLOW_BORROWS: "a workflow cannot borrow its parameters: it outlives its caller",
        "take it by value: `{0}: {1}`";
    STATE_TAKES_NOTHING: "`#[state]` takes nothing: the engine finds it by its type", "write `#[state] {0}: ..`";

    STEP_MUT_PARAMETER: "a step cannot change its arguments: on replay the step is not run, and the change would be lost",
        "return what it changes: take `{0}` by `&` or by value, and give the new value back";
    STEP_MUT_SELF: "a step cannot take `&mut self`: on replay the step is not run, and the change would be lost",
        "take `&self`, and return what it changes";
    STEP_SELF_BY_VALUE: "a {0} cannot take `self` by value: it may be run more than once",
        "take `&self`";
    STEP_PATTERN: "a parameter of a step is a plain name: it is cloned for each attempt",
        "name it, and take it apart in the body: `let {0} = argument;`";
    STEP_BORROWED_RETURN: "a step cannot return what it borrows: its result is recorded, and comes back from the record",
        "return an owned value, such as `String` for `&str`";
    STEP_BLOCKING_BORROWS: "a `blocking` step owns its arguments: it runs on another thread",
        "take it by value, or leave `blocking` off";
    STEP_BLOCKING_AWAITS: "a `blocking` step has nothing to await: it holds a thread of the blocking pool until it returns",
        "leave `blocking` off, or use the blocking call";

    // ---- options -------------------------------------------------------------------------------------------------
    OPTION_UNKNOWN: "`{0}` is not an option of `{1}`", "{2}";
    OPTION_REPEATED: "`{0}` is given twice, and only one of them could hold",
        "keep one of them";
    OPTION_IS_A_FLAG: "`{0}` takes no value",
        "write `{0}` alone";
    OPTION_IS_NO_FLAG: "`{0}` needs a value", "write `{1}`";
    OPTION_VALUE: "this is not a value of `{0}`", "write `{1}`";
    OPTION_SYNTAX: "options are words, separated by commas", "write `#[{0}(retries = 5, timeout = \"10s\", ephemeral)]`";
    OPTIONS_CONTRADICT: "`{0}` and `{1}` contradict each other: {2}",
        "remove one of them";
    NAME_ON_DEFINITION: "a step is named where it stands in the workflow, not where it is defined",
        "rename the function, or write `#[step(name = \"{0}\")]` at the call";
    BLOCKING_IN_PLACE: "a step in place borrows, so it cannot run on another thread",
        "move it into a `#[step(blocking)]` function";
    INFALLIBLE_IN_PLACE: "in place, whether a step can fail is told by its type", "remove `infallible`";
    BACKOFF_SHAPE: "a backoff is `fixed` or `exponential`",
        "write `backoff(exponential, initial = \"200ms\", factor = 2, max = \"30s\")` or `backoff(fixed, wait = \"1s\")`";
    BACKOFF_FACTOR: "the factor of a backoff is 1 or more", "use `backoff(fixed, wait = \"1s\")` for the same wait every time";
    BACKOFF_JITTER: "the jitter of a backoff is a share of the wait, 0 or more", "write `jitter = 0.5` for up to half of it";
    RETRY_IF_CLOSURE: "`retry_if` takes a closure over the error, with its type written out",
        "write `retry_if(|error: &MyError| ..)`";
    DURATION: "`{0}` is not a duration", "write a number and a unit (`ms`, `s`, `m`, `h`, `d`), such as \"200ms\", \"15m\" or \"1h30m\"";
    DURATION_TOO_LONG: "`{0}` is longer than can be measured in milliseconds",
        "use a shorter one: \"36500d\" is a hundred years";
    DURATION_UNIT: "`{0}` has no unit",
        "write \"{0}s\", or \"{0}ms\", or a `Duration`";
    CRATE_PATH: "`crate` is the path by which `workflow` is reached, and this is no path",
        "write `crate = my_crate::workflow`, without quotes";
    NONDETERMINISTIC_REASON: "`#[nondeterministic]` needs the reason why the value cannot differ on replay, or why that does no harm",
        "write `#[nondeterministic(reason = \"it is only logged\")]`, in your own words";

    // ---- names ---------------------------------------------------------------------------------------------------
    NAME_SHAPE: "`{0}` is not a name: a letter or `_`, then letters, digits, `_` and `-`",
        "choose another, such as `{1}`";
    NAME_UNREADABLE: "this has no name: it is read from the called function, and here none is called",
        "give it one: `#[step(name = \"{0}\")]` on the statement or the expression";
    NAME_TWICE: "the name `{0}` is used twice in one scope, so their records could not be told apart{1}",
        "{2}";
    MACRO_NAME: "`{0}!` begins with its name, a plain word under which it is recorded, and this is none",
        "write `{0}!({1})`";
    BRANCH_TWICE: "two branches of `{0}` are named `{1}`, so their records could not be told apart{2}",
        "give each branch its own name, such as `{1}` and `{1}_again`";
    NO_LABEL: "a `{0}` that does something durable needs a label, which is its name",
        "write `'{1}: {0} ..`";

    // ---- macros --------------------------------------------------------------------------------------------------
    MACRO_INPUT: "`{0}!` cannot read this: {1}", "write `{0}!({2})`";
    MACRO_SHAPE: "`{0}!` does not take this",
        "write `{0}!({1})`";
    MACRO_LACKS: "something is missing in `{0}!`",
        "write `{0}!({1})`";
    UNDO_ON_DEFINITION: "an `undo` stands where the step is called, not where it is defined: only there the workflow knows of it",
        "write `#[step(undo(refund))]` on the call";
    UNDO_SHAPE: "an `undo` is the path of a function, or a closure that captures nothing",
        "write `undo(refund)` or `undo(|hold: Hold, pay: Pay| async move { .. })`";
    UNDO_WITHOUT_CHECKPOINT: "no checkpoint stands before this undo, so nothing would ever call it",
        "write `checkpoint!(begun);` before it, in this block or in one around it";
    UNDO_CAPTURES: "`{0}` is a local of the workflow, and an undo captures nothing: it is called when the workflow's code is over",
        "what it needs it takes as arguments: first what the step gives, then states by value";
    UNDO_IN_FRAGMENT: "an undo stands in a workflow, not in a fragment: the table of undos is the workflow's",
        "put the step into the workflow, or make the fragment a `#[workflow]` of its own; in a guided flow, put it into the code of a stage";
    NO_SUCH_CHECKPOINT: "no checkpoint `{0}` stands before this, in this block or in one around it",
        "write `checkpoint!({0});` before what is to be undone";
    NO_CHANNEL: "there is no channel to receive from", "name at least one: `recv!(paid, [CASH, CARD])`";
    OK_IN_ATTEMPT: "an `attempt!` gives its block's value, and puts `Ok` around it itself", "end the block with the value alone; to fail, use `?`";
    RETURN_IN_ATTEMPT: "`return` cannot leave an `attempt!`: it is a future of its own", "end the block with a value, and return after it";
    BREAK_IN_ATTEMPT: "`{0}` cannot leave an `attempt!`: it is a future of its own", "give a value that says so, and `{0}` after the block";
    VERSION_NUMBER: "a version is a number", "write `{0}`";
    RECV_NUMBER: "how many messages is a number", "write `{0} = {1}`";
    VERSION_FROM_1: "versions are counted from 1, which is the code before the gate", "write 2 for the first change";
    VERSION_CONST: "the newest version is a constant, and `{0}` is a local: the code knows how new it is when it is compiled",
        "write a number, and add 1 to it with each change";
    REMOVED_KIND: "`{0}` is no kind of site",
        "write what stood here, one of {1}";
    CARRY_NOT_ON_LOOP: "`#[carry]` belongs on a labelled loop that does something durable",
        "put it on one, or remove it";
    CARRY_LIST: "`#[carry]` lists the locals that the loop's next iteration starts from",
        "write `#[carry(cursor, total)]`, with `every = 20` and `keep = 20` if need be";
    CARRY_AND_KEY: "a carried loop counts its iterations, so it has no keys", "remove `#[key]` or `#[carry]`";
    NO_BRANCHES: "`{0}!` has nothing to run",
        "write `{0}!({1})`";
    TOO_MANY_BRANCHES: "`join!` has at most 12 branches", "nest two of them, or use `join_all!`";
    NOT_AWAITED: "`{0}!` is not awaited, so it would do nothing", "write `{0}!(..).await`";
    NOT_A_FUTURE: "`{0}!` is not awaited: {1}", "remove `.await`";
    STEP_ON_MACRO: "`{0}!` is recorded by itself, and cannot be made a step", "remove `#[step]`; its name is its first word";
    JOIN_ALL_LIMIT: "a limit of 0 lets nothing run", "use 1 or more, or leave `limit` off";

    // ---- schedules -----------------------------------------------------------------------------------------------
    CRON_NO_TEXT: "`cron!` takes one cron expression, a text in quotes",
        "write it there, so that it can be read now: `cron!(\"30 2 * * *\")`";
    CRON_FIELDS: "`{0}` is no cron expression: it has five fields, or six with the seconds first, and here are {1}",
        "write minute, hour, day of the month, month, day of the week: `30 2 * * MON-FRI`";
    CRON_ALIAS: "`{0}` is no cron expression here: it says when by its fields", "write `{1}`";
    CRON_VALUE: "`{0}` is no value of the {1} field", "it takes {2}; `*` for all, `a-b`, `a,b` and `*/n` for several";
    CRON_EMPTY: "a value is missing in the {0} field", "write one between two commas, or leave one of the two commas out";
    CRON_QUESTION: "`?` is no value of the {0} field", "write `*`: it says nothing of which day, too";
    CRON_BACKWARDS: "`{0}` in the {1} field runs backwards", "write it as two ranges: `{2}-{3},{4}-{5}`";
    CRON_STEP: "`/{0}` in the {1} field is no step", "write a whole number from 1 to {2}: `*/2` is every second one";
    CRON_NEVER: "`{0}` never fires: none of its months has such a day",
        "correct the day or the month; the last day of any month is `L`: `0 0 L * *`";

    // ---- places --------------------------------------------------------------------------------------------------
    IN_CLOSURE: "nothing durable can be done in a closure: how often it runs, and when, is not up to the workflow",
        "use a labelled loop, or `join_all!` to run them at the same time";
    IN_ASYNC_BLOCK: "nothing durable can be done in an `async` block: it is polled by others than the workflow",
        "use `join!` or `race!` to do things at the same time, a `#[fragment]` to name them, or put `#[step]` on the statement";
    IN_NESTED_FUNCTION: "nothing durable can be done in a nested function: it is a function of its own, and knows nothing of the run",
        "put `#[fragment]` on it, or do it in the body of the workflow";
    IN_STEP: "nothing durable can be done inside a step: the step is recorded as one",
        "move it out of the step, before or after it";
    IN_FOREIGN_MACRO: "nothing durable can be done inside `{0}!`: what it does with its tokens is not known here",
        "do it in a `let` before, and use the value here";
    RETURN_IN_BRANCH: "`return` cannot leave {0}: it is a future of its own",
        "give the value at the end of {0}, and `return` after it";
    BREAK_IN_BRANCH: "`{1}` cannot leave {0}: it is a future of its own",
        "give a value at the end of {0}, and `{1}` after it";
    CHANGE_IN_STEP: "a step cannot change `{1}`: on replay the step is not run, and the change would be lost",
        "give the new value at the end of {0}, and change `{1}` after it";
    CHANGE_IN_BRANCH: "{0} cannot change `{1}`: it runs beside others, and shares with them what is outside of it",
        "give the new value at the end of {0}, and change `{1}` after it";
    CHANGE_IN_CARRY: "a carried loop cannot change `{0}` without carrying it: a replay that starts at a later iteration would not see the change",
        "write `#[carry({1})]`, or bind `{0}` inside of the loop";
    STEP_QUESTION_INSIDE: "only a trailing `?` may stand in a step that is a single expression: it belongs to the workflow",
        "make it a block: `#[step(name = \"{0}\")] let value = { .. Ok(..) }?;`";
    STEP_BLOCK_NO_RESULT: "a step with a `?` in it ends in a `Result`", "end the block with `Ok(())`";
    STEP_ON_NOTHING: "there is nothing here to make a step of", "put `#[step]` on a `let` with a value, a statement or an expression";
    KEY_NOT_ON_LOOP: "`#[key]` belongs on a labelled `for` loop that does something durable",
        "write `#[key(item.id)] 'items: for item in items { .. }`, or remove it";
    KEY_VALUE: "`#[key]` takes one expression", "write `#[key(item.id)]`";

    // ---- what differs on replay ----------------------------------------------------------------------------------
    CLOCK: "`{0}` is another time on replay",
        "use `now!(name).await`, or read it in a step; if it does no harm, put `#[nondeterministic(reason = \"..\")]` on the statement";
    RANDOM: "`{0}` is another value on replay",
        "use `random!(name)` or `uuid!(name)`, seed a generator with `random!(seed)`, or make it a step; if it does no harm, put `#[nondeterministic(reason = \"..\")]` on the statement";
    ENVIRONMENT: "`{0}` may be another value on replay",
        "read it in a step, or take it as an argument or as `#[state]`; if it does no harm, put `#[nondeterministic(reason = \"..\")]` on the statement";
    FILES: "`{0}` may find something else on replay",
        "make it a step: `#[step(name = \"..\")]` on the statement; if it does no harm, put `#[nondeterministic(reason = \"..\")]` on the statement";
    NETWORK: "`{0}` may be answered otherwise on replay, and is asked again on each",
        "make it a step: `#[step(name = \"..\")]` on the statement; if it does no harm, put `#[nondeterministic(reason = \"..\")]` on the statement";
    THREADS: "`{0}` runs outside the workflow, and again on every replay",
        "use `join!` or `join_all!` to do things at the same time, or make it a step; if it does no harm, put `#[nondeterministic(reason = \"..\")]` on the statement";
    FOREIGN_CONCURRENCY: "`{0}!` awaits what is not recorded, in an order that differs on replay",
        "use `workflow`'s `join!` or `race!`";
    HASH_ORDER: "a `{0}` has another order on every replay",
        "use a `BTreeMap`, a `BTreeSet` or a `Vec`; if its order is never seen, put `#[nondeterministic(reason = \"..\")]` on the statement";
    HASH_PARAMETER: "`{0}` is a `{1}`, which has another order on every replay",
        "take it as a `{2}`, which reads the same input, or collect it into one first; if its order does no harm, put `#[nondeterministic(reason = \"..\")]` on the statement";
    INTERIOR: "`{0}` can be changed where a replay would not change it",
        "use a local variable, or give the value back from the branch or step; if it does no harm, put `#[nondeterministic(reason = \"..\")]` on the statement";
    SHARED: "`{0}` is shared by all runs, and a replay would find something else in it",
        "keep it in a local variable, or use it in a step; if it does no harm, put `#[nondeterministic(reason = \"..\")]` on the statement";
    STATE_READ: "`{0}` is state of the engine: read here, it is an input that is not recorded",
        "use it in the call of a step: what the step returns is recorded";

    // ---- guided flows --------------------------------------------------------------------------------------------
    GUIDED_NOT_AN_IMPL: "`#[guided]` describes a flow on an `impl` of the data that it collects, and this is none",
        "write `#[guided(id = \"project\")] impl Project { .. }`";
    GUIDED_UNREADABLE: "this `impl` cannot be read: {0}", "correct it; nothing else was checked in this flow";
    GUIDED_ONE_TYPE: "a flow stands on an `impl` of one type, without a trait and without generic parameters: what is recorded of it has one type",
        "write `impl {0} { .. }`, and name the types";
    GUIDED_NO_ID: "a flow has an `id`, under which its guides are stored", "write `#[guided(id = \"{0}\")]`";
    GUIDED_VERSION: "versions are counted from 1", "write 2 when the data of guides under way has to be changed for the first time";
    GUIDED_MIGRATION_GAP: "migrations lead from one version to the next, up to {0}, and these do not", "write {1}";
    GUIDED_SYNTAX: "these are no options of `#[{0}]`", "write them like `{1}`";
    GUIDED_TWO_ROLES: "a function is one thing in its flow, and this is `#[{0}]` and `#[{1}]`", "make two functions of it";

    STAGE_QUESTION: "a stage whose function is not `async` only asks: its function takes nothing and does nothing",
        "write `fn {0}() {}`; or, if the stage does something, `async fn {0}(stage: Stage<Self>) -> Result<(), Failure>`";
    STAGE_BODY: "the code of a stage takes what the stage is given, and says whether it went well",
        "write `async fn {0}(stage: Stage<Self>) -> Result<(), Failure>`";
    ROLLBACK_IN_FLOW: "`{0}!` does not stand in the code of a guided flow: a guide is rolled back as a whole, by whoever drives it",
        "leave it to `guide.rollback()`; what is to be taken back by itself is a `#[workflow]` that the stage calls";
    STAGE_CFG: "a stage cannot be there under a condition: guides of the other program would not find it",
        "leave `#[cfg]` off; whether a guide comes by it is said by `#[stage(when = ..)]`";
    LEAVE_SHAPE: "what is done when a stage is left takes what the stage is given, and says whether it went well",
        "write `async fn {0}(stage: Stage<Self>) -> Result<(), Failure>`";
    CHECK_SHAPE: "a check looks at the data, and adds what is wrong with it", "write `fn {0}(&self, problems: &mut Problems)`";
    CHECK_CODE_SHAPE: "a check that is code of its own takes what the stage is given, and gives what is wrong",
        "write `async fn {0}(stage: Stage<Self>) -> Result<Problems, Failure>`, with any error; one that only looks at the data is not `async`";
    GUARD_SHAPE: "a guard that is code of its own takes what the stage is given, and says whether the exit is open",
        "write `async fn {0}(stage: Stage<Self>) -> Result<bool, Failure>`, with any error; one that only looks at the data needs no `#[guard]`";
    GUARD_UNUSED: "no exit asks the guard `{0}`", "write `to = [other if Self::{0}, ..]` at a stage, or remove it";
    GUARD_WHEN: "`when` looks at the data alone, and `{0}` is code of its own: for a stage that is passed over it has no place to run",
        "put it on the exits that lead to this stage: `to = [{1} if Self::{0}, ..]`";
    STAGE_ASKED: "stage `{0}` may be passed over, and an exit of it asks `{1}`, which is code of its own and has no place to run then",
        "give the exit a condition of the data alone, or put `when` on the exits that lead to the stage";
    UNDO_HOOK_SHAPE: "what takes a stage back takes the visit that is undone, and says whether it went well",
        "write `async fn {0}(undone: Undone<Self>) -> Result<(), Failure>`, with any error";
    EXIT_GUARD_SHAPE: "an exit guard looks at the data, and says whether the guide may be cancelled",
        "write `fn {0}(&self) -> bool`, or `async fn {0}(self) -> bool` if it takes its time";
    EXIT_GUARD_TWICE: "a flow has one exit guard, and this is the second", "ask both in one function";
    HOOK_STAGE: "`#[{0}]` says to which stage it belongs", "write `#[{0}({1})]`";
    HOOK_UNKNOWN: "`#[{0}]` belongs to `{1}`, which is no stage of this flow", "{2}";
    HOOK_TWICE: "stage `{1}` has an `#[{0}]` function already", "do both in one function";

    STAGE_NAME: "`{0}` cannot name a stage: letters, digits, `_` and `-`, at least one", "choose another, such as `{1}`";
    STAGE_NAME_TWICE: "two stages are stored as `{0}`, so their records could not be told apart: the other one is `{1}`",
        "give this one a name of its own: `#[stage(name = \"..\")]`";
    STAGE_UNKNOWN: "stage `{0}` leads to `{1}`, which is no stage of this flow", "{2}";
    STAGE_DEAD_EXIT: "stage `{0}` never leads to `{1}`: the exit to `{2}` before it is always open",
        "put it before that one, with a condition: `{1} if Self::some_condition`";
    STAGE_STUCK: "the flow could get stuck at stage `{0}`: every exit has a condition, and all may be closed",
        "end with an exit that is always open; or write `otherwise = stay`, and `next` is refused there while none is open";
    STAGE_UNREACHABLE: "stage `{0}` cannot be reached from the start `{1}`", "write it in the `to = [..]` of the stage that leads to it";
    STAGE_DEAD_END: "no way leads from stage `{0}` to the end of the flow",
        "write in its `to = [..]` where to go on, or mark it as `terminal`";
    STAGE_END_WITH_EXITS: "stage `{0}` is `terminal`, so the flow ends there, and this leads on", "remove `to`, or `terminal`";
    STAGE_END_SKIPPED: "stage `{0}` is `terminal`, and could be skipped: the flow would end by not looking at its end",
        "remove `skippable`, or put it on the stage before";
    STAGE_CIRCLE: "the stages {0} lead in a circle, and each may be passed over: a guide could go round without end",
        "remove `when` from one of them, or put the condition on the exits that lead there";
    FLOW_NO_START: "no stage of this flow is marked as its start", "write `#[stage(start, ..)]` on the first one, such as `{0}`";
    FLOW_STARTS_TWICE: "stage `{0}` is marked as the start, and so is `{1}`", "keep `start` on one of them";
    FLOW_NO_END: "no stage of this flow is `terminal`: a guide would never end", "write `#[stage(terminal)]` on the last one, such as `{0}`";

    // ---- the lock ------------------------------------------------------------------------------------------------
    LOCK_UNREADABLE: "`workflow.lock` cannot be read at line {0}: {1}",
        "correct it, or write it anew from this code: `WORKFLOW_LOCK=write cargo test`";
    LOCK_GONE: "`{0}` is locked and gone: live runs that have it recorded would diverge here ({1})",
        "put it back, or say that it is gone: `removed!({2}, kind = \"{3}\");` in the scope where it stood";
    LOCK_RENAMED: "`{0}` stands where `{1}` was locked: live runs do not find what they recorded under another name ({2})",
        "keep the old name: {3}; or declare `removed!({5}, kind = \"{4}\");` and put the new one inside `if version!(..)`";
    LOCK_MOVED: "`{0}` was locked in {1} and stands in {2}: live runs have it recorded there ({3})",
        "move it back; or leave `removed!({5}, kind = \"{4}\");` where it was, and give it another name here, inside `if version!(..)`";
    LOCK_ORDER: "`{0}` was locked {1} `{2}`: live runs may have them recorded so ({3})",
        "put it back; or decide by a `version!`: the old order for runs that got 1, and other names in the new order";
    LOCK_NEW_BEFORE: "`{0}` is new and stands before `{1}`: live runs that are past it would come by something they never did ({2})",
        "let only new runs do it: `if version!({3}, 2).await >= 2 { .. }` around it; or put it after the last locked site";
    LOCK_NEW_AT_END: "`{0}` is new, at the end of {1}: live runs come by there again, and would find something they never did ({2})",
        "let only new runs do it: `if version!({3}, 2).await >= 2 { .. }` around it";
    LOCK_KIND: "`{0}` is a `{1}` and was locked as a `{2}`: what live runs recorded does not fit ({3})",
        "give it a name of its own, and declare `removed!({4}, kind = \"{2}\");` for the old one";
    LOCK_KIND_OF_NONE: "`{0}` is a `{1}`, and a `{2}` of this name is locked ({3})", "give it a name of its own";
    LOCK_REUSED: "`{0}` was declared removed and stands here again: live runs that have the old one recorded would diverge ({1})",
        "give the {2} another name";
    LOCK_DERIVED: "`{0}` stands where `{1}` was locked: it is made from its name and scope, and live runs would get another value ({2})",
        "put it back as `{1}`";
    LOCK_CFG: "`{0}` is left out in this build, and live runs have it recorded ({1})",
        "take the condition off, or say that it is gone where it is not met: `#[cfg(not(..))] removed!({3}, kind = \"{2}\");`";
    LOCK_REMOVED_KIND: "`{0}` was locked as a `{1}` and is declared removed as a `{2}` ({3})",
        "write `removed!({4}, kind = \"{1}\");`";
    LOCK_REMOVED_UNDO: "`{0}` is declared removed without the undo that live runs may have to call ({1})",
        "write `removed!({3}, kind = \"{2}\", undo = ..);` with the function that undid it";
    LOCK_TYPE: "what `{0}` recorded cannot be read any more: {1} ({2})",
        "make the change one that old values fit (an `Option`, `#[serde(default)]`, an alias), or give the step another name inside `if version!(..)`";
    LOCK_INPUT_TYPE: "the recorded input `{0}` cannot be read any more: {1} ({2})",
        "make the change one that old values fit (an `Option`, `#[serde(default)]`, an alias), or make it a workflow of another name";
    LOCK_INPUT_RENAMED: "`{0}` stands where the input `{1}` was locked: live runs have it recorded under that name ({2})",
        "keep the name, `{1}`";
    LOCK_INPUT_NEW: "`{0}` is a new input, which no live run has recorded ({1})",
        "take an `Option<{2}>`, which is `None` for them, or make it a workflow of another name";
    LOCK_UNDO: "the undo of `{0}` is gone, and live runs may have to call it ({1})", "put it back";
    LOCK_KEY: "what `{0}` goes through is known by {1} now, and live runs have it recorded by {2} ({3})",
        "{4}; or give the {5} another name inside `if version!(..)`";
    LOCK_CARRY: "`{0}` carried `{1}` and now carries `{2}`: live runs have the old list recorded ({3})",
        "carry the same locals in the same order; what is new goes into one of them, as an `Option` or with `#[serde(default)]`";
    LOCK_CARRY_TYPE: "what `{1}` carried as `{0}` cannot be read any more: {2} ({3})",
        "make the change one that old values fit (an `Option`, `#[serde(default)]`, an alias), or carry what was carried and convert it in the loop; or give the loop another label inside `if version!(..)`";
    LOCK_CARRY_GONE: "`{0}` carried `{1}` and carries nothing now: live runs have dropped the iterations that it would need ({2})",
        "put `#[carry({1})]` back";
    LOCK_VERSION_LESS: "`{0}` went back to {1}, and live runs may have recorded {2} ({3})",
        "versions only grow: write `version!({0}, {2})` or more";
    LOCK_BRANCH_GONE: "`{0}` has no branch `{1}` any more: live runs have the branches recorded with the {3} ({2})",
        "put it back, or give the {3} another name inside `if version!(..)`";
    LOCK_BRANCH_NEW: "`{0}` has a new branch `{1}`: live runs have the branches recorded with the {3} ({2})",
        "give the {3} another name inside `if version!(..)`";
    LOCK_WORKFLOW_GONE: "the workflow `{0}` is locked and gone: its live runs would wait, unregistered ({1})",
        "put it back, or give it its old name: `#[workflow(name = \"{0}\")]`; if no run of it is left: `WORKFLOW_LOCK=write:{0} cargo test`";
    LOCK_TWICE: "two workflows are named `{0}`: at {1} and at {2}", "give one of them another name: `#[workflow(name = \"..\")]`";
    LOCK_STAGE_GONE: "stage `{0}` is locked and gone: guides that are at it, or went by it, would not find it ({1})",
        "put it back; or raise `version`, and `migrate` the guides that are there";
    LOCK_STAGE_RENAMED: "stage `{0}` stands where `{1}` was locked: guides know it by its old name ({2})",
        "keep the old name: `#[stage(name = \"{1}\", ..)]`; or raise `version`, and `migrate` the guides that are there";
    LOCK_FLOW_DATA: "the data of guides under way cannot be read as `{0}` any more: {1} ({2})",
        "make the change one that old values fit (an `Option`, `#[serde(default)]`, an alias); or raise `version`, and `migrate`";
    LOCK_FLOW_VERSION: "the flow went back to version {0}, and there may be guides of version {1} ({2})",
        "versions only grow: write `version = {1}` or more";
    LOCK_FLOW_GONE: "the flow `{0}` is locked and gone: its guides would wait, unregistered ({1})",
        "put it back, or give it its old name: `#[guided(id = \"{0}\")]`; if no guide of it is left: `WORKFLOW_LOCK=write:{0} cargo test`";
    LOCK_SOURCES: "`lock!` cannot read the sources: {0}", "name directories or files beside Cargo.toml: `lock!(\"src\", \"examples\")`";
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn every_message_says_what_and_helps_in_one_sentence_each() {
        for (name, message) in ALL {
            for text in [message.what, message.help] {
                assert!(
                    !text.is_empty() && !text.ends_with('.') || text.ends_with(".."),
                    "{name}: {text}"
                );
                assert!(!text.starts_with(char::is_uppercase), "{name}: {text}");
                assert!(
                    !text.starts_with("error:") && !text.contains('\n'),
                    "{name}: {text}"
                );
            }
        }
    }

    /// Whether `line` says this, with any words for `{0}`, `{1}` and so on.
    fn says(mut line: &str, what: &str) -> bool {
        what.split(['{', '}'])
            .step_by(2)
            .all(|part| match line.find(part) {
                Some(at) => {
                    line = &line[at + part.len()..];
                    true
                }
                None => false,
            })
    }

    #[test]
    fn every_message_is_shown_by_a_program_that_does_not_compile() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../ui-tests");
        let families = ["fail", "lock"].map(|of| fs::read_dir(format!("{folder}/{of}")));
        let mut shown = String::new();
        let families = families
            .into_iter()
            .flat_map(|of| of.expect("the repository is whole"));
        for family in families.filter(|family| family.as_ref().unwrap().path().is_dir()) {
            for file in fs::read_dir(family.unwrap().path()).expect("it holds folders only") {
                let path = file.unwrap().path();
                if path.extension().is_some_and(|kind| kind == "stderr") {
                    shown += &fs::read_to_string(path).unwrap();
                }
            }
        }
        for (name, message) in ALL {
            // A bug of ours has no program; and what is no signature, the compiler refuses first.
            if !["PANICKED", "UNREADABLE_SIGNATURE"].contains(name) {
                let said = shown.lines().any(|line| says(line, message.what));
                assert!(said, "{name} is shown nowhere");
            }
        }
    }

    #[test]
    fn the_words_are_the_users() {
        let text = NO_LABEL.with(&["{1}", "{0} { {x}"]).into_string();
        assert!(
            text.contains("a `{1}` that") && text.contains("'{0} { {x}:"),
            "{text}"
        );
        let text = NO_LABEL.with(&["for", "items"]).into_string();
        assert!(text.contains("a `for` that"), "{text}");
        assert!(text.ends_with("\nhelp: write `'items: for ..`"), "{text}");
    }
}
