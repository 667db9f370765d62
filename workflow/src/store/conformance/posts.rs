//! What a batch does to others: all of it when the batch is written, nothing when it is not.

#![expect(clippy::indexing_slicing, reason = "a law that does not hold panics")]

use std::sync::Arc;

use super::messages::{
    NEVER, inbox, keyed, message, posting, queued, sent, there, unread, waiting,
};
use super::scene::{CODE, Owner, at, done, finished, id, loaded, names, row, step, tried};
use super::{Harness, block_on};
use crate::replay::{
    Body, Failure, FailureKind, Finished, Location, NewMessage, Payload, Record, RunKey, RunState,
};
use crate::store::encoding::decode_finished;
use crate::store::{
    Answer, Append, Appended, CHILD_ENDED, Delivery, NewRun, Post, Store, StoreError,
};

fn to(run: &str, message: NewMessage) -> Post {
    Post::Message {
        to: id(run),
        message,
        keep_until: NEVER,
    }
}

fn child(store: &impl Store, name: &str, parent: &str, detached: bool) -> (RunKey, Post) {
    let run = store.allocate();
    let record = Record {
        seq: 1,
        at: at(1_000),
        code: CODE,
        location: Location::root(),
        body: Body::Checkpoint,
    };
    let post = Post::Run {
        run,
        new: NewRun {
            id: id(name),
            workflow: "ship".to_owned(),
            parent: Some((id(parent), Location::root().site("ship"))),
            detached,
            not_before: None,
            priority: 0,
        },
        records: vec![record],
    };
    (run, post)
}

/// Starts a child of run `a`, as its parent does, and claims it.
fn started(store: &Arc<impl Store>, parent: &mut Owner, name: &str, detached: bool) -> Owner {
    let (run, post) = child(&**store, name, "a", detached);
    assert_eq!(done(store, posting(parent, vec![post])), Appended::Applied);
    Owner {
        run,
        epoch: store.identity().boot,
        number: 0,
        seq: 1,
    }
}

fn answer(store: &Arc<impl Store>, request: u128) -> Option<Answer> {
    block_on(store.answer(request)).unwrap()
}

fn reply(text: &str) -> Answer {
    Answer::Reply(Payload::json(text.to_owned()))
}

/// A batch with a post of every kind; the receiver `b`, the child `c`, the cancelled `d`.
fn everything(store: &Arc<impl Store>, owner: &mut Owner) -> (RunKey, Append) {
    let (run, post) = child(&**store, "c", "a", false);
    let posts = vec![
        to("b", message(1, "c")),
        to("b", keyed(2, "c", "k")),
        to("nobody", message(3, "c")),
        post,
        to("c", message(4, "c")),
        to("d", message(5, "c")),
        Post::Cancel(id("d")),
        Post::Answer {
            request: 77,
            answer: reply("yes"),
        },
    ];
    (run, posting(owner, posts))
}

/// Rule 2, for what a batch does to others: with a crash right after it, and once folded.
pub fn posts_are_written_with_their_batch<H: Harness>() {
    posted::<H>(false);
    posted::<H>(true);
}

fn posted<H: Harness>(rested: bool) {
    let (mut place, store) = H::fresh();
    let mut owner = Owner::start(&store, "a");
    let mut receiver = Owner::start(&store, "b");
    let cancelled = Owner::start(&store, "d");
    assert_eq!(
        done(&store, waiting(&mut receiver, &["c"], 0)),
        Appended::Applied
    );
    if rested {
        place.rest(&store);
    }
    let (new, append) = everything(&store, &mut owner);
    assert_eq!(done(&store, append), Appended::Applied);
    let mut store = store;
    for turn in 0..4 {
        assert_eq!(names(&loaded(&store, owner.run)), ["", "send"]);
        assert_eq!(there(&store, receiver.run), [(1, 1), (2, 2)]);
        assert_eq!(row(&store, receiver.run).wake_at, Some(at(1_000)));
        let begun = loaded(&store, new);
        assert_eq!(
            (begun.row.state, begun.row.inbox_seq),
            (RunState::Pending, 1)
        );
        assert_eq!((begun.row.last_seq, begun.history.len()), (1, 1));
        assert_eq!(there(&store, new), [(1, 4)]);
        assert_eq!(block_on(store.find(&id("c"))).unwrap(), Some(begun.row));
        assert!(block_on(store.active(None, 9)).unwrap().contains(&new));
        let ended = row(&store, cancelled.run);
        assert_eq!((ended.state, ended.inbox_seq), (RunState::Cancelled, 1));
        assert_eq!(there(&store, cancelled.run), [(1, 5)]);
        assert_eq!(answer(&store, 77), Some(reply("yes")));
        assert_eq!(answer(&store, 78), None);
        match turn {
            0 | 2 => store = place.crash(&store),
            _ => place.rest(&store),
        }
    }
    let stranger = Owner::start(&store, "nobody");
    assert_eq!(there(&store, stranger.run), [(1, 3)]);
    let mut claimed = Owner {
        run: new,
        epoch: store.identity().boot,
        number: 0,
        seq: 1,
    };
    claimed.write(&store, vec![step("s")], RunState::Running);
}

/// Rule 3, for what a batch does to others.
pub fn a_refused_batch_posts_nothing<H: Harness>() {
    let (mut place, store) = H::fresh();
    let mut owner = Owner::start(&store, "a");
    let receiver = Owner::start(&store, "b");
    let other = Owner::start(&store, "d");
    let untouched = |store: &Arc<H::Store>| {
        assert!(inbox(store, receiver.run).is_empty());
        assert!(block_on(store.find(&id("c"))).unwrap().is_none());
        assert_eq!(row(store, other.run).state, RunState::Running);
        assert_eq!(answer(store, 77), None);
    };
    let (_, mut ahead) = everything(&store, &mut owner.clone());
    ahead.expected_seq += 3;
    for record in &mut ahead.records {
        record.seq += 3;
    }
    assert!(matches!(
        tried(&store, ahead),
        Err(StoreError::Conflict { .. })
    ));
    let (_, mut takes) = everything(&store, &mut owner.clone());
    takes.inbox.takes = vec![1];
    assert!(matches!(
        tried(&store, takes),
        Err(StoreError::Conflict { .. })
    ));
    let (_, mut gap) = everything(&store, &mut owner.clone());
    for post in &mut gap.posts {
        if let Post::Run { records, .. } = post {
            for record in records {
                record.seq = 2;
            }
        }
    }
    assert!(matches!(
        tried(&store, gap),
        Err(StoreError::Conflict { .. })
    ));
    untouched(&store);
    let (_, mut create) = Owner::create(&*store, "a");
    create.posts = everything(&store, &mut owner.clone()).1.posts;
    assert_eq!(done(&store, create), Appended::Exists(owner.run));
    let (_, mut stale) = everything(&store, &mut owner.clone());
    stale.epoch -= 1;
    assert_eq!(done(&store, stale), Appended::Lost);
    owner.write(
        &store,
        vec![finished(Finished::Cancelled)],
        RunState::Cancelled,
    );
    let (_, late) = everything(&store, &mut owner);
    assert_eq!(done(&store, late), Appended::Final);
    untouched(&store);
    place.rest(&store);
    let store = place.crash(&store);
    untouched(&store);
    let nobody = Owner::start(&store, "nobody");
    assert!(inbox(&store, nobody.run).is_empty());
}

/// Rule 4, for what a batch does to others.
pub fn a_repeated_batch_posts_once<H: Harness>() {
    let (mut place, store) = H::fresh();
    let mut owner = Owner::start(&store, "a");
    let receiver = Owner::start(&store, "b");
    let append = posting(&mut owner, vec![to("b", message(1, "c"))]);
    assert_eq!(done(&store, append.clone()), Appended::Applied);
    assert_eq!(done(&store, append.clone()), Appended::AlreadyApplied);
    // What happens to the run meanwhile is not its owner's last batch.
    sent(&store, "a", message(2, "c"));
    assert_eq!(done(&store, append.clone()), Appended::AlreadyApplied);
    place.rest(&store);
    let store = place.crash(&store);
    assert_eq!(done(&store, append), Appended::AlreadyApplied);
    assert_eq!(there(&store, receiver.run), [(1, 1)]);
}

/// M12: the sender is told; and it may be the sender itself that has ended.
pub fn what_cannot_be_delivered_is_the_senders_dead_letter<H: Harness>() {
    let (mut place, store) = H::fresh();
    let mut owner = Owner::start(&store, "a");
    let mut ended = Owner::start(&store, "b");
    sent(&store, "b", keyed(9, "c", "k"));
    ended.write(
        &store,
        vec![finished(Finished::Cancelled)],
        RunState::Cancelled,
    );
    sent(&store, "a", message(1, "c"));
    place.rest(&store);
    let posts = vec![
        to("b", message(2, "c")),
        to("b", keyed(3, "c", "k")),
        to("a", message(4, "c")),
    ];
    assert_eq!(done(&store, posting(&mut owner, posts)), Appended::Applied);
    let mut last = owner.batch(vec![finished(Finished::Cancelled)], RunState::Cancelled);
    last.posts = vec![to("a", message(5, "c"))];
    assert_eq!(done(&store, last), Appended::Applied);
    let store = place.crash(&store);
    for _ in 0..2 {
        assert_eq!(unread(&store, owner.run), [(2, 2), (4, 5)]);
        assert_eq!(there(&store, owner.run), [(1, 1), (3, 4)]);
        assert_eq!(there(&store, ended.run), [(1, 9)]);
        assert!(unread(&store, ended.run).is_empty());
        let letters = block_on(store.dead_letters(owner.run, 0, 1)).unwrap();
        assert!(letters[0].reason.contains("`b`"), "{}", letters[0].reason);
        place.rest(&store);
    }
}

/// The run that is there stays as it is, and the batch is written.
pub fn a_run_that_exists_is_not_started_again<H: Harness>() {
    for rested in [false, true] {
        let (mut place, store) = H::fresh();
        let mut owner = Owner::start(&store, "a");
        let there_already = Owner::start(&store, "c");
        if rested {
            place.rest(&store);
        }
        let before = row(&store, there_already.run);
        let (run, post) = child(&*store, "c", "a", false);
        let (twin, first) = child(&*store, "e", "a", false);
        let (other, second) = child(&*store, "e", "a", false);
        assert_eq!(
            done(&store, posting(&mut owner, vec![post, first, second])),
            Appended::Applied
        );
        assert_eq!(row(&store, there_already.run), before);
        assert!(block_on(store.row(run)).unwrap().is_none());
        assert_eq!(row(&store, twin).id, id("e"));
        assert!(block_on(store.row(other)).unwrap().is_none());
        let (_, again) = Owner::create(&*store, "e");
        assert_eq!(done(&store, again), Appended::Exists(twin));
    }
}

/// M9: the first answer stays, also after a restart.
pub fn the_first_answer_to_a_request_stays<H: Harness>() {
    let (mut place, store) = H::fresh();
    let mut owner = Owner::start(&store, "a");
    let answering =
        |owner: &mut Owner, request, answer| posting(owner, vec![Post::Answer { request, answer }]);
    let mut twice = answering(&mut owner, 1, reply("first"));
    twice.posts.push(Post::Answer {
        request: 1,
        answer: reply("second"),
    });
    assert_eq!(done(&store, twice), Appended::Applied);
    done(&store, answering(&mut owner, 1, Answer::NoReply));
    place.rest(&store);
    done(&store, answering(&mut owner, 1, reply("third")));
    done(&store, answering(&mut owner, u128::MAX, Answer::NoReply));
    let store = place.crash(&store);
    done(&store, answering(&mut owner, u128::MAX, reply("late")));
    place.rest(&store);
    assert_eq!(answer(&store, 1), Some(reply("first")));
    assert_eq!(answer(&store, u128::MAX), Some(Answer::NoReply));
}

/// Rule 10, however it ends.
pub fn a_parent_is_told_of_the_end_of_its_child<H: Harness>() {
    let boom = Failure::new(FailureKind::Returned, Location::root(), "boom");
    let ends = [
        (Finished::Completed(Payload::json("7")), RunState::Completed),
        (Finished::Failed(boom), RunState::Failed),
        (Finished::Cancelled, RunState::Cancelled),
    ];
    for rested in [false, true] {
        let (mut place, store) = H::fresh();
        let mut parent = Owner::start(&store, "a");
        let mut children: Vec<_> = (0..3)
            .map(|turn| started(&store, &mut parent, &format!("child-{turn}"), false))
            .collect();
        let stopped = started(&store, &mut parent, "stopped", false);
        let posted = started(&store, &mut parent, "posted", false);
        assert_eq!(
            done(&store, waiting(&mut parent, &[CHILD_ENDED], 0)),
            Appended::Applied
        );
        if rested {
            place.rest(&store);
        }
        for (owner, (end, state)) in children.iter_mut().zip(&ends) {
            assert!(inbox(&store, parent.run).len() < 3);
            owner.write(&store, vec![step("s")], RunState::Running);
            owner.write(&store, vec![finished(end.clone())], *state);
            assert_eq!(super::next_due(&store).unwrap(), Some(at(1_000)));
        }
        assert_eq!(
            block_on(store.cancel(stopped.run, at(2_000))).unwrap(),
            Appended::Applied
        );
        assert_eq!(
            block_on(store.cancel(stopped.run, at(2_000))).unwrap(),
            Appended::Final
        );
        let cancel = vec![
            Post::Cancel(id("posted")),
            Post::Cancel(id("posted")),
            Post::Cancel(id("x")),
        ];
        assert_eq!(
            done(&store, posting(&mut parent, cancel)),
            Appended::Applied
        );
        assert_eq!(row(&store, posted.run).state, RunState::Cancelled);
        let store = place.crash(&store);
        for _ in 0..2 {
            let told: Vec<_> = inbox(&store, parent.run)
                .into_iter()
                .map(|message| {
                    assert_eq!(message.channel, CHILD_ENDED);
                    let end = decode_finished(&message.payload.bytes).unwrap();
                    (message.arrival, message.reply_to.unwrap(), end)
                })
                .collect();
            let expected = [
                (1, "child-0".into(), ends[0].0.clone()),
                (2, "child-1".into(), ends[1].0.clone()),
                (3, "child-2".into(), ends[2].0.clone()),
                (4, "stopped".into(), Finished::Cancelled),
                (5, "posted".into(), Finished::Cancelled),
            ];
            assert_eq!(told, expected);
            place.rest(&store);
        }
    }
}

/// Rule 10: not of one that it does not wait for, not when it has ended itself, and not when it is not there.
pub fn who_does_not_wait_for_a_child_is_not_told<H: Harness>() {
    let (mut place, store) = H::fresh();
    let mut parent = Owner::start(&store, "a");
    let mut detached = started(&store, &mut parent, "detached", true);
    let mut late = started(&store, &mut parent, "late", false);
    let mut orphan = {
        let (run, post) = child(&*store, "orphan", "gone", false);
        assert_eq!(
            done(&store, posting(&mut parent, vec![post])),
            Appended::Applied
        );
        Owner {
            run,
            epoch: store.identity().boot,
            number: 0,
            seq: 1,
        }
    };
    let end = || vec![finished(Finished::Completed(Payload::json("1")))];
    detached.write(&store, end(), RunState::Completed);
    orphan.write(&store, end(), RunState::Completed);
    assert!(inbox(&store, parent.run).is_empty());
    parent.write(&store, end(), RunState::Completed);
    place.rest(&store);
    let before = row(&store, parent.run);
    late.write(&store, end(), RunState::Completed);
    assert_eq!(row(&store, late.run).state, RunState::Completed);
    assert_eq!(row(&store, parent.run), before);
    let gone = Owner::start(&store, "gone");
    assert!(
        inbox(&store, gone.run).is_empty(),
        "a child's end is not kept for a parent to come"
    );
}

/// Rules 1 and 7 with many senders at once: none is lost, none arrives twice, and the owner goes on between them.
pub fn many_senders_at_once_are_all_heard<H: Harness>() {
    const SENDERS: u64 = 6;
    const EACH: u64 = 100;
    let (mut place, store) = H::fresh();
    let mut receiver = Owner::start(&store, "a");
    let threads: Vec<_> = (0..SENDERS)
        .map(|sender| {
            let store = Arc::clone(&store);
            std::thread::spawn(move || {
                let mut owner = Owner::start(&store, &format!("sender-{sender}"));
                for turn in 0..EACH {
                    let number = u128::from(sender * EACH + turn);
                    if turn % 2 == 0 {
                        let Delivery::Queued { .. } = sent(&store, "a", message(number, "c"))
                        else {
                            panic!("the run goes on");
                        };
                    } else {
                        let posts = vec![to("a", message(number, "c"))];
                        assert_eq!(done(&store, posting(&mut owner, posts)), Appended::Applied);
                    }
                }
            })
        })
        .collect();
    for _ in 0..EACH {
        receiver.write(&store, vec![step("s")], RunState::Running);
    }
    for thread in threads {
        thread.join().unwrap();
    }
    let before = there(&store, receiver.run);
    let store = place.crash(&store);
    assert_eq!(there(&store, receiver.run), before);
    let (arrivals, mut numbers): (Vec<_>, Vec<_>) = there(&store, receiver.run).into_iter().unzip();
    assert!(arrivals.into_iter().eq(1..=SENDERS * EACH));
    for sender in 0..SENDERS {
        let own = sender * EACH..(sender + 1) * EACH;
        let sent = numbers
            .iter()
            .filter(|number| own.contains(&u64::try_from(**number).unwrap()));
        assert!(
            sent.is_sorted(),
            "each sender's come in the order in which it sent them"
        );
    }
    numbers.sort_unstable();
    assert!(numbers.into_iter().eq(0..u128::from(SENDERS * EACH)));
    let mut next = waiting(&mut receiver, &["c"], SENDERS * EACH);
    next.inbox.takes = (1..=SENDERS * EACH).collect();
    assert_eq!(done(&store, next), Appended::Applied);
    assert_eq!(
        sent(&store, "a", message(1, "c")),
        queued(receiver.run, SENDERS * EACH + 1, true)
    );
}

fn values(values: &[(&str, Option<&str>)]) -> Post {
    let values = values.iter().map(|(key, value)| {
        let value = value.map(|text| Payload::json(text.to_owned()));
        ((*key).to_owned(), value)
    });
    Post::Values(values.collect())
}

fn kept(store: &Arc<impl Store>, prefix: &str, after: Option<&str>, limit: usize) -> Vec<String> {
    let values = block_on(store.values(prefix, after, limit)).expect("values can be listed");
    let values = values.into_iter();
    values
        .map(|(key, value)| format!("{key}={}", String::from_utf8_lossy(&value.bytes)))
        .collect()
}

/// RVT-HOST-12: what the application keeps is in the transaction of the batch, and in no other; folded or not, crashed or not.
pub fn values_are_written_with_their_batch_and_the_last_one_stays<H: Harness>() {
    let (mut place, mut store) = H::fresh();
    let mut owner = Owner::start(&store, "a");
    let one = |store: &Arc<H::Store>, key: &str| {
        let value = block_on(store.value(key)).expect("a value can be read");
        value.map(|value| String::from_utf8_lossy(&value.bytes).into_owned())
    };
    assert_eq!(one(&store, "x"), None);
    let first = posting(
        &mut owner,
        vec![values(&[("x", Some("1")), ("y", Some("2"))])],
    );
    assert_eq!(done(&store, first.clone()), Appended::Applied);
    assert_eq!(done(&store, first), Appended::AlreadyApplied);
    place.rest(&store);
    let second = [
        ("y", None),
        ("z", Some("3")),
        ("x", Some("4")),
        ("x", Some("5")),
    ];
    let second = posting(&mut owner, vec![values(&second)]);
    assert_eq!(done(&store, second), Appended::Applied);
    let stale = Owner {
        epoch: 0,
        ..owner.clone()
    };
    let refused = posting(&mut stale.clone(), vec![values(&[("x", Some("6"))])]);
    assert_eq!(done(&store, refused), Appended::Lost);
    for _ in 0..2 {
        assert_eq!(one(&store, "x").as_deref(), Some("5"));
        assert_eq!(one(&store, "y"), None);
        assert_eq!(kept(&store, "", None, 9), ["x=5", "z=3"]);
        let loaded = loaded(&store, owner.run);
        assert_eq!(loaded.row.last_seq, owner.seq, "and so is the batch");
        place.rest(&store);
        assert_eq!(kept(&store, "", None, 9), ["x=5", "z=3"]);
        store = place.crash(&store);
    }
}

/// Of a key the last word stays, whichever run had it, or none: also when all are folded at once.
pub fn of_a_value_the_last_word_stays_whoever_had_it<H: Harness>() {
    let (mut place, mut store) = H::fresh();
    let mut first = Owner::start(&store, "a");
    let mut second = Owner::start(&store, "b");
    let put = |store: &Arc<H::Store>, pairs: &[(&str, Option<&str>)]| {
        let Post::Values(values) = values(pairs) else {
            unreachable!("values are what was made");
        };
        block_on(store.put(values)).expect("values can be written");
    };
    // The younger run has the earlier word, and so has nobody of another.
    let early = posting(
        &mut second,
        vec![values(&[
            ("x", Some("1")),
            ("y", Some("1")),
            ("z", Some("1")),
        ])],
    );
    assert_eq!(done(&store, early), Appended::Applied);
    put(&store, &[("w", Some("1")), ("z", Some("2"))]);
    let late = posting(
        &mut first,
        vec![values(&[("w", Some("2")), ("x", Some("2")), ("y", None)])],
    );
    assert_eq!(done(&store, late), Appended::Applied);
    put(&store, &[("x", Some("3")), ("v", Some("1")), ("v", None)]);
    let all = ["w=2", "x=3", "z=2"];
    for _ in 0..2 {
        assert_eq!(kept(&store, "", None, 9), all);
        place.rest(&store);
        assert_eq!(kept(&store, "", None, 9), all);
        store = place.crash(&store);
    }
    assert_eq!(kept(&store, "", None, 9), all);
}

/// Pages are of both what is folded and what is not.
pub fn values_are_listed_by_prefix_in_the_order_of_their_keys<H: Harness>() {
    let (mut place, store) = H::fresh();
    let mut owner = Owner::start(&store, "a");
    let early = [
        ("b/3", Some("0")),
        ("a/9", Some("0")),
        ("b/10", Some("0")),
        ("c", Some("0")),
    ];
    let early = posting(&mut owner, vec![values(&early)]);
    assert_eq!(done(&store, early), Appended::Applied);
    place.rest(&store);
    let late = [
        ("b/2", Some("1")),
        ("b/3", Some("1")),
        ("b", Some("1")),
        ("b/4", None),
        ("b0", Some("1")),
    ];
    let late = posting(&mut owner, vec![values(&late)]);
    assert_eq!(done(&store, late), Appended::Applied);
    let all = ["b/10=0", "b/2=1", "b/3=1"];
    assert_eq!(kept(&store, "b/", None, 9), all);
    assert_eq!(kept(&store, "b/", None, 2), all[..2]);
    assert_eq!(kept(&store, "b/", Some("b/2"), 9), all[2..]);
    assert_eq!(kept(&store, "b/", Some("b/25"), 9), all[2..]);
    assert_eq!(kept(&store, "b/", Some("a"), 9), all);
    assert_eq!(kept(&store, "b/", Some("c"), 9), [""; 0]);
    assert_eq!(kept(&store, "b/", None, 0), [""; 0]);
    assert_eq!(kept(&store, "d", None, 9), [""; 0]);
    let all = ["a/9=0", "b=1", "b/10=0", "b/2=1", "b/3=1", "b0=1", "c=0"];
    assert_eq!(kept(&store, "", None, 9), all);
    let store = place.crash(&store);
    assert_eq!(kept(&store, "", None, 9), all);
}
