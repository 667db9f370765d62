//! Operations that depend on each other.

use workflow::operation::{
    OnFailure, Operation, Plan, PlanError, PlanFailure, RunError, Snapshot, Status, blocked,
};

use super::{Told, millis, settle};

/// Takes 100 ms and tells when it begins and ends.
fn part(name: &'static str, told: &Told) -> Operation<()> {
    let (begins, undoes) = (told.clone(), told.clone());
    Operation::define(name, move |_| {
        let told = begins.clone();
        async move {
            told.say(format!("{name} begins"));
            tokio::time::sleep(millis(100)).await;
            told.say(format!("{name} ends"));
            Ok::<_, String>(())
        }
    })
    .undo(move |_, _| {
        undoes.say(format!("{name} undone"));
        async { Ok::<_, String>(()) }
    })
    .build()
}

fn failing(name: &'static str) -> Operation<()> {
    Operation::define(name, |_| async {
        tokio::time::sleep(millis(10)).await;
        Err("broken")
    })
    .build()
}

fn state(snapshot: &Snapshot) -> (Status, Option<&str>) {
    (snapshot.status(), snapshot.reason())
}

// OPR-DEP-01
#[tokio::test(start_paused = true)]
async fn what_depends_waits_and_what_does_not_overlaps_up_to_the_limit() {
    let told = Told::default();
    let [a, b, c] = ["a", "b", "c"].map(|name| part(name, &told));
    let plan = Plan::builder()
        .operation_after(&c, ["a", "b"])
        .operation_after(&b, ["a"])
        .operation(&a)
        .build()
        .unwrap();
    let run = tokio::spawn({
        let plan = plan.clone();
        async move { plan.run().await }
    });
    settle().await;
    assert_eq!(state(&a.snapshot()).0, Status::Running);
    assert_eq!(state(&b.snapshot()), (Status::Queued, Some("a")));
    assert_eq!(state(&c.snapshot()), (Status::Queued, Some("a, b")));
    tokio::time::sleep(millis(101)).await;
    assert_eq!(state(&c.snapshot()), (Status::Queued, Some("b")));
    run.await.unwrap().unwrap();
    assert_eq!(
        told.all(),
        [
            "a begins", "a ends", "b begins", "b ends", "c begins", "c ends"
        ]
    );
    let names: Vec<_> = plan
        .snapshots()
        .iter()
        .map(|one| one.name().to_owned())
        .collect();
    assert_eq!(names, ["a", "b", "c"]);

    let told = Told::default();
    let [one, two, three] = ["one", "two", "three"].map(|name| part(name, &told));
    let plan = Plan::builder()
        .operation(&one)
        .operation(&two)
        .operation(&three)
        .limit(2)
        .build()
        .unwrap();
    let run = tokio::spawn(async move { plan.run().await });
    settle().await;
    assert_eq!(told.all(), ["one begins", "two begins"]);
    assert_eq!(
        state(&three.snapshot()),
        (Status::Queued, Some("room: no more than 2 at a time"))
    );
    run.await.unwrap().unwrap();
    assert_eq!(told.count("three ends"), 1);
}

// OPR-DEP-02
#[tokio::test(start_paused = true)]
async fn what_depends_on_a_failure_is_skipped_and_the_rest_goes_on() {
    let told = Told::default();
    let a = failing("a");
    let [b, c, free, more] = ["b", "c", "free", "more"].map(|name| part(name, &told));
    let plan = Plan::builder()
        .operation(&a)
        .operation_after(&b, ["a"])
        .operation_after(&c, ["b"])
        .operation(&free)
        .operation_after(&more, ["free"])
        .build()
        .unwrap();
    let PlanFailure {
        failed, skipped, ..
    } = plan.run().await.unwrap_err();
    assert!(matches!(&failed[..], [(name, RunError::Failed(_))] if name == "a"));
    let names: Vec<_> = skipped.iter().map(|(name, _)| &**name).collect();
    assert_eq!(names, ["b", "c"]);
    assert_eq!(
        state(&b.snapshot()),
        (Status::Skipped, Some("`a` did not succeed: it is failed"))
    );
    assert_eq!(
        state(&c.snapshot()),
        (Status::Skipped, Some("`b` did not succeed: it is skipped"))
    );
    assert_eq!(
        told.all(),
        ["free begins", "free ends", "more begins", "more ends"]
    );
}

// OPR-DEP-02
#[tokio::test(start_paused = true)]
async fn by_policy_a_failure_stops_or_cancels_the_rest() {
    for (policy, status) in [
        (OnFailure::Stop, Status::Succeeded),
        (OnFailure::Cancel, Status::Cancelled),
    ] {
        let told = Told::default();
        let a = failing("a");
        let [b, c] = ["b", "c"].map(|name| part(name, &told));
        let plan = Plan::builder()
            .operation(&a)
            .operation(&b)
            .operation_after(&c, ["b"])
            .on_failure(policy)
            .build()
            .unwrap();
        let failure = plan.run().await.unwrap_err();
        assert_eq!(failure.failed[0].0, "a");
        assert_eq!(b.snapshot().status(), status, "{policy:?}");
        assert_eq!(c.snapshot().status(), Status::Skipped);
        assert_eq!(told.count("c begins"), 0);
        assert!(
            failure.to_string().ends_with("; skipped for that: c"),
            "{failure}"
        );
    }
}

// OPR-DEP-03
#[test]
fn a_cycle_or_an_unknown_dependency_is_refused_when_it_is_defined() {
    let told = Told::default();
    let [a, b, c, d] = ["a", "b", "c", "d"].map(|name| part(name, &told));
    let cycle = Plan::builder()
        .operation_after(&d, ["a"])
        .operation_after(&a, ["b"])
        .operation_after(&b, ["c"])
        .operation_after(&c, ["a"])
        .build()
        .unwrap_err();
    assert_eq!(
        cycle.to_string(),
        "these operations wait for each other: a -> b -> c -> a; take one of the dependencies out"
    );
    let own = Plan::builder()
        .operation_after(&a, ["a"])
        .build()
        .unwrap_err();
    assert_eq!(
        own,
        PlanError::Cycle {
            path: vec!["a".to_owned(), "a".to_owned()]
        }
    );
    let unknown = Plan::builder()
        .operation(&a)
        .operation_after(&b, ["A"])
        .build()
        .unwrap_err();
    assert_eq!(
        unknown.to_string(),
        "operation `b` depends on `A`, which is not in the plan: add it; there are a, b"
    );
    let twice = Plan::builder()
        .operation(&a)
        .operation(&a)
        .build()
        .unwrap_err();
    assert!(matches!(twice, PlanError::SameName { .. }));
    let none = Plan::builder().operation(&a).limit(0).build().unwrap_err();
    assert!(matches!(none, PlanError::NoRoom));
}

#[tokio::test(start_paused = true)]
async fn run_again_a_plan_goes_on_and_rolled_back_it_begins_with_the_newest() {
    let told = Told::default();
    let a = part("a", &told);
    let gate = Operation::define("gate", |cx| async move {
        cx.released::<()>().ok_or_else(|| blocked("a signature"))
    })
    .build();
    let c = part("c", &told);
    let plan = Plan::builder()
        .operation(&a)
        .operation_after(&gate, ["a"])
        .operation_after(&c, ["gate"])
        .build()
        .unwrap();
    let failure = plan.run().await.unwrap_err();
    assert!(matches!(failure.failed[0].1, RunError::Blocked(_)));
    assert_eq!(c.snapshot().status(), Status::Skipped);
    drop(gate.release(()).unwrap());
    plan.run().await.unwrap();
    plan.rollback().await.unwrap();
    assert_eq!(
        told.all(),
        [
            "a begins", "a ends", "c begins", "c ends", "c undone", "a undone"
        ],
        "a is not done again"
    );
}

#[tokio::test(start_paused = true)]
async fn queued_ones_may_be_cancelled_and_skipped_by_hand() {
    let told = Told::default();
    let [a, b, c, d] = ["a", "b", "c", "d"].map(|name| part(name, &told));
    let plan = Plan::builder()
        .operation(&a)
        .operation_after(&b, ["a"])
        .operation_after(&c, ["b"])
        .operation_after(&d, ["a"])
        .build()
        .unwrap();
    let run = tokio::spawn({
        let plan = plan.clone();
        async move { plan.run().await }
    });
    settle().await;
    b.skip().unwrap();
    assert!(d.cancel("not needed"));
    let failure = run.await.unwrap().unwrap_err();
    assert_eq!(failure.failed.len(), 1);
    assert!(
        matches!(&failure.failed[0].1, RunError::Cancelled { reason, .. } if reason == "not needed")
    );
    assert_eq!(
        told.all(),
        ["a begins", "a ends", "c begins", "c ends"],
        "c goes on without b"
    );

    // Dropped, nothing of it is left in flight.
    let [a, b] = ["a", "b"].map(|name| part(name, &told));
    let plan = Plan::builder()
        .operation(&a)
        .operation_after(&b, ["a"])
        .build()
        .unwrap();
    tokio::time::timeout(millis(10), plan.run())
        .await
        .unwrap_err();
    assert_eq!(a.snapshot().status(), Status::Cancelled);
    assert_eq!(b.snapshot().status(), Status::Cancelled);
    let running = tokio::spawn(a.run().into_future());
    settle().await;
    let refused = plan.run().await.unwrap_err();
    assert!(
        matches!(refused.failed[0].1, RunError::Refused(_)),
        "{refused}"
    );
    running.await.unwrap().unwrap();
}
