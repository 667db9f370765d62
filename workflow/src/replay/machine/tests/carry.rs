//! Carried loops.

use super::*;

static L: Site = Site::new("l", Kind::Loop, "l", "src/x.rs", 10);
const KEEPING: Keeping = Keeping { every: 3, keep: 2 };

/// A program: a carried loop of a step per iteration, carrying a count, until it has made `turns`.
struct Counting {
    replay: Replay,
    carried: Scope,
    next: u64,
    count: u64,
    ran: Vec<u64>,
}

impl Counting {
    fn enter(mut replay: Replay) -> Self {
        let Entered::Open { scope: carried, .. } =
            replay.enter(Scope::ROOT, &L, Container::Carry(&["count"]))
        else {
            panic!("{:?}", replay.divergence())
        };
        let (next, count) = match replay.resume(carried) {
            Some(issue) => state_of(issue),
            None => (0, 0),
        };
        Self {
            replay,
            carried,
            next,
            count,
            ran: Vec::new(),
        }
    }

    /// One iteration and the boundary after it; the batches that were written on the way.
    fn turn(&mut self, log: &mut Vec<Batch>) {
        self.iterate(log);
        self.cross();
    }

    fn iterate(&mut self, log: &mut Vec<Batch>) {
        let iteration = self.replay.member(self.carried, Member::Iter(self.next));
        match self.replay.issue(iteration, &A, STEP) {
            Issue::Ready(_) => {}
            Issue::Pending(ticket) => {
                assert!(!self.replay.poll_handout());
                if self.replay.phase() == Phase::Replaying {
                    assert!(self.replay.handle_quiet(), "{:?}", self.replay.divergence());
                }
                self.ran.push(self.next);
                run(&mut self.replay, &ticket, "1");
                log.push(self.replay.poll_append(at(0)).unwrap());
                self.replay.handle_appended();
                assert!(self.replay.poll_handout());
                got(&mut self.replay, &ticket).unwrap();
            }
            Issue::Never => panic!("{:?}", self.replay.divergence()),
        }
        self.replay.leave(iteration);
        self.next += 1;
        self.count += 10;
    }

    fn cross(&mut self) {
        let state = Payload::json(self.count.to_string());
        let issue = self
            .replay
            .boundary(self.carried, self.next, state, KEEPING);
        let issue = match issue {
            Issue::Pending(ticket) => {
                assert!(self.replay.handle_quiet());
                assert!(self.replay.poll_handout());
                match self.replay.poll_outcome(&ticket, Waker::noop()) {
                    Poll::Ready(outcome) => Issue::Ready(outcome),
                    Poll::Pending => panic!("it is its turn"),
                }
            }
            issue => issue,
        };
        assert_eq!(state_of(issue), (self.next, self.count));
    }
}

fn state_of(issue: Issue) -> (u64, u64) {
    match issue {
        Issue::Ready(Outcome::Carried { next, state }) => {
            let text = std::str::from_utf8(&state.bytes).unwrap();
            (next, text.parse().unwrap())
        }
        other => panic!("{other:?}"),
    }
}

/// What a store holds after these batches.
fn store(log: &[Batch]) -> Vec<Record> {
    let mut records: Vec<Record> = Vec::new();
    for batch in log {
        records.retain(|record| {
            !batch
                .deletes
                .iter()
                .any(|gone| record.location.is_under(gone))
        });
        records.extend(batch.records.iter().cloned());
    }
    records
}

fn iterations(history: &[Record]) -> Vec<String> {
    let mut found: Vec<_> = history
        .iter()
        .filter(|record| matches!(record.body, Body::Ended(_)))
        .map(|record| record.location.to_string())
        .collect();
    found.dedup();
    found
}

// RVT-LOOP-09
#[test]
fn a_carried_loop_goes_on_from_its_last_durable_boundary_and_runs_nothing_again() {
    let mut log = Vec::new();
    let mut counting = Counting::enter(live());
    for _ in 0..4 {
        counting.turn(&mut log);
    }
    // The boundary after iteration 3 rides, and nothing was written since: it is lost, its step is not.
    let mut again = Counting::enter(load(store(&log)));
    assert_eq!((again.next, again.count), (3, 30));
    let mut more = Vec::new();
    again.turn(&mut more);
    assert_eq!((again.next, again.count), (4, 40));
    assert!(again.ran.is_empty() && more.is_empty());
    again.turn(&mut more);
    assert_eq!(again.ran, [4]);
}

// RVT-LOOP-17
#[test]
fn iterations_beyond_what_is_kept_are_deleted_with_the_commit_that_comes_anyway() {
    let mut log = Vec::new();
    let mut counting = Counting::enter(live());
    for _ in 0..7 {
        counting.turn(&mut log);
    }
    let history = store(&log);
    assert_eq!(iterations(&history), ["l[4]/a", "l[5]/a", "l[6]/a"]);
    assert_eq!(log.len(), 7, "a boundary costs no commit");

    counting.replay.finish_loop(counting.carried, 7, KEEPING);
    counting.replay.leave(counting.carried);
    assert!(
        counting
            .replay
            .finish(Finished::Completed(Payload::json("7")))
    );
    log.push(counting.replay.poll_append(at(0)).unwrap());
    assert_eq!(iterations(&store(&log)), ["l[5]/a", "l[6]/a"]);
}

// A loop that keeps one iteration still has what its last one began with: what it gives is derived from that again.
#[test]
fn a_loop_that_has_ended_is_ended_from_its_last_boundary_again_however_little_it_keeps() {
    let mut log = Vec::new();
    let mut counting = Counting::enter(live());
    for _ in 0..3 {
        counting.turn(&mut log);
    }
    counting.iterate(&mut log);
    let keeping = Keeping { every: 1, keep: 1 };
    counting.replay.finish_loop(counting.carried, 4, keeping);
    counting.replay.leave(counting.carried);
    let finished = Finished::Completed(Payload::json("40"));
    assert!(counting.replay.finish(finished));
    log.push(counting.replay.poll_append(at(0)).unwrap());

    let mut history = store(&log);
    history.pop();
    let mut again = Counting::enter(load(history));
    assert_eq!((again.next, again.count), (3, 30));
    let mut more = Vec::new();
    again.iterate(&mut more);
    assert!(again.ran.is_empty() && more.is_empty());
    assert_eq!(again.count, 40);
}

#[test]
fn boundaries_that_nothing_else_makes_durable_are_forced_every_so_often() {
    let mut replay = live();
    let Entered::Open { scope: carried, .. } =
        replay.enter(Scope::ROOT, &L, Container::Carry(&["count"]))
    else {
        panic!()
    };
    append(&mut replay);
    let mut asked = Vec::new();
    for next in 1..=7 {
        let iteration = replay.member(carried, Member::Iter(next - 1));
        replay.leave(iteration);
        state_of(replay.boundary(carried, next, Payload::json("0"), KEEPING));
        if replay.wants_append() {
            asked.push(next);
            append(&mut replay);
        }
    }
    assert_eq!(asked, [3, 6]);
}

// U10
#[test]
fn a_loop_beside_others_starts_again_when_it_is_its_boundarys_turn() {
    let mut replay = live();
    let Entered::Open { scope: join, .. } =
        replay.enter(Scope::ROOT, &J, Container::Join(&["a", "b"]))
    else {
        panic!()
    };
    let (a, b) = (
        replay.member(join, Member::Branch("a")),
        replay.member(join, Member::Branch("b")),
    );
    let step = pending(replay.issue(a, &A, STEP));
    let Entered::Open { scope: carried, .. } = replay.enter(b, &L, Container::Carry(&["count"]))
    else {
        panic!()
    };
    run(&mut replay, &step, "1");
    let mut history = append(&mut replay);
    assert!(replay.poll_handout());
    got(&mut replay, &step).unwrap();
    let iteration = replay.member(carried, Member::Iter(0));
    replay.leave(iteration);
    let boundary = pending(replay.boundary(carried, 1, Payload::json("5"), KEEPING));
    assert!(replay.poll_handout());
    assert!(replay.poll_outcome(&boundary, Waker::noop()).is_ready());
    replay.handle_flush();
    history.extend(append(&mut replay));

    let mut replay = load(history);
    let Entered::Open { scope: join, .. } =
        replay.enter(Scope::ROOT, &J, Container::Join(&["a", "b"]))
    else {
        panic!()
    };
    let (a, b) = (
        replay.member(join, Member::Branch("a")),
        replay.member(join, Member::Branch("b")),
    );
    let Entered::Open { scope: carried, .. } = replay.enter(b, &L, Container::Carry(&["count"]))
    else {
        panic!()
    };
    let resumed = pending(replay.resume(carried).expect("a boundary is recorded"));
    let step = pending(replay.issue(a, &A, STEP));
    assert!(replay.poll_handout());
    assert!(
        replay.poll_outcome(&resumed, Waker::noop()).is_pending(),
        "the step beside it came first"
    );
    assert_eq!(got(&mut replay, &step).as_deref(), Some("1"));
    assert!(replay.poll_handout());
    assert!(replay.poll_outcome(&resumed, Waker::noop()).is_ready());
    assert!(replay.handle_quiet());
}

#[test]
fn carry_may_be_added_to_a_loop_but_neither_changed_nor_dropped() {
    let mut log = Vec::new();
    let mut counting = Counting::enter(live());
    for _ in 0..3 {
        counting.turn(&mut log);
    }
    let history = store(&log);
    for container in [Container::Loop, Container::Carry(&["count", "more"])] {
        let mut replay = load(history.clone());
        let entered = replay.enter(Scope::ROOT, &L, container);
        assert_eq!(entered, Entered::Never);
        let report = replay.divergence().unwrap().to_string();
        assert!(report.contains("branches count"), "{report}");
    }

    let mut replay = live();
    let Entered::Open { scope: plain, .. } = replay.enter(Scope::ROOT, &L, Container::Loop) else {
        panic!()
    };
    let iteration = replay.member(plain, Member::Iter(0));
    let ticket = pending(replay.issue(iteration, &A, STEP));
    run(&mut replay, &ticket, "1");
    let mut counting = Counting::enter(load(append(&mut replay)));
    counting.turn(&mut Vec::new());
    assert!(counting.ran.is_empty(), "its step is recorded");
}

// U9: what an iteration has taken that is recorded still goes back when the branch loses, also when a replay starts behind it.
#[test]
fn what_a_covered_iteration_had_taken_goes_back_with_the_branch_it_lies_in() {
    static M: Site = Site::new("m", Kind::Recv, "m", "src/x.rs", 30);
    let wanted = || Wanted {
        channels: vec!["c".to_owned()],
        until: None,
        poll: false,
        count: 1,
        exactly: false,
    };
    let keeping = Keeping { every: 1, keep: 1 };
    let message = Message {
        id: 1,
        channel: "c".to_owned(),
        arrival: 1,
        at: at(0),
        dedup: None,
        reply_to: None,
        payload: Payload::json("1"),
    };
    // race!(r, a = { carried loop { recv } }, b = { step })
    let open = |replay: &mut Replay| {
        let Entered::Open { scope: race, .. } =
            replay.enter(Scope::ROOT, &R, Container::Race(&["a", "b"]))
        else {
            panic!()
        };
        let a = replay.member(race, Member::Branch("a"));
        let Entered::Open { scope: carried, .. } = replay.enter(a, &L, Container::Carry(&["n"]))
        else {
            panic!()
        };
        let b = replay.member(race, Member::Branch("b"));
        (race, carried, b)
    };
    let mut replay = live();
    let mut history = append(&mut replay);
    let (_, carried, b) = open(&mut replay);
    assert!(replay.resume(carried).is_none());
    let iteration = replay.member(carried, Member::Iter(0));
    let receive = pending(replay.issue(iteration, &M, Op::Recv(wanted())));
    let step = pending(replay.issue(b, &B, STEP));
    replay.handle_inbox(vec![Incoming::Message(message.clone())], false);
    assert!(replay.poll_offer(&receive, Waker::noop()).is_ready());
    replay.accept(&receive, Vec::new());
    history.extend(append(&mut replay));
    assert!(replay.poll_handout());
    assert!(replay.poll_outcome(&receive, Waker::noop()).is_ready());
    replay.leave(iteration);
    pending(replay.boundary(carried, 1, Payload::json("1"), keeping));
    run(&mut replay, &step, "1");
    history.extend(append(&mut replay));

    let mut replay = load(history);
    let (race, carried, b) = open(&mut replay);
    let boundary = pending(replay.resume(carried).unwrap());
    let step = pending(replay.issue(b, &B, STEP));
    assert!(replay.poll_handout());
    assert!(replay.poll_outcome(&boundary, Waker::noop()).is_ready());
    assert!(replay.poll_handout());
    got(&mut replay, &step).unwrap();
    assert!(replay.decide(race, 1));
    replay.leave(race);
    assert!(replay.finish(Finished::Completed(Payload::json("1"))));
    assert_eq!(replay.poll_append(at(0)).unwrap().returns, [message]);
}
