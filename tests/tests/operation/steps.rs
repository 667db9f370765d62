//! An operation in the body of a durable step.

use std::sync::Mutex;

use workflow::operation::{Operation, RunError, Status};
use workflow::{Engine, Failure, MemoryStore, step, workflow};

static SEEN: Mutex<Vec<Status>> = Mutex::new(Vec::new());

#[step(timeout = "100ms", retries = 0)]
async fn upload(files: u32) -> Result<u32, RunError> {
    let step = workflow::current_step();
    let upload = Operation::define("upload", move |cx| async move {
        // The work runs in the step's own task.
        assert!(workflow::try_current_step().is_some());
        if files == 0 {
            std::future::pending::<()>().await;
        }
        cx.log("there");
        Ok::<_, String>(files)
    })
    .build();
    upload.observe(|event| {
        SEEN.lock().unwrap().push(event.to());
        Ok::<_, String>(())
    });
    upload
        .run()
        .cancel_on(step.cancellation().cancelled())
        .await
}

#[workflow]
async fn backup(files: u32) -> Result<u32, Failure> {
    upload(files).await
}

#[tokio::test(start_paused = true)]
async fn a_step_may_run_an_operation_and_its_end_is_that_of_the_operation() {
    let engine = Engine::builder()
        .workflow(backup)
        .store(MemoryStore::new())
        .build()
        .await
        .unwrap();
    assert_eq!(engine.run("one", backup(3)).await.unwrap(), 3);
    assert_eq!(
        std::mem::take(&mut *SEEN.lock().unwrap()),
        [Status::Queued, Status::Running, Status::Succeeded]
    );
    engine.run("two", backup(0)).await.unwrap_err();
    assert_eq!(
        std::mem::take(&mut *SEEN.lock().unwrap()),
        [Status::Queued, Status::Running, Status::Cancelled]
    );
}
