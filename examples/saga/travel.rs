//! The travel agency: the steps that touch the world, what undoes them, and the saga over both.

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use workflow::{Failure, Record, checkpoint, current_step, replay::Body, step, workflow};

/// Something that was booked. No two bookings have the same nonce.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Booking {
    nonce: String,
    price: u32,
}

/// Cheap to clone: each run gets one.
#[derive(Debug, Clone)]
pub(crate) struct Travel {
    effects: Arc<File>,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum TravelError {
    #[error("the airline has no seats left")]
    NoSeats,
    #[error("the bank does not answer")]
    NoAnswer,
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Travel {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let effects = OpenOptions::new().create(true).append(true).open(path)?;
        Ok(Self {
            effects: Arc::new(effects),
        })
    }

    /// One `write` of one line: a kill leaves all of it or nothing. A step and its undo have the same run and location.
    fn say(&self, verb: &str, nonce: &str) -> io::Result<()> {
        let step = current_step();
        let line = format!("{} {} {verb} {nonce}\n", step.run_id(), step.location());
        (&*self.effects).write_all(line.as_bytes())
    }

    #[step]
    async fn book(&self, price: u32) -> Result<Booking, TravelError> {
        let nonce = format!("{:016x}", RandomState::new().hash_one(std::process::id()));
        self.say("book", &nonce)?;
        Ok(Booking { nonce, price })
    }

    /// Takes the money, and then may not say so.
    #[step(retries = 0)]
    async fn pay(&self, trip: u32, price: u32) -> Result<Booking, TravelError> {
        let nonce = current_step().idempotency_key();
        self.say("book", &nonce)?;
        if trip % 3 == 2 {
            return Err(TravelError::NoAnswer);
        }
        Ok(Booking { nonce, price })
    }

    #[step(retries = 0)]
    async fn ticket(&self, trip: u32) -> Result<(), TravelError> {
        if trip % 3 == 1 {
            return Err(TravelError::NoSeats);
        }
        Ok(())
    }
}

async fn cancel(booking: Booking, travel: Travel) -> io::Result<()> {
    travel.say("undo", &booking.nonce)
}

/// What the bank did not say, it can be asked by the key that it was given.
async fn refund(payment: Option<Booking>, travel: Travel) -> io::Result<()> {
    let key = match payment {
        Some(payment) => payment.nonce,
        None => current_step().idempotency_key(),
    };
    travel.say("undo", &key)
}

/// One trip. From the checkpoint on, failing means undoing.
#[workflow]
pub(crate) async fn trip(number: u32, #[state] travel: Travel) -> Result<u32, Failure> {
    checkpoint!(begun);
    #[step(name = "hotel", undo(cancel))]
    let hotel = travel.book(300).await?;
    #[step(name = "car", undo(cancel))]
    let car = travel.book(80).await?;
    #[step(name = "flight", undo(|flight: Booking, travel: Travel| async move { travel.say("undo", &flight.nonce) }))]
    let flight = travel.book(420).await?;
    let price = hotel.price + car.price + flight.price;
    #[step(name = "payment", undo(refund))]
    travel.pay(number, price).await?;
    travel.ticket(number).await?;
    Ok(price)
}

/// What the file has of the effects that are recorded.
#[derive(Debug, Default)]
pub(crate) struct Verified {
    pub(crate) recorded: usize,
    pub(crate) undone: usize,
    pub(crate) wrong: Vec<String>,
}

impl Verified {
    /// Lays a run's history beside the file.
    pub(crate) fn lay_beside(
        &mut self,
        history: &[Record],
        run: &str,
        effects: &Path,
    ) -> io::Result<()> {
        let text = std::fs::read_to_string(effects)?;
        let said = |wanted: &'static str| {
            let words = text.lines().map(|line| line.split(' ').collect::<Vec<_>>());
            let of_run = words.filter(move |words| words[0] == run && words[2] == wanted);
            of_run.map(|words| words[3].to_owned())
        };
        let (mut order, mut recorded) = (Vec::new(), HashSet::new());
        let (mut unwinds, mut undos) = (false, 0);
        for record in history {
            match &record.body {
                Body::Ended(ended) => {
                    let value = ended.outcome.as_ref().ok();
                    let booking = value.and_then(|value| serde_json::from_slice(&value.bytes).ok());
                    if let Some(Booking { nonce, .. }) = booking {
                        recorded.insert(nonce);
                    }
                }
                Body::Unwinding { .. } => unwinds = true,
                Body::Undone { .. } => undos += 1,
                _ => {}
            }
        }
        // What was cut off and is undone again stands there twice in a row.
        for nonce in said("undo") {
            if order.last() != Some(&nonce) {
                order.push(nonce);
            }
        }
        let booked: Vec<_> = said("book").collect();
        let newest = |nonce: &String| booked.iter().rposition(|booked| booked == nonce);
        let places: Vec<_> = order.iter().map(newest).collect();
        let right = if unwinds {
            // Each recorded effect, and the payment that the bank did not speak of; newest first.
            let all = recorded.iter().all(|nonce| order.contains(nonce));
            all && order.len() == undos && undos == 4 && places.is_sorted_by(|a, b| a > b)
        } else {
            order.is_empty() && recorded.len() == 4
        };
        if !right {
            self.wrong
                .push(format!("{run}: booked {booked:?}, undone {order:?}"));
        }
        self.recorded += recorded.len();
        self.undone += order.len();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::io::{Read, Seek};

    use workflow::testing::{Broken, Steps, crash_everywhere, engine, expect};

    use super::*;

    fn travel() -> Travel {
        Travel {
            effects: Arc::new(tempfile::tempfile().expect("a file")),
        }
    }

    /// The last word about each location: `book`, or `undo`.
    fn last_words(travel: &Travel) -> BTreeMap<String, String> {
        let mut text = String::new();
        let mut file = &*travel.effects;
        file.rewind().expect("it is a file");
        file.read_to_string(&mut text)
            .expect("it was written as text");
        let lines = text.lines().map(|line| line.split(' ').collect::<Vec<_>>());
        lines
            .map(|words| (words[1].to_owned(), words[2].to_owned()))
            .collect()
    }

    async fn survives(number: u32) -> Result<(), Broken> {
        let crashes = crash_everywhere(trip(number))
            .fresh(travel)
            .effect("the last word", last_words)
            .await?;
        crashes.assert_all_sites();
        Ok(())
    }

    #[tokio::test]
    async fn a_trip_that_is_booked_survives_every_crash() -> Result<(), Broken> {
        survives(3).await
    }

    #[tokio::test]
    async fn one_that_the_airline_refuses_is_undone_whatever_happens() -> Result<(), Broken> {
        survives(1).await
    }

    #[tokio::test]
    async fn one_that_the_bank_is_silent_about_is_undone_whatever_happens() -> Result<(), Broken> {
        let crashes = crash_everywhere(trip(2))
            .fresh(travel)
            .effect("the last word", last_words)
            .await?;
        let never = crashes.sites_never_reached().iter();
        let never: Vec<_> = never.map(|site| site.name).collect();
        assert_eq!(never, ["ticket"]);
        Ok(())
    }

    #[tokio::test]
    async fn an_undo_that_fails_is_tried_again_in_its_turn()
    -> Result<(), Box<dyn std::error::Error>> {
        let busy = workflow::testing::Fault::Error("busy".to_owned());
        let steps = Steps::of(trip).fault_undo("car", 2, busy);
        let builder = engine().workflow(trip).state(travel());
        let engine = builder.steps(&steps).build().await?;
        let run = engine.start("trip-1", trip(1)).await?;
        assert!(run.result().await.is_err());
        assert_eq!(steps.undo_attempts("car"), 3);
        expect(&run.export().await?)
            .undone(["payment", "flight", "car", "hotel"])
            .failed("no seats left");
        Ok(())
    }
}
