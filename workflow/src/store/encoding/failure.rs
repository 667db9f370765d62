//! A failure as it is written.

use super::{Fault, read::Reader, write::Writer};
use crate::replay::Failure;

/// Failures within failures are kept this deep; what lies deeper is left out when written. No source nests so far.
const DEPTH: u32 = 64;

pub(super) fn put(out: &mut Writer<'_>, failure: &Failure) {
    put_at(out, failure, DEPTH);
}

pub(super) fn get(input: &mut Reader<'_>) -> Result<Failure, Fault> {
    get_at(input, DEPTH)
}

fn put_at(out: &mut Writer<'_>, failure: &Failure, depth: u32) {
    out.tag(failure.kind());
    out.location(failure.location());
    out.varint(failure.attempts().into());
    out.text(failure.type_name());
    out.text(failure.message());
    out.texts(failure.chain());
    out.option(failure.value(), Writer::payload);
    let branches = if depth == 0 { &[] } else { failure.branches() };
    out.list(branches, |out, branch| {
        put_at(out, branch, depth.saturating_sub(1));
    });
}

fn get_at(input: &mut Reader<'_>, depth: u32) -> Result<Failure, Fault> {
    let kind = input.tag()?;
    let location = input.location()?;
    let attempts = input.u32()?;
    let type_name = input.text()?;
    let message = input.text()?;
    let chain = input.texts()?;
    let value = input.option(Reader::payload)?;
    let branches = input.list(|input| {
        let depth = depth
            .checked_sub(1)
            .ok_or(Fault::Malformed("failures are nested too deeply"))?;
        get_at(input, depth)
    })?;
    Ok(Failure::new(kind, location, message)
        .with_attempts(attempts)
        .with_type_name(type_name)
        .with_chain(chain)
        .with_value(value)
        .with_branches(branches))
}
