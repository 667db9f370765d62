//! The bodies of records, one by one.

use super::{Fault, failure, read::Reader, write::Writer};
use crate::replay::{
    AttemptState, Begun, Body, Control, Ended, Finished, Message, Opened, Waiting,
};

const BEGUN: u8 = 1;
const OPENED: u8 = 2;
const WAITING: u8 = 3;
const ATTEMPT: u8 = 4;
const ENDED: u8 = 5;
const TAKEN: u8 = 6;
const DECIDED: u8 = 7;
const CARRIED: u8 = 8;
const CLOSED: u8 = 9;
const PIN: u8 = 10;
const REMOVED: u8 = 11;
const CHECKPOINT: u8 = 12;
const SETTLED: u8 = 13;
const STATE: u8 = 14;
const UNDONE: u8 = 15;
const CONTROL: u8 = 16;
const FINISHED: u8 = 17;
const ARMED: u8 = 18;
const UNWINDING: u8 = 19;

/// The number of a body's kind, as it stands in the envelope.
pub(super) fn kind(body: &Body) -> u8 {
    match body {
        Body::Begun(_) => BEGUN,
        Body::Opened(_) => OPENED,
        Body::Waiting(_) => WAITING,
        Body::Attempt { .. } => ATTEMPT,
        Body::Ended(_) => ENDED,
        Body::Taken(_) => TAKEN,
        Body::Decided { .. } => DECIDED,
        Body::Carried { .. } => CARRIED,
        Body::Closed(_) => CLOSED,
        Body::Pin { .. } => PIN,
        Body::Removed { .. } => REMOVED,
        Body::Checkpoint => CHECKPOINT,
        Body::Settled { .. } => SETTLED,
        Body::State { .. } => STATE,
        Body::Undone { .. } => UNDONE,
        Body::Control(_) => CONTROL,
        Body::Finished(_) => FINISHED,
        Body::Armed { .. } => ARMED,
        Body::Unwinding { .. } => UNWINDING,
    }
}

pub(super) fn put(out: &mut Writer<'_>, body: &Body) {
    match body {
        Body::Begun(begun) => put_begun(out, begun),
        Body::Opened(opened) => put_opened(out, opened),
        Body::Waiting(waiting) => put_waiting(out, waiting),
        Body::Attempt { number, state } => {
            out.varint((*number).into());
            match state {
                AttemptState::Started => out.u8(1),
                AttemptState::Failed { failure, wake_at } => {
                    out.u8(2);
                    failure::put(out, failure);
                    out.timestamp(*wake_at);
                }
            }
        }
        Body::Ended(ended) => put_ended(out, ended),
        Body::Taken(messages) => out.list(messages, put_message),
        Body::Decided { branch } => out.text(branch),
        Body::Carried { next, state } => {
            out.varint(*next);
            out.payload(state);
        }
        Body::Closed(payload) => out.payload(payload),
        Body::Pin { value, latest } => {
            out.varint((*value).into());
            out.varint((*latest).into());
        }
        Body::Removed { kind } => out.tag(*kind),
        Body::Checkpoint => {}
        Body::Settled { up_to } => out.varint(*up_to),
        Body::State {
            revision,
            payload,
            command,
        } => {
            out.varint(*revision);
            out.payload(payload);
            out.option(command.as_deref(), Writer::text);
        }
        Body::Undone {
            undoes,
            attempt,
            outcome,
            skipped,
        } => {
            out.varint(*undoes);
            out.varint((*attempt).into());
            out.option(outcome.as_ref().err(), failure::put);
            out.option(skipped.as_deref(), Writer::text);
        }
        Body::Control(control) => put_control(out, control),
        Body::Finished(finished) => put_finished(out, finished),
        Body::Armed {
            number,
            location,
            undo,
            output,
            origin,
        } => {
            out.varint(*number);
            out.location(location);
            out.text(undo);
            out.option(output.as_ref(), Writer::payload);
            // It was added later: where there is none, nothing is written.
            if let Some(origin) = origin {
                out.location(origin);
            }
        }
        Body::Unwinding { cause } => out.option(cause.as_ref(), failure::put),
    }
}

pub(super) fn get(input: &mut Reader<'_>, kind: u8) -> Result<Body, Fault> {
    Ok(match kind {
        BEGUN => Body::Begun(Box::new(get_begun(input)?)),
        OPENED => Body::Opened(get_opened(input)?),
        WAITING => Body::Waiting(get_waiting(input)?),
        ATTEMPT => Body::Attempt {
            number: input.u32()?,
            state: match input.u8()? {
                1 => AttemptState::Started,
                2 => AttemptState::Failed {
                    failure: failure::get(input)?,
                    wake_at: input.timestamp()?,
                },
                newer => return Err(Fault::Newer("state of an attempt", newer)),
            },
        },
        ENDED => Body::Ended(get_ended(input)?),
        TAKEN => Body::Taken(input.list(get_message)?),
        DECIDED => Body::Decided {
            branch: input.text()?,
        },
        CARRIED => Body::Carried {
            next: input.varint()?,
            state: input.payload()?,
        },
        CLOSED => Body::Closed(input.payload()?),
        PIN => Body::Pin {
            value: input.u32()?,
            latest: input.u32()?,
        },
        REMOVED => Body::Removed { kind: input.tag()? },
        CHECKPOINT => Body::Checkpoint,
        SETTLED => Body::Settled {
            up_to: input.varint()?,
        },
        STATE => Body::State {
            revision: input.varint()?,
            payload: input.payload()?,
            command: input.option(Reader::text)?,
        },
        UNDONE => Body::Undone {
            undoes: input.varint()?,
            attempt: input.u32()?,
            outcome: input.option(failure::get)?.map_or(Ok(()), Err),
            skipped: input.option(Reader::text)?,
        },
        CONTROL => Body::Control(get_control(input)?),
        FINISHED => Body::Finished(get_finished(input)?),
        ARMED => Body::Armed {
            number: input.varint()?,
            location: input.location()?,
            undo: input.text()?,
            output: input.option(Reader::payload)?,
            origin: if input.is_empty() {
                None
            } else {
                Some(input.location()?)
            },
        },
        UNWINDING => Body::Unwinding {
            cause: input.option(failure::get)?,
        },
        newer => return Err(Fault::Newer("kind", newer)),
    })
}

fn put_begun(out: &mut Writer<'_>, begun: &Begun) {
    out.text(&begun.workflow);
    out.payload(&begun.input);
    out.fixed(begun.input_hash);
    out.wide(begun.seed);
    out.varint(begun.generation.into());
    out.parent(begun.parent.as_ref());
    out.option(begun.forked_from.as_ref(), |out, run| {
        out.text(run.as_str());
    });
}

fn get_begun(input: &mut Reader<'_>) -> Result<Begun, Fault> {
    Ok(Begun {
        workflow: input.text()?,
        input: input.payload()?,
        input_hash: input.fixed()?,
        seed: input.wide()?,
        generation: input.u32()?,
        parent: input.parent()?,
        forked_from: input.option(Reader::run_id)?,
    })
}

fn put_opened(out: &mut Writer<'_>, opened: &Opened) {
    match opened {
        Opened::Join(branches) => {
            out.u8(1);
            out.texts(branches);
        }
        Opened::Race(branches) => {
            out.u8(2);
            out.texts(branches);
        }
        Opened::JoinAll(items) => {
            out.u8(3);
            out.varint(*items);
        }
        Opened::Carry(locals) => {
            out.u8(4);
            out.texts(locals);
        }
        Opened::Stage { visit, keeps } => {
            out.u8(5);
            out.varint((*visit).into());
            out.option(*keeps, |out, visit| out.varint(visit.into()));
        }
    }
}

fn get_opened(input: &mut Reader<'_>) -> Result<Opened, Fault> {
    Ok(match input.u8()? {
        1 => Opened::Join(input.texts()?),
        2 => Opened::Race(input.texts()?),
        3 => Opened::JoinAll(input.varint()?),
        4 => Opened::Carry(input.texts()?),
        5 => Opened::Stage {
            visit: input.u32()?,
            keeps: input.option(Reader::u32)?,
        },
        newer => return Err(Fault::Newer("kind of container", newer)),
    })
}

fn put_waiting(out: &mut Writer<'_>, waiting: &Waiting) {
    match waiting {
        Waiting::Sleep { until } => {
            out.u8(1);
            out.timestamp(*until);
        }
        Waiting::Recv {
            channels,
            until,
            want,
        } => {
            out.u8(2);
            out.option(channels.as_deref(), Writer::texts);
            out.option(*until, Writer::timestamp);
            out.varint((*want).into());
        }
        Waiting::Child { id, detached } => {
            out.u8(3);
            out.text(id.as_str());
            out.bool(*detached);
        }
        Waiting::Body => out.u8(4),
    }
}

fn get_waiting(input: &mut Reader<'_>) -> Result<Waiting, Fault> {
    Ok(match input.u8()? {
        1 => Waiting::Sleep {
            until: input.timestamp()?,
        },
        2 => Waiting::Recv {
            channels: input.option(Reader::texts)?,
            until: input.option(Reader::timestamp)?,
            want: input.u32()?,
        },
        3 => Waiting::Child {
            id: input.run_id()?,
            detached: input.bool()?,
        },
        4 => Waiting::Body,
        newer => return Err(Fault::Newer("kind of wait", newer)),
    })
}

fn put_ended(out: &mut Writer<'_>, ended: &Ended) {
    out.tag(ended.kind);
    match &ended.outcome {
        Ok(payload) => {
            out.u8(1);
            out.payload(payload);
        }
        Err(failure) => {
            out.u8(2);
            failure::put(out, failure);
        }
    }
    out.varint(ended.attempts.into());
    out.timestamp(ended.started_at);
    out.option(ended.input_hash, Writer::fixed);
}

fn get_ended(input: &mut Reader<'_>) -> Result<Ended, Fault> {
    Ok(Ended {
        kind: input.tag()?,
        outcome: match input.u8()? {
            1 => Ok(input.payload()?),
            2 => Err(failure::get(input)?),
            newer => return Err(Fault::Newer("outcome", newer)),
        },
        attempts: input.u32()?,
        started_at: input.timestamp()?,
        input_hash: input.option(Reader::fixed)?,
    })
}

pub(super) fn put_message(out: &mut Writer<'_>, message: &Message) {
    out.wide(message.id);
    out.text(&message.channel);
    out.varint(message.arrival);
    out.timestamp(message.at);
    out.option(message.dedup.as_deref(), Writer::text);
    out.option(message.reply_to.as_deref(), Writer::bytes);
    out.payload(&message.payload);
}

pub(super) fn get_message(input: &mut Reader<'_>) -> Result<Message, Fault> {
    Ok(Message {
        id: input.wide()?,
        channel: input.text()?,
        arrival: input.varint()?,
        at: input.timestamp()?,
        dedup: input.option(Reader::text)?,
        reply_to: input.option(Reader::bytes)?,
        payload: input.payload()?,
    })
}

fn put_control(out: &mut Writer<'_>, control: &Control) {
    match control {
        Control::Cancel { undo } => {
            out.u8(1);
            out.bool(*undo);
        }
        Control::Evicted => out.u8(2),
        Control::Recovered => out.u8(3),
        Control::Rewound {
            to,
            generation,
            removed,
        } => {
            out.u8(4);
            out.location(to);
            out.varint((*generation).into());
            out.varint(*removed);
        }
        Control::Skipped { reason } => {
            out.u8(5);
            out.text(reason);
        }
        Control::Forked { seed } => {
            out.u8(6);
            out.wide(*seed);
        }
    }
}

fn get_control(input: &mut Reader<'_>) -> Result<Control, Fault> {
    Ok(match input.u8()? {
        1 => Control::Cancel {
            undo: input.bool()?,
        },
        2 => Control::Evicted,
        3 => Control::Recovered,
        4 => Control::Rewound {
            to: input.location()?,
            generation: input.u32()?,
            removed: input.varint()?,
        },
        5 => Control::Skipped {
            reason: input.text()?,
        },
        6 => Control::Forked {
            seed: input.wide()?,
        },
        newer => return Err(Fault::Newer("kind of control", newer)),
    })
}

pub(super) fn put_finished(out: &mut Writer<'_>, finished: &Finished) {
    match finished {
        Finished::Completed(payload) => {
            out.u8(1);
            out.payload(payload);
        }
        Finished::Failed(failure) => {
            out.u8(2);
            failure::put(out, failure);
        }
        Finished::Cancelled => out.u8(3),
    }
}

pub(super) fn get_finished(input: &mut Reader<'_>) -> Result<Finished, Fault> {
    Ok(match input.u8()? {
        1 => Finished::Completed(input.payload()?),
        2 => Finished::Failed(failure::get(input)?),
        3 => Finished::Cancelled,
        newer => return Err(Fault::Newer("kind of end", newer)),
    })
}
