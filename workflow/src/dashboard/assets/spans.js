// What a history says of each location: what is there, from when to when, and how it went. The records of a run as a forest.

import { failed, instant, isOwn, place, segment, value } from './format.js';

/** Of one location. `parts` are what its bar is drawn of: `{ from, to, kind }`, where `to` is missing while it goes on. */
function span(location, depth, at, seq) {
  const last = location[depth];
  return {
    key: place(location.slice(0, depth + 1)),
    name: segment(last),
    kind: typeof last === 'object' && 'branch' in last ? 'branch' : typeof last === 'string' ? '' : 'item',
    isBranch: typeof last === 'object' && 'branch' in last,
    state: '',
    began: at,
    last: at,
    seq,
    goesOn: false,
    attempts: 0,
    note: '',
    depth,
    under: [],
    branches: [],
    parts: [],
    marks: [],
    records: [],
  };
}

/** All spans of these records, those above before those under them. As long as there are none, it begins where the run does. */
export function spansOf(records, begins = 0) {
  const known = new Map();
  const armed = new Map();
  const roots = [];
  const moments = [];
  const began = records[0]?.at ?? begins;
  let before = began;

  const find = (location, at, seq) => {
    let above;
    for (let depth = 0; depth < location.length; depth += 1) {
      const key = place(location.slice(0, depth + 1));
      let here = known.get(key);
      if (!here) {
        here = span(location, depth, at, seq);
        known.set(key, here);
        (above ? above.under : roots).push(here);
        here.above = above;
      }
      above = here;
    }
    return above;
  };

  for (const record of records) {
    const { body, at, location = [] } = record;
    moments.push(at);
    if (body.armed) {
      armed.set(body.armed.number, place(body.armed.location));
    } else if (body.undone) {
      const of = known.get(armed.get(body.undone.undoes));
      if (of) {
        of.records.push(record);
        of.marks.push({ at, kind: body.undone.outcome.ok !== undefined || body.undone.skipped ? 'undone' : 'failed' });
        if (body.undone.skipped) of.note = `undo skipped: ${body.undone.skipped}`;
        else if ('failed' in body.undone.outcome) of.note = `undo failed: ${failed(body.undone.outcome.failed)}`;
        else of.state = 'undone';
      }
    } else if (!body.state && location.length > 0 && !isOwn(location)) {
      const here = find(location, at, record.seq);
      here.records.push(record);
      take(here, body, at, before);
    }
    before = at;
  }
  for (const of of roots) settle(of);
  return { roots, known, moments, began, last: before };
}

const open = (of) => of.parts.find((part) => part.to === undefined);
const close = (of, at) => {
  const part = open(of);
  if (part) part.to = at;
};

function take(of, body, at, before) {
  of.last = Math.max(of.last, at);
  const [what] = Object.keys(body);
  const data = body[what];
  switch (typeof body === 'string' ? body : what) {
    case 'opened': {
      const [kind] = Object.keys(data);
      of.kind = { join: 'join', race: 'race', join_all: 'join_all', carry: 'loop', stage: 'stage' }[kind] ?? kind;
      if (kind === 'join' || kind === 'race') of.branches = data[kind];
      break;
    }
    case 'waiting': {
      const kind = data === 'body' ? 'body' : Object.keys(data)[0];
      if (kind === 'body') break;
      of.kind = kind;
      of.state = 'waiting';
      of.parts.push({ from: at, kind: 'wait' });
      if (kind === 'sleep') {
        of.until = data.sleep.until;
        of.note = `until ${instant(of.until)}`;
      } else if (kind === 'recv') {
        of.until = data.recv.until ?? undefined;
        of.note = data.recv.channels ? `for ${data.recv.channels.join(', ')}` : 'for any message';
      } else if (kind === 'child') {
        of.child = data.child.id;
        of.note = data.child.id;
        if (data.child.detached) {
          of.state = 'done';
          close(of, at);
        }
      }
      break;
    }
    case 'attempt': {
      of.kind = 'step';
      of.attempts = data.number;
      if (data.state === 'started') {
        of.state = 'running';
        close(of, at);
        of.parts.push({ from: at, kind: 'run' });
        break;
      }
      const { failure, wake_at } = data.state.failed;
      const begun = open(of);
      if (begun) begun.to = begun.kind === 'backoff' ? Math.min(begun.until, at) : at;
      const from = begun?.kind === 'backoff' ? begun.to : begun ? at : Math.min(before, at);
      of.parts.push({ from, to: at, kind: 'failed' });
      of.parts.push({ from: at, until: wake_at, kind: 'backoff' });
      of.marks.push({ at, kind: 'failed' });
      of.began = Math.min(of.began, from);
      of.state = 'retrying';
      of.until = wake_at;
      of.note = failed(failure);
      break;
    }
    case 'ended': {
      const ok = 'ok' in data.outcome;
      of.kind = data.kind;
      of.attempts = data.attempts;
      close(of, data.attempts > 1 ? Math.min(at, data.started_at) : at);
      if (data.kind === 'step' || of.parts.length === 0) {
        const from = data.attempts > 0 ? data.started_at : at;
        of.parts.push({ from: Math.min(from, at), to: at, kind: ok ? 'run' : 'failed' });
        of.began = Math.min(of.began, from);
      }
      if (!ok) of.marks.push({ at, kind: 'failed' });
      of.state = ok ? 'done' : 'failed';
      of.until = undefined;
      if (!ok) of.note = failed(data.outcome.failed);
      else if (data.kind !== 'child') of.note = '';
      break;
    }
    case 'taken':
      of.kind = 'recv';
      of.state = 'done';
      of.until = undefined;
      close(of, at);
      if (of.parts.length === 0) of.parts.push({ from: at, to: at, kind: 'wait' });
      of.note = data.map((message) => message.channel).join(', ');
      break;
    case 'decided':
      of.state = 'done';
      of.note = `won by ${data.branch}`;
      of.winner = data.branch;
      break;
    case 'carried':
      of.kind = 'loop';
      of.note = `${data.next} done`;
      break;
    case 'pin':
      point(of, 'version', at, String(data.value));
      break;
    case 'removed':
      of.kind = 'removed';
      of.note = data.kind;
      break;
    case 'checkpoint':
      point(of, 'checkpoint', at, '');
      break;
    case 'settled':
      point(of, 'settle', at, '');
      break;
    default:
  }
}

function point(of, kind, at, note) {
  of.kind = kind;
  of.state = 'done';
  of.note = note;
  of.marks.push({ at, kind: 'point' });
}

/** What lies under something is a part of it; branches stand in the order in which they were written. */
function settle(of) {
  for (const under of of.under) settle(under);
  if (of.kind === '' && of.under.some((under) => under.kind === 'item')) of.kind = 'loop';
  of.goesOn = of.state === 'waiting' || of.state === 'retrying' || of.state === 'running';
  for (const under of of.under) {
    of.began = Math.min(of.began, under.began);
    of.last = Math.max(of.last, under.last);
    of.goesOn ||= under.goesOn;
  }
  if (of.winner !== undefined) {
    for (const under of of.under) if (under.isBranch && under.name !== of.winner) lose(under, of.last);
    of.goesOn = false;
  }
  const order = (under) => {
    const at = of.branches.indexOf(under.name);
    return at < 0 ? of.branches.length : at;
  };
  of.under.sort((a, b) => order(a) - order(b));
  for (const [lane, under] of of.under.filter((under) => under.isBranch).entries()) under.lane = lane;
}

/** A branch of a race that another one has won: what was under way in it is over. */
function lose(of, at) {
  if (of.state === 'waiting' || of.state === 'retrying' || of.state === 'running' || of.isBranch) of.state = 'lost';
  of.goesOn = false;
  of.until = undefined;
  close(of, at);
  for (const under of of.under) lose(under, at);
}

/** A run that has ended leaves nothing under way. */
export function stopAll(of, at) {
  if (of.goesOn) {
    if (of.state) of.state = 'cut off';
    of.goesOn = false;
    of.until = undefined;
    close(of, at);
  }
  for (const under of of.under) stopAll(under, at);
}

/** The spans that are to be seen, those above first; what is folded hides what is under it. */
export function seen(roots, folded) {
  const found = [];
  const walk = (of) => {
    found.push(of);
    if (!folded.has(of.key)) of.under.forEach(walk);
  };
  roots.forEach(walk);
  return found;
}

/** What a record says, in a word and a line. */
export function told({ body }) {
  if (typeof body === 'string') return { what: body, says: '' };
  const [what] = Object.keys(body);
  const data = body[what];
  switch (what) {
    case 'begun':
      return { what: 'begun', says: data.workflow, payload: value(data.input) };
    case 'opened': {
      const [kind] = Object.keys(data);
      const of = data[kind];
      return { what: `${kind.replaceAll('_', ' ')} entered`, says: Array.isArray(of) ? of.join(', ') : '' };
    }
    case 'waiting': {
      if (data === 'body') return { what: 'waiting', says: 'for its body' };
      const [kind] = Object.keys(data);
      if (kind === 'sleep') return { what: 'sleeps', says: `until ${instant(data.sleep.until)}` };
      if (kind === 'child') return { what: data.child.detached ? 'child started' : 'waits for child', says: data.child.id };
      const until = data.recv.until ? `, until ${instant(data.recv.until)}` : '';
      return { what: 'waits', says: `for ${data.recv.channels?.join(', ') ?? 'any message'}${until}` };
    }
    case 'attempt':
      if (data.state === 'started') return { what: `attempt ${data.number} began`, says: '' };
      return { what: `attempt ${data.number} failed`, says: data.state.failed.failure.message, bad: true, failure: data.state.failed.failure, again: data.state.failed.wake_at };
    case 'ended': {
      const times = data.attempts > 1 ? `, attempt ${data.attempts}` : '';
      if ('ok' in data.outcome) return { what: `${data.kind} done${times}`, says: '', payload: value(data.outcome.ok) };
      return { what: `${data.kind} failed${times}`, says: data.outcome.failed.message, bad: true, failure: data.outcome.failed };
    }
    case 'taken':
      return { what: 'message taken', says: data.map((message) => message.channel).join(', '), payload: data.length === 1 ? value(data[0].payload) : data.map((message) => value(message.payload)) };
    case 'decided':
      return { what: 'race won', says: `by ${data.branch}` };
    case 'carried':
      return { what: `iteration ${data.next} comes`, says: '', payload: value(data.state) };
    case 'closed':
      return { what: 'closed', says: '', payload: value(data) };
    case 'pin':
      return { what: `version ${data.value}`, says: `of ${data.latest}` };
    case 'removed':
      return { what: 'removed', says: `a ${data.kind}` };
    case 'armed':
      return { what: `undo armed #${data.number}`, says: place(data.location), payload: value(data.output) };
    case 'unwinding':
      return { what: 'rolls back', says: data.cause ? failed(data.cause) : 'it was cancelled', bad: true, failure: data.cause ?? undefined };
    case 'settled':
      return { what: 'settled', says: `up to undo #${data.up_to}` };
    case 'state':
      return { what: `revision ${data.revision}`, says: '', payload: value(data.payload) };
    case 'undone':
      if (data.skipped) return { what: `undo #${data.undoes} skipped`, says: data.skipped };
      if ('failed' in data.outcome) return { what: `undo #${data.undoes} failed`, says: data.outcome.failed.message, bad: true, failure: data.outcome.failed };
      return { what: `undo #${data.undoes} done`, says: '' };
    case 'control': {
      const kind = typeof data === 'string' ? data : Object.keys(data)[0];
      const says = kind === 'rewound' ? `to ${place(data.rewound.to) || 'its beginning'}, ${data.rewound.removed} records removed` : kind === 'cancel' ? (data.cancel.undo ? 'and to undo' : '') : '';
      return { what: kind === 'cancel' ? 'cancel asked' : kind, says };
    }
    case 'finished': {
      if (data === 'cancelled') return { what: 'cancelled', says: '' };
      if ('completed' in data) return { what: 'completed', says: '', payload: value(data.completed) };
      return { what: 'failed', says: data.failed.message, bad: true, failure: data.failed };
    }
    default:
      return { what, says: '' };
  }
}
