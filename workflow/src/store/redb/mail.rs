//! What batches did to messages: in memory while it is not folded, and how it gets into the tables.
//!
//! What stands here goes before what the tables say, whatever they were folded up to: of each place it is the last word.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound::{Excluded, Included, Unbounded};

use bytes::Bytes;
use redb::{ReadTransaction, WriteTransaction};

use super::tables::{ANSWERS, DEAD, DELIVERED, Failed, INBOX, LAPSES, STRAYS, VALUES};
use crate::replay::{Message, Payload, RunId, RunKey, Timestamp};
use crate::store::encoding::{
    decode_answer, decode_dead_letter, decode_message, decode_value, encode_answer,
    encode_dead_letter, encode_message, encode_value,
};
use crate::store::mail::{Effect, Stray};
use crate::store::transition::Transition;
use crate::store::{Answer, DeadLetter};

/// What some batches did to messages; `None` for what is gone.
#[derive(Debug, Default)]
pub(super) struct Mail {
    inbox: BTreeMap<(RunKey, u64), Since<Option<Message>>>,
    dead: BTreeMap<(RunKey, u64), Since<DeadLetter>>,
    delivered: HashMap<(RunKey, Vec<u8>), Since<u128>>,
    strays: BTreeMap<(RunId, u64), Since<Option<Stray>>>,
    lapses: BTreeSet<(Timestamp, RunId, u64)>,
    answers: HashMap<u128, Since<Option<Answer>>>,
    /// The runs that were deleted: what else is said of them here, or in the tables, is past.
    gone: HashMap<RunKey, u64>,
    values: BTreeMap<String, Since<Option<Payload>>>,
}

/// What a commit said.
#[derive(Debug)]
struct Since<T> {
    commit: u64,
    what: T,
}

/// So many lapsed messages are cleared away at once: whoever sends one pays for few.
const LAPSED: usize = 16;

impl Mail {
    fn apply(&mut self, commit: u64, run: RunKey, effect: &Effect) {
        match effect {
            Effect::Put(message) => {
                if let Some(key) = &message.dedup {
                    let key = (run, dedup_key(&message.channel, key));
                    let what = message.id;
                    self.delivered.insert(key, Since { commit, what });
                }
                let what = Some(message.clone());
                self.inbox
                    .insert((run, message.arrival), Since { commit, what });
            }
            Effect::Take(arrival) => self.take(commit, run, *arrival),
            Effect::Dead(letter) => {
                let arrival = letter.message.arrival;
                self.take(commit, run, arrival);
                let what = letter.clone();
                self.dead.insert((run, arrival), Since { commit, what });
            }
            Effect::Stray(to, stray) => {
                let arrival = stray.message.arrival;
                self.lapses.insert((stray.keep_until, to.clone(), arrival));
                let what = Some(stray.clone());
                self.strays
                    .insert((to.clone(), arrival), Since { commit, what });
            }
            Effect::Lapse(to, arrival) => {
                let gone = Since { commit, what: None };
                if let Some(Since {
                    what: Some(stray), ..
                }) = self.strays.insert((to.clone(), *arrival), gone)
                {
                    self.lapses
                        .remove(&(stray.keep_until, to.clone(), *arrival));
                }
            }
            Effect::Answer(request, answer) => {
                let what = Some(answer.clone());
                self.answers.insert(*request, Since { commit, what });
            }
            Effect::Value(key, value) => {
                let what = value.clone();
                self.values.insert(key.clone(), Since { commit, what });
            }
            Effect::Gone(requests) => {
                self.gone.insert(run, commit);
                for request in requests {
                    self.answers.insert(*request, Since { commit, what: None });
                }
            }
        }
    }

    /// What a batch says of messages.
    pub(super) fn apply_all(&mut self, commit: u64, transition: &Transition) {
        for effect in &transition.effects {
            self.apply(commit, transition.run, effect);
        }
    }

    fn take(&mut self, commit: u64, run: RunKey, arrival: u64) {
        self.inbox
            .insert((run, arrival), Since { commit, what: None });
    }

    /// Lets go of what commits before `folded` said: it is in the tables now.
    pub(super) fn forget(&mut self, folded: u64) {
        self.inbox.retain(|_, since| since.commit >= folded);
        self.dead.retain(|_, since| since.commit >= folded);
        self.delivered.retain(|_, since| since.commit >= folded);
        self.answers.retain(|_, since| since.commit >= folded);
        self.values.retain(|_, since| since.commit >= folded);
        self.gone.retain(|_, commit| *commit >= folded);
        let lapses = &mut self.lapses;
        self.strays.retain(|(to, arrival), since| {
            let stays = since.commit >= folded;
            if let (false, Some(stray)) = (stays, &since.what) {
                lapses.remove(&(stray.keep_until, to.clone(), *arrival));
            }
            stays
        });
    }

    pub(super) fn has_strays(&self) -> bool {
        !self.strays.is_empty()
    }

    /// Writes it into the tables. Whether any message is kept there for a run to come then, if that may have changed.
    pub(super) fn fold(&self, txn: &WriteTransaction) -> Result<Option<bool>, Failed> {
        let mut out = Vec::new();
        if !self.inbox.is_empty() {
            let mut table = txn.open_table(INBOX)?;
            for ((run, arrival), since) in &self.inbox {
                match &since.what {
                    Some(message) => {
                        out.clear();
                        encode_message(message, &mut out);
                        table.insert((run.0, *arrival), &out[..])?;
                    }
                    None => drop(table.remove((run.0, *arrival))?),
                }
            }
        }
        if !self.dead.is_empty() {
            let mut table = txn.open_table(DEAD)?;
            for ((run, arrival), since) in &self.dead {
                out.clear();
                encode_dead_letter(&since.what, &mut out);
                table.insert((run.0, *arrival), &out[..])?;
            }
        }
        if !self.delivered.is_empty() {
            let mut table = txn.open_table(DELIVERED)?;
            for ((run, key), since) in &self.delivered {
                table.insert((run.0, &key[..]), since.what)?;
            }
        }
        if !self.answers.is_empty() {
            let mut table = txn.open_table(ANSWERS)?;
            for (request, since) in &self.answers {
                match &since.what {
                    Some(answer) => {
                        out.clear();
                        encode_answer(answer, &mut out);
                        table.insert(*request, &out[..])?;
                    }
                    None => drop(table.remove(*request)?),
                }
            }
        }
        if !self.values.is_empty() {
            let mut table = txn.open_table(VALUES)?;
            for (key, since) in &self.values {
                match &since.what {
                    Some(value) => {
                        out.clear();
                        encode_value(value, &mut out);
                        table.insert(&**key, &out[..])?;
                    }
                    None => drop(table.remove(&**key)?),
                }
            }
        }
        self.clear_away(txn)?;
        if self.strays.is_empty() {
            return Ok(None);
        }
        let mut table = txn.open_table(STRAYS)?;
        let mut lapses = txn.open_table(LAPSES)?;
        for ((to, arrival), since) in &self.strays {
            let place = (to.as_str(), *arrival);
            if let Some(stray) = &since.what {
                out.clear();
                encode_message(&stray.message, &mut out);
                let until = stray.keep_until.as_millis();
                let past = table.insert(place, (until, &out[..]))?;
                // One that lapsed may have stood there.
                if let Some(past) = past.map(|stray| stray.value().0) {
                    lapses.remove((past, place.0, place.1))?;
                }
                lapses.insert((until, place.0, place.1), ())?;
            } else {
                let until = table.remove(place)?.map(|stray| stray.value().0);
                if let Some(until) = until {
                    lapses.remove((until, place.0, place.1))?;
                }
            }
        }
        Ok(Some(!redb::ReadableTableMetadata::is_empty(&table)?))
    }
}

impl Mail {
    /// Takes what the tables have of deleted runs out of them.
    fn clear_away(&self, txn: &WriteTransaction) -> Result<(), Failed> {
        if self.gone.is_empty() {
            return Ok(());
        }
        let mut gone: Vec<_> = self.gone.keys().map(|run| run.0).collect();
        gone.sort_unstable();
        let mut inbox = txn.open_table(INBOX)?;
        let mut dead = txn.open_table(DEAD)?;
        let mut delivered = txn.open_table(DELIVERED)?;
        for run in gone {
            let all = (run, 0)..=(run, u64::MAX);
            inbox.retain_in(all.clone(), |_, _| false)?;
            dead.retain_in(all, |_, _| false)?;
            let none: &[u8] = &[];
            delivered.retain_in((run, none)..(run + 1, none), |_, _| false)?;
        }
        Ok(())
    }
}

/// Mail by layers, the newest first, with the tables below them.
#[derive(Clone, Copy)]
pub(super) struct Layers<'a> {
    pub(super) here: &'a [&'a Mail],
    pub(super) txn: &'a ReadTransaction,
}

impl Layers<'_> {
    /// The newest word on a place, in any layer.
    fn last<T>(&self, ask: impl Fn(&Mail) -> Option<T>) -> Option<T> {
        self.here.iter().find_map(|mail| ask(mail))
    }

    /// Whether a run was deleted.
    fn is_gone(&self, run: RunKey) -> bool {
        self.here.iter().any(|mail| mail.gone.contains_key(&run))
    }

    pub(super) fn inbox(
        &self,
        run: RunKey,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Message>, Failed> {
        if self.is_gone(run) {
            return Ok(Vec::new());
        }
        let table = self.txn.open_table(INBOX)?;
        let range = (Excluded((run.0, after)), Included((run.0, u64::MAX)));
        let mut stored = table.range(range)?;
        let mut next = stored.next().transpose()?;
        let mut found = Vec::new();
        let mut at = after;
        while found.len() < limit {
            let range = (Excluded((run, at)), Included((run, u64::MAX)));
            let heads = self
                .here
                .iter()
                .filter_map(|mail| mail.inbox.range(range).next());
            // Of those that are equal the first: the newest layer's.
            let here = heads.min_by_key(|((_, arrival), _)| *arrival);
            let there = next.as_ref().map(|(key, _)| key.value().1);
            match (here, there) {
                (Some(((_, arrival), since)), there)
                    if there.is_none_or(|there| *arrival <= there) =>
                {
                    at = *arrival;
                    found.extend(since.what.clone());
                    if there == Some(at) {
                        next = stored.next().transpose()?;
                    }
                }
                (_, Some(arrival)) => {
                    at = arrival;
                    if let Some((_, value)) = &next {
                        found.push(decode_message(&Bytes::copy_from_slice(value.value()))?);
                    }
                    next = stored.next().transpose()?;
                }
                (_, None) => break,
            }
        }
        Ok(found)
    }

    pub(super) fn dead_letters(
        &self,
        run: RunKey,
        after: u64,
        limit: usize,
    ) -> Result<Vec<DeadLetter>, Failed> {
        if self.is_gone(run) {
            return Ok(Vec::new());
        }
        let mut found = BTreeMap::new();
        let range = (Excluded((run.0, after)), Included((run.0, u64::MAX)));
        for entry in self.txn.open_table(DEAD)?.range(range)?.take(limit) {
            let (key, value) = entry?;
            let letter = decode_dead_letter(&Bytes::copy_from_slice(value.value()))?;
            found.insert(key.value().1, letter);
        }
        let range = (Excluded((run, after)), Included((run, u64::MAX)));
        for mail in self.here {
            let letters = mail.dead.range(range).take(limit);
            found.extend(letters.map(|((_, arrival), since)| (*arrival, since.what.clone())));
        }
        Ok(found.into_values().take(limit).collect())
    }

    pub(super) fn delivered(
        &self,
        run: RunKey,
        channel: &str,
        key: &str,
    ) -> Result<Option<u128>, Failed> {
        let place = (run, dedup_key(channel, key));
        if let Some(id) = self.last(|mail| mail.delivered.get(&place).map(|since| since.what)) {
            return Ok(Some(id));
        }
        let id = self.txn.open_table(DELIVERED)?.get((run.0, &place.1[..]))?;
        Ok(id.map(|id| id.value()))
    }

    pub(super) fn strays(&self, to: &RunId) -> Result<Vec<Stray>, Failed> {
        let mut found = BTreeMap::new();
        let (first, last) = ((to.as_str(), 0), (to.as_str(), u64::MAX));
        for entry in self.txn.open_table(STRAYS)?.range(first..=last)? {
            let (key, value) = entry?;
            let (until, message) = value.value();
            let stray = Stray {
                message: decode_message(&Bytes::copy_from_slice(message))?,
                keep_until: Timestamp::from_millis(until),
            };
            found.insert(key.value().1, Some(stray));
        }
        for mail in self.here.iter().rev() {
            let strays = mail.strays.range((to.clone(), 0)..=(to.clone(), u64::MAX));
            found.extend(strays.map(|((_, arrival), since)| (*arrival, since.what.clone())));
        }
        Ok(found.into_values().flatten().collect())
    }

    pub(super) fn lapsed(&self, at: Timestamp) -> Result<Vec<(RunId, u64)>, Failed> {
        let mut found = BTreeSet::new();
        for mail in self.here {
            for (_, to, arrival) in mail.lapses.iter().take_while(|(until, ..)| *until <= at) {
                if found.len() >= LAPSED {
                    break;
                }
                if self.has_lapsed(to, *arrival, at)? {
                    found.insert((to.clone(), *arrival));
                }
            }
        }
        let end = (at.as_millis().saturating_add(1), "", 0);
        for key in self.txn.open_table(LAPSES)?.range(..end)? {
            if found.len() >= LAPSED {
                break;
            }
            let key = key?.0;
            let (_, to, arrival) = key.value();
            let to = RunId::from_stored(to);
            if self.has_lapsed(&to, arrival, at)? {
                found.insert((to, arrival));
            }
        }
        Ok(found.into_iter().collect())
    }

    /// Whether the message that stands at this place has lapsed. A place is used again after one lapsed there: a list of
    /// lapses may tell of that one, until it is folded.
    fn has_lapsed(&self, to: &RunId, arrival: u64, at: Timestamp) -> Result<bool, Failed> {
        let place = (to.clone(), arrival);
        let here = self.last(|mail| {
            let since = mail.strays.get(&place)?;
            Some(since.what.as_ref().map(|stray| stray.keep_until))
        });
        let until = if let Some(until) = here {
            until
        } else {
            let stored = self.txn.open_table(STRAYS)?;
            let stored = stored.get((to.as_str(), arrival))?;
            stored.map(|stray| Timestamp::from_millis(stray.value().0))
        };
        Ok(until.is_some_and(|until| until <= at))
    }

    pub(super) fn answer(&self, request: u128) -> Result<Option<Answer>, Failed> {
        let here = self.last(|mail| mail.answers.get(&request).map(|since| since.what.clone()));
        if let Some(here) = here {
            return Ok(here);
        }
        match self.txn.open_table(ANSWERS)?.get(request)? {
            Some(answer) => Ok(Some(decode_answer(&Bytes::copy_from_slice(
                answer.value(),
            ))?)),
            None => Ok(None),
        }
    }
}

impl Layers<'_> {
    pub(super) fn value(&self, key: &str) -> Result<Option<Payload>, Failed> {
        if let Some(value) = self.last(|mail| mail.values.get(key).map(|since| since.what.clone()))
        {
            return Ok(value);
        }
        let stored = self.txn.open_table(VALUES)?.get(key)?;
        let value = stored.map(|value| decode_value(&Bytes::copy_from_slice(value.value())));
        Ok(value.transpose()?)
    }

    pub(super) fn values(
        &self,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<(String, Payload)>, Failed> {
        let from = match after {
            Some(after) if after >= prefix => Excluded(after),
            _ => Included(prefix),
        };
        let mut found = BTreeMap::new();
        let here: BTreeMap<&str, &Option<Payload>> = {
            let layers = self.here.iter().rev();
            let values = layers.flat_map(|mail| mail.values.range::<str, _>((from, Unbounded)));
            let values = values.map(|(key, since)| (&**key, &since.what));
            values.filter(|(key, _)| key.starts_with(prefix)).collect()
        };
        for entry in self
            .txn
            .open_table(VALUES)?
            .range::<&str>((from, Unbounded))?
        {
            let (key, value) = entry?;
            let key = key.value();
            if found.len() >= limit || !key.starts_with(prefix) {
                break;
            }
            if !here.contains_key(key) {
                let value = decode_value(&Bytes::copy_from_slice(value.value()))?;
                found.insert(key.to_owned(), value);
            }
        }
        let here = here.into_iter();
        found.extend(here.filter_map(|(key, value)| Some((key.to_owned(), value.clone()?))));
        Ok(found.into_iter().take(limit).collect())
    }
}

/// A channel and a dedup key as one key that no other two make.
fn dedup_key(channel: &str, key: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(channel.len() + key.len() + 4);
    crate::store::encoding::Writer(&mut bytes).text(channel);
    bytes.extend_from_slice(key.as_bytes());
    bytes
}
