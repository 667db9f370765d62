//! A record of every kind and shape, and rows of every state.

use bytes::Bytes;
use workflow::replay::{
    AttemptState, Begun, Body, CodeId, Control, Ended, Failure, FailureKind, Finished, Kind,
    Location, Message, Opened, ParkReason, Payload, Record, RunId, RunKey, RunState, Segment,
    Timestamp, Waiting,
};
use workflow::store::{Parked, RunRow};

pub(crate) const KINDS: [Kind; 22] = [
    Kind::Step,
    Kind::Sleep,
    Kind::Now,
    Kind::Join,
    Kind::Race,
    Kind::JoinAll,
    Kind::Loop,
    Kind::Fragment,
    Kind::Derived,
    Kind::Recv,
    Kind::Send,
    Kind::Reply,
    Kind::Child,
    Kind::Attempt,
    Kind::Version,
    Kind::Removed,
    Kind::Checkpoint,
    Kind::Settle,
    Kind::Rollback,
    Kind::Call,
    Kind::Stage,
    Kind::Guide,
];

pub(crate) const FAILURES: [FailureKind; 16] = [
    FailureKind::Exhausted,
    FailureKind::TimedOut,
    FailureKind::Critical,
    FailureKind::Interrupted,
    FailureKind::Panicked,
    FailureKind::Join,
    FailureKind::Race,
    FailureKind::Child,
    FailureKind::Cancelled,
    FailureKind::Encode,
    FailureKind::Decode,
    FailureKind::DuplicateKey,
    FailureKind::Gone,
    FailureKind::Rollback,
    FailureKind::Returned,
    FailureKind::Blocked,
];

pub(crate) const STATES: [RunState; 8] = [
    RunState::Pending,
    RunState::Running,
    RunState::Waiting,
    RunState::RollingBack,
    RunState::Parked,
    RunState::Completed,
    RunState::Failed,
    RunState::Cancelled,
];

pub(crate) const REASONS: [ParkReason; 11] = [
    ParkReason::Diverged,
    ParkReason::Decode,
    ParkReason::Version,
    ParkReason::Unregistered,
    ParkReason::Panicked,
    ParkReason::NotDurable,
    ParkReason::UndoFailed,
    ParkReason::UndoMissing,
    ParkReason::Encode,
    ParkReason::NewerFormat,
    ParkReason::Storage,
];

pub(crate) fn place() -> Location {
    let root = Location::root().site("items").child(Segment::Key {
        key: "sku-9",
        occurrence: 1,
    });
    root.site("settle")
        .branch("paid")
        .site("loop")
        .iteration(300)
        .site("charge")
}

pub(crate) fn payload() -> Payload {
    Payload::json("{\"total\":12}")
}

pub(crate) fn failure() -> Failure {
    let branch = Failure::new(FailureKind::TimedOut, place(), "too slow").with_attempts(4);
    Failure::new(FailureKind::Join, place(), "two branches failed")
        .with_attempts(300)
        .with_type_name("stock::StockError")
        .with_chain(vec!["no funds".to_owned(), "declined".to_owned()])
        .with_value(Some(Payload {
            codec: 3,
            bytes: Bytes::from_static(&[0, 1, 255]),
        }))
        .with_branches(vec![
            branch,
            Failure::new(FailureKind::Gone, Location::root(), ""),
        ])
}

pub(crate) fn taken(id: u128) -> Message {
    Message {
        id,
        channel: "payment".to_owned(),
        arrival: 70_000,
        at: Timestamp::from_millis(1_764_475_944_100),
        dedup: Some("k-1".to_owned()),
        reply_to: Some(Bytes::from_static(b"node/7")),
        payload: payload(),
    }
}

pub(crate) fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|&text| text.to_owned()).collect()
}

pub(crate) fn ended(kind: Kind, outcome: Result<Payload, Failure>) -> Body {
    let started_at = Timestamp::from_millis(1_764_475_944_000);
    Body::Ended(Ended {
        kind,
        outcome,
        attempts: 2,
        started_at,
        input_hash: Some(0x1122_3344_5566_7788),
    })
}

/// Every kind of body, and every shape that each can have.
pub(crate) fn bodies() -> Vec<(&'static str, Vec<Body>)> {
    let id = |id| RunId::from_stored(id);
    let until = Timestamp::from_millis(1_764_476_844_123);
    let begun = Begun {
        workflow: "checkout".to_owned(),
        input: payload(),
        input_hash: 0xfeed_f00d_dead_beef,
        seed: 0x0102_0304_0506_0708_090a_0b0c_0d0e_0f10,
        generation: 2,
        parent: Some((id("order-17"), place())),
        forked_from: Some(id("order-3")),
    };
    let plain = Begun {
        parent: None,
        forked_from: None,
        generation: 0,
        ..begun.clone()
    };
    let undone = |outcome, skipped| Body::Undone {
        undoes: 12,
        attempt: 3,
        outcome,
        skipped,
    };
    let state = |command| Body::State {
        revision: 9,
        payload: payload(),
        command,
    };
    vec![
        (
            "begun",
            vec![Body::Begun(Box::new(begun)), Body::Begun(Box::new(plain))],
        ),
        (
            "opened",
            vec![
                Body::Opened(Opened::Join(texts(&["a", "b"]))),
                Body::Opened(Opened::Race(texts(&["paid", "expired"]))),
                Body::Opened(Opened::JoinAll(5_000)),
                Body::Opened(Opened::Carry(texts(&["cursor", "total"]))),
                Body::Opened(Opened::Stage {
                    visit: 2,
                    keeps: Some(1),
                }),
                Body::Opened(Opened::Stage {
                    visit: 1,
                    keeps: None,
                }),
            ],
        ),
        (
            "waiting",
            vec![
                Body::Waiting(Waiting::Sleep { until }),
                Body::Waiting(Waiting::Recv {
                    channels: Some(texts(&["a", "b"])),
                    until: Some(until),
                    want: 3,
                }),
                Body::Waiting(Waiting::Recv {
                    channels: None,
                    until: None,
                    want: 1,
                }),
                Body::Waiting(Waiting::Child {
                    id: id("order-17/ship"),
                    detached: true,
                }),
                Body::Waiting(Waiting::Child {
                    id: id("order-17/ship"),
                    detached: false,
                }),
                Body::Waiting(Waiting::Body),
            ],
        ),
        (
            "attempt",
            vec![
                Body::Attempt {
                    number: 1,
                    state: AttemptState::Started,
                },
                Body::Attempt {
                    number: 2,
                    state: AttemptState::Failed {
                        failure: failure(),
                        wake_at: until,
                    },
                },
            ],
        ),
        ("ended", {
            let mut bodies: Vec<_> = KINDS
                .into_iter()
                .map(|kind| ended(kind, Ok(payload())))
                .collect();
            bodies.extend(
                FAILURES
                    .into_iter()
                    .map(|kind| ended(Kind::Step, Err(failure().with_kind(kind)))),
            );
            bodies
        }),
        (
            "taken",
            vec![
                Body::Taken(vec![
                    taken(u128::MAX),
                    Message {
                        dedup: None,
                        reply_to: None,
                        ..taken(1)
                    },
                ]),
                Body::Taken(Vec::new()),
            ],
        ),
        (
            "decided",
            vec![Body::Decided {
                branch: "paid".to_owned(),
            }],
        ),
        (
            "carried",
            vec![Body::Carried {
                next: 41,
                state: payload(),
            }],
        ),
        ("closed", vec![Body::Closed(payload())]),
        (
            "pin",
            vec![Body::Pin {
                value: 1,
                latest: 3,
            }],
        ),
        (
            "removed",
            KINDS
                .into_iter()
                .map(|kind| Body::Removed { kind })
                .collect(),
        ),
        ("checkpoint", vec![Body::Checkpoint]),
        ("settled", vec![Body::Settled { up_to: 1 << 40 }]),
        (
            "armed",
            [
                (Some(payload()), None),
                (None, None),
                (None, Some(Location::root().branch("create").iteration(1))),
            ]
            .map(|(output, origin)| Body::Armed {
                origin,
                number: 300,
                location: Location::root().site("items").iteration(3).site("reserve"),
                undo: "items[]/reserve".to_owned(),
                output,
            })
            .into(),
        ),
        (
            "unwinding",
            [Some(failure()), None]
                .map(|cause| Body::Unwinding { cause })
                .into(),
        ),
        ("state", vec![state(Some("edit-1".to_owned())), state(None)]),
        (
            "undone",
            vec![
                undone(Ok(()), None),
                undone(Err(failure()), Some("paid by hand".to_owned())),
            ],
        ),
        (
            "control",
            vec![
                Body::Control(Control::Cancel { undo: true }),
                Body::Control(Control::Cancel { undo: false }),
                Body::Control(Control::Evicted),
                Body::Control(Control::Recovered),
                Body::Control(Control::Rewound {
                    to: place(),
                    generation: 1,
                    removed: 17,
                }),
                Body::Control(Control::Skipped {
                    reason: "done by hand".to_owned(),
                }),
            ],
        ),
        (
            "control_forked",
            vec![Body::Control(Control::Forked { seed: 7 << 100 })],
        ),
        (
            "finished",
            vec![
                Body::Finished(Finished::Completed(payload())),
                Body::Finished(Finished::Failed(failure())),
                Body::Finished(Finished::Cancelled),
            ],
        ),
    ]
}

pub(crate) fn record(body: Body) -> Record {
    let at = Timestamp::from_millis(1_764_475_944_123);
    Record {
        seq: 300,
        at,
        code: CodeId(0x0123_4567_89ab_cdef),
        location: place(),
        body,
    }
}

pub(crate) fn rows() -> Vec<RunRow> {
    let full = RunRow {
        key: RunKey(7),
        id: RunId::from_stored("order-17/ship"),
        workflow: "ship".to_owned(),
        state: RunState::Parked,
        parked: None,
        advanced_by: CodeId(0x0123_4567_89ab_cdef),
        epoch: 3,
        last_seq: 300,
        last_append: (3, 70_000),
        generation: 1,
        wake_at: Some(Timestamp::from_millis(1_764_476_844_123)),
        waits: Some(texts(&["payment"])),
        inbox_seq: 5,
        parent: Some((RunId::from_stored("order-17"), place())),
        detached: true,
        progress: Some("{\"done\":3}".to_owned()),
        created_at: Timestamp::from_millis(1_764_475_944_000),
        updated_at: Timestamp::from_millis(1_764_475_944_123),
        unclean: 0,
        released: false,
        not_before: None,
        priority: 0,
        finished_at: Some(Timestamp::MAX),
    };
    let bare = RunRow {
        wake_at: None,
        waits: None,
        parent: None,
        progress: None,
        finished_at: None,
        detached: false,
        ..full.clone()
    };
    let parked = REASONS.into_iter().map(|reason| {
        let detail = format!("because {reason}");
        RunRow {
            parked: Some(Parked {
                reason,
                by: CodeId(9),
                detail,
            }),
            ..full.clone()
        }
    });
    let in_state = STATES.into_iter().map(|state| RunRow {
        state,
        ..bare.clone()
    });
    parked
        .chain(in_state)
        .chain([RunRow {
            waits: Some(Vec::new()),
            ..full.clone()
        }])
        .collect()
}

/// Rows with what was added to them later.
pub(crate) fn later_rows() -> Vec<RunRow> {
    let row = rows().swap_remove(0);
    let unclean = |unclean, released| RunRow {
        unclean,
        released,
        ..row.clone()
    };
    vec![unclean(300, true), unclean(0, true), unclean(1, false)]
}

/// Rows with what was added later still.
pub(crate) fn rows_with_terms() -> Vec<RunRow> {
    let row = rows().swap_remove(0);
    let terms = |not_before, priority| RunRow {
        not_before,
        priority,
        ..row.clone()
    };
    let at = Timestamp::from_millis(1_764_476_844_123);
    let released = RunRow {
        released: true,
        ..terms(Some(at), -1)
    };
    vec![
        terms(Some(at), 0),
        terms(None, 1),
        terms(None, i32::MIN),
        terms(Some(Timestamp::MAX), i32::MAX),
        released,
    ]
}
