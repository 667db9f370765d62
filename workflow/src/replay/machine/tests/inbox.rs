//! Messages, children and what is sent.

use super::*;

static M: Site = Site::new("m", Kind::Recv, "m", "src/x.rs", 30);
static M2: Site = Site::new("m2", Kind::Recv, "m2", "src/x.rs", 31);
static C: Site = Site::new("c", Kind::Child, "c", "src/x.rs", 32);

fn wanted(channels: &[&str]) -> Wanted {
    Wanted {
        channels: channels.iter().map(|&name| name.to_owned()).collect(),
        until: None,
        poll: false,
        count: 1,
        exactly: false,
    }
}

fn message(arrival: u64, channel: &str) -> Message {
    Message {
        id: arrival.into(),
        channel: channel.to_owned(),
        arrival,
        at: at(i64::try_from(arrival).unwrap() * 10),
        dedup: None,
        reply_to: None,
        payload: Payload::json(format!("{arrival}")),
    }
}

fn arrive(replay: &mut Replay, messages: &[(u64, &str)]) {
    let incoming = messages
        .iter()
        .map(|(arrival, channel)| Incoming::Message(message(*arrival, channel)))
        .collect();
    replay.handle_news();
    replay.handle_inbox(incoming, false);
}

/// Reads what is offered, and takes it.
fn take(replay: &mut Replay, ticket: &Ticket) -> Vec<u64> {
    match replay.poll_offer(ticket, Waker::noop()) {
        Poll::Ready(offered) => {
            replay.accept(ticket, Vec::new());
            offered.iter().map(|message| message.arrival).collect()
        }
        Poll::Pending => Vec::new(),
    }
}

fn taken(replay: &mut Replay, ticket: &Ticket) -> Option<Vec<u64>> {
    match replay.poll_outcome(ticket, Waker::noop()) {
        Poll::Ready(Outcome::Taken(messages)) => {
            Some(messages.iter().map(|message| message.arrival).collect())
        }
        Poll::Ready(other) => panic!("{other:?}"),
        Poll::Pending => None,
    }
}

fn recv(replay: &mut Replay, scope: Scope, site: &'static Site, wanted: Wanted) -> Ticket {
    pending(replay.issue(scope, site, Op::Recv(wanted)))
}

// RVT-MSG-03
#[test]
fn a_message_that_is_there_is_taken_in_one_commit_and_given_again_on_replay() {
    let mut replay = live();
    let ticket = recv(&mut replay, Scope::ROOT, &M, wanted(&["c"]));
    assert_eq!(
        replay.wants_inbox(),
        None,
        "what was sent before the run began is in its inbox once that is durable"
    );
    let mut history = append(&mut replay);
    assert_eq!(replay.wants_inbox(), Some(0), "it looks first");
    arrive(&mut replay, &[(1, "other"), (2, "c"), (3, "c")]);
    assert_eq!(take(&mut replay, &ticket), [2]);
    assert_eq!(
        taken(&mut replay, &ticket),
        None,
        "not before it is durable"
    );
    let batch = replay.poll_append(at(0)).unwrap();
    assert_eq!(batch.takes, [2]);
    assert_eq!(
        batch.records.len(),
        1,
        "it is taken, and no record of waiting"
    );
    replay.handle_appended();
    assert!(replay.poll_handout());
    assert_eq!(taken(&mut replay, &ticket), Some(vec![2]));

    history.extend(batch.records);
    let mut replay = load(history);
    let Issue::Ready(Outcome::Taken(again)) =
        replay.issue(Scope::ROOT, &M, Op::Recv(wanted(&["c"])))
    else {
        panic!()
    };
    assert_eq!(again[0], message(2, "c"));
}

// RVT-MSG-02
#[test]
fn a_run_that_waits_says_for_what_and_may_leave_memory() {
    let mut replay = live();
    append(&mut replay);
    let ticket = recv(&mut replay, Scope::ROOT, &M, wanted(&["first", "second"]));
    assert_eq!(replay.poll_suspend(), None, "it has not looked yet");
    replay.handle_inbox(Vec::new(), false);
    assert_eq!(
        replay.poll_suspend(),
        None,
        "that it waits is to be durable first"
    );
    let batch = replay.poll_append(at(0)).unwrap();
    assert_eq!(batch.state, Some(RunState::Waiting));
    let names = vec!["first".to_owned(), "second".to_owned()];
    assert_eq!(batch.waits, Some(Some(names)));
    assert!(matches!(
        batch.records[..],
        [Record {
            body: Body::Waiting(_),
            ..
        }]
    ));
    replay.handle_appended();
    assert_eq!(replay.poll_suspend(), Some(Suspend { wake_at: None }));

    arrive(&mut replay, &[(1, "second")]);
    assert_eq!(replay.poll_suspend(), None);
    assert_eq!(take(&mut replay, &ticket), [1]);
    let batch = replay.poll_append(at(0)).unwrap();
    assert_eq!(
        (batch.state, batch.waits),
        (Some(RunState::Running), Some(None))
    );
}

// 11: a message may come while the batch is written that says that the run waits no more. The store, which does not know
// that yet, makes the run due.
#[test]
fn a_run_that_was_made_due_by_a_message_says_when_it_is_due_the_next_time_it_waits() {
    let mut replay = live();
    append(&mut replay);
    let ticket = recv(&mut replay, Scope::ROOT, &M, wanted(&["c"]));
    replay.handle_inbox(Vec::new(), false);
    assert_eq!(replay.poll_suspend(), None);
    append(&mut replay);
    arrive(&mut replay, &[(1, "c")]);
    take(&mut replay, &ticket);
    let batch = replay.poll_append(at(0)).unwrap();
    assert_eq!(batch.waits, Some(None));
    replay.handle_news();
    replay.handle_appended();
    assert!(replay.poll_handout());
    taken(&mut replay, &ticket);
    recv(&mut replay, Scope::ROOT, &M2, wanted(&["d"]));
    replay.handle_inbox(vec![Incoming::Message(message(2, "c"))], false);
    assert_eq!(replay.poll_suspend(), None);
    let batch = replay.poll_append(at(0)).unwrap();
    assert_eq!(batch.wake_at, Some(None));
}

// RVT-MSG-16, RVT-MSG-11
#[test]
fn several_are_taken_in_arrival_order_over_all_channels() {
    let mut replay = live();
    let many = Wanted {
        count: 3,
        ..wanted(&["a", "b"])
    };
    let ticket = recv(&mut replay, Scope::ROOT, &M, many);
    arrive(
        &mut replay,
        &[(1, "b"), (2, "a"), (3, "z"), (4, "b"), (5, "a")],
    );
    assert_eq!(take(&mut replay, &ticket), [1, 2, 4]);
}

// RVT-MSG-10
#[test]
fn a_batch_does_not_wait_to_be_filled_unless_it_says_exactly() {
    for (exactly, expected) in [(false, vec![1]), (true, vec![])] {
        let mut replay = live();
        let two = Wanted {
            count: 2,
            exactly,
            ..wanted(&["c"])
        };
        let ticket = recv(&mut replay, Scope::ROOT, &M, two);
        arrive(&mut replay, &[(1, "c")]);
        assert_eq!(take(&mut replay, &ticket), expected);
    }
}

// RVT-MSG-08, M7
#[test]
fn a_receive_whose_deadline_passes_looks_once_more_and_takes_what_had_arrived_by_then() {
    for (arrivals, expected) in [(vec![], vec![]), (vec![(3, "c"), (9, "c")], vec![3])] {
        let mut replay = live();
        let timed = Wanted {
            until: Some(at(50)),
            count: 5,
            exactly: true,
            ..wanted(&["c"])
        };
        append(&mut replay);
        let ticket = recv(&mut replay, Scope::ROOT, &M, timed);
        replay.handle_inbox(Vec::new(), false);
        let records = append(&mut replay);
        assert!(records.iter().any(|record| matches!(
            &record.body,
            Body::Waiting(crate::replay::Waiting::Recv { until: Some(until), .. }) if *until == at(50)
        )));
        assert_eq!(replay.next_deadline(), Some(at(50)));
        replay.handle_due(at(60));
        assert_eq!(replay.wants_inbox(), Some(0));
        let incoming = arrivals
            .iter()
            .map(|(arrival, channel)| Incoming::Message(message(*arrival, channel)))
            .collect();
        replay.handle_inbox(incoming, false);
        take(&mut replay, &ticket);
        append(&mut replay);
        assert!(replay.poll_handout());
        assert_eq!(taken(&mut replay, &ticket), Some(expected));
    }
}

// RVT-MSG-14
#[test]
fn one_that_only_looks_gives_nothing_at_once() {
    let mut replay = live();
    let poll = Wanted {
        until: Some(at(0)),
        poll: true,
        ..wanted(&["c"])
    };
    let ticket = recv(&mut replay, Scope::ROOT, &M, poll);
    // What was kept for the run comes into its inbox when the run is stored, and is not looked for before.
    assert_eq!(replay.wants_inbox(), None);
    assert_eq!(append(&mut replay).len(), 1);
    assert_eq!(replay.wants_inbox(), Some(0));
    replay.handle_inbox(Vec::new(), false);
    assert_eq!(append(&mut replay).len(), 1, "no wait recorded");
    assert!(replay.poll_handout());
    assert_eq!(taken(&mut replay, &ticket), Some(vec![]));
}

#[test]
fn a_message_that_cannot_be_read_goes_to_the_dead_letters_and_the_wait_goes_on() {
    let mut replay = live();
    append(&mut replay);
    let ticket = recv(&mut replay, Scope::ROOT, &M, wanted(&["c"]));
    arrive(&mut replay, &[(1, "c"), (2, "c")]);
    assert!(replay.poll_offer(&ticket, Waker::noop()).is_ready());
    replay.accept(&ticket, vec![(1, "no number".to_owned())]);
    assert_eq!(take(&mut replay, &ticket), [2]);
    let batch = replay.poll_append(at(0)).unwrap();
    assert_eq!(batch.dead, [(1, "no number".to_owned())]);
    assert_eq!(batch.takes, [2]);
}

fn race(replay: &mut Replay) -> (Scope, Scope, Scope) {
    let Entered::Open { scope, .. } = replay.enter(Scope::ROOT, &R, Container::Race(&["a", "b"]))
    else {
        panic!()
    };
    (
        scope,
        replay.member(scope, Member::Branch("a")),
        replay.member(scope, Member::Branch("b")),
    )
}

// U9
#[test]
fn what_a_losing_branch_had_taken_goes_back_also_when_the_decision_is_derived_again() {
    let mut replay = live();
    let (scope, a, b) = race(&mut replay);
    let message_of_a = recv(&mut replay, a, &M, wanted(&["c"]));
    let step = pending(replay.issue(b, &B, STEP));
    arrive(&mut replay, &[(1, "c")]);
    take(&mut replay, &message_of_a);
    let mut history = append(&mut replay);
    assert!(replay.poll_handout());
    assert_eq!(taken(&mut replay, &message_of_a), Some(vec![1]));
    run(&mut replay, &step, "1");
    history.extend(append(&mut replay));
    assert!(replay.poll_handout());
    got(&mut replay, &step).unwrap();
    let decide = |replay: &mut Replay, scope: Scope| {
        assert!(replay.decide(scope, 1));
        replay.leave(scope);
        // After the race the run receives the message.
        let ticket = recv(replay, Scope::ROOT, &M2, wanted(&["c"]));
        if replay.phase() == Phase::Replaying {
            assert!(replay.handle_quiet(), "{:?}", replay.divergence());
            // Whatever came before it is to be known first.
            replay.handle_inbox(Vec::new(), false);
        }
        assert_eq!(take(replay, &ticket), [1]);
        // It is still in nobody's inbox when that is read now, or is there already: either way it is taken once.
        arrive(replay, &[(1, "c")]);
        assert_eq!(take(replay, &ticket), Vec::<u64>::new());
        let batch = replay.poll_append(at(0)).unwrap();
        assert_eq!(batch.returns, [message(1, "c")]);
        assert_eq!(batch.takes, [1]);
        assert_eq!(batch.deletes, [Location::root().site("r").branch("a")]);
    };
    decide(&mut replay, scope);

    let mut replay = load(history);
    let (scope, a, b) = race(&mut replay);
    let message_of_a = pending(replay.issue(a, &M, Op::Recv(wanted(&["c"]))));
    let step = pending(replay.issue(b, &B, STEP));
    assert!(replay.poll_handout());
    assert_eq!(taken(&mut replay, &message_of_a), Some(vec![1]));
    assert!(replay.poll_handout());
    got(&mut replay, &step).unwrap();
    decide(&mut replay, scope);
}

// 11: the store makes a run due to which a message it waits for is given back. This one knows it, and it is not enough.
#[test]
fn a_run_that_waits_on_after_a_message_came_back_says_again_when_it_is_due() {
    let mut replay = live();
    append(&mut replay);
    let (scope, a, b) = race(&mut replay);
    let of_a = recv(&mut replay, a, &M, wanted(&["c"]));
    let step = pending(replay.issue(b, &B, STEP));
    arrive(&mut replay, &[(1, "c")]);
    assert_eq!(take(&mut replay, &of_a), [1]);
    append(&mut replay);
    assert!(replay.poll_handout());
    assert_eq!(taken(&mut replay, &of_a), Some(vec![1]));
    run(&mut replay, &step, "1");
    append(&mut replay);
    assert!(replay.poll_handout());
    got(&mut replay, &step).unwrap();
    assert!(replay.decide(scope, 1));
    replay.leave(scope);
    let two = Wanted {
        count: 2,
        exactly: true,
        ..wanted(&["c"])
    };
    recv(&mut replay, Scope::ROOT, &M2, two);
    assert_eq!(replay.poll_suspend(), None);
    let batch = replay.poll_append(at(0)).unwrap();
    assert!(batch.waits.is_some() && batch.returns.len() == 1);
    replay.handle_appended();
    assert_eq!(replay.poll_suspend(), None);
    assert_eq!(replay.poll_append(at(0)).unwrap().wake_at, Some(None));
    replay.handle_appended();
    assert!(replay.poll_suspend().is_some());
}

// 8
#[test]
fn a_message_that_came_back_is_not_taken_before_those_that_arrived_earlier_and_were_not_read_yet() {
    let mut replay = live();
    let mut history = append(&mut replay);
    let (_, a, b) = race(&mut replay);
    let of_a = recv(&mut replay, a, &M, wanted(&["c"]));
    let step = pending(replay.issue(b, &B, STEP));
    arrive(&mut replay, &[(1, "d"), (2, "c")]);
    assert_eq!(take(&mut replay, &of_a), [2]);
    run(&mut replay, &step, "1");
    history.extend(append(&mut replay));

    let mut replay = load(history);
    let (scope, a, b) = race(&mut replay);
    let of_a = recv(&mut replay, a, &M, wanted(&["c"]));
    let step = pending(replay.issue(b, &B, STEP));
    assert!(replay.poll_handout());
    assert_eq!(taken(&mut replay, &of_a), Some(vec![2]));
    assert!(replay.poll_handout());
    got(&mut replay, &step).unwrap();
    assert!(replay.decide(scope, 1));
    replay.leave(scope);
    let ticket = recv(&mut replay, Scope::ROOT, &M2, wanted(&["c", "d"]));
    assert!(replay.handle_quiet());
    assert_eq!(take(&mut replay, &ticket), Vec::<u64>::new());
    arrive(&mut replay, &[(1, "d")]);
    assert_eq!(take(&mut replay, &ticket), [1]);
}

// U9
#[test]
fn a_message_held_for_a_branch_that_loses_was_never_taken() {
    let mut replay = live();
    append(&mut replay);
    let (scope, a, b) = race(&mut replay);
    let held = recv(&mut replay, a, &M, wanted(&["c"]));
    let step = pending(replay.issue(b, &B, STEP));
    arrive(&mut replay, &[(1, "c")]);
    run(&mut replay, &step, "1");
    append(&mut replay);
    assert!(replay.poll_handout());
    got(&mut replay, &step).unwrap();
    take(&mut replay, &held);
    assert!(replay.decide(scope, 1));
    replay.leave(scope);
    let ticket = recv(&mut replay, Scope::ROOT, &M2, wanted(&["c"]));
    assert_eq!(take(&mut replay, &ticket), [1]);
    let batch = replay.poll_append(at(0)).unwrap();
    assert!(batch.returns.is_empty());
    assert_eq!(batch.takes, [1]);
}

#[test]
fn of_two_that_wait_for_one_channel_the_first_takes_first_also_after_a_restart() {
    let mut replay = live();
    let open = |replay: &mut Replay| {
        let Entered::Open { scope, .. } =
            replay.enter(Scope::ROOT, &J, Container::Join(&["a", "b"]))
        else {
            panic!()
        };
        (
            replay.member(scope, Member::Branch("a")),
            replay.member(scope, Member::Branch("b")),
        )
    };
    let (a, b) = open(&mut replay);
    recv(&mut replay, b, &M, wanted(&["c"]));
    recv(&mut replay, a, &M, wanted(&["c"]));
    replay.handle_inbox(Vec::new(), false);
    assert_eq!(replay.poll_suspend(), None);
    // The tree's order is that of the branches; the one that waited longer is told apart by its record.
    replay.handle_flush();
    let history = append(&mut replay);
    assert_eq!(replay.poll_suspend(), Some(Suspend { wake_at: None }));
    arrive(&mut replay, &[(1, "c")]);

    let mut replay = load(history);
    let (a, b) = open(&mut replay);
    let of_a = recv(&mut replay, a, &M, wanted(&["c"]));
    let of_b = recv(&mut replay, b, &M, wanted(&["c"]));
    assert!(replay.handle_quiet());
    arrive(&mut replay, &[(1, "c")]);
    let took = (take(&mut replay, &of_a), take(&mut replay, &of_b));
    assert_eq!(took, (vec![], vec![1]));
}

fn child() -> ChildStart {
    ChildStart {
        id: RunId::child(&RunId::new("p").unwrap(), &Location::root().site("c"), 0),
        workflow: "kid",
        input: Payload::json("{}"),
        input_hash: 0,
        location: Location::root().site("c"),
        detached: false,
        terms: crate::replay::Terms::default(),
    }
}

#[test]
fn a_child_is_started_with_the_record_of_it_and_once() {
    let mut replay = live();
    append(&mut replay);
    pending(replay.issue(Scope::ROOT, &C, Op::Child(child())));
    let batch = replay.poll_append(at(0)).unwrap();
    assert_eq!(batch.sent, [Sent::Child(child())]);
    let mut history = vec![Record {
        seq: 1,
        at: at(0),
        code: CodeId(1),
        location: Location::root(),
        body: Body::Begun(Box::new(begun())),
    }];
    history.extend(batch.records);
    replay.handle_appended();

    let mut replay = load(history);
    let ticket = pending(replay.issue(Scope::ROOT, &C, Op::Child(child())));
    assert!(replay.handle_quiet());
    assert_eq!(replay.wants_inbox(), Some(0));
    let failure = Failure::new(
        crate::replay::FailureKind::Exhausted,
        Location::root().site("x"),
        "no luck",
    );
    replay.handle_inbox(
        vec![Incoming::ChildEnded {
            arrival: 1,
            child: child().id,
            result: Err(failure.clone()),
        }],
        false,
    );
    let batch = replay.poll_append(at(0)).unwrap();
    assert_eq!((batch.takes, batch.sent), (vec![1], vec![]));
    replay.handle_appended();
    assert!(replay.poll_handout());
    let Poll::Ready(Outcome::Ended(Err(seen))) = replay.poll_outcome(&ticket, Waker::noop()) else {
        panic!()
    };
    assert_eq!(seen.kind(), crate::replay::FailureKind::Child);
    assert_eq!(seen.location().to_string(), "c");
    assert_eq!(seen.branches(), [failure]);
}

#[test]
fn a_child_that_loses_a_race_is_cancelled_with_the_decision() {
    let mut replay = live();
    let (scope, a, b) = race(&mut replay);
    pending(replay.issue(a, &C, Op::Child(child())));
    let step = pending(replay.issue(b, &B, STEP));
    run(&mut replay, &step, "1");
    append(&mut replay);
    assert!(replay.poll_handout());
    got(&mut replay, &step).unwrap();
    assert!(replay.decide(scope, 1));
    replay.leave(scope);
    assert!(replay.finish(Finished::Completed(Payload::json("1"))));
    let batch = replay.poll_append(at(0)).unwrap();
    assert_eq!(batch.sent, [Sent::Cancel(child().id)]);
}
