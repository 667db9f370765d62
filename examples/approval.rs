//! A human in the loop, with a deadline. `cargo run --example approval`.
//!
//! ```text
//! cargo run --example approval                # on a terminal: you are the manager, and then the director
//! cargo run --example approval < /dev/null    # four claims, and colleagues who answer, or do not
//! kill -9 $(pgrep -x approval)                # at any moment
//! cargo run --example approval                # goes on: deadlines are where they were, nobody is asked a second time
//! ```
//!
//! An expense claim asks the manager. The answer is a message; it races a branch that mails reminders, and
//! gives up when its time is over. Then the director is asked, with a timeout of its own, and who is silent then has
//! refused. While it waits, for days if need be, a claim is not in memory; a deadline is recorded when it is first reached, and no
//! restart moves it.
//!
//! The history is in a file (`DATA` says where) that is removed when all is decided.
#![expect(clippy::print_stdout, reason = "what the program is for")]

use std::io::{BufRead, IsTerminal};
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use workflow::{
    Channel, Engine, Failure, RunHandle, SendError, current_step, race, recv, sleep, step, workflow,
};

static ANSWER: Channel<Answer> = Channel::new("answer");

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Answer {
    by: String,
    approves: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Claim {
    what: String,
    euros: u32,
    /// How long one waits for an answer before one reminds.
    patience: Duration,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
enum Decision {
    Paid { by: String },
    Refused { by: String },
    Lapsed,
}

/// Stands for a mail.
#[step(retries = 5)]
async fn mail(to: &str, text: &str) {
    println!("  {}: to the {to}: {text}", current_step().run_id());
}

/// Stands for a payment; the bank takes the key.
#[step(retries = 5, timeout = "10s")]
async fn pay(euros: u32) {
    println!("  {}: {euros} euros are paid", current_step().run_id());
}

#[workflow]
async fn expense(claim: Claim) -> Result<Decision, Failure> {
    let Claim {
        what,
        euros,
        patience,
    } = &claim;
    #[step(name = "ask_manager")]
    mail(
        "manager",
        &format!("please approve {euros} euros for {what}"),
    )
    .await?;
    let manager = race!(
        manager,
        answered = Some(recv!(answer, ANSWER).await?),
        silent = {
            'reminders: for number in 1..=2 {
                sleep!(patience, *patience).await;
                #[step(name = "remind")]
                mail("manager", &format!("reminder {number}: {what}")).await?;
            }
            sleep!(last, *patience).await;
            None
        }
    )
    .await?;
    let answer = match manager.value {
        Some(answer) => Some(answer),
        None => {
            #[step(name = "ask_director")]
            mail(
                "director",
                &format!("the manager is silent about {euros} euros for {what}"),
            )
            .await?;
            recv!(director, ANSWER, timeout = *patience * 4).await?
        }
    };
    let decision = match answer {
        Some(Answer { by, approves: true }) => {
            pay(*euros).await?;
            Decision::Paid { by }
        }
        Some(Answer { by, .. }) => Decision::Refused { by },
        None => Decision::Lapsed,
    };
    let told = match &decision {
        Decision::Paid { by } => format!("{by} approved {what}"),
        Decision::Refused { by } => format!("{by} refused {what}"),
        Decision::Lapsed => format!("nobody decided about {what}"),
    };
    #[step(name = "tell")]
    mail("claimant", &told).await?;
    Ok(decision)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let data = std::env::var_os("DATA").map_or_else(
        || std::env::temp_dir().join("workflow-approval.redb"),
        PathBuf::from,
    );
    let engine = Engine::builder().workflow(expense).open(&data).await?;
    let asked = async {
        if std::io::stdin().is_terminal() {
            ask(&engine).await
        } else {
            play(&engine).await
        }
    };
    let decided = tokio::select! {
        decided = asked => Some(decided?),
        _ = tokio::signal::ctrl_c() => None,
    };
    engine.shutdown(Duration::from_secs(5)).await?;
    match decided {
        Some(()) => std::fs::remove_file(&data)?,
        None => println!("stopped; run it again to go on"),
    }
    Ok(())
}

/// One claim, and whoever sits at the terminal.
async fn ask(engine: &Engine) -> Result<(), workflow::Error> {
    let claim = Claim {
        what: "a train to Lyon".to_owned(),
        euros: 240,
        patience: Duration::from_secs(10),
    };
    let run = engine
        .start("claim-at-the-terminal", expense(claim))
        .await?;
    println!("answer `yes` or `no`; or wait, and be reminded");
    let (answering, runtime) = (run.clone(), tokio::runtime::Handle::current());
    // Left behind when the program ends.
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            let approves = match line.trim() {
                "yes" => true,
                "no" => false,
                _ => {
                    println!("`yes` or `no`");
                    continue;
                }
            };
            let by = "whoever sits here".to_owned();
            let answer = Answer { by, approves };
            if let Err(error) = runtime.block_on(answering.send(&ANSWER, &answer)) {
                println!("{error}");
            }
        }
    });
    println!("decided: {:?}", run.result().await?);
    Ok(())
}

/// Who answers, how, and after how many tenths of a second.
type Reaction = (&'static str, bool, u64);

/// Four claims at once, and colleagues.
async fn play(engine: &Engine) -> Result<(), workflow::Error> {
    let claims: [(&str, u32, Option<Reaction>); 4] = [
        ("a train to Lyon", 240, Some(("Grace", true, 1))),
        ("a golden pen", 900, Some(("Grace", false, 6))),
        ("a night in Lyon", 130, Some(("Radia", true, 16))),
        ("a second golden pen", 900, None),
    ];
    let mut runs = Vec::new();
    for (number, (what, euros, answer)) in (1..).zip(claims) {
        let claim = Claim {
            what: what.to_owned(),
            euros,
            patience: Duration::from_millis(400),
        };
        let run = engine
            .start(format!("claim-{number}"), expense(claim))
            .await?;
        if let Some((by, approves, tenths)) = answer {
            let (run, by) = (run.clone(), by.to_owned());
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_millis(100 * tenths)).await;
                colleague(&run, Answer { by, approves }).await;
            });
        }
        runs.push(run);
    }
    for run in runs {
        let decision = run.result().await?;
        println!("{}: {decision:?}", run.id());
    }
    Ok(())
}

/// Answers once, also when an earlier process has done so.
async fn colleague(run: &RunHandle<expense>, answer: Answer) {
    match run.send_once(&ANSWER, "the answer", &answer).await {
        Ok(()) | Err(SendError::Ended { .. }) => {}
        Err(error) => println!("{error}"),
    }
}

#[cfg(test)]
mod tests {
    use workflow::testing::{self, Broken, Crashes, Replay, crash_everywhere, expect};

    use super::*;

    /// A good day.
    const PATIENCE: Duration = Duration::from_secs(100_000);

    fn claim() -> Claim {
        Claim {
            what: "a train to Lyon".to_owned(),
            euros: 240,
            patience: PATIENCE,
        }
    }

    fn answer(approves: bool) -> Answer {
        Answer {
            by: "Grace".to_owned(),
            approves,
        }
    }

    fn never_reached(crashes: &Crashes) -> Vec<&str> {
        let never = crashes.sites_never_reached().iter();
        never.map(|site| site.name).collect()
    }

    /// Days pass in no time, and a crash in any of them changes nothing.
    #[tokio::test]
    async fn an_answer_survives_every_crash() -> Result<(), Broken> {
        let crashes = crash_everywhere(expense(claim()))
            .send_after(PATIENCE / 2, &ANSWER, answer(true))
            .await?;
        // The manager is not silent in this test; in the next one.
        assert_eq!(
            never_reached(&crashes),
            ["remind", "last", "ask_director", "director"]
        );
        Ok(())
    }

    #[tokio::test]
    async fn so_does_one_of_the_director() -> Result<(), Broken> {
        let crashes = crash_everywhere(expense(claim()))
            .send_after(PATIENCE * 4, &ANSWER, answer(false))
            .await?;
        assert_eq!(never_reached(&crashes), ["pay"]);
        Ok(())
    }

    #[tokio::test]
    async fn so_does_a_claim_that_nobody_decides() -> Result<(), Broken> {
        crash_everywhere(expense(claim())).await.map(drop)
    }

    #[tokio::test]
    async fn the_manager_is_reminded_twice() -> Result<(), Box<dyn std::error::Error>> {
        let engine = testing::engine().workflow(expense).build().await?;
        let run = engine.start("claim", expense(claim())).await?;
        tokio::time::sleep(PATIENCE * 5 / 2).await;
        let history = run.export().await?;
        expect(&history)
            .steps([
                "ask_manager",
                "manager/silent/reminders[0]/remind",
                "manager/silent/reminders[1]/remind",
            ])
            .waits_at("manager/silent/last");
        assert!(
            Replay::of(expense)
                .over(&history)?
                .waits_at("manager/answered/answer")
        );
        run.send(&ANSWER, &answer(true)).await?;
        let by = "Grace".to_owned();
        assert_eq!(run.result().await?, Decision::Paid { by });
        expect(&run.export().await?)
            .won("manager", "answered")
            .nothing_at("director");
        Ok(())
    }
}
