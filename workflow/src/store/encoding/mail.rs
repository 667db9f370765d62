//! What goes between runs, as it is written: each with a version before it and a checksum after it, as a record.

use bytes::Bytes;

use super::{
    Fault, VERSION, body,
    read::Reader,
    write::{Writer, seal},
};
#[cfg(feature = "redb")]
use crate::replay::Payload;
use crate::replay::{Finished, Message};
#[cfg(feature = "redb")]
use crate::store::mail::{Effect, Stray};
use crate::store::{Answer, DeadLetter, StoreError};

/// Writes how a child ended onto the end of `out`: the payload of a message on
/// [`CHILD_ENDED`](crate::store::CHILD_ENDED).
pub fn encode_finished(finished: &Finished, out: &mut Vec<u8>) {
    sealed(out, |out| body::put_finished(out, finished));
}

/// Reads how a child ended.
///
/// # Errors
/// [`StoreError::Newer`] when a newer program wrote it, [`StoreError::Corrupt`] when it is damaged.
pub fn decode_finished(bytes: &Bytes) -> Result<Finished, StoreError> {
    opened(bytes, body::get_finished).map_err(|fault| fault.of("end of a child"))
}

/// Writes a message onto the end of `out`.
pub fn encode_message(message: &Message, out: &mut Vec<u8>) {
    sealed(out, |out| body::put_message(out, message));
}

/// Reads a message.
///
/// # Errors
/// [`StoreError::Newer`] when a newer program wrote it, [`StoreError::Corrupt`] when it is damaged.
pub fn decode_message(bytes: &Bytes) -> Result<Message, StoreError> {
    opened(bytes, body::get_message).map_err(|fault| fault.of("message"))
}

/// Writes a dead letter onto the end of `out`.
pub fn encode_dead_letter(letter: &DeadLetter, out: &mut Vec<u8>) {
    sealed(out, |out| put_letter(out, letter));
}

/// Reads a dead letter.
///
/// # Errors
/// [`StoreError::Newer`] when a newer program wrote it, [`StoreError::Corrupt`] when it is damaged.
pub fn decode_dead_letter(bytes: &Bytes) -> Result<DeadLetter, StoreError> {
    opened(bytes, get_letter).map_err(|fault| fault.of("dead letter"))
}

/// Writes the answer to a request onto the end of `out`.
pub fn encode_answer(answer: &Answer, out: &mut Vec<u8>) {
    sealed(out, |out| put_answer(out, answer));
}

/// Reads the answer to a request.
///
/// # Errors
/// [`StoreError::Newer`] when a newer program wrote it, [`StoreError::Corrupt`] when it is damaged.
pub fn decode_answer(bytes: &Bytes) -> Result<Answer, StoreError> {
    opened(bytes, get_answer).map_err(|fault| fault.of("answer"))
}

/// Writes a value of the application onto the end of `out`.
#[cfg(feature = "redb")]
pub(crate) fn encode_value(value: &Payload, out: &mut Vec<u8>) {
    sealed(out, |out| out.payload(value));
}

/// Reads a value of the application.
#[cfg(feature = "redb")]
pub(crate) fn decode_value(bytes: &Bytes) -> Result<Payload, StoreError> {
    opened(bytes, Reader::payload).map_err(|fault| fault.of("value"))
}

fn put_letter(out: &mut Writer<'_>, letter: &DeadLetter) {
    body::put_message(out, &letter.message);
    out.text(&letter.reason);
    out.timestamp(letter.at);
}

fn get_letter(input: &mut Reader<'_>) -> Result<DeadLetter, Fault> {
    Ok(DeadLetter {
        message: body::get_message(input)?,
        reason: input.text()?,
        at: input.timestamp()?,
    })
}

fn put_answer(out: &mut Writer<'_>, answer: &Answer) {
    match answer {
        Answer::Reply(payload) => {
            out.u8(1);
            out.payload(payload);
        }
        Answer::NoReply => out.u8(2),
    }
}

fn get_answer(input: &mut Reader<'_>) -> Result<Answer, Fault> {
    Ok(match input.u8()? {
        1 => Answer::Reply(input.payload()?),
        2 => Answer::NoReply,
        newer => return Err(Fault::Newer("kind of answer", newer)),
    })
}

#[cfg(feature = "redb")]
pub(crate) fn put_effect(out: &mut Writer<'_>, effect: &Effect) {
    match effect {
        Effect::Put(message) => {
            out.u8(1);
            body::put_message(out, message);
        }
        Effect::Take(arrival) => {
            out.u8(2);
            out.varint(*arrival);
        }
        Effect::Dead(letter) => {
            out.u8(3);
            put_letter(out, letter);
        }
        Effect::Stray(to, stray) => {
            out.u8(4);
            out.text(to.as_str());
            body::put_message(out, &stray.message);
            out.timestamp(stray.keep_until);
        }
        Effect::Lapse(to, arrival) => {
            out.u8(5);
            out.text(to.as_str());
            out.varint(*arrival);
        }
        Effect::Answer(request, answer) => {
            out.u8(6);
            out.wide(*request);
            put_answer(out, answer);
        }
        Effect::Value(key, value) => {
            out.u8(7);
            out.text(key);
            out.option(value.as_ref(), Writer::payload);
        }
        Effect::Gone(requests) => {
            out.u8(8);
            out.list(requests, |out, request| out.wide(*request));
        }
    }
}

#[cfg(feature = "redb")]
pub(crate) fn get_effect(input: &mut Reader<'_>) -> Result<Effect, Fault> {
    Ok(match input.u8()? {
        1 => Effect::Put(body::get_message(input)?),
        2 => Effect::Take(input.varint()?),
        3 => Effect::Dead(get_letter(input)?),
        4 => Effect::Stray(
            input.run_id()?,
            Stray {
                message: body::get_message(input)?,
                keep_until: input.timestamp()?,
            },
        ),
        5 => Effect::Lapse(input.run_id()?, input.varint()?),
        6 => Effect::Answer(input.wide()?, get_answer(input)?),
        7 => Effect::Value(input.text()?, input.option(Reader::payload)?),
        8 => Effect::Gone(input.list(Reader::wide)?),
        newer => return Err(Fault::Newer("effect on messages", newer)),
    })
}

fn sealed(out: &mut Vec<u8>, put: impl FnOnce(&mut Writer<'_>)) {
    let start = out.len();
    let mut writer = Writer(out);
    writer.u8(VERSION);
    put(&mut writer);
    seal(out, start);
}

fn opened<'a, T>(
    bytes: &'a Bytes,
    get: impl FnOnce(&mut Reader<'a>) -> Result<T, Fault>,
) -> Result<T, Fault> {
    let mut input = Reader::sealed(bytes)?;
    match input.u8()? {
        VERSION => {}
        newer => return Err(Fault::Newer("version", newer)),
    }
    let value = get(&mut input)?;
    if input.is_empty() {
        Ok(value)
    } else {
        Err(Fault::Malformed("it is too long"))
    }
}
